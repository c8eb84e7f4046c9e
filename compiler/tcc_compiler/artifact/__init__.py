"""The finished automaton as an artifact: edges over calls, digests, numbering, bytes."""
