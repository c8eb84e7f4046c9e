"""Costs that are ranges: quotes of providers, and the known bounds."""
