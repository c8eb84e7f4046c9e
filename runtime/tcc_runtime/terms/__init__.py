"""The terms of a run: what it is told, what the artifact allows, what it may claim, its work."""
