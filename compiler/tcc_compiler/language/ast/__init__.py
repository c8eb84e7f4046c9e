"""The tree of a grammar's text: leaves, expressions, tools, statements."""
