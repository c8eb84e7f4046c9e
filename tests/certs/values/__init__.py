"""Values: numbers, canonical texts, digests, patterns, types."""
