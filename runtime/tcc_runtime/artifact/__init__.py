"""An artifact as a run uses it: its columns, counts and bounds, its plans, what it leaves open."""
