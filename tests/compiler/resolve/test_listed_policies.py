"""Statements of 1.2 about listed fields: the artifact has the plans of the definition."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

import tcc
from tcc_compiler.frontend import read_grammar_text
from tests.compiler.compiling import compiled, words
from tests.oracle_policies import language as l
from tests.oracle_policies.drawn import Draw
from tests.oracle_policies.meaning import Automaton, Made, is_listed
from tests.oracle_policies.values import is_known
from tests.oracle_policies.writer import text_of


@pytest.mark.parametrize("bound", ["<= 0", ">= 0", "<= 1", ">= 1"])
def test_a_limit_of_none_uses_no_pattern_that_it_does_not_need(bound: str) -> None:
    per = " per way" if bound.startswith("<") else ""
    text = (
        'grammar g version "1"\ntool a(way?: x | y)\ntool b\n'
        f'limit uses(a where way != "x"){per} {bound}\nlimit depth <= 3\n'
    )
    assert tcc.compile_text(text).core.patterns


FORMS = frozenset(
    {
        "listed", "answers", "per", "owed", "next", "with", "each", "least", "or", "last", "count",
        "where", "unless", "owed same", "per several", "uses where", "sets", "rules", "in", "like",
        "maybe", "names",
    }
)  # fmt: skip
SEEDS = range(160)
MOST_LETTERS = 12


def _drawn(seed: int) -> l.Grammar:
    """A grammar with plans of at most three calls, or two where there are many."""
    grammar = Draw(f"listed {seed}", FORMS).grammar()
    letters = len(Automaton(grammar).letters())
    depth = l.Depth(most=3 if letters <= MOST_LETTERS else 2)
    kept = tuple(one for one in grammar.statements if not isinstance(one, l.Depth))
    return replace(grammar, statements=(*kept, depth))


def _text(call: Made) -> str:
    """The canonical text of a call: the arguments as declared, then the answers."""
    fields = [field for field in call.tool.fields if field.listed]
    given = sorted(fields, key=lambda field: field.answer)
    inside = [(f.name, call.states[f.name]) for f in given if is_known(call.states[f.name])]
    shown = [f"{_bare(name)}={_value(state[1])}" for name, state in inside]
    return f"{_bare(call.tool.name)}({','.join(shown)})" if shown else _bare(call.tool.name)


def _value(value: object) -> str:
    return _bare(value) if isinstance(value, str) else f"{float(value):g}"  # type: ignore[arg-type]


def _bare(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def _listed(automaton: Automaton, most: int, word: tuple[Made, ...] = ()) -> Iterator[str]:
    """The words that break nothing and owe nothing."""
    told = [replace(call, made_at=2 * at, told_at=2 * at + 1) for at, call in enumerate(word)]
    if not automaton.is_safe(told):
        return
    if automaton.ends(told):
        yield "".join(_text(call) for call in word)
    if len(word) < most:
        for letter in automaton.letters():
            yield from _listed(automaton, most, (*word, letter))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plans_are_those_of_the_definition(seed: int) -> None:
    grammar = _drawn(seed)
    text = text_of(grammar)
    front = read_grammar_text(text)
    if not all(is_listed(one, grammar) for one in grammar.statements):
        return
    assert front.core is not None, [(str(d.code), d.message, text) for d in front.diagnostics]
    assert json.loads(front.core)["version"] in ([1, 0], [1, 1])
    expected = set(_listed(Automaton(grammar), grammar.depth))
    if expected:
        assert words(compiled(front.core)) == expected, text


def test_a_count_in_unless_asks_for_so_many_calls_since() -> None:
    text = """grammar g version "1"

tool a
tool b
tool c
tool d

limit depth <= 5
before b require no a or count(c since a) >= 2 or d since a

accept b
accept a c c b
accept a c a d b
accept b a c
accept a c d c b
reject a b
reject a c b
reject c c a b
reject a c c a b
reject a c a c b
"""
    tcc.compile_text(text)  # its examples hold


def test_a_grammar_of_which_one_of_these_is_otherwise_does_not_compile() -> None:
    text = """grammar g version "1"

tool a
tool b
tool c

limit depth <= 5
before b require no a or count(c since a) >= 2

accept a c b
"""
    with pytest.raises(tcc.CompileError) as raised:
        tcc.compile_text(text)
    assert [one.code for one in raised.value.diagnostics] == ["TCC501"]


_ERRORS = """grammar g version "1"

tool read { errors mean failed }
tool ok
tool send

limit depth <= 4
"""


@pytest.mark.parametrize(
    ("statement", "count"),
    [("forbid read before send unless ok", 1), ("forbid 2 read before send", 2)],
)
def test_a_forbid_that_cuts_plans_is_held_beside_them_where_an_error_may_count(
    statement: str, count: int
) -> None:
    gate = tcc.Gate(tcc.compile_text(_ERRORS + statement))
    for _ in range(count):
        assert gate.check("send").allowed
        with gate.call("read") as permit:
            permit.failed("said so", answered=True)
    refused = gate.check("send")
    assert (refused.allowed, refused.code) == (False, "R202")
    told = [(one["kind"], one["text"]) for one in refused.because]
    assert told == [("monitor", statement)]


def test_what_lifts_a_forbid_lifts_it_after_an_error_too() -> None:
    gate = tcc.Gate(tcc.compile_text(_ERRORS + "forbid read before send unless ok"))
    with gate.call("read") as permit:
        permit.failed("said so", answered=True)
    with gate.call("ok") as permit:
        permit.done()
    assert gate.check("send").allowed


def test_an_error_that_was_read_counts_for_a_forbid_of_sets() -> None:
    gate = tcc.Gate(tcc.compile_text(_ERRORS + "forbid ok or read before send"))
    with gate.call("read") as permit:
        permit.failed("said so", answered=True)
    assert not gate.check("send").allowed
