"""Adapters of models: their folders, identities and registry."""
