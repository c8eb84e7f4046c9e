"""The schemas that clients are shown say of arguments what the gate says of them."""

from __future__ import annotations

import random
from typing import Any

import jsonschema
import pytest

import tcc
from tcc_compiler.imports.mcp_grammar import skeleton_of
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.schemas import tools_of
from tcc_runtime.mcp.wire import read_json
from tests.compiler.imports.test_mcp_grammar import GITHUB, candidates
from tests.mcp.speaking import GRAMMAR

ARGUMENTS = frozenset(("R101", "R102", "R103", "R104", "R105", "R106"))


def agree(artifact: Any, listed: list[dict[str, Any]], rounds: int) -> int:
    """How often schema and gate were asked, and said the same."""
    random_ = random.Random(3)
    gate = Gate(artifact)
    asked = 0
    for name, tool in tools_of(artifact.core, artifact.texts, listed).items():
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        shown = jsonschema.Draft202012Validator(tool["inputSchema"])
        for _ in range(rounds):
            arguments = candidates(random_, tool["inputSchema"])
            found = gate.check(name, arguments)
            code = "" if found.code is None else found.code.value
            assert shown.is_valid(arguments) == (code not in ARGUMENTS), (name, arguments, code)
            asked += 1
    return asked


def test_schemas_of_a_grammar_are_what_its_gate_takes() -> None:
    listed = [{"name": name} for name in ("open_case", "act", "delete_case", "run_tests")]
    assert agree(tcc.compile_text(GRAMMAR), listed, 400) == 1600


def test_schemas_of_githubs_tools_are_what_the_gate_takes() -> None:
    tools = read_json(GITHUB.read_bytes())["tools"]
    # What is JSON of any shape is shown with the server's schema, and is the server's to check.
    for tool in tools:
        properties = tool["inputSchema"].get("properties", {})
        for name, schema in properties.items():
            if schema.get("type") in ("array", "object") or "oneOf" in schema:
                properties[name] = {}
    artifact = tcc.compile_text(skeleton_of(tools, "github").text)
    assert agree(artifact, tools, 30) == 117 * 30


GRAMMAR_OF_PARTS = r"""grammar parts version "1"

tool t(a?: 1 | 2 | 3, b: true | "true" | null | 1.5, c: text ~ "a\\-[b\\-]\\.", d?: flag, e: json)

plan = t(a=1) t(a=3, b=null) t(a=3, b=true)
"""


def test_only_values_that_some_call_has_are_shown() -> None:
    artifact = tcc.compile_text(GRAMMAR_OF_PARTS)
    server = {
        "name": "t",
        "title": "T",
        "inputSchema": {
            "$defs": {"deep": {"type": "object"}},
            "properties": {
                "a": {"description": "one of three", "default": 9},
                "c": {"title": "C"},
                "e": {"$ref": "#/$defs/deep"},
            },
        },
        "_meta": {"secret": 1},
        "icons": [],
    }
    (tool,) = tools_of(artifact.core, artifact.texts, [server]).values()
    assert tool == {
        "name": "t",
        "title": "T",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"description": "one of three", "enum": [1, 3]},
                "b": {"enum": [True, "true", None, 1.5]},
                "c": {
                    "title": "C",
                    "type": "string",
                    "maxLength": 65536,
                    "pattern": "^(?:a-[b\\-]\\.)$",
                },
                "d": {"type": "boolean"},
                "e": {"$ref": "#/$defs/deep"},
            },
            "required": ["a", "b", "c", "e"],
            "additionalProperties": False,
            "$defs": {"deep": {"type": "object"}},
        },
    }


@pytest.mark.parametrize("given", [None, 5, [], {"properties": 5}, {"properties": {"a": 5}}])
def test_whatever_the_server_says_the_schema_is_the_grammars(given: Any) -> None:
    artifact = tcc.compile_text(GRAMMAR_OF_PARTS)
    server = {"name": "t", "inputSchema": given}
    (tool,) = tools_of(artifact.core, artifact.texts, [server]).values()
    assert list(tool["inputSchema"]["properties"]) == ["a", "b", "c", "d", "e"]
    assert not tools_of(artifact.core, (), [server])
