"""The races of a run, and the children that they draw."""
