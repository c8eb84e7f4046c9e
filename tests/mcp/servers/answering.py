"""An MCP server made with the official SDK, over stdio: its tools answer what they are told to."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp.types import CallToolResult

server = MCPServer("answering")


@server.tool()
def say(how: str) -> CallToolResult:
    """Answers with this result, written as JSON."""
    return CallToolResult.model_validate_json(how)


@server.tool()
def repeat(how: str) -> str:
    """Answers with this text, in whatever form the SDK makes of one."""
    return how


@server.tool()
def look(at: str) -> dict[str, str]:
    """Answers with the same moment, which has more digits."""
    return {"was": at.replace("Z", "9" * 4000 + "+00:00")}


@server.tool()
def pay(at: str = "") -> str:
    """Pays."""
    return "paid"


server.run("stdio")
