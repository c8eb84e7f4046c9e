"""What people ask of plans without a race: what changed, why not, what is near, a few at random."""
