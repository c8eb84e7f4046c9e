"""Artifacts, as runs and gates use them: columns, counts, bounds, plans and relaxed statements."""
