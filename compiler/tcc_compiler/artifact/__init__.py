"""The minimal automaton as an artifact: edges over calls, digests, numbering, bytes."""
