"""Prices of calls while they are ranges: providers that are asked for quotes, and what is known."""
