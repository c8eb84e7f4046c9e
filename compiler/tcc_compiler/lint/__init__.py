"""Lints: what a grammar says to no effect, or probably means otherwise."""
