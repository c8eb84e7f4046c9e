"""From the text of a grammar to its syntax trees."""
