"""Values that calls are made with: types of open parameters, numbers, texts, their digests."""
