"""The tools of published servers: imported, compiled, and compared with the jsonschema library.

tests/data/mcp/README.md names the servers, their versions and their licences.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import tcc
from tcc_compiler.imports.mcp_grammar import skeleton_of
from tcc_compiler.layout.format import format_text

FILE = Path(__file__).parents[2] / "data" / "mcp" / "published_tools.json"
SERVERS = json.loads(FILE.read_text("ascii"))["servers"]
PLAIN = (
    "", "a", "b c", "é", "2026-01-31", "2026-01-31T12:00:00Z", "https://example.com/a", "a@b.org",
    "12", "0123456789abcdef0123456789abcdef", "123e4567-e89b-12d3-a456-426614174000", 0, 1, -1, 7.5,
    5.0, 64, 1000, True, False, None, [], {}, ["a"], [1, None], {"a": 1}, {"type": "text"},
)  # fmt: skip


class Drawn:
    """Random values that a schema takes, or nearly takes."""

    def __init__(self, root: Mapping[str, Any], seed: str) -> None:
        self._root = root
        self._rng = random.Random(seed)

    def arguments(self) -> Any:
        """Arguments of a call: always an object, as a client sends it."""
        found = self.value(self._root, 0)
        return found if isinstance(found, dict) else {}

    def value(self, schema: Any, depth: int) -> Any:
        rng = self._rng
        if not isinstance(schema, dict) or (depth and rng.random() < 0.06) or depth > 8:
            return rng.choice(PLAIN)
        if "$ref" in schema:
            return self.value(self._pointed(schema["$ref"]), depth + 1)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                rest = {name: part for name, part in schema.items() if name != word}
                return self.value(_merged(rest, rng.choice(schema[word])), depth)
        if "allOf" in schema:
            whole = {name: part for name, part in schema.items() if name != "allOf"}
            for part in schema["allOf"]:
                whole = _merged(whole, part)
            return self.value(whole, depth)
        if "const" in schema or "enum" in schema:
            return rng.choice(schema.get("enum") or [schema["const"]])
        kinds = schema.get("type", "object" if "properties" in schema else None)
        kind = rng.choice(kinds) if isinstance(kinds, list) else kinds
        return self._of_kind(kind, schema, depth)

    def _of_kind(self, kind: Any, schema: Mapping[str, Any], depth: int) -> Any:
        rng = self._rng
        match kind:
            case "string":
                size = schema.get("minLength", 0), min(schema.get("maxLength", 40), 500)
                fitting = [one for one in PLAIN if isinstance(one, str)]
                return rng.choice([*fitting, "x" * size[0], "x" * size[1], "x" * (size[1] + 1)])
            case "number" | "integer":
                low, high = schema.get("minimum", -5), schema.get("maximum", 200)
                ends = [schema.get("exclusiveMinimum", low), schema.get("exclusiveMaximum", high)]
                return rng.choice([low, high, low - 1, high + 1, 1, 7, 7.0, 7.5, *ends])
            case "boolean":
                return rng.random() < 0.5
            case "null":
                return None
            case "array":
                least = schema.get("minItems", 0)
                size = rng.choice([least, least, least + 1, 2, schema.get("maxItems", 3)])
                first = schema.get("prefixItems", [])
                items = [*first[:size], *[schema.get("items", {})] * (size - len(first))]
                return [self.value(one, depth + 1) for one in items]
            case "object":
                return self._object(schema, depth)
        return rng.choice(PLAIN)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        rng = self._rng
        found = {}
        for name, inner in schema.get("properties", {}).items():
            needed = name in schema.get("required", [])
            if rng.random() < (0.98 if needed else 0.3):
                found[name] = self.value(inner, depth + 1)
        more = schema.get("additionalProperties")
        if rng.random() < (0.5 if isinstance(more, dict) and more else 0.04):
            found["more"] = self.value(more, depth + 1)
        return found

    def _pointed(self, pointer: str) -> Any:
        found: Any = self._root
        for step in pointer.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found[int(step)] if isinstance(found, list) else found.get(step, {})
        return found


def _merged(one: Any, other: Any) -> Any:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other
    found = {**one, **other}
    if "properties" in one and "properties" in other:
        found["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        found["required"] = [*one["required"], *other["required"]]
    return found


def is_unnamed(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether an argument has no name in the schema: the header says that these are refused."""
    return not arguments.keys() <= set(re.findall(r'"([^"]+)": ', json.dumps(schema)))


def test_the_data_is_of_more_than_ten_servers() -> None:
    assert len(SERVERS) >= 20 and sum(len(server["tools"]) for server in SERVERS) >= 450
    assert {server["licence"] for server in SERVERS} == {"MIT", "Apache-2.0"}


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server["package"])
@pytest.mark.sampled(8)
def test_tools_of_a_published_server_are_decided_as_by_their_schemas(server: Any) -> None:
    compare(server, 16)


@pytest.mark.campaign
@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server["package"])
def test_many_values_are_decided_as_by_the_schemas(server: Any) -> None:
    compare(server, 1000)


def compare(server: Any, values: int) -> None:
    """Import a server and compare so many values for each tool with the jsonschema library."""
    tools = server["tools"]
    found = skeleton_of(tools, "g")
    assert format_text(found.text).text == found.text
    artifact = tcc.compile_text(found.text)
    assert {tool.name for tool in artifact.core.tools} == {tool["name"] for tool in tools}
    warned = [re.findall('"([^"]*)"', warning.place) for warning in found.warnings]
    agreed = {True: 0, False: 0}
    with tcc.Gate(artifact, durable=False) as gate:
        for tool in tools:
            schema = tool["inputSchema"]
            validator = jsonschema.validators.validator_for(
                schema, default=jsonschema.Draft202012Validator
            )(schema)
            drawn = Drawn(schema, tool["name"])
            about = [names[1:] for names in warned if names[0] == tool["name"]]
            for _ in range(values):
                arguments = drawn.arguments()
                theirs, ours = validator.is_valid(arguments), gate.check(tool["name"], arguments)
                if ours.allowed is theirs:
                    agreed[theirs] += 1
                    continue
                said = any(not names or names[0] in arguments for names in about)
                assert said or (theirs and is_unnamed(arguments, schema)), (
                    tool["name"], arguments, theirs, ours.code,
                )  # fmt: skip
    assert agreed[True] >= values * len(tools) / 8, agreed
