"""Relaxing: which statements to leave to the run if the exact automaton is too large."""
