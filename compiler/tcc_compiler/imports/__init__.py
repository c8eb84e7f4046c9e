"""Graphs that come in as grammars: node-link JSON, GraphML, networkx (imports.md, section 1)."""
