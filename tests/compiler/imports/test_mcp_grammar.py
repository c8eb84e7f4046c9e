"""Skeletons of grammars from tools: they compile, and hold what the schemas say."""

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
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.imports.mcp_grammar import MAX_CALLS, Skeleton, skeleton_of
from tcc_compiler.layout.format import format_text
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.gate import Gate
from tcc_runtime.mcp.wire import read_json

GITHUB = Path(__file__).parents[2] / "data" / "mcp" / "github_tools.json"


def tool(name: str, required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required is not None:
        schema["required"] = required
    return {"name": name, "inputSchema": schema}


def said(skeleton: Skeleton) -> list[tuple[str, str, str]]:
    return [(item.code, item.place, item.message) for item in skeleton.warnings]


def statements(skeleton: Skeleton) -> list[str]:
    """The tools, each on one line."""
    lines = re.sub("\n +", " ", skeleton.text).splitlines()
    return [line for line in lines if line.startswith("tool ")]


def test_what_is_written_is_laid_out_and_has_no_plan() -> None:
    tools = read_json(GITHUB.read_bytes())["tools"]
    text = skeleton_of(tools, "g").text
    assert format_text(text).text == text
    assert "plan =" not in [line[:6] for line in text.splitlines()]
    assert tcc.compile_text(text).manifest.calls > len(tools)


def test_tools_are_sorted_and_arguments_keep_their_order() -> None:
    found = skeleton_of(
        [
            tool("b", ["y"], z={"type": "boolean"}, y={"type": "string"}, x={"const": 1}),
            tool("a"),
        ],
        "g",
    )
    assert statements(found) == ["tool a", "tool b(z?: true | false, y: text, x?: 1)"]
    assert said(found) == []
    tcc.compile_text(found.text)


def test_odd_names_are_in_backticks() -> None:
    found = skeleton_of(
        [
            tool("create-issue", ["limit"], limit={"type": "string"}, price={"enum": ["any"]}),
            tool("rule", **{"a b": {"type": "string"}, "é": {"enum": ["text"]}}),
        ],
        "g",
    )
    assert statements(found) == [
        'tool `create-issue`(limit: text, price?: "any")',
        'tool rule(`a b`?: text, `é`?: "text")',
    ]
    artifact = tcc.compile_text(found.text)
    gate = Gate(artifact)
    assert gate.check("create-issue", {"limit": "x", "price": "any"})
    assert gate.check("rule", {"a b": "x", "é": "text"})


NO_NAME = "left out: a name has 1 to 128 characters, none of them hidden or a backtick"


@pytest.mark.parametrize(
    ("given", "place", "message"),
    [
        (tool(""), '""', NO_NAME),
        (tool("a\n"), '"a\\n"', NO_NAME),
        (tool("a`b"), '"a`b"', NO_NAME),
        ({"name": "a"}, '"a"', "left out: its schema does not list its arguments"),
        (
            {"name": "a", "inputSchema": {"$ref": "#/x"}},
            '"a"',
            "left out: its schema does not list its arguments",
        ),
        (tool("a", ["b"], b=False), '"a"', 'left out: its argument "b" cannot be given'),
    ],
)
def test_a_tool_that_cannot_be_said_is_left_out(
    given: dict[str, Any], place: str, message: str
) -> None:
    found = skeleton_of([given, tool("kept")], "g")
    assert said(found) == [("TCC612", place, message)]
    assert statements(found) == ["tool kept"]
    tcc.compile_text(found.text)


def test_what_is_lost_stands_beside_the_tool() -> None:
    given = tool("a", x={"minimum": 5}, y=False)
    given["inputSchema"] |= {"anyOf": [], "additionalProperties": True}
    given["description"] = 'says "x"\n and \u202e more'
    found = skeleton_of([given], "g")
    assert said(found) == [
        ("TCC613", '"a"', "arguments that its schema does not name are refused"),
        ("TCC613", '"a"', "which arguments go together is not held: anyOf"),
        ("TCC613", '"a" "x"', "its shape is not held: minimum"),
        ("TCC613", '"a" "y"', "left out: it has no value"),
    ]
    assert "# x: its shape is not held: minimum\n" in found.text
    assert 'tool a(x?: json) { doc "says \\"x\\" and \\u202e more" }' in found.text
    assert found.text.isascii()
    tcc.compile_text(found.text)


def test_a_comment_stays_on_its_line() -> None:
    found = skeleton_of([tool("a", **{"x\ntool evil": {"type": "object"}})], "g")
    assert statements(found) == ["tool a"]
    pattern = {"type": "string", "pattern": "(?=a)\n#\ntool evil"}
    found = skeleton_of([tool("a", x=pattern)], "g")
    assert statements(found) == ["tool a(x?: text)"]


def test_past_the_calls_of_a_tool_the_longest_lists_are_open() -> None:
    many = {"enum": [f"v{number}" for number in range(40)]}
    few = {"enum": ["a", "b", "c"]}
    found = skeleton_of([tool("t", ["p", "q", "r"], p=few, q=many, r=many)], "g")
    (line,) = statements(found)
    assert line.startswith("tool t(p: ")
    assert ', q: text "v0" | ' in line  # 3 * 40 * 40 calls are too many, 3 * 40 are not
    artifact = tcc.compile_text(found.text)
    assert artifact.manifest.calls == 120
    gate = Gate(artifact)
    assert gate.check("t", {"p": "a", "q": "v39", "r": "v0"})
    assert not gate.check("t", {"p": "a", "q": "v40", "r": "v0"})
    wide = {f"p{at}": {"type": "boolean"} for at in range(12)}
    (line,) = statements(skeleton_of([tool("t", **wide)], "g"))
    assert line.count("true | false") == 6  # 3 to the sixth is 729
    assert 3**6 <= MAX_CALLS < 3**7


def test_all_tools_together_stay_within_the_calls_of_a_grammar() -> None:
    wide = {f"p{at}": {"type": "boolean"} for at in range(6)}
    found = skeleton_of([tool(f"t{at}", **wide) for at in range(120)], "g")
    assert tcc.compile_text(found.text).manifest.calls <= 65536


@pytest.fixture(scope="module")
def tools() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_json(GITHUB.read_bytes())["tools"]
    return found


@pytest.fixture(scope="module")
def github(tools: list[dict[str, Any]]) -> Artifact:
    return tcc.compile_text(skeleton_of(tools, "github").text)


def test_the_tools_of_github_are_imported_and_compiled(
    tools: list[dict[str, Any]], github: Artifact
) -> None:
    assert len(tools) == 117
    assert sum(len(tool["inputSchema"].get("properties", {})) for tool in tools) == 616
    found = skeleton_of(tools, "github")
    assert len(statements(found)) == 117
    assert {item.code for item in found.warnings} == {"TCC613"}
    said_of_all = {item.message for item in found.warnings}
    assert said_of_all == {
        "members of objects that its schema leaves open are refused",
        "its shape is not held: several kinds of arrays or objects",
        "a value of several of its choices is let through",
    }
    assert [tool.name for tool in github.core.tools] == sorted(tool["name"] for tool in tools)
    assert found == skeleton_of(list(reversed(tools)), "github")


SCALARS: list[Any] = [
    "", "a", "open", "x" * 300, 0, 1, 5, 64, 100, 101, -1, 1.5, 5.0, True, False, None, [], {},
    ["a"], {"a": 1}, 2**53 - 1, "é",
]  # fmt: skip


def candidates(random_: random.Random, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that are right, or nearly."""
    given: dict[str, Any] = {}
    for name, inner in schema.get("properties", {}).items():
        required = name in schema.get("required", [])
        if random_.random() < (0.97 if required else 0.4):
            given[name] = value_for(random_, inner)
    if random_.random() < 0.05:
        given["no_such_argument"] = 1
    return given


def value_for(random_: random.Random, schema: Any) -> Any:
    if random_.random() < 0.08 or not isinstance(schema, dict):
        return random_.choice(SCALARS)
    if "enum" in schema:
        return random_.choice(schema["enum"])
    either = schema.get("oneOf") or schema.get("anyOf")
    if either:
        return value_for(random_, random_.choice(either))
    match schema.get("type"):
        case "string":
            return random_.choice(["a", "b c", "x" * schema.get("maxLength", 300)])
        case "number" | "integer":
            low, high = schema.get("minimum", -5), schema.get("maximum", 200)
            return random_.choice([low, high, 7, 7.0, 7.5])
        case "boolean":
            return random_.random() < 0.5
        case "array":
            return [value_for(random_, schema.get("items", {})) for _ in range(2)]
        case "object":
            return candidates(random_, schema)
        case list() as kinds:
            return value_for(random_, {"type": random_.choice(kinds)})
        case _:
            return random_.choice(SCALARS)


def is_by_design(arguments: Mapping[str, Any], schema: Mapping[str, Any], code: str) -> bool:
    """Whether the gate refuses by design what the schema allows."""
    properties = schema.get("properties", {})
    if code == "R102":  # arguments that the schema does not name
        return any(name not in properties for name in arguments)
    if code == "R105" and any(
        _has_other_members(properties.get(name), value) for name, value in arguments.items()
    ):
        return True
    # Null beside one type, which the skeleton says it refuses.
    return any(
        value is None and jsonschema.Draft202012Validator(properties[name]).is_valid(None)
        for name, value in arguments.items()
        if name in properties
    )


def _has_other_members(schema: Any, value: Any) -> bool:
    """Whether an object in a value has a member that its schema does not name."""
    if not isinstance(schema, dict):
        return False
    if isinstance(value, list):
        return any(_has_other_members(schema.get("items"), one) for one in value)
    choices = [*schema.get("oneOf", []), *schema.get("anyOf", [])]
    if choices:
        return any(_has_other_members(one, value) for one in choices)
    names = schema.get("properties", {})
    if not isinstance(value, dict) or not names:
        return False
    if set(value) - set(names):
        return True
    return any(_has_other_members(names[name], one) for name, one in value.items())


def is_left_to_the_server(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether what the schema refuses is in an argument whose shape the grammar does not hold."""
    properties = schema["properties"]
    return (
        all(
            _is_shape(properties[name])
            for name, value in arguments.items()
            if name in properties
            and not jsonschema.Draft202012Validator(properties[name]).is_valid(value)
        )
        and set(schema.get("required", [])) <= arguments.keys()
    )


def _is_shape(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind in ("array", "object") or not isinstance(kind, str) or "oneOf" in schema


def test_argument_checks_agree_with_the_schemas(
    tools: list[dict[str, Any]], github: Artifact
) -> None:
    random_ = random.Random(20)
    gate = Gate(github)
    plain = json.loads(GITHUB.read_text("ascii"))["tools"]
    agreed = {True: 0, False: 0}
    for one in plain:
        schema = one["inputSchema"]
        validator = jsonschema.Draft202012Validator(schema)
        for _ in range(60):
            arguments = candidates(random_, schema)
            theirs, ours = validator.is_valid(arguments), gate.check(one["name"], arguments)
            if bool(ours) == theirs:
                agreed[theirs] += 1
            elif theirs:
                code = ours.code.value if ours.code is not None else ""
                assert is_by_design(arguments, schema, code), (one["name"], arguments, ours)
            else:
                assert is_left_to_the_server(arguments, schema), (one["name"], arguments)
    assert agreed[True] > 3000
    assert agreed[False] > 1000


WORDS = (
    "grammar use currency rule plan start goal pass given let accept reject expect before finally "
    "require ask forbid after owe limit per across sessions in session because or and not no every "
    "unused within since same match else shape tool gives cost price latency epsilon doc bind mcp "
    "python quotes strict parallel errors mean failed model when adapter quality execute atom "
    "times text integer number flag json list time date path url object null min max distinct "
    "under utc version any this it now true false from count sum last always reachable implies"
)


def test_each_word_of_the_language_may_be_a_name() -> None:
    names = WORDS.split()
    fields = {name: {"type": "string"} for name in names}
    found = skeleton_of([tool(name, names, **fields) for name in names], "g")
    assert said(found) == []
    compiled = read_grammar_text(found.text)
    assert compiled.core is not None, compiled.diagnostics
    assert [one.name for one in compiled.core.tools] == sorted(names)
    assert all([f.name for f in one.arguments] == names for one in compiled.core.tools)


def test_each_word_of_the_language_may_be_a_listed_value() -> None:
    words = [*WORDS.split(), "a b", "", "1", "x-y"]
    tools = [tool(f"t{at}", k={"enum": [word, "other"]}) for at, word in enumerate(words)]
    found = skeleton_of(tools, "g")
    assert said(found) == []
    assert format_text(found.text).text == found.text
    artifact = tcc.compile_text(found.text)
    gate = Gate(artifact)
    for at, word in enumerate(words):
        assert gate.check(f"t{at}", {"k": word})
        assert gate.check(f"t{at}", {"k": "other"})
        assert not gate.check(f"t{at}", {"k": f"{word}_"})
