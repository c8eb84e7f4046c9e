"""From statements to the core: names, calls, call sets, rules, limits; every error with its place."""
