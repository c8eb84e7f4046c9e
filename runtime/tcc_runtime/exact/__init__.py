"""The engine for exact questions: searches for proofs, and for sessions that break a statement."""
