"""An MCP server made with the official SDK, over stdio, or over HTTP where ``PORT`` is given.

What it executes is appended to ``EXECUTED``.
"""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, Field

server = MCPServer("official", version="1.2", log_level="WARNING")


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Tested(BaseModel):
    result: Literal["pass", "fail"]


def executed(name: str, **arguments: object) -> None:
    with Path(os.environ["EXECUTED"]).open("a", encoding="utf-8") as log:
        log.write(json.dumps({"name": name, "arguments": arguments}) + "\n")


@server.tool()
def open_case(id: Annotated[str, Field(pattern="^c-[0-9]{1,4}$")]) -> str:
    """Opens a case."""
    executed("open_case", id=id)
    return f"opened {id}"


@server.tool()
def act(kind: Literal["safe", "risky"], how: str, id: str) -> str:
    """Acts on a case."""
    executed("act", kind=kind, how=how, id=id)
    if how == "raise":
        raise ValueError("no luck")
    return how


@server.tool()
def delete_case(id: str, how: str | None = None) -> str:
    """Deletes a case."""
    executed("delete_case", id=id)
    return "gone"


@server.tool()
def run_tests(suite: Literal["unit", "all"], how: str = "pass") -> Tested:
    """Runs tests."""
    executed("run_tests", suite=suite)
    return Tested(result="fail" if how == "fail" else "pass")


@server.tool()
def paint(
    colour: Colour, share: Annotated[float, Field(ge=0, le=1)], times: int = 1, dry: bool = False
) -> list[str]:
    """Paints; its answer is no object."""
    executed("paint", colour=colour)
    return [colour.value] * times


PORT = os.environ.get("PORT")
if PORT is None:
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(PORT))
