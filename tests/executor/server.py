"""An MCP server over stdio, of the SDK: its tools keep a log in the file that it is told."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("shop")
LOG = Path(sys.argv[1])


def noted(**given: object) -> None:
    with LOG.open("a") as file:
        file.write(json.dumps(given) + "\n")


@server.tool(name="find-it")
def find_it(by: str) -> str:
    noted(tool="find-it", by=by)
    return "found"


@server.tool()
def check(kind: str) -> dict[str, str]:
    noted(tool="check", kind=kind)
    return {"answer": "no"}


@server.tool()
def escalate() -> str:
    noted(tool="escalate")
    if len(sys.argv) > 2 and sys.argv[2] == "fails":
        raise ValueError("nobody is there")
    if len(sys.argv) > 2 and sys.argv[2] == "slow":
        time.sleep(20)
    return "told"


if __name__ == "__main__":
    server.run("stdio")
