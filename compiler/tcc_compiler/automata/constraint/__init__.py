"""Statements as small automata and bounded sums, applied to the automaton one at a time."""
