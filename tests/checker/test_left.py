"""Statements left to the run: the extracted checker keeps them as ``tcc_certs`` does.

Every kind of statement, alone and beside others, over sessions with outcomes that are unknown, late
and in part, and with calls under way together; and every field of such ledgers forged.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import Any

import pytest

import tcc as library
from tcc.library import artifact_bytes
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.session.machine import NOWHERE, Held, SessionMachine
from tcc_certs.session.validation import validate
from tests.checker.test_sessions import Records, differing, forgeries, program
from tests.oracle_session.brute import Brute
from tests.oracle_session.writer import SessionWriter, sealed

pytestmark = pytest.mark.skipif(
    program() is None, reason="no extracted checker (scripts/proofs --checker), and no node"
)

TOOLS = """tool pay(part?: 0.5 | 2 | 1.25) { cost 2.5 .. 4 price 3 epsilon 0.25 }
tool look gives (size: small | large) { latency 20 ms parallel }
tool note { latency 5 ms parallel price 1 }
tool ask(q: x | y) gives (yes: 1 | 0) { price 2 }
plan = (pay | look | note | ask){0,6}
"""
TOLD = {"look": {"size": ("small", "large")}, "ask": {"yes": ("1", "0")}}
LISTED = {"pay": {"part": ("", "0.5", "2", "1.25")}, "ask": {"q": ("x", "y")}}
STATEMENTS = (
    "limit count(look) <= 1", "limit count(ask(q = x)) <= 1", "finally require look(size = large)",
    "finally require count(note) >= 2", "limit depth <= 3", "limit price <= 6", "limit latency <= 40 ms",
    "limit cost <= 9", "limit epsilon <= 0.5", "limit sum(pay.part) <= 2.75",
    "limit count(pay) <= 0",
    "before pay require look", "before note require unused ask(yes = 1)", "after ask owe note",
    "before note require note", "before look require unused look(size = small)",
    "before look require no pay", "before pay require no ask(yes = 0)\nbefore ask(yes = 0) require no pay", "before note require no note since any - note",
    "before ask require no look(size = large) since any - look(size = large)", "before ask(q = x) require no ask(q = x)",
    "before pay require no pay since any - (pay | look)",
)  # fmt: skip


class _Beside(Brute):
    """The states of the places, by the machine that remembers what is left to the run."""

    def __init__(self, artifact: CheckedArtifact) -> None:
        super().__init__(artifact)
        file = artifact.file
        self.machine = SessionMachine(
            artifact.core, artifact.automaton, artifact.core_calls, file.manifest.relaxed
        )

    def held(self) -> Held:
        """Where the session may be."""
        held: Held = self.machine.start
        for did in self.session:
            offer = self.machine.offers(did.tool).get(did.values)
            if offer is None:
                return (NOWHERE,)
            if did.outcome == "unknown":
                held = self.machine.unknown(held, offer)
            elif did.outcome == "done":
                answer = (None,) * len(offer.observed) if did.answer is None else did.answer
                held = self.machine.done(held, offer, answer)
        return held

    def places(self) -> set[int]:
        """The states of the places."""
        return set(self.machine.shown(self.held()))


@cache
def artifact(*statements: str) -> bytes | None:
    """With all of these statements left to the run; None where there is none such."""
    text = 'grammar g version "1"\n' + TOOLS + "".join(f"{one}\n" for one in statements)
    relax = sorted({_kind(one) for one in statements})
    try:
        return artifact_bytes(library.compile_text(text, relax=relax))
    except library.CompileError:
        return None


def _kind(statement: str) -> str:
    first, second = statement.split()[:2]
    return second.partition("(")[0] if first == "limit" else first


def session(rng: random.Random, checked: CheckedArtifact) -> Records:
    """Mostly calls that the machine lets through: so statements matter, and many sessions pass."""
    writer = SessionWriter(checked)
    writer.brute = brute = _Beside(checked)
    machine, held_by = brute.machine, list[int]()
    unknown: list[tuple[int, str]] = []
    for _ in range(rng.randint(1, 7)):
        tool = rng.choice(["pay", "look", "look", "note", "note", "ask"])
        listed = {name: rng.choice(values) for name, values in LISTED.get(tool, {}).items()}
        if rng.random() < 0.85:
            did = writer.did(tool, listed, {})
            offer = machine.offers(did.tool).get(did.values)
            if offer is None or machine.look(brute.held(), offer).code is not None:
                continue
        together = tool in ("look", "note") and rng.random() < 0.2
        seq = writer.call(tool, listed, ref=f"{rng.random()}")
        if together and rng.random() < 0.7:
            held_by.append(seq)
            continue
        for late in (*held_by, seq):
            _told(rng, writer, late, unknown)
        held_by.clear()
        if unknown and rng.random() < 0.4:
            at, name = unknown.pop(rng.randrange(len(unknown)))
            if rng.random() < 0.7:
                writer.resolve(at, "done", **_answers(rng, name))
            else:
                writer.resolve(at, "failed")
    for late in held_by:
        _told(rng, writer, late, unknown)
    if rng.random() < 0.85:
        writer.end(abandoned=rng.random() < 0.5)
    return writer.records


def _answers(rng: random.Random, tool: str) -> dict[str, str]:
    return {name: rng.choice(values) for name, values in TOLD.get(tool, {}).items()}


def _told(
    rng: random.Random, writer: SessionWriter, seq: int, unknown: list[tuple[int, str]]
) -> None:
    tool = writer.core.tools[writer.brute.session[seq - 1].tool].name
    how = rng.choices(["done", "unknown", "failed", "unforeseen"], [7, 2, 1, 1])[0]
    if how == "unforeseen" and tool in TOLD and seq == len(writer.brute.session):
        writer.done(unforeseen=True)
    elif how in ("done", "unforeseen"):
        writer.tell(seq, "done", **_answers(rng, tool))
    else:
        writer.tell(seq, how)
        if how == "unknown":
            unknown.append((seq, tool))


def drawn(rng: random.Random) -> bytes:
    """An artifact with one to four statements that are left to the run."""
    while True:
        found = artifact(*sorted(rng.sample(STATEMENTS, rng.randint(1, 4))))
        if found is not None:
            return found


@pytest.mark.parametrize("many", [6, pytest.param(60, marks=pytest.mark.campaign)])
def test_each_kind_of_statement_is_kept_alike(many: int) -> None:
    rng, seen = random.Random(16), Counter[str]()
    for statement in STATEMENTS:
        data = artifact(statement)
        assert data is not None, statement
        checked = check(data)
        assert checked.file.manifest.relaxed is not None
        found, lines = differing(data, [sealed(session(rng, checked)) for _ in range(many)])
        assert found == [], statement
        seen += lines
    assert not any(line.startswith("DECLINED") for line in seen), seen
    assert seen["VALID: Conformant"] > 2 * many and seen["VALID: ConformantPrefix"] > 2 * many
    assert seen["REJECTED: a call that no plan goes on with, or states"] > many


@pytest.mark.parametrize("many", [8, pytest.param(400, marks=pytest.mark.campaign)])
def test_several_statements_are_kept_alike(many: int) -> None:
    rng, seen = random.Random(17), Counter[str]()
    for _ in range(many):
        data = drawn(rng)
        checked = check(data)
        found, lines = differing(data, [sealed(session(rng, checked)) for _ in range(10)])
        assert found == []
        seen += lines
    assert not any(line.startswith("DECLINED") for line in seen), seen
    assert seen["VALID: Conformant"] and seen["VALID: ConformantPrefix"] > many


@pytest.mark.parametrize("many", [1, pytest.param(25, marks=pytest.mark.campaign)])
def test_every_forged_field_is_judged_alike(many: int) -> None:
    rng, seen = random.Random(18), Counter[str]()
    while many:
        data = drawn(rng)
        checked = check(data)
        records = session(rng, checked)
        if len(records) < 8 or validate(sealed(records), checked).word != "VALID":
            continue
        many -= 1
        found, lines = differing(data, forgeries(records))
        assert found == []
        seen += lines
    assert seen["VALID: Conformant"] + seen["VALID: ConformantPrefix"], seen


def test_statements_keep_tools_apart() -> None:
    """Calls under way together, of tools that a statement orders and of tools that none does."""
    for statement, due in (
        ("before note require no look", False), ("before note require look", False),
        ("before note require no look since any - look", False), ("before pay require no ask since any - ask", True), ("limit count(look) <= 3", True),
        ("before pay require ask", True), ("after look owe note", False),
    ):  # fmt: skip
        data = artifact(statement)
        assert data is not None
        writer = SessionWriter(check(data))
        writer.brute = _Beside(writer.artifact)
        writer.call("look")
        writer.call("note")
        writer.tell(2, "done")
        writer.tell(1, "done", size="small")
        writer.end(abandoned=True)
        found, lines = differing(data, [writer.ledger()])
        assert found == []
        [line] = lines
        assert line.startswith("VALID") == due, (statement, line)


def test_a_limit_below_nothing_is_declined_by_name() -> None:
    """No plan meets it; the proofs ask that the empty one breaks no limit."""
    data: Any = artifact("limit cost <= -1")
    if data is None:
        pytest.skip("no such artifact is compiled")
    found, lines = differing(data, [SessionWriter(check(data)).ledger()])
    assert found == [] and lines["DECLINED: a limit below 0 that is left to the run"] == 1
