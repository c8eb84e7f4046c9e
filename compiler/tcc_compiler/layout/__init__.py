"""The layout of a grammar that `tcc fmt` writes."""
