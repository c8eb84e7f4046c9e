"""Settings of a run: their table, what an artifact allows, the claim, and predicted work."""
