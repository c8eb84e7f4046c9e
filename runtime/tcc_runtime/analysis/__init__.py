"""Analysis of plans without a race: changes, explanations, nearest plans, plans drawn at random."""
