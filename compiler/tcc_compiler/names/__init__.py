"""From syntax trees to the core: declarations, nodes of statements, plans, word meanings."""
