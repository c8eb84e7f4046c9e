"""The core of a grammar: what it is, and its reader, which holds it to its schema."""
