"""Programs that tests start: MCP servers, well-behaved and not."""
