"""From the text of a grammar to its trees."""
