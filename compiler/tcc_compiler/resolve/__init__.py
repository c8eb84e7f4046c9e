"""From statements to the core: names, calls, call sets, rules, limits; errors with their spans."""
