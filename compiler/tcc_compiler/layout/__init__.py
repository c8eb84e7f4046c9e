"""The one layout of a grammar: `tcc fmt`."""
