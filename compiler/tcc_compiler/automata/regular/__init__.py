"""The plan expression as a nondeterministic shared graph of positions and stacks."""
