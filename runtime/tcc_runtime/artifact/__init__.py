"""An artifact as a run uses it: opened, its counts and bounds, its plans, what it leaves to a run."""
