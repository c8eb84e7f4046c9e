"""The canonical layout of a grammar's text."""
