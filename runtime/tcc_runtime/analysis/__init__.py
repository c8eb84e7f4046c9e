"""Analyses of plans without a race: changes, explanations, nearest plans, random draws."""
