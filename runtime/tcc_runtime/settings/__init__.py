"""Settings of a run: what is given, what an artifact allows, what may be claimed, the work."""
