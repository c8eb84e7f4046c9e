"""An MCP server over stdio, of the SDK, that notes the `_meta` of each call in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("desk")
LOG = Path(sys.argv[1])


def noted(context: Context) -> None:
    meta = context.request_context.meta
    found = meta if isinstance(meta, dict) else (meta.model_dump() if meta is not None else {})
    told = {name: value for name, value in found.items() if name.startswith("tcc/")}
    with LOG.open("a") as file:
        file.write(json.dumps(told) + "\n")


@server.tool()
def find(by: str, context: Context) -> str:
    noted(context)
    return "found"


@server.tool()
def answer(context: Context) -> str:
    noted(context)
    return "answered"


if __name__ == "__main__":
    server.run("stdio")
