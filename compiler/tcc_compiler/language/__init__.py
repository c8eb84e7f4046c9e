"""The grammar language: source texts, tokens, syntax trees, diagnostics with their spans."""
