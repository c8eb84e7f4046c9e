"""What is counted over the finished automaton: plans, race counts, bounds to go."""
