"""An MCP server made with the official SDK that offers more than tools: over stdio or HTTP.

It has resources, prompts, and tools that ask for input.  What it executes is appended to
``EXECUTED``; with ``PORT`` it is served over HTTP.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult, ListRootsRequest

server = MCPServer("offering", version="1.0", log_level="WARNING")


def executed(name: str, **arguments: object) -> None:
    with Path(os.environ["EXECUTED"]).open("a", encoding="utf-8") as log:
        log.write(json.dumps({"name": name, "arguments": arguments}) + "\n")


@server.tool()
def open_case(id: str) -> str:
    """Opens a case."""
    executed("open_case", id=id)
    return f"opened {id}"


@server.tool()
async def refund(id: str, amount: int, ctx: Context[Any]) -> str | InputRequiredResult:
    """Pays back, after the client was asked twice: for a yes, and for its roots."""
    answers = dict(ctx.input_responses or {})
    executed("refund", id=id, amount=amount, state=ctx.request_state, answered=sorted(answers))
    if ctx.request_state is None:
        schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
        asked = ElicitRequestFormParams(message=f"Pay {amount}?", requested_schema=schema)
        return InputRequiredResult(
            input_requests={"sure": ElicitRequest(params=asked)}, request_state=f"one of {id}"
        )
    if ctx.request_state == f"one of {id}":
        if answers["sure"].action != "accept":  # type: ignore[union-attr]
            return "not paid"
        return InputRequiredResult(
            input_requests={"roots": ListRootsRequest()}, request_state=f"two of {id}"
        )
    return f"paid {amount}"


@server.resource("file:///rules.txt")
def rules() -> str:
    """What is allowed."""
    return "é is allowed"


@server.resource("case://{id}")
def case(id: str) -> str:
    """A case."""
    return f"case {id}"


@server.prompt()
def apology(name: str) -> str:
    """Begs pardon."""
    return f"Sorry, {name}."


PORT = os.environ.get("PORT")
if PORT is None:
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(PORT))
