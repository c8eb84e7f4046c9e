"""Graphs that come in as grammars: node-link JSON, GraphML, networkx (language.md, section 11)."""
