"""The grammar language: source texts, tokens, syntax trees, and diagnostics that point into them."""
