"""Adapters that models run with: folders, identity, registry."""
