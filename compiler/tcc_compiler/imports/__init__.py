"""Imports: graphs as grammars (imports.md, section 1), MCP tools as skeletons (section 2)."""
