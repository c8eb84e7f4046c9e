"""Automata over letters: the set of plans, from the plan expression to the minimal automaton."""
