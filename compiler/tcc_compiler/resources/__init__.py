"""The limits of a compilation on states, memory and time; and how a pass refuses its input."""
