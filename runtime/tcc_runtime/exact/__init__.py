"""Exact questions about grammars with monitors: atoms of values, and the search over sessions."""
