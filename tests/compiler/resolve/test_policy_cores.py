"""Statements of 1.2 that are held call by call: the core has those of the definition."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import tcc
from tcc_certs.core.policies import POLICIES, read_policy
from tcc_certs.core.reader import read_core
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import encode
from tcc_compiler.frontend import read_grammar_text
from tests.oracle_policies import language as l
from tests.oracle_policies.core import Writer, fields_of
from tests.oracle_policies.drawn import FORMS, Draw
from tests.oracle_policies.meaning import is_listed
from tests.oracle_policies.writer import text_of

HELD = (l.Require, l.Forbid, l.Apart, l.Owed, l.Uses, l.Sum)


def _drawn(seed: int) -> l.Grammar:
    grammar = Draw(f"cores {seed}", FORMS).grammar()
    return replace(grammar, tools=tuple(sorted(grammar.tools, key=lambda tool: tool.name)))


@pytest.mark.parametrize("seed", range(80))
def test_the_core_has_the_statements(seed: int) -> None:
    grammar = _drawn(seed)
    # What plans are cut by is declined where errors count; that is no matter of the core's text.
    grammar = replace(grammar, tools=tuple(replace(one, errors=False) for one in grammar.tools))
    front = read_grammar_text(text_of(grammar))
    assert front.core is not None, [item.message for item in front.diagnostics]
    fields, writer, path = fields_of(grammar), Writer(grammar), "monitors"
    written = [m for m in json.loads(front.core).get("monitors", ()) if m["kind"] in POLICIES]
    found = [read_policy(one, path, Code.CORE_SCHEMA, fields) for one in written]
    due, errors = [], []
    for one in grammar.statements:
        # What is written out into the plans is held beside them where an error may be read.
        if isinstance(one, l.Forbid) and is_listed(one, grammar):
            errors.append(read_policy(writer.statement(one), path, Code.CORE_SCHEMA, fields))
        least = isinstance(one, l.Uses) and one.least
        if isinstance(one, HELD) and not is_listed(one, grammar) and not least:
            due.append(read_policy(writer.statement(one), path, Code.CORE_SCHEMA, fields))
    assert all(one in due or one in errors for one in found)
    missing = [one for one in due if one not in found]
    # What section 5 can say is written as there.
    assert len(missing) <= sum(
        one["kind"] not in POLICIES for one in json.loads(front.core).get("monitors", ())
    )


@pytest.mark.parametrize("seed", range(80))
def test_a_reader_takes_the_core(seed: int) -> None:
    grammar = _drawn(seed)
    grammar = replace(grammar, tools=tuple(replace(one, errors=False) for one in grammar.tools))
    front = read_grammar_text(text_of(grammar))
    assert front.core is not None
    core = read_core(front.core)
    lets = {one.name for one in grammar.lets}
    assert {one.name for one in (*core.lets, *core.looks)} == lets


SMALL = """grammar g version "1"

tool a(k: 1 | 2)

plan = a?
"""


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("pass resources", ("resources",)),
        ("pass resources, prompts , input", ("input", "prompts", "resources")),
        ("pass prompts\npass\n# a comment\ninput", ("input", "prompts")),
    ],
)
def test_what_passes_stands_in_the_core(text: str, passed: tuple[str, ...]) -> None:
    front = read_grammar_text(f"{SMALL}{text}\n")
    assert front.core is not None, front.diagnostics
    assert json.loads(front.core)["pass"] == list(passed)
    assert json.loads(front.core)["version"] == [1, 2]
    assert read_core(front.core).passed == passed


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("pass resources, logging", ["TCC228"]),
        ("pass input, input", ["TCC211"]),
        ("pass prompts\npass completions, prompts", ["TCC101"]),
        ("pass prompts\npass resources, completions, prompts", ["TCC228", "TCC211"]),
        ("pass", ["TCC101"]),
        ("pass logging", ["TCC202", "TCC202"]),  # two more names of the plan
    ],
)
def test_what_does_not_pass_is_an_error(text: str, codes: list[str]) -> None:
    front = read_grammar_text(f"{SMALL}{text}\n")
    assert front.core is None
    assert [str(one.code) for one in front.diagnostics] == codes


def test_a_tool_may_be_called_pass() -> None:
    text = """grammar g version "1"

tool pass
tool resources

plan = `pass` resources
"""
    front = read_grammar_text(text)
    assert front.core is not None, front.diagnostics
    assert "pass" not in json.loads(front.core)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([], "core.pass"),
        (["logging"], "core.pass[0]"),
        (["resources", "input"], "core.pass"),
        (["input", "input"], "core.pass"),
        ("input", "core.pass"),
        ([["input"]], "core.pass[0]"),
    ],
)
def test_a_reader_holds_what_passes_to_one_form(value: object, place: str) -> None:
    core = json.loads(read_grammar_text(f"{SMALL}pass input\n").core or b"")
    with pytest.raises(Rejected) as refused:
        read_core(encode({**core, "pass": value}))
    assert str(refused.value.code) == "C801" and refused.value.path.startswith(place)


@pytest.mark.parametrize("version", [0, 1])
def test_an_older_core_has_nothing_that_passes(version: int) -> None:
    core = json.loads(read_grammar_text(f"{SMALL}pass input\n").core or b"")
    with pytest.raises(Rejected, match="version"):
        read_core(encode({**core, "version": [1, version]}))


@pytest.mark.parametrize(
    "relation", ["seen.n < 2", "seen.n >= 2", "seen.n != 7", "seen.n not in (1, 7)"]
)
def test_what_is_not_listed_has_no_order_and_may_be_any_other_value(relation: str) -> None:
    """Where it is the answer, the plans do not go on by such a relation."""
    text = """grammar g version "1"

tool a gives (n: 1 | 2 | *)
tool b

plan = a{1,2} b
"""
    assert tcc.compile_text(text + f"require last a where {relation} before b\nreject a(n=*) b\n")
    listed = text + "require last a where seen.n not in (1, 2) before b\naccept a(n=*) b\n"
    assert tcc.compile_text(listed)
