"""The grammar language: source texts, values, diagnostics with spans, and their catalogue."""
