"""Imported schemas beside the jsonschema library: no difference without a warning."""

from __future__ import annotations

import math
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis_jsonschema import from_schema

import tcc
from tcc_compiler.imports.mcp_grammar import skeleton_of
from tcc_compiler.layout.format import format_text

TEXT = {"type": "string"}
POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "integer"}},
         "required": ["x"], "additionalProperties": False}  # fmt: skip
TREE = {"type": "object", "properties": {"name": TEXT, "next": {"$ref": "#/$defs/tree"}},
        "required": ["name"], "additionalProperties": False}  # fmt: skip

# Schemas that a grammar holds, and values on both sides.
HELD: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "text": (TEXT, ["", "a"], [5, None, []]),
    "a short text": ({"type": "string", "minLength": 1, "maxLength": 2}, ["a", "éé"], ["", "abc"]),
    "a pattern": ({"type": "string", "pattern": "^[a-c]+$"}, ["abc"], ["", "abcd"]),
    "a pattern that is one text": ({"type": "string", "pattern": "^abc$"}, ["abc"], ["ab"]),
    "an integer": ({"type": "integer"}, [5, 5.0, -3], [5.5, "5", True]),
    "a range": ({"type": "integer", "minimum": 1, "maximum": 5}, [1, 5], [0, 6, None]),
    "a range or null": (
        {"type": ["integer", "null"], "minimum": 1, "maximum": 5}, [1, 5, None], [0, 6, "1"]),
    "a range or null as a choice": (
        {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 100}, {"type": "null"}]},
        [0, 100, None], [101, ""]),
    "draft 4": (
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 3}, [1, 3], [0, 4]),
    "a number": ({"type": "number", "minimum": 0, "maximum": 1}, [0, 0.5, 1], [1.5, -1]),
    "an exclusive bound": (
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1}, [0.5, 1], [0, -0.5, 2]),
    "two exclusive bounds or null": (
        {"type": ["number", "null"], "exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.5, None],
        [0, 1]),
    "a whole number": ({"type": "number", "multipleOf": 1}, [5, 5.0], [5.5]),
    "a flag": ({"type": "boolean"}, [True, False], ["true", 0, None]),
    "null": ({"type": "null"}, [None], [0, ""]),
    "an enumeration": ({"enum": ["a", "b c", 1, 1.5, True, None]}, ["a", 1, 1.0, None], ["c", 2]),
    "one constant": ({"const": "a"}, ["a"], ["b"]),
    "titled constants": ({"oneOf": [{"const": "a", "title": "A"}, {"const": 2}]}, ["a", 2], ["2"]),
    "typed constants": (
        {"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "enum": ["b", "c"]}]},
        ["a", "c"], ["d"]),
    "an array": (
        {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2}, [["a"]], [[], "a"]),
    "any array": ({"type": "array"}, [[], [1, "a", None]], ["a", {}]),
    "a set": ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
              [[1, 2]], [[1, 1], [1, 1.0]]),
    "an empty array": ({"type": "array", "items": False}, [[]], [[1]]),
    "an array of mixed values": (
        {"type": "array", "items": {"enum": ["a", 1, 5, None]}}, [["a", 5, None]], [["b"], [2]]),
    "an array of texts or numbers": (
        {"type": "array", "items": {"type": ["string", "number", "null"]}}, [["a", 1.5, None]],
        [[True], [[]]]),
    "an array of choices": (
        {"type": "array", "items": {"anyOf": [TEXT, POINT]}}, [["a", {"x": 1}], [{"x": 1}]],
        [[1], [{"y": 1}], [{"x": 1, "z": 1}]]),
    "a tuple of one type": (
        {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": False},
        [[], [1, 2]], [[1, 2, 3], ["a"]]),
    "a tuple of draft 7": (
        {"type": "array", "items": [TEXT, TEXT], "additionalItems": False}, [["a"]],
        [["a", "b", "c"]]),
    "a fixed tuple": (
        {"type": "array", "prefixItems": [TEXT, TEXT], "items": False, "minItems": 2},
        [["a", "b"]], [["a"], []]),
    "an object": (POINT, [{"x": 1}, {"x": 1.5, "y": 2}], [{}, {"x": "1"}, {"x": 1, "z": 1}, 5, []]),
    "an object without requirements": (
        {**POINT, "required": []}, [{}, {"y": 1}], [[], None, {"z": 1}]),
    "any object": ({"type": "object"}, [{}, {"a": [1], "member": 2}], [5, [], [1], "a", None]),
    "any object or null": ({"type": ["object", "null"]}, [{}, {"a": 1}, None], [5, []]),
    "any object, text or null": (
        {"anyOf": [{"type": "object", "properties": {}, "additionalProperties": True}, TEXT,
                   {"type": "null"}]},
        [{"a": [1]}, {}, {"member": 2}, "a", None], [5, [], [{}], True]),
    "any object in arrays": (
        {"type": "array", "items": {"type": ["object", "string"]}}, [[{"a": 1}, "b"], [{}]],
        [[1], {}, [[]]]),
    "an object with a listed member": (
        {"type": "object", "properties": {"k": {"enum": ["a", 1, None]}}, "required": ["k"],
         "additionalProperties": False},
        [{"k": "a"}, {"k": None}], [{"k": "b"}, {}]),
    "text or number": ({"type": ["string", "number"]}, ["5", 5], [True, None, []]),
    "text, array or null": (
        {"anyOf": [TEXT, {"type": "array", "items": TEXT}, {"type": "null"}]}, ["a", ["a"], None],
        [5, [5], {}]),
    "a single allOf": ({"allOf": [{"type": "string", "maxLength": 2}]}, ["ab"], ["abc", 5]),
    "an allOf that narrows": (
        {"allOf": [{"type": "number", "minimum": 1}, {"type": "integer", "maximum": 3}]}, [1, 3],
        [0, 4, 1.5]),
    "an allOf of objects": (
        {"allOf": [{"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
                   {"properties": {"a": {"maxLength": 2}, "b": {"type": "integer"}},
                    "additionalProperties": False}]},
        [{"a": "x"}, {"a": "x", "b": 1}], [{}, {"a": "abc"}, {"b": 1}, {"a": "x", "c": 1}]),
    "a reference": ({"$ref": "#/$defs/point"}, [{"x": 1}], [{}, 5]),
    "a reference beside bounds": (
        {"$ref": "#/$defs/short", "minLength": 1}, ["a"], ["", "abc"]),
    "a reference or null": ({"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]},
                            [{"x": 1}, None], [{}, 5]),
}  # fmt: skip
# Schemas that a grammar does not hold, with the warning.
LOST: dict[str, tuple[Any, str]] = {
    "a required member that is not described": (
        {"type": "object", "properties": {}, "required": ["k"], "additionalProperties": TEXT},
        "members of objects"),
    "open members": ({**POINT, "additionalProperties": True}, "members of objects"),
    "members of no schema": (
        {"type": "object", "properties": {"x": TEXT}}, "members of objects"),
    "a map": ({"type": "object", "additionalProperties": {"type": "integer"}},
              "its members are not held: additionalProperties"),
    "a tuple of several types": (
        {"type": "array", "prefixItems": [TEXT, {"type": "integer"}], "items": False},
        "which element has which of its types"),
    "multiples": ({"type": "integer", "multipleOf": 5}, "not held: multipleOf"),
    "two kinds of objects": (
        {"anyOf": [POINT, {"type": "object", "properties": {"z": TEXT},
                           "additionalProperties": False}]}, "several kinds of arrays or objects"),
    "not": ({"type": "string", "not": {"const": "a"}}, "not held: not"),
    "no type": ({"minimum": 5}, "its shape is not held: minimum"),
    "a time": ({"type": "string", "format": "date-time"}, "RFC 3339"),
    "white space": ({"type": "string", "pattern": "^\\s*\\d+$"}, "ECMAScript, not of Python"),
    "one of two that overlap": (
        {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]},
        "several of its choices"),
    "an exclusive bound inside": (
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}}, "exclusive"),
    "a tree": ({"$ref": "#/$defs/tree"}, "its members are not held"),
    "an enumeration of objects": ({"enum": [{"a": 1}, 5]}, "its shape is not held: enum"),
}  # fmt: skip
DEFS = {"point": POINT, "tree": TREE, "short": {"type": "string", "maxLength": 2}}


def whole(schema: Any, *, required: bool) -> dict[str, Any]:
    return {
        "type": "object", "properties": {"x": schema}, "required": ["x"] * required, "$defs": DEFS,
        "additionalProperties": False,
    }  # fmt: skip


def imported(schema: Any, *, required: bool = True) -> tuple[tcc.Gate, list[str]]:
    """A gate of the imported tool `t`, and the warnings."""
    tools = [{"name": "t", "inputSchema": whole(schema, required=required)}]
    found = skeleton_of(tools, "g")
    assert format_text(found.text).text == found.text
    return tcc.Gate(tcc.compile_text(found.text)), [one.message for one in found.warnings]


def is_usual(value: Any) -> bool:
    """Whether a value is within the limits that the header of a skeleton states."""
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int | float):
        return math.isfinite(value) and abs(value) < 2**53
    if isinstance(value, str):
        return not re.search("[\ud800-\udfff]", value) and not value.endswith("\n")
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return all(map(is_usual, parts))


@pytest.mark.parametrize("name", HELD)
def test_a_schema_is_held(name: str) -> None:
    schema, accepted, refused = HELD[name]
    for required in (True, False):
        gate, warnings = imported(schema, required=required)
        assert warnings == []
        for value in accepted:
            assert gate.check("t", {"x": value}).allowed, value
        for value in refused:
            assert not gate.check("t", {"x": value}).allowed, value
        assert gate.check("t", {}).allowed is not required


@pytest.mark.parametrize("name", LOST)
def test_what_is_lost_is_said(name: str) -> None:
    schema, said = LOST[name]
    _, warnings = imported(schema)
    assert any(said in one for one in warnings), warnings


@pytest.mark.parametrize("name", HELD)
@pytest.mark.sampled(16)
def test_random_values_are_decided_alike(name: str) -> None:
    schema = HELD[name][0]
    gate, _ = imported(schema)
    outer = whole(schema, required=True)
    validator = (
        jsonschema.Draft4Validator
        if name == "draft 4"
        else jsonschema.Draft7Validator
        if name == "a tuple of draft 7"
        else jsonschema.Draft202012Validator
    )(outer)
    values = [*HELD[name][1], *HELD[name][2]]
    drawn = JSON | st.sampled_from(values)
    if not any(word in repr(schema) for word in ("$ref", "'object'", "additionalItems", "True")):
        drawn |= from_schema(schema)
    if name == "draft 4":  # to draft 4 the number 1.0 is no integer; to JSON it is 1
        drawn = drawn.filter(lambda value: not (isinstance(value, float) and value.is_integer()))

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(drawn.filter(is_usual))
    def agree(value: Any) -> None:
        assert gate.check("t", {"x": value}).allowed is validator.is_valid({"x": value}), value

    agree()


# hypothesis-jsonschema 0.23 draws no objects with Hypothesis of 2025 and later, and reads draft 7.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 120) | st.sampled_from((0.5, 1.0, 1.5, -0.25))
    | st.sampled_from(("", "a", "b", "abc", "5")),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(("x", "y", "a", "k", "name")), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
