"""Relaxing: which statements to leave to the run when the exact automaton is too large."""
