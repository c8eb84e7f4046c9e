"""What a refusal says beside its statement: the relation that failed, and what would do.

The definition of a relation that failed, by the slow interpreter: a statement without the relations
that are named does not refuse the call; where none is named, no alternative holds without all of
its relations.  Of a `forbid`: the alternative whose relations are named refuses by itself.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import tcc
from tcc_certs.core.policies import Alternative, Ban, Need, Policy
from tcc_certs.core.wording import Wording
from tests.gate import grammars
from tests.oracle_policies import language as l
from tests.oracle_policies.beside import Clock, Tally, compiled
from tests.oracle_policies.core import policies_of
from tests.oracle_policies.drawn import FORMS, Draw, Play
from tests.oracle_policies.meaning import Made, Session, refuses

DESK = """grammar desk version "1"

given user: text

tool find(order: text max 9) gives (status: open | closed, owner: text max 9)
tool note(size: small | large | 3, due?: now | later, text: text min 1 max 20, sum?: number 0 .. 9,
          to: list max 2 of text, at?: date utc or null)
tool act(order: text max 9, sum: number 0 .. 100)

limit depth <= 30
"""


def gate(*statements: str) -> tcc.Gate:
    found = grammars.artifact(DESK + "\n".join(statements))
    return tcc.Gate(found, given={"user": "ann"}, clock=lambda: 0)


def because(of: tcc.Gate, tool: str, **given: Any) -> dict[str, str]:
    (found,) = of.check(tool, given).because
    return {name: text for name, text in found.items() if name not in ("kind", "text")}


# Arguments.

GOOD = {"size": "small", "text": "x", "to": []}


@pytest.mark.parametrize(
    ("code", "tool", "given", "remedy"),
    [
        ("R101", "nobody", {}, "act, find, note"),
        ("R102", "note", {**GOOD, "x": 1}, "size, due?, text, sum?, to, at?"),
        ("R103", "note", {"text": "x", "to": []}, "size: small | large | 3"),
        ("R103", "note", {"size": 3, "to": []}, "text: text min 1 max 20"),
        ("R104", "note", {**GOOD, "size": "big"}, "size: small | large | 3"),
        ("R104", "note", {**GOOD, "due": "never"}, "due: now | later"),
        ("R105", "note", {**GOOD, "text": ""}, "text: text min 1 max 20"),
        ("R105", "note", {**GOOD, "sum": 10}, "sum: number 0 .. 9"),
        ("R105", "note", {**GOOD, "to": ["a", "b", "c"]}, "to: list max 2 of text"),
        ("R105", "note", {**GOOD, "at": "today"}, "at: date or null"),
    ],
)
def test_an_argument_is_told_what_it_has_to_be(
    code: str, tool: str, given: dict[str, Any], remedy: str
) -> None:
    with gate() as of:
        found = of.check(tool, given)
        assert found.code == code
        assert [one.get("remedy") for one in found.because] == [remedy]


def test_the_values_that_are_told_are_those_that_do() -> None:
    with gate() as of:
        told = because(of, "note", **{**GOOD, "size": "big"})["remedy"].removeprefix("size: ")
        values = [3 if text == "3" else text for text in told.split(" | ")]
        for value in ("small", "large", 3, "3", "smal", 4, None, True):
            code = of.check("note", {**GOOD, "size": value}).code
            assert (code is None) == (value in values and value is not True), value


@pytest.mark.parametrize("name", ["text", "sum", "to", "at"])
def test_the_type_that_is_told_is_the_type(name: str) -> None:
    """A parameter declared as the remedy has it takes the same values."""
    values: list[Any] = ["", "x", "x" * 21, 0, 9, 9.5, -1, [], ["a"], ["a"] * 3, "2024-01-01", None]
    with gate() as of:
        told = because(of, "note", **{**GOOD, name: {}})["remedy"].replace(":", "?:", 1)
        text = f'grammar g version "1"\ntool t({told})\nplan = t?\n'
        with tcc.Gate(tcc.compile_text(text)) as other:
            for value in values:
                one = of.check("note", {**GOOD, name: value}).code == "R105"
                assert one == (other.check("t", {name: value}).code == "R105"), value


# Statements.

OPEN = "last(find(same order)).status = open and last(find(same order)).owner = session.user"


def find(of: tcc.Gate, order: str, status: str, owner: str) -> None:
    with of.call("find", {"order": order}) as permit:
        permit.done({"status": status, "owner": owner})


def test_a_require_names_the_relations_that_failed_and_what_would_do() -> None:
    with gate(f"before act require {OPEN}") as of:
        assert because(of, "act", order="x", sum=1) == {"remedy": "find"}  # the automaton's part
        find(of, "x", "closed", "ann")
        failed = {"relation": "last(find(same order)).status = open", "remedy": OPEN}
        assert because(of, "act", order="x", sum=1) == failed
        assert because(of, "act", order="y", sum=1) == {"remedy": OPEN}
        decision = of.check("act", {"order": "x", "sum": 1})
        find(of, "x", "open", "bob")
        assert (
            because(of, "act", order="x", sum=1)["relation"]
            == "last(find(same order)).owner = session.user"
        )
        # What is told is of the session as it was decided on.
        assert decision.because[0]["relation"] == "last(find(same order)).status = open"


def test_of_several_alternatives_the_nearest_is_told() -> None:
    text = f"before act require ({OPEN}) or sum <= 50"
    with gate(text) as of:
        find(of, "x", "closed", "bob")
        assert because(of, "act", order="x", sum=51)["relation"] == "sum <= 50"


def test_a_relation_about_the_call_itself() -> None:
    with gate("before act require sum <= 50 and sum >= 1") as of:
        told = because(of, "act", order="x", sum=51)
        assert told == {"relation": "sum <= 50", "remedy": "where sum <= 50, sum >= 1"}


def test_a_forbid_names_the_relations_that_stand_against_the_call() -> None:
    text = "before act require no find(owner != session.user) or note(size = small)"
    with gate(text) as of:
        find(of, "x", "open", "bob")
        told = because(of, "act", order="x", sum=1)
        assert told == {"relation": "no find(owner != session.user)", "remedy": "note(size=small)"}
    with gate("before act require no find") as of:
        find(of, "x", "open", "bob")
        assert because(of, "act", order="x", sum=1) == {}


def test_statements_of_1_1_and_of_the_automaton_name_what_would_do() -> None:
    with gate(
        "before act require find(status = open, same order)", "before find require note"
    ) as of:
        assert because(of, "find", order="x") == {"remedy": "note"}
        with of.call("note", {"size": 3, "text": "x", "to": []}) as permit:
            permit.done(None)
        find(of, "y", "open", "ann")
        assert because(of, "act", order="x", sum=1) == {"remedy": "find(status=open) same order"}


def test_the_end_names_the_call_that_is_owed() -> None:
    with gate("after act owe find(same order)") as of:
        with of.call("act", {"order": "x", "sum": 1}) as permit:
            permit.done(None)
        with pytest.raises(tcc.Refused) as refusal:
            of.finish()
        assert refusal.value.because[0]["remedy"] == "find same order"


# Random policies, and the definition.


def words(grammar: l.Grammar) -> Wording:
    return Wording([tool.name for tool in grammar.tools])


def statements(grammar: l.Grammar) -> dict[str, tuple[l.Statement, Policy]]:
    """By their texts those of which the kernel has the form."""
    ordered = replace(grammar, tools=tuple(sorted(grammar.tools, key=lambda tool: tool.name)))
    pairs = policies_of(ordered)[1]
    return {words(ordered).of(policy): (one, policy) for one, policy in pairs}


def checked(
    told: dict[str, str],
    pair: tuple[l.Statement, Policy],
    own: Made,
    made: list[Made],
    say: Wording,
) -> str:
    """What kind of a reason it was, once it agrees with its definition."""
    statement, policy = pair
    relation = told.get("relation")
    if isinstance(policy, Need):
        assert isinstance(statement, l.Require)
        assert told["remedy"] == say.alternatives(policy.alternatives)
        pairs = list(zip(statement.alternatives, policy.alternatives, strict=True))
        without = [_without(statement, at, one, relation, say) for at, (_, one) in enumerate(pairs)]
        if relation is None:
            bare = [_bare(statement, at) for at in range(len(pairs))]
            assert all(refuses(one, own, made) for one in bare)
            return "require without"
        assert any(one is not None and not refuses(one, own, made) for one in without)
        return "require"
    if isinstance(policy, Ban):
        assert isinstance(statement, l.Forbid)
        parts = zip(statement.alternatives, policy.alternatives, strict=True)
        named = [one for one, of in parts if say.relations(of.where) == (relation or "")]
        assert any(refuses(replace(statement, alternatives=(one,)), own, made) for one in named)
        assert ("remedy" in told) == bool(policy.unless)
        return "forbid"
    return "other"


def _bare(statement: l.Require, at: int) -> l.Require:
    some = list(statement.alternatives)
    some[at] = replace(some[at], where=())
    return replace(statement, alternatives=tuple(some))


def _without(
    statement: l.Require, at: int, of: Alternative, relation: str | None, say: Wording
) -> l.Require | None:
    """The statement, an alternative without the relations of that text, where it has them."""
    texts = [say.relations((one,)) for one in of.where]
    chosen = [
        mask
        for mask in range(1, 1 << len(texts))
        if ", ".join(t for i, t in enumerate(texts) if mask >> i & 1) == relation
    ]
    if not chosen:
        return None
    some = list(statement.alternatives)
    kept = tuple(r for i, r in enumerate(some[at].where) if not chosen[0] >> i & 1)
    some[at] = replace(some[at], where=kept)
    return replace(statement, alternatives=tuple(some))


@pytest.mark.parametrize(
    "part", [0, 1, *[pytest.param(part, marks=pytest.mark.campaign) for part in range(2, 20)]]
)
def test_reasons_of_random_policies(part: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="tcc.gate")
    seen: Counter[str] = Counter()
    for seed in range(part * 100, part * 100 + 100):
        grammar = Draw(f"reasons {seed}", FORMS).grammar()
        artifact = compiled(grammar, Tally())
        if artifact is None:
            continue
        known = statements(grammar)
        ordered = Wording(sorted(tool.name for tool in grammar.tools))
        draw = Play(f"reasons {seed}", grammar)
        given, clock = draw.given(), Clock()
        slow = Session(grammar=grammar, given=given)
        slow.now = clock.ms
        options: dict[str, Any] = {"given": given} if given else {}
        with tcc.Gate(artifact, clock=clock, **options) as of:
            for _ in range(10):
                step = draw.step()
                clock.ms += step.later * 1000
                arguments = json.loads(json.dumps(step.arguments))
                found = of.check(step.tool, arguments)
                if found.code == "R202" and found.because[0]["text"] in known:
                    own = slow.asked(step.tool, arguments, max(slow.now, clock.ms))
                    assert isinstance(own, Made)
                    told = dict(found.because[0])
                    kind = checked(told, known[told["text"]], own, slow.made, ordered)
                    seen[kind] += 1
                if not found.allowed:
                    continue
                with of.call(step.tool, arguments) as permit:
                    seq = slow.call(step.tool, arguments, clock.ms)
                    if step.outcome == "done":
                        permit.done(step.answer)
                        slow.outcome(seq, "done", step.answer)
                    else:
                        permit.failed("no")
                        slow.outcome(seq, "failed")
    assert seen["require"] > 4 and seen["require without"] and seen["forbid"] > 4, seen
