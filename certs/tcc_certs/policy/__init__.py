"""Policies: the statements of a core, their meaning, and the calls that they restrict."""
