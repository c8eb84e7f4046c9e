"""The race: arrivals, what is published of them, weights, digests, and the arithmetic."""
