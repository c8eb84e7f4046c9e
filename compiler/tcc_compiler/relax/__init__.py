"""Bounds in place of counts: what to leave out of the automaton, and when."""
