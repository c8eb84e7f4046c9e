"""The check that the automaton of an artifact has exactly the plans of its core."""
