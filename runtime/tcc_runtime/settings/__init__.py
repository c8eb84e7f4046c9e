"""Settings of runs: their table, combinations with artifacts, claims, and predicted work."""
