"""Lints: text of a grammar without effect, or with a meaning that its author hardly intended."""
