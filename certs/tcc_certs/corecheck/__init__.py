"""The automaton against its core: residuals read off the core's trees, beside the automaton."""
