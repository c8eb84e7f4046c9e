"""The front end of the one language."""
