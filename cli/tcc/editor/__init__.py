"""The language server: what an editor shows of a grammar while it is written (docs/editors.md)."""
