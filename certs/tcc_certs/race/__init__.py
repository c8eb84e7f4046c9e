"""The race: arrivals, weights of calls tilted by cost (`--tilt`), digests, and the arithmetic."""
