"""Calls under way together: which pairs of tools commute, and what the validator accepts of them.

The oracle lists words: two tools commute where no plan tells the orders of two of their calls
apart.  Interleavings are listed and compared with the definition, which knows of no order of
outcomes at all (tests/oracle_session/brute.py).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import pytest

import tcc
from tcc_certs.core.model import Core
from tcc_certs.formats.container import write_container
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.session import overlap, records
from tcc_certs.session.machine import Course
from tcc_certs.session.overlap import commuting
from tcc_certs.session.validation import machine_of, validate
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tests.certs.session.test_course import CALLS, Both, Move, artifact, machine, moves
from tests.oracle.plans import plans
from tests.oracle_session.writer import KEY, SessionWriter, sealed

STATEMENTS = (
    "",
    "before a(k = 2) require t(r = yes, same p)\n",
    "before a require no t(r = no, same p)\nlimit count(a) per p <= 1 in session\n",
    "before t require no a(same p)\nbefore a require no t(same p)\nbefore a(k = 2) require unused a(same p)\n",
)
DESK = """grammar desk version "1"

tool read(k: 1 | 2, p: text) { parallel }
tool seek(p: text) gives (r: yes | no) { parallel }
tool send(p: text)

plan = (read | seek | send){0,80}
"""


@cache
def desk(more: str = "") -> CheckedArtifact:
    return check(write_container(tcc.compile_text(DESK + more).file.columns))


# Which tools commute.


def listed(core: Core, most: int) -> set[tuple[int, int]]:
    """The pairs of parallel tools whose calls no plan tells apart, from the list of plans."""
    words = plans(core, most)
    ends = set(words)
    begun = {word[:at] for word in words for at in range(len(word) + 1)}
    parallel = [at for at, tool in enumerate(core.tools) if tool.parallel]
    calls = range(len(core.calls))
    rests: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for word in ends:
        for at in range(len(word) + 1):
            rests.setdefault(word[:at], set()).add(word[at:])
    found = set()
    for one, other in combinations_with_replacement(parallel, 2):
        firsts = [call for call in calls if core.calls[call].tool == one]
        seconds = [call for call in calls if core.calls[call].tool == other]
        follow = any((*word, a, b) in begun for word in begun for a in firsts for b in seconds)
        if follow and all(
            rests.get((*word, a, b), set()) == rests.get((*word, b, a), set())
            for word in begun
            for a in firsts
            for b in seconds
        ):
            found.add((one, other))
    return found


PLANS = (
    "(a | b | c){0,4}", "a b | b a", "a b c", "(a | b){0,2} c", "a? b? a?", "(a b){0,2}", "a a | b",
    "(a | b){0,3} & (a? b? a?)", "a{0,3} | b{0,3}", "(a(x=1) | b){0,2} | a(x=2)",
)  # fmt: skip
MORE = (
    "",
    "before b require no a",
    "limit count(a) <= 1",
    "before b require a",
    "before b require no a since any - a",
    "before b require no a\nbefore a require no b",
)


def test_tools_commute_where_no_plan_tells_their_orders_apart() -> None:
    tools = "tool a(x: 1 | 2) { parallel }\ntool b gives (r: p | q) { parallel }\ntool c\n"
    yes = no = 0
    for plan in PLANS:
        for more in MORE:
            text = f'grammar g version "1"\n{tools}plan = {plan}\n{more}\n'
            try:
                made = tcc.compile_text(text)
            except tcc.CompileError:
                continue  # no plan is left
            checked = check(write_container(made.file.columns))
            found, due = machine_of(checked).commuting, listed(checked.core, 5)
            assert set(found) == due, text
            yes, no = yes + len(due), no + 3 - len(due)
    assert yes > 20 and no > 20, (yes, no)


@pytest.mark.parametrize(
    ("statement", "due"),
    [
        ("", {(0, 0), (0, 1), (1, 1)}),
        ("before seek require read(same p)", {(0, 0), (1, 1)}),
        ("before read require no seek(r = no, same p)", {(0, 0), (1, 1)}),
        ("limit count(read) per p <= 2 in session", {(0, 0), (0, 1), (1, 1)}),
        ("before read(k = 2) require read(k = 1, same p)", {(0, 1), (1, 1)}),
    ],
)
def test_a_monitor_that_orders_two_tools_keeps_them_apart(
    statement: str, due: set[tuple[int, int]]
) -> None:
    assert machine_of(desk(statement + "\n")).commuting == due


def test_a_monitor_of_another_kind_keeps_all_tools_apart() -> None:
    """A kind that somebody adds orders every pair, until it is said here that it does not."""
    checked = desk()
    other: Any = object()
    core = dataclasses.replace(checked.core, monitors=(other,))
    tools = [core.calls[index].tool for index in checked.core_calls]
    found = commuting(core, machine_of(checked).row, tools, checked.automaton.states, None)
    assert found == frozenset()


@pytest.mark.parametrize("kind", ["forbid", "require"])
def test_statements_left_to_the_run_keep_tools_apart(kind: str) -> None:
    text = DESK.replace("{0,80}", "{0,6}") + f"{kind} read before seek\n"
    made = tcc.compile_text(text, relax=(kind,))
    checked = check(write_container(made.file.columns))
    relaxed = checked.file.manifest.relaxed
    assert relaxed is not None and (relaxed.forbids, relaxed.requires).count((0,)) == 1
    assert machine_of(checked).commuting == {(0, 0), (1, 1)}


@pytest.mark.parametrize(
    ("statement", "due"),
    [("", {(0, 0), (0, 1), (1, 1)}), ("b(r=no) before a", {(0, 0), (1, 1)}), ("b(r=no) a", set())],
)
def test_a_forbid_over_errors_that_were_read_keeps_tools_apart(
    statement: str, due: set[tuple[int, int]]
) -> None:
    """The automaton tells nothing of it where the plan has no call behind such an answer."""
    tools = "tool a { parallel }\ntool b gives (r: yes | no) { errors mean failed parallel }\n"
    text = f'grammar g version "1"\n{tools}plan = (a | b(r=yes)){{0,4}} | b(r=no)\n'
    made = tcc.compile_text(text + (f"forbid {statement}\n" if statement else ""))
    assert machine_of(check(write_container(made.file.columns))).commuting == due


def test_an_artifact_too_large_to_look_at_has_no_tools_that_commute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = desk()
    core, machine = checked.core, machine_of(checked)
    gone_through = []

    class Row(dict[int, Sequence[int]]):
        def items(self) -> Any:
            gone_through.append(1)
            return super().items()

    monkeypatch.setattr(overlap, "MAX_PATHS", 20)
    tools = [core.calls[index].tool for index in checked.core_calls]
    states = checked.automaton.states
    assert commuting(core, lambda q: Row(machine.row(q)), tools, states, None) == frozenset()
    assert len(gone_through) <= 4  # that there are too many paths is found before they are


# Every interleaving of few calls.

Event = tuple[str, int]  # a call begins, or the outcome of one comes


def orders(calls: int) -> Iterator[list[Event]]:
    """Every order in which so many calls begin and come to an outcome."""

    def after(begun: int, open_: tuple[int, ...]) -> Iterator[list[Event]]:
        if begun == calls and not open_:
            yield []
            return
        if begun < calls:
            for rest in after(begun + 1, (*open_, begun)):
                yield [("call", begun), *rest]
        for at in open_:
            for rest in after(begun, tuple(other for other in open_ if other != at)):
                yield [("outcome", at), *rest]

    return after(0, ())


@pytest.mark.parametrize("statements", STATEMENTS, ids=["none", "require", "forbid", "each"])
def test_every_interleaving_is_held_to_the_definition(statements: str) -> None:
    rng = random.Random(statements)
    every = [move for call in range(len(CALLS)) for move in moves(call)]
    agreed = 0
    for order in [*orders(2), *orders(3)]:
        for _ in range(6):
            chosen = [rng.choice(every) for _ in range(3)]
            agreed += _interleaved(statements, order, chosen)
    assert agreed > 150


def _interleaved(statements: str, order: Sequence[Event], chosen: Sequence[Move]) -> int:
    """How many steps the course and the definition agreed on."""
    both = Both(machine(statements), artifact(statements))
    numbers: dict[int, int] = {}
    agreed = 0
    for kind, at in order:
        call, outcome, answer = chosen[at]
        if kind == "call":
            offer, seen, did = both.offer(call)
            if both.due(did) is not None:
                continue
            both.brute.session.append(did)
            numbers[at] = len(both.brute.session)
            both.course.begin(numbers[at], offer, seen)
        elif at in numbers:
            told: Any = outcome
            known = (None,) if outcome == "done" and answer is None else answer
            both.course.settle(told, known, seq=numbers[at])
            did = both.brute.session[numbers[at] - 1]
            did.outcome, did.answer = outcome, answer
        else:
            continue
        both.agree()
        agreed += 1
    return agreed


def test_the_order_of_outcomes_makes_no_difference() -> None:
    made = machine("")
    for first, second in [("done", "failed"), ("unknown", "done"), ("failed", "unknown")]:
        held = []
        for turned in (False, True):
            course = Course(made)
            for seq in (1, 2):
                offer = made.offers(1)[(None,)]
                course.begin(seq, offer, made.monitors.see(1, (None,), {"p": "x"}, {}))
            told: list[tuple[int, Any]] = [(1, first), (2, second)]
            for seq, outcome in reversed(told) if turned else told:
                course.settle(outcome, (1,) if outcome == "done" else None, seq=seq)
            held.append(course.held)
        assert held[0] == held[1]


# Ledgers.


def first(records: Sequence[Any], checked: CheckedArtifact | None = None) -> tuple[str, int, str]:
    """The first finding on a ledger of these records."""
    found = validate(sealed(records), desk() if checked is None else checked, key=KEY).findings[0]
    return found.code.value, found.line, found.field


def together() -> SessionWriter:
    """Three calls under way at once, whose outcomes come in another order."""
    writer = SessionWriter(desk())
    writer.call("read", {"k": "1"}, p="x")
    writer.call("seek", p="y")
    writer.call("read", {"k": "2"}, p="z")
    writer.tell(3, "done")
    writer.tell(1, "failed")
    writer.tell(2, "done", r="no")
    return writer


def test_outcomes_may_come_in_any_order() -> None:
    writer = together()
    writer.end()
    found = validate(writer.ledger(), desk(), key=KEY)
    assert (found.word, found.claim_type, found.findings) == ("VALID", "Conformant", ())
    assert found.checked == {"calls": 3, "outcomes": 3, "refusals": 0, "unknown": 0}


def test_a_call_without_outcome_is_open_to_the_end() -> None:
    writer = SessionWriter(desk())
    for name in ("x", "y"):
        writer.call("read", {"k": "1"}, p=name)
    found = validate(writer.ledger(), desk(), key=KEY)
    assert (found.word, found.claim_type, found.checked["unknown"]) == (
        "INCOMPLETE", "ConformantPrefix", 2,
    )  # fmt: skip
    writer.end(abandoned=True)
    assert first(writer.records) == ("L104", 4, "kind")


def test_a_resolution_of_an_open_call_gives_up_that_call_alone() -> None:
    writer = SessionWriter(desk())
    for name in ("x", "y"):
        writer.call("seek", p=name)
    writer.resolve(2, "done", r="no")
    writer.tell(1, "failed")
    writer.end()
    assert validate(writer.ledger(), desk(), key=KEY).claim_type == "Conformant"
    writer.records[-2] = {"kind": "outcome", "seq": 2, "outcome": "failed", "ms": 1}
    assert first(writer.records)[:2] == ("S201", 5)


@pytest.mark.parametrize(
    ("at", "change", "due"),
    [
        (4, {"seq": 4}, ("L104", 5, "seq")),  # of no call
        (5, {"seq": 3}, ("L104", 6, "seq")),  # twice
        (6, {"seq": 1}, ("S201", 7, "seq")),  # twice, the last one open
        (2, {"states": [0]}, ("S206", 3, "states")),  # as if nothing were under way
        (3, {"seq": 2}, ("S201", 4, "seq")),
        (6, {"observed": {"r": "maybe"}}, ("S210", 7, "observed")),
    ],
)
def test_a_forged_record_is_found(
    at: int, change: dict[str, Any], due: tuple[str, int, str]
) -> None:
    records = [dict(record) for record in together().records]
    records[at] |= change
    if "observed" in records[at] and "observed" not in change and "seq" in change:
        del records[at]["observed"]
    assert records != together().records
    assert first(records) == due


def test_calls_that_do_not_commute_are_not_under_way_together() -> None:
    for tools in (("send", "read"), ("read", "send"), ("send", "send")):
        writer = SessionWriter(desk())
        for tool in tools:
            writer.call(tool, {"k": "1"} if tool == "read" else {}, p="x")
        assert first(writer.records) == ("L104", 3, "kind")
    checked = desk("before seek require read(same p)\n")
    writer = SessionWriter(checked)
    writer.call("read", {"k": "1"}, p="x")
    writer.call("read", {"k": "1"}, p="y")
    writer.call("seek", p="y")
    assert first(writer.records, checked) == ("L104", 4, "kind")


def test_a_ledger_of_1_0_has_one_call_at_a_time() -> None:
    from tests.oracle_session.writer import named

    writer = together()
    header = {name: value for name, value in writer.records[0].items() if name != "session_id"}
    writer.records[0] = named({**header, "schema": "tcc.session/1.0"})
    found = validate(sealed(writer.records), desk()).findings
    assert next(one for one in found if one.code.value == "L104").line == 3


def test_so_many_calls_are_under_way_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 are one more than places allow: each call under way is a place more."""
    monkeypatch.setattr(records, "MAX_UNDER_WAY", 3)
    writer = SessionWriter(desk())
    for number in range(3):
        writer.call("read", {"k": "1"}, p=str(number))
    assert first(writer.records)[0] == "D301"
    writer.call("read", {"k": "1"}, p="3")
    assert first(writer.records) == ("L104", 5, "kind")


def test_no_call_begins_with_256_records_behind_the_oldest_under_way() -> None:
    writer = SessionWriter(desk())
    for name in ("x", "y"):
        writer.call("read", {"k": "1"}, p=name)
    header, one, other = writer.records
    refusal = {"kind": "refusal", "tool": "send", "code": "R202"}
    for behind, due in ((255, "D301"), (256, "L104")):
        assert first([header, one, *[refusal] * behind, other])[0] == due


def test_a_parallel_tool_that_commutes_with_none_is_warned_of() -> None:
    text = """grammar g version "1"

tool a { parallel }
tool b { parallel }

plan = a b{0,3}
"""
    (found,) = compile_text(text, Options()).diagnostics
    assert (found.code, found.severity) == ("TCC417", "warning")
    assert found.span is not None and (found.span.line, found.span.column) == (2, 1)
    assert found.message.startswith("`a` is parallel, and the order")
