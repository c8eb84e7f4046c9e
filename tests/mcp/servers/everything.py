"""The tools, resources and prompts that the conformance suite of MCP asks of a server.

Made with the official SDK, over stdio.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE = base64.b64encode(
    b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0D\xac\0\0\x88X\1\0\2\0\x10\0data\0\0\0\0"
)
DIALECT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}

server = MCPServer("everything", version="1.0")


def _image() -> ImageContent:
    return Image(data=PIXEL, format="png").to_image_content()


def _embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    held = TextResourceContents(uri=uri, mime_type=kind, text=text)
    return EmbeddedResource(type="resource", resource=held)


@server.tool()
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool(structured_output=False)
def test_image_content() -> ImageContent:
    """Return an image."""
    return _image()


@server.tool(structured_output=False)
def test_audio_content() -> AudioContent:
    """Return a sound."""
    return AudioContent(type="audio", data=SILENCE.decode(), mime_type="audio/wav")


@server.tool(structured_output=False)
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource."""
    said = "This is an embedded resource content."
    return _embedded("test://embedded-resource", "text/plain", said)


@server.tool(structured_output=False)
def test_multiple_content_types() -> list[Any]:
    """Return a text, an image and a resource."""
    return [
        TextContent(type="text", text="Multiple content types test:"),
        _image(),
        _embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ]


@server.tool()
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool()
async def test_tool_with_progress(context: Context[Any, Any]) -> str:
    """Report progress."""
    for part in (0, 50, 100):
        await context.report_progress(part, 100)
    return "finished"


@server.tool()
def json_schema_2020_12_tool(name: str = "", address: dict[str, Any] | None = None) -> str:
    """Take an argument with a reference in its schema."""
    return f"{name} {address}"


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return PIXEL


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:
    """A prompt with a resource."""
    held = _embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [
        {"role": "user", "content": held},
        {"role": "user", "content": "Please process the embedded resource above."},
    ]


@server.prompt()
def test_prompt_with_image() -> list[Any]:
    """A prompt with an image."""
    return [
        {"role": "user", "content": _image()},
        {"role": "user", "content": "Please analyze the image above."},
    ]


if __name__ == "__main__":
    # The SDK makes schemas from functions, and none of them names a dialect.
    tool = server._tool_manager.get_tool("json_schema_2020_12_tool")
    assert tool is not None
    tool.parameters = DIALECT
    server.run()
