"""Policies: the statements of a core, what they mean, and the calls that they speak of."""
