"""Automata over letters: the plan expression, the statements, and what makes them small."""
