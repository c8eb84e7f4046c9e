"""Lists, records, null and answers out of JSON Schema."""

from __future__ import annotations

import random
import re
import time
from typing import Any

import pytest

from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.imports.mcp_grammar import Skeleton, skeleton_of

TEXT = {"type": "string"}


def imported(properties: dict[str, Any], required: tuple[str, ...] = (), **tool: Any) -> Skeleton:
    """The skeleton of one tool `t`, which the front end reads without an error."""
    around = tool.pop("around", {})
    schema = {"type": "object", "properties": properties, "required": list(required), **around}
    found = skeleton_of([{"name": "t", "inputSchema": schema, **tool}], "g")
    front = read_grammar_text(found.text)
    assert not front.diagnostics, [item.message for item in front.diagnostics]
    return found


def declared(found: Skeleton) -> str:
    lines = re.sub("\n +", " ", found.text).splitlines()
    (line,) = (line for line in lines if line.startswith("tool "))
    return line.removeprefix("tool t")


def lost(found: Skeleton) -> list[str]:
    return [item.message for item in found.warnings]


PERSON = {
    "type": "object",
    "properties": {"name": TEXT, "born": {"type": ["string", "null"]}, "kind": {"enum": ["a"]}},
    "required": ["name"],
}

OPEN = ["members of objects that its schema leaves open are refused"]


@pytest.mark.parametrize(
    ("schema", "text", "said"),
    [
        ({"type": "array", "items": TEXT}, "list of text", []),
        ({"type": "array"}, "list of json", []),
        ({"type": "array", "items": True}, "list of json", []),
        (
            {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 5, "uniqueItems": True},
            "list min 1 max 5 distinct of text",
            [],
        ),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, 'list of text "a" | "b"', []),
        ({"type": "array", "items": {"type": "boolean"}}, "list of flag", []),
        ({"type": "array", "items": {"enum": ["a", 1]}},
         'list of (text "a" or integer 1 .. 1)', []),
        ({"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 3}},
         "list of integer 1 .. 3", []),
        ({"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
         "list of list of number", []),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "list of (text or null)", []),
        ({"type": "array", "items": TEXT, "maxItems": 5000}, "list of text",
         ["at most 1000 elements"]),
        ({"type": "array", "items": TEXT, "minItems": 1001}, "json",
         ['its shape is not held: "array", items, minItems']),
        ({"type": "array", "items": TEXT, "contains": {}}, "list of text", ["not held: contains"]),
        ({"type": "array", "items": [TEXT, TEXT]}, "list of json",
         ["which element has which of its types is not held"]),
        ({"type": "array", "prefixItems": [TEXT, TEXT], "items": False}, "list max 2 of text", []),
        ({"type": "array", "items": False}, "list max 0 of json", []),
        ({"type": "array", "items": {"type": "object"}},
         'list of (all: json at "", member?: json)', []),
        ({"type": "array", "items": PERSON},
         "list of (name: text, born?: text or null, kind?: a)", OPEN),
        ({"type": "array", "items": {**PERSON, "additionalProperties": False}},
         "list of (name: text, born?: text or null, kind?: a)", []),
        ({"type": "array", "items": {**PERSON, "additionalProperties": TEXT}},
         "list of (name: text, born?: text or null, kind?: a)", OPEN),
        ({"type": "array", "items": {"type": "object", "properties": {"a": TEXT, "": TEXT}}},
         "list of (a?: text)", [*OPEN, '"" of an object is refused']),
        ({"type": "array", "items": {"type": "object", "properties": {"a": TEXT, "": TEXT},
                                     "required": [""]}},
         'list of (all: json at "", member?: json)',
         ["its members are not held: properties, required"]),
        ({"type": "array", "items": {"type": "object", "required": ["when"],
                                     "properties": {"when": {"type": ["integer", "null"]}}}},
         "list of (when: integer or null)", OPEN),
        ({"type": "array", "items": {"$ref": "#/$defs/person"}},
         "list of (name: text, born?: text or null, kind?: a)", OPEN),
        ({"type": ["array", "null"], "items": TEXT}, "list of text or null", []),
        ({"anyOf": [TEXT, {"type": "null"}]}, "text or null", []),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, "a | b", []),
        ({"type": ["boolean", "null"]}, "true | false | null", []),
        ({"anyOf": [{"enum": ["a", None]}, {"type": "null"}]}, "a | null", []),
        ({"anyOf": [{"enum": ["a | null"]}, {"type": "null"}]}, '"a | null" | null', []),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]},
         'object (all: json at "", member?: json) or null', []),
    ],
)  # fmt: skip
def test_a_schema_is_this_field(schema: Any, text: str, said: list[str]) -> None:
    found = imported({"f": schema}, around={"$defs": {"person": PERSON}})
    inside = declared(found)
    assert inside == f"(f?: {text})"
    assert lost(found) == said


def test_what_is_required_and_null_has_null_as_a_value() -> None:
    found = imported({"f": {"type": ["string", "null"]}, "g": {"enum": ["x", None]}}, ("f", "g"))
    assert declared(found) == "(f: text or null, g: x | null)"
    assert lost(found) == []


def test_no_list_of_that_length_is_no_argument() -> None:
    found = imported({"f": {"type": "array", "items": TEXT, "minItems": 3, "maxItems": 2}})
    assert declared(found) == ""
    assert lost(found) == ["left out: it has no value"]


def test_an_output_schema_is_open_answers() -> None:
    answers = {
        "id": TEXT,
        "state": {"enum": ["open", "closed"]},
        "paid": {"type": "boolean"},
        "at": {"type": ["string", "null"]},
        "legs": {"type": "array", "items": {"type": "object", "properties": {"no": TEXT}}},
        "owner": {"type": "object"},
        "a/b~": {"type": "integer"},
    }
    found = imported(
        {"id": TEXT, "a/b~": TEXT},
        ("id",),
        outputSchema={"type": "object", "properties": answers, "required": ["id", "paid"]},
    )
    assert declared(found) == (
        '(id: text, `a/b~`?: text) gives (id_answered: text at "/id",'
        ' state?: text "open" | "closed", paid: flag, at?: text or null,'
        ' legs?: list of (no?: text), `a/b~_answered`?: integer at "/a~1b~0")'
    )
    assert lost(found) == ['of what it answers not compared: "owner"']


@pytest.mark.parametrize(
    "schema",
    [True, {}, {"properties": 5}, {"properties": {}, "required": 5}, {"properties": {"": TEXT}}],
)
def test_an_output_schema_without_answers_gives_none(schema: Any) -> None:
    assert "gives (" not in declared(imported({}, outputSchema=schema))


@pytest.mark.parametrize(
    ("hints", "proposed"),
    [
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": True, "idempotentHint": True}, True),
        ({"idempotentHint": True}, False),
        ({"idempotentHint": True, "destructiveHint": False}, False),
        ({"readOnlyHint": "yes"}, False),
        ("readOnlyHint", False),
        (None, False),
    ],
)
def test_errors_mean_failed_is_proposed_in_a_comment_alone(hints: Any, proposed: bool) -> None:
    found = imported({}, annotations=hints)
    line = "# The server says that it only reads: if so, { errors mean failed } is right."
    assert (line in found.text.splitlines()) is proposed
    assert declared(found) == ""


def test_times_and_dates_are_those_of_rfc_3339() -> None:
    def of(**more: Any) -> str:
        return declared(imported({"f": {"type": "string", **more}}))

    assert of(format="date-time", description="when") == "(f?: time)"
    assert of(format="date") == "(f?: date)"
    assert of(format="time") == of(format="email") == "(f?: text)"
    assert "time" not in of(format="date-time", maxLength=10)
    maybe = imported({"f": {"type": ["string", "null"], "format": "date-time"}})
    assert declared(maybe) == "(f?: time or null)"
    told = imported({}, outputSchema={"type": "object", "properties": {
        "at": {"type": "string", "format": "date-time"}}})  # fmt: skip
    assert declared(told) == " gives (at?: time)"


def test_schemas_that_refer_to_themselves_end() -> None:
    tree = {"type": "array", "items": {"$ref": "#/$defs/tree"}}
    maybe = {"anyOf": [{"$ref": "#/$defs/maybe"}, {"type": "null"}]}
    wide = {
        f"w{i}": {"type": "array", "items": {"type": "object", "properties": {
            name: {"$ref": f"#/$defs/w{i + 1}"} for name in "abcdefgh"
        }}}
        for i in range(20)
    }  # fmt: skip
    defs = {"tree": tree, "maybe": maybe, **wide, "w20": TEXT}
    start = time.process_time()
    found = imported(
        {name: {"$ref": f"#/$defs/{name}"} for name in ("tree", "maybe", "w0", "w19")},
        around={"$defs": defs},
    )
    assert time.process_time() - start < 2
    assert declared(found).startswith("(tree?: list of list of list of")
    assert len(found.text) < 50_000


def test_random_schemas_are_read() -> None:
    draw = random.Random(12)

    def schema(depth: int) -> Any:
        kinds: list[Any] = ["string", "integer", "number", "boolean", "array", "object", "null"]
        kind = draw.choice(kinds)
        made: dict[str, Any] = {"type": draw.choice([kind, kind, [kind, "null"]])}
        if draw.random() < 0.1:
            return draw.choice([True, {}, {"$ref": "#/$defs/x"}, {"enum": ["a", None, 1]}])
        if draw.random() < 0.1 and depth:
            return {"anyOf": [schema(depth - 1), {"type": "null"}]}
        if kind == "array" and depth:
            made |= {"items": schema(depth - 1)} if draw.random() < 0.9 else {}
            made |= {"maxItems": draw.randint(0, 1200)} if draw.random() < 0.3 else {}
            made |= {"minItems": draw.randint(0, 4)} if draw.random() < 0.3 else {}
        if kind == "object" and depth:
            names = draw.sample(["a", "same", "b c", "cost", "é", "x\u202e", "own"], 3)
            made["properties"] = {name: schema(depth - 1) for name in names}
            made["required"] = draw.sample(names, draw.randint(0, 3))
        return made

    for _ in range(150):
        names = draw.sample(["a", "where", "b", "c d"], 3)
        output = {"type": "object", "properties": {name: schema(3) for name in (*names, "z")}}
        given = {name: schema(3) for name in names}
        defs = {"$defs": {"x": schema(2)}}
        imported(given, around=defs, outputSchema={**output, **defs})
