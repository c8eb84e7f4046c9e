"""Statements as small automata and counters, applied to a machine one at a time."""
