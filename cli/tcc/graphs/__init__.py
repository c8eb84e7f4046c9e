"""Artifacts as graphs of networkx, and those as files (docs/pictures.md)."""
