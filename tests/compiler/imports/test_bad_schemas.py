"""Hostile schemas: what is imported compiles, in time linear in the schemas."""

from __future__ import annotations

import time
from typing import Any

import pytest

import tcc
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.imports.mcp_grammar import skeleton_of

TEXT = {"type": "string"}


def tool(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": {"x": schema}, **more}}


def compiles(tools: list[dict[str, Any]], seconds: float = 20) -> str:
    """The text of the skeleton, which the front end reads without a mistake."""
    begun = time.process_time()
    text = skeleton_of(tools, "g").text
    front = read_grammar_text(text)
    assert not front.diagnostics, front.diagnostics[0]
    assert time.process_time() - begun < seconds
    return text


CIRCLES: dict[str, Any] = {
    "itself": {"$ref": "#"},
    "a reference": {"$ref": "#/$defs/a"},
    "an allOf": {"allOf": [{"$ref": "#/$defs/b"}]},
    "an anyOf": {"anyOf": [{"$ref": "#/$defs/c"}, {"$ref": "#/$defs/c"}]},
    "an object": {"$ref": "#/$defs/d"},
    "a reference out of the schema": {"$ref": "https://example.com/schema"},
    "a reference that leads nowhere": {"$ref": "#/$defs/none"},
    "a reference that is no text": {"$ref": 5},
}
DEFS: dict[str, Any] = {
    "a": {"$ref": "#/$defs/a"},
    "b": {"allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]},
    "c": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/c"}}] * 8},
    "d": {"type": "object", "properties": {n: {"$ref": "#/$defs/d"} for n in "abcdefgh"}},
}


@pytest.mark.parametrize("name", CIRCLES)
def test_schemas_that_refer_to_themselves(name: str) -> None:
    assert len(compiles([tool("t", CIRCLES[name], **{"$defs": DEFS})], 5)) < 200_000


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [f"value {n}" for n in range(100_000)]},
        {"enum": list(range(100_000))},
        {"enum": [[n] for n in range(100_000)]},
        {"anyOf": [{"const": f"v{n}"} for n in range(100_000)]},
        {"anyOf": [{"type": "string", "maxLength": n} for n in range(10_000)]},
        {"type": "array", "prefixItems": [TEXT] * 10_000},
        {"type": "object", "properties": {f"p{n}": TEXT for n in range(10_000)}},
        {"type": ["string"] * 10_000},
        {"allOf": [{"maxLength": n} for n in range(10_000)]},
    ],
    ids=range(9),
)
@pytest.mark.sampled(2)
def test_large_schemas(schema: Any) -> None:
    compiles([tool("t", schema)])


@pytest.mark.campaign
def test_ten_thousand_tools() -> None:
    tools = [tool(f"t{n}", {"type": "number", "exclusiveMinimum": 0}) for n in range(10_000)]
    tools = [{**one, "annotations": {"readOnlyHint": True}} for one in tools]
    assert compiles(tools, 60).count("\ntool ") == 10_000


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y", "a{1,4095}{1,4095}", "(" * 500, "[" * 99,
     "\\", "(?<=a)b", "^\\s*$", "\ud800", "a" * 5000],
)  # fmt: skip
def test_patterns_made_to_explode(pattern: str) -> None:
    compiles([tool("t", {"type": "string", "pattern": pattern})], 10)


NAMES = [
    "é",
    "e\u0301",
    "\u202e",
    "a\nb",
    "`",
    "",
    "x" * 200,
    "any",
    "this",
    "read_only",
    "😀",
    "0",
    '"',
]


def test_names_with_any_character() -> None:
    tools = [tool(name, TEXT) for name in NAMES]
    wide = {"type": "object", "properties": {name: {"enum": NAMES} for name in NAMES}}
    tools += [{"name": "t", "inputSchema": wide, "annotations": {"readOnlyHint": True}}]
    tools += [tool("u", wide)]
    text = compiles(tools)
    assert "let read_only_tools = t\n" in text
    tcc.compile_text(text)


@pytest.mark.parametrize(
    "schema",
    [5, None, [], "text", {"type": 5}, {"type": {}}, {"enum": 5}, {"enum": {}}, {"required": 5},
     {"properties": 5}, {"properties": {"x": 5}}, {"type": "object", "properties": [], "x": 1},
     {"anyOf": 5}, {"anyOf": [5, None]}, {"items": 5}, {"type": "array", "items": 5},
     {"minimum": "5", "type": "integer"}, {"type": "string", "maxLength": -1},
     {"type": "string", "pattern": 5}, {"type": "array", "minItems": "many"}, {"allOf": 5},
     {"allOf": [5]}, {"const": {}}, {"type": "number", "minimum": float("inf")}, {"$ref": "#/0/0"},
     {"type": "object", "required": [5, "a"], "properties": {"a": TEXT}}],
    ids=str,
)  # fmt: skip
def test_what_is_no_schema(schema: Any) -> None:
    compiles([tool("t", schema), {"name": "u", "inputSchema": schema}, tool("v", TEXT)])
