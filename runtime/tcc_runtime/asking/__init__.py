"""Costs that are ranges: whom to ask about them, and what is known."""
