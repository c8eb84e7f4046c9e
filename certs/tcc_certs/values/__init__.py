"""Values of arguments and answers: types of open fields, numbers, texts and digests."""
