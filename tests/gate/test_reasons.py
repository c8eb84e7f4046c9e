"""Reasons of refusals: statements that refuse by themselves, dead ends, ends, arguments."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import pytest

import tcc
from tcc_runtime.gate import dead_ends
from tcc_runtime.gate.wrapping import refusal_text
from tests.campaigns.blocks import cases
from tests.gate.grammars import artifact, do, gate
from tests.gate.test_decisions import MOST, compiled
from tests.gate.worlds import Language
from tests.oracle.network import without
from tests.oracle.plans import plans

HEAD = 'grammar g version "1"\n'
ABC = HEAD + "tool a\ntool b\ntool c\n"
PLAN = {"kind": "plan", "text": "plan", "because": None}


def texts(because: list[Any]) -> list[str]:
    return [one["text"] for one in because]


# Statements.

DESK = """grammar desk version "1"

given user: text

tool find(order: text max 9) gives (status: open | closed, owner: text max 9)
tool note(size: small | large | 3, text: text min 1 max 20, to: list max 2 of text,
  due?: now | later, sum?: number 0 .. 9, at?: date or null)
tool act(order: text max 9, sum: number 0 .. 100)

limit depth <= 30
"""


def desk(*statements: str) -> tcc.Gate:
    found = artifact(DESK + "\n".join(statements))
    return tcc.Gate(found, given={"user": "ann"}, clock=lambda: 0)


def find(session: tcc.Gate, order: str, status: str, owner: str) -> None:
    do(session, "find", {"order": order}, result={"status": status, "owner": owner})


def test_a_require_says_its_sentence_the_parts_that_failed_and_what_would_do() -> None:
    statement = (
        "before act { let o = last(find(same order))  "
        "require o.status = open and o.owner = session.user }"
    )
    with desk(statement.replace(" }", ' because "Only open orders." }')) as session:
        find(session, "x", "open", "bob")
        decision = session.check("act", {"order": "x", "sum": 1})
        assert decision.because == [
            {
                "kind": "require", "text": statement, "because": "Only open orders.",
                "relation": "o.owner = session.user",
                "arguments": 'order = "x"',
                "remedy": 'last(find(order = "x")).owner = session.user',
            }
        ]  # fmt: skip
        find(session, "x", "closed", "ann")
        # A decision has its reasons from when it was made.
        assert decision.because[0]["relation"] == "o.owner = session.user"
        (reason,) = session.check("act", {"order": "x", "sum": 1}).because
        assert reason["relation"] == "o.status = open"


def test_each_statement_that_refuses_is_named_and_the_first_gives_the_code() -> None:
    statements = ("limit depth <= 1", "forbid act(sum > 9)", "limit sum(act.sum) <= 5")
    found = artifact(DESK.replace("limit depth <= 30\n", "\n".join(statements)))
    session = tcc.Gate(found, given={"user": "ann"})
    do(session, "act", {"order": "x", "sum": 5})
    decision = session.check("act", {"order": "x", "sum": 10})
    assert (decision.code, decision.statement, decision.place) == ("R203", 0, statements[0])
    assert texts(decision.because) == list(statements)
    assert [one["kind"] for one in decision.because] == ["total", "forbid", "limit"]


@pytest.mark.parametrize(
    ("statement", "kind", "code"),
    [
        ("before b require a", "require", "R202"),
        ("forbid b", "forbid", "R202"),
        ("limit count(b) <= 0", "limit", "R202"),
        ("limit depth <= 0", "total", "R203"),
    ],
)
def test_a_refusal_names_the_kind_of_its_statement(statement: str, kind: str, code: str) -> None:
    session = gate(f"{ABC}plan = any{{0,9}}\n{statement}\n")
    with pytest.raises(tcc.Refused) as refusal, session.call("b"):
        pytest.fail("refused")
    (reason,) = refusal.value.because
    assert (refusal.value.code, reason["kind"], reason["text"]) == (code, kind, statement)
    assert str(refusal.value).startswith(f"{code}: b: {statement}: ")
    again = pickle.loads(pickle.dumps(refusal.value))
    assert (again.because, str(again)) == (refusal.value.because, str(refusal.value))


def test_a_model_reads_the_sentence_of_the_policy() -> None:
    session = gate(f'{ABC}plan = any{{0,9}}\nforbid b because "Nobody calls b."\n')
    with pytest.raises(tcc.Refused) as refusal, session.call("b"):
        pytest.fail("refused")
    assert str(pickle.loads(pickle.dumps(refusal.value))) == "R202: b: Nobody calls b. (forbid b)"
    assert refusal_text(refusal.value) == (
        "Refused, and not called: R202: b: Nobody calls b. (forbid b). Allowed now: a(), c()."
    )


# Dead ends.


@pytest.mark.parametrize(
    ("text", "made", "tool", "because"),
    [
        ("plan = a b c", "", "b", ["plan"]),
        ("plan = a | b c\nlimit count(c) <= 0", "", "b", ["plan", "limit count(c) <= 0"]),
        ("plan = any{0,6}\nfinally require count(a) >= 2\nlimit depth <= 2", "a", "b",
         ["finally require count(a) >= 2", "limit depth <= 2"]),
        ("plan = any{0,6}\nafter a owe b\nforbid b", "", "a", ["after a owe b", "forbid b"]),
        ("plan = any{0,6}\nafter a owe b\nlimit depth <= 1", "", "a",
         ["after a owe b", "limit depth <= 1"]),
        ("plan = a | b\nafter a owe b", "", "a", ["plan", "after a owe b"]),
    ],
)  # fmt: skip
def test_a_dead_end_names_what_excludes_every_end(
    text: str, made: str, tool: str, because: list[str]
) -> None:
    session = gate(f"{ABC}{text}\n")
    for name in made.split():
        do(session, name)
    decision = session.check(tool)
    assert decision.code == "R201"
    assert texts(decision.because) == because


def test_of_an_unknown_outcome_one_run_is_explained() -> None:
    session = gate(f"{ABC}plan = a b | b c | c\n")
    with session.call("a"):
        pass
    assert session.check("b").allowed is False or session.check("b").allowed
    for tool in ("a", "c"):
        assert session.check(tool).because == [PLAN]


def test_past_the_bound_nothing_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_ends, "_MOST_WORK", 0)
    # Of its own: an artifact keeps what earlier reasons have worked out.
    session = tcc.Gate(tcc.compile_text(f"{ABC}plan = a | b c\nlimit count(c) <= 0\n"))
    (reason,) = session.check("b").because
    assert reason["kind"] == "gate" and "more work than a reason is worth" in str(reason["text"])


def test_a_reason_waits_for_no_other_thread() -> None:
    session = gate(f"{ABC}plan = a | b c\nlimit count(c) <= 0\n")
    expected = session.check("b").because
    with dead_ends.trials_of(session._policy)._lock:  # as a thread that a fork left behind has it
        assert session.check("b").because == expected == [
            PLAN, {"kind": "limit", "text": "limit count(c) <= 0", "because": None},
        ]  # fmt: skip


def test_what_is_named_excludes_every_plan_and_no_part_of_it_does() -> None:
    seen = 0
    for at in range(cases(28, 40)):
        rng = random.Random(f"dead end {at}")
        found = compiled(rng)
        language = Language(found.core, MOST)
        session, word = tcc.Gate(found), ()
        for _ in range(3):
            for group in sorted(language.groups):
                decision = session.check(language.name(group), language.arguments(group))
                kinds = {one["kind"] for one in decision.because}
                calls = language.groups[group].values()
                if decision.code != "R201" or len(calls) > 1:
                    continue
                assert "gate" not in kinds
                named = set(texts(decision.because))
                others = [n for n, text in enumerate(session._policy.texts) if text not in named]
                if "plan" not in kinds:  # lists of plans are lists of the plan's
                    continue
                assert not continues(language, others, word, calls)
                assert all(
                    continues(language, [*others, n], word, calls)
                    for n in range(len(session._policy.texts))
                    if n not in others
                )
                seen += len(kinds) > 1
            allowed = [one for one in session.allowed() if one.tool in ("a", "b", "c")]
            if not allowed:
                break
            chosen = rng.choice(allowed)
            do(session, chosen.tool, dict(chosen.arguments))
            names = [call.text for call in found.core.calls]
            word = tuple([names.index(text) for text in session.word()])
    assert seen > 3


def continues(language: Language, omitted: list[int], word: Any, calls: Any) -> bool:
    """Whether some plan without these statements begins with the word and one of the calls."""
    found = plans(without(language.core, omitted), MOST)
    return any(plan[: len(word) + 1] == (*word, call) for plan in found for call in calls)


# Ends.


def refused_end(session: tcc.Gate) -> list[Any]:
    with pytest.raises(tcc.Refused) as refusal:
        session.finish()
    assert refusal.value.code == "R204"
    return refusal.value.because


def test_an_end_names_each_statement_that_is_not_met() -> None:
    statements = ("finally require count(b) >= 2", "after a owe c", "finally require c")
    session = gate(ABC + "\n".join(statements) + "\nlimit depth <= 9\n")
    do(session, "a")
    because = refused_end(session)
    assert texts(because) == list(statements)
    assert [one["kind"] for one in because] == ["require", "owe", "require"]
    assert because[1]["remedy"] == "c"
    do(session, "c")
    assert texts(refused_end(session)) == [statements[0]]


def test_an_end_names_the_plan_only_if_the_plan_does_not_end() -> None:
    session = gate(f"{ABC}plan = a b | a b c\nfinally require c\n")
    do(session, "a")
    assert texts(refused_end(session)) == ["finally require c", "plan"]
    do(session, "b")
    assert texts(refused_end(session)) == ["finally require c"]
    assert texts(refused_end(gate(f"{ABC}plan = a\n"))) == ["plan"]


# Tools and arguments.

GOOD = {"size": "small", "text": "x", "to": []}


@pytest.mark.parametrize(
    ("code", "tool", "given", "remedy"),
    [
        ("R101", "nobody", {}, "find, note, act"),
        ("R102", "note", {**GOOD, "x": 1}, "size, text, to, due?, sum?, at?"),
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
    with desk() as session:
        found = session.check(tool, given)
        assert found.code == code
        (reason,) = found.because
        assert reason["kind"] == ("tool" if code == "R101" else "argument")
        assert reason["because"] is None and reason["remedy"] == remedy
        json.dumps(reason)


@pytest.mark.parametrize("name", ["text", "sum", "to", "at"])
def test_the_type_that_is_told_is_the_type(name: str) -> None:
    """An argument declared as the remedy has it takes the same values."""
    values: list[Any] = ["", "x", "x" * 21, 0, 9, 9.5, -1, [], ["a"], ["a"] * 3, "2024-01-01", None]
    with desk() as session:
        (reason,) = session.check("note", {**GOOD, name: {}}).because
        told = str(reason["remedy"]).replace(":", "?:", 1)
        with tcc.Gate(tcc.compile_text(f"{HEAD}tool t({told})\nplan = t?\n")) as other:
            for value in values:
                one = session.check("note", {**GOOD, name: value}).code == "R105"
                assert one == (other.check("t", {name: value}).code == "R105"), value
