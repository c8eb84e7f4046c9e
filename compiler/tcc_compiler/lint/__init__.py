"""Lints: what a grammar says to no effect, found by automata and never by listing plans."""
