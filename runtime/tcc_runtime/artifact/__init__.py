"""Artifacts as runs use them: columns, counts, bounds, plans, and relaxed statements."""
