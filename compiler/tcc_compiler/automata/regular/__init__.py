"""The plan expression as an automaton: its expressions, their positions, determinising."""
