"""An MCP server made with the official SDK, whose reads take ``SECONDS`` each."""

from __future__ import annotations

import asyncio
import os
import time

from mcp.server.mcpserver import MCPServer

server = MCPServer("slow", version="1")


@server.tool()
async def read(path: str) -> str:
    """Reads; the answer says when it began and when it was over."""
    began = time.monotonic()
    await asyncio.sleep(float(os.environ["SECONDS"]))
    return f"{path} {began} {time.monotonic()}"


@server.tool()
async def write(path: str) -> str:
    """Writes."""
    began = time.monotonic()
    await asyncio.sleep(float(os.environ["SECONDS"]) / 4)
    return f"{path} {began} {time.monotonic()}"


if __name__ == "__main__":
    server.run()
