"""Sums and bounds over the minimal automaton: plans, race counts, cost and residual to go."""
