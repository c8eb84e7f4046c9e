"""The schemas of arguments as domains, one rule at a time."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tcc_compiler.imports.mcp_schema import ArgumentDomain, Schemas, Spellings

LEAST, TOP = -(2**63), 2**64 - 1


def domain_of(schema: Any) -> ArgumentDomain | None:
    return Schemas({}, Spellings()).domain(schema)


@pytest.mark.parametrize(
    ("schema", "text", "lost"),
    [
        ({"enum": ["a", "b b"]}, 'a | "b b"', ()),
        ({"enum": ["a", 1, 1.5, True, None]}, "a | 1 | 1.5 | true | null", ()),
        ({"enum": ["a", "a"]}, "a", ()),
        ({"enum": [1, Decimal("1.0")]}, "1", ()),
        ({"enum": ["a", 5], "type": "string"}, "a", ()),
        ({"enum": ["a", None], "type": ["string", "null"]}, "a | null", ()),
        ({"enum": [""]}, '""', ()),
        ({"enum": ["true", True]}, '"true" | true', ()),
        ({"enum": ["é\u202e"]}, '"\\u00e9\\u202e"', ()),
        ({"const": "a"}, "a", ()),
        ({"const": None}, "null", ()),
        ({"enum": [{"a": 1}]}, "json", ("its shape is not held: enum",)),
        (
            {"enum": [2**64, 5]},
            "5",
            ("the value \"18446744073709551616\" is refused everywhere",),
        ),
        ({"type": "boolean"}, "true | false", ()),
        ({"type": "null"}, "null", ()),
        ({"type": "integer", "minimum": 1, "maximum": 64}, "1..64", ()),
        ({"type": "integer", "minimum": 0, "maximum": 64}, "integer 0 .. 64", ()),
        ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 4}, "1..3", ()),
        ({"type": "integer", "minimum": Decimal("0.5"), "maximum": Decimal("3.5")}, "1..3", ()),
        ({"type": "integer", "minimum": -3, "maximum": -3}, "-3..-3", ()),
        ({"type": "integer"}, "integer", ()),
        ({"type": "integer", "minimum": 1}, f"integer 1 .. {TOP}", ()),
        ({"type": "integer", "maximum": 1}, f"integer {LEAST} .. 1", ()),
        ({"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, f"integer 0 .. {TOP}", ()),
        ({"type": "integer", "minimum": 0, "maximum": 2**70}, f"integer 0 .. {TOP}", ()),
        ({"enum": [2**53 + 1, 2**64 - 1]}, f"9007199254740993 | {TOP}", ()),
        (
            {"type": "integer", "minimum": 2**64},
            "integer",
            ("its bounds are not held: they are beyond 64 bits",),
        ),
        ({"type": "integer", "multipleOf": 5}, "integer", ("not held: multipleOf",)),
        ({"type": "number"}, "number", ()),
        ({"type": "number", "minimum": 1, "maximum": 100}, "number 1 .. 100", ()),
        ({"type": "number", "minimum": Decimal("0.10")}, f"number 0.1 .. {TOP}", ()),
        (
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            "number 0 .. 1",
            (),
        ),
        (
            {"type": "number", "minimum": Decimal("1e400")},
            "number",
            ("its bounds are not held: they are no values",),
        ),
        (
            {"type": "number", "minimum": 0, "maximum": 2**64},
            "number",
            ("its bounds are not held: they are no values",),
        ),
        ({"type": "number", "minimum": 0, "maximum": 2**64 - 1}, f"number 0 .. {TOP}", ()),
        ({"type": "string"}, "text", ()),
        ({"type": "string", "minLength": 1, "maxLength": 40}, "text min 1 max 40", ()),
        ({"type": "string", "maxLength": 65536}, "text", ()),
        ({"type": "string", "maxLength": 0}, "text max 0", ()),
        (
            {"type": "string", "maxLength": 2**21},
            "text max 1048576",
            ("at most 1048576 characters",),
        ),
        ({"type": "string", "minLength": 70000}, "text min 70000 max 1048576", ()),
        ({"type": "string", "pattern": "^a$"}, 'text "a"', ()),
        (
            {"type": "string", "pattern": "(?=a)"},
            "text",
            ('the pattern "(?=a)" is not held',),
        ),
        (
            {"type": "string", "pattern": "^[ab]*a[ab]{900}$"},
            'text max 1162 ~ "[a-b]*a[a-b]{900}"',
            ("at most 1162 characters",),
        ),
        (
            {"type": "string", "pattern": "^[ab]*a[ab]{900}$", "minLength": 2000},
            "text min 2000",
            ('the pattern "^[ab]*a[ab]{900}$" is not held',),
        ),
        ({"type": "string", "format": "uri"}, "text", ("not held: format",)),
        ({"type": ["string", "null"]}, "text or null", ()),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "integer or null",
            (),
        ),
        ({"type": ["text", "flag"]}, "json", ('its shape is not held: ["text", "flag"]',)),
        ({"oneOf": [{"type": "string"}]}, "text", ()),
        ({"$ref": "#/$defs/x"}, "json", ("its shape is not held: $ref",)),
        ({"type": "object"}, 'object (all: json at "", member?: json)', ()),
        ({"type": "array", "items": {}}, "list of json", ()),
        ({}, "json", ()),
        (True, "json", ()),
        ({"description": "x", "title": "y", "default": 5}, "json", ()),
    ],
)  # fmt: skip
def test_a_schema_is_this_domain(schema: Any, text: str, lost: tuple[str, ...]) -> None:
    found = domain_of(schema)
    assert found is not None
    assert (found.text, found.lost) == (text, lost)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"enum": []},
        {"enum": [5], "type": "string"},
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"type": "number", "minimum": 5, "maximum": 4},
        {"type": "string", "minLength": 5, "maxLength": 4},
        {"type": "string", "minLength": 2**21},
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    ],
)
def test_a_schema_that_no_value_has_is_no_domain(schema: Any) -> None:
    assert domain_of(schema) is None


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"enum": ["a.b", "c"]}, 'text "a.b" | "c"'),
        ({"enum": ["x" * 900, "y"]}, f'text "{"x" * 900}" | "y"'),
        ({"type": "boolean"}, "flag"),
        ({"enum": [True]}, "flag"),
        ({"enum": [3, 1, 2]}, "integer 1 .. 3"),
        ({"enum": [3, Decimal("1.5")]}, "number 1.5 .. 1.5 or integer 3 .. 3"),
        ({"enum": ["a", 1]}, 'text "a" or integer 1 .. 1'),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "integer 1 .. 9"),
    ],
)
def test_what_is_listed_may_be_open_instead(schema: Any, text: str) -> None:
    found = domain_of(schema)
    assert found is not None
    assert found.opened is not None
    assert (found.opened.text, found.opened.values) == (text, ())
