"""The race: arrivals and what is published of them, weights, digests, and the arithmetic for both."""
