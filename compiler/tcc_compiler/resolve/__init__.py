"""From statements to the core: names, calls, call sets, rules, limits; all errors with places."""
