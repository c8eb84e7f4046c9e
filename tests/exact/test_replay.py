"""Sessions of a proof, call by call, as a gate decides them: whatever statements they have."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

import tcc
from tcc.library import artifact_bytes, artifact_of
from tcc_certs.errors import Rejected
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.replay import Replay, SessionCall
from tcc_runtime.exact.certificate import ProvedQuestion, _calls, _given, shown
from tcc_runtime.exact.writing import WitnessCall, WitnessSession
from tests.exact.test_proofs import changed_at, code_of, file_of, lines_of
from tests.oracle_policies.beside import Clock, Tally, compiled
from tests.oracle_policies.drawn import FORMS, Draw, Play
from tests.oracle_policies.values import MISSING, WRONG, read

# What calls under way and errors do is no part of a session of a proof; of an argument at a place
# the kernel knows some alone, and declines others.
COVERED = FORMS - {"errors", "places"}


def played(seed: int, forms: frozenset[str], tally: dict[str, int]) -> None:
    """One session of a grammar, decision by decision."""
    grammar = Draw(seed, forms).grammar()
    artifact = compiled(grammar, Tally())
    if artifact is None:
        return
    play = Play(f"replay {seed}", grammar)
    given = play.given()
    asked = ProvedQuestion(kind="finishable", text=None, artifacts=(artifact,))
    try:
        left, _ = asked.sides()
    except Rejected as refusal:
        assert refusal.code.value == "D101", seed
        tally["declined"] = tally.get("declined", 0) + 1
        return
    clock = Clock()
    said = _given(artifact, WitnessSession(calls=(), ends="call", given=given))
    replay = Replay(left, left, dict(said.get("given", ())))
    more = {"given": given} if given else {}
    with tcc.Gate(artifact, key=bytes(32), durable=False, clock=clock, **more) as gate:
        for _ in range(9):
            step = play.step()
            clock.ms += max(0, step.later) * 1000
            tool = next(one for one in grammar.tools if one.name == step.tool)
            states = [read(step.answer, of) for of in tool.fields if of.answer]
            if MISSING in states or WRONG in states:
                continue  # no session of P has an answer that was not foreseen
            arguments = json.loads(json.dumps(step.arguments))
            found = gate.check(step.tool, arguments)
            if not found.allowed and found.code not in ("R201", "R202", "R203", "R207"):
                continue  # values that a proof would not have
            call = _written(artifact, step, clock.ms)
            if found.allowed:
                with gate.call(step.tool, arguments) as permit:
                    permit.done(json.loads(json.dumps(step.answer)))
                if permit.unforeseen:
                    break
            why = replay.refuses(call)
            told = f"{seed} {step} {found.code} {why!r}"
            assert (why == "") == found.allowed, told
            assert replay.accepts is gate.may_finish, told
            name = "allowed" if found.allowed else str(found.code)
            tally[name] = tally.get(name, 0) + 1
        gate.finish(abandon=True)


def _written(artifact: tcc.Artifact, step: Any, at_ms: int) -> SessionCall:
    answer = step.answer if isinstance(step.answer, dict) else None
    made = WitnessCall(tool=step.tool, arguments=step.arguments, answer=answer, at_ms=at_ms)
    ((tool, listed, opened),) = _calls(artifact, WitnessSession(calls=(made,), ends="call"))
    return SessionCall(
        tool=tool,
        listed=tuple([(name, text or "*") for name, text in listed]),  # null is not listed
        opened=tuple([(name, text) for name, text in opened]),
        at_ms=at_ms,
    )


@pytest.mark.parametrize(
    "first", [0, 40, *[pytest.param(n, marks=pytest.mark.campaign) for n in range(80, 4000, 40)]]
)
def test_a_session_is_decided_as_a_gate_decides_it(first: int) -> None:
    tally: dict[str, int] = {}
    for seed in range(first, first + 40):
        played(seed, COVERED, tally)
    assert tally.get("allowed", 0) > 20 and tally.get("R202", 0) > 10, tally


@pytest.mark.parametrize(
    "first", [0, *[pytest.param(n, marks=pytest.mark.campaign) for n in range(8, 400, 8)]]
)
def test_whatever_is_decided_has_a_proof(first: int) -> None:
    """Of statements of all forms, those too that were left aside."""
    some = 0
    for seed in range(first, first + 8):
        rng = random.Random(seed)
        grammar = Draw(seed, COVERED).grammar()
        mine = compiled(grammar, Tally())
        if mine is None:
            continue
        rest = list(grammar.statements)
        rest.pop(rng.randrange(len(rest)))
        other = compiled(replace(grammar, statements=tuple(rest)), Tally())
        tool = rng.choice(grammar.tools).name
        never = f'limit uses("{tool}") <= {rng.choice([0, 1])}'
        asks: list[tuple[dict[str, Any], list[tcc.Artifact]]] = [
            ({"statement": never}, [mine]),
            ({"reachable": f'"{tool}"'}, [mine]),
            ({"finishable": True}, [mine]),
        ]
        if other is not None:
            asks += [({"implies": other}, [mine, other]), ({"implies": mine}, [other, mine])]
        for asked, sides in asks:
            found = tcc.prove(sides[0], max_states=400, **asked)
            if found.verdict == "undecided":
                continue
            assert found.certificate is not None, (seed, asked)
            given = list(map(artifact_bytes, sides))
            report = check_proof(found.certificate, given)
            assert (report.finding, report.proof) == (None, found.verdict), (seed, asked)
            lines = lines_of(found.certificate)
            lines[0]["proof"] = "proved" if found.verdict == "refuted" else "refuted"
            assert check_proof(file_of(lines), given).verdict != 0, (seed, asked)
            some += 1
    assert some > 10


# Forms that no closed list covers: what shows a session is one all the same.

NEWER = 'grammar g version "1"\n'
ENDS = "plan = any*\nlimit depth <= 3\n"
LISTS = """tool a gives (; all: list of text)
tool b(; x: text max 9, too: list of text, full: list of text)
"""
ROWS = """tool a gives (; rows: list of (x: text max 9, n: integer 0 .. 9))
tool b(; x: text max 9)
"""
TIMES = "tool a gives (; t: time)\ntool b(; x: time utc)\n"
NINES = "tool b(; n: list of integer 0 .. 9, i: integer 0 .. 9)\n"
Calls: TypeAlias = "list[tuple[str, dict[str, Any], dict[str, Any] | None]]"


def a(**answer: Any) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    return "a", {}, answer


def b(**arguments: Any) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    return "b", arguments, None


def of_lists(*answers: list[str]) -> Calls:
    """A call of `a` with each answer, and one of `b`."""
    return [*[a(all=one) for one in answers], b(x="x", too=["x", "y"], full=["y"])]


def of_rows(*answers: list[dict[str, Any]]) -> Calls:
    """The same of rows."""
    return [*[a(rows=one) for one in answers], b(x="x")]


def of_time(answer: str) -> Calls:
    """The same of one time."""
    return [a(t=answer), b(x="2026-01-01T00:00:00")]


SHOWN: list[tuple[str, Calls, Calls]] = [
    (f"{LISTS}require a where count(seen.all) >= 2 before b\n",
     of_lists(["p", "q"]), of_lists(["p"])),
    (f"{LISTS}require a where count(seen.all = x) >= 2 before b\n",
     of_lists(["x", "q", "x"]), of_lists(["x", "q"])),
    (f"{LISTS}require a where seen.all != too before b\n",
     of_lists(["y", "x"]), of_lists(["x", "y"])),
    (f'{LISTS}require a same all = too where "x" in seen.all before b\n',
     of_lists(["x", "y"]), of_lists(["y", "x"])),
    (f"{LISTS}require a where every seen.all as a, full as b (a = b) before b\n",
     of_lists(["y"]), of_lists(["y", "y"])),
    (f"{LISTS}require a where some seen.all as a (x in too) before b\n",
     of_lists(["p"]), of_lists([])),
    (f"{LISTS}limit uses(b) per too <= 1\n",
     [*of_lists(), b(x="x", too=["y", "x"], full=[])],
     [*of_lists(), b(x="y", too=["x", "y"], full=[])]),
    (f"{LISTS}let l = a.all\nrequire b where x in session.l\n",
     of_lists(["x"], []), of_lists([], ["x"])),
    (f"{ROWS}require a where some seen.rows as r (r.x = x, r.n >= 2) before b\n",
     of_rows([{"x": "x", "n": 2}]), of_rows([{"x": "y", "n": 2}, {"x": "x", "n": 1}])),
    (f"{ROWS}require a where x in seen.rows.x before b\n",
     of_rows([{"x": "x", "n": 0}]), of_rows([])),
    (f"{ROWS}let row(x) = a.rows\nrequire b where row(x).n >= 3\n",
     of_rows([{"x": "x", "n": 1}], [{"x": "x", "n": 3}]),
     of_rows([{"x": "x", "n": 3}], [{"x": "x", "n": 2}])),
    (f"{TIMES}require a where seen.t < x before b\n",
     of_time("2026-01-01T00:00:00+01:00"), of_time("2026-01-01T00:00:00Z")),
    (f"{TIMES}require a where seen.t < now before b\n",
     of_time("1969-12-31T00:00:00Z"), of_time("1971-01-01T00:00:00Z")),
    (f"{NINES}require b where some n as a (a > i)\n", [b(n=[1, 5], i=4)], [b(n=[1, 4], i=4)]),
    (f"{NINES}limit sum(b.i) per n <= 5\n",
     [b(n=[1, 2], i=4), b(n=[2, 1], i=4)], [b(n=[1, 2], i=4), b(n=[1, 2], i=4)]),
]  # fmt: skip


def proof_of(
    artifact: tcc.Artifact, asked: str, calls: Calls, given: dict[str, Any] | None = None
) -> bytes:
    """A session as a proof has it that breaks a statement, whether it is one or not."""
    made = [WitnessCall(tool=tool, arguments=of, answer=answer) for tool, of, answer in calls]
    of = ProvedQuestion(kind="statement", text=asked, artifacts=(artifact,))
    data = shown(of, "refuted", WitnessSession(calls=tuple(made), ends="call", given=given or {}))
    assert data is not None
    return data


@pytest.mark.parametrize(("form", "good", "bad"), SHOWN)
def test_a_session_shows_what_closed_lists_do_not_cover(form: str, good: Calls, bad: Calls) -> None:
    """And one that a gate does not let through is no proof."""
    made = artifact_of(tcc.compile_text(f"{NEWER}{form}{ENDS}"))
    given = [artifact_bytes(made)]
    many = sum(tool == "b" for tool, _, _ in good)
    asked = f"limit uses(b) <= {many - 1}"
    data = proof_of(made, asked, good)
    assert code_of(data, given) == "VALID"
    assert code_of(proof_of(made, asked, bad), given) == "T301"
    lines = lines_of(data)
    assert code_of(changed_at(lines, lambda x: x[0].update(ends="finish")), given) == "T302"
    assert code_of(changed_at(lines, lambda x: x[0].update(proof="proved")), given) != "VALID"
    # What does not break it, and what goes on after it is broken.
    assert code_of(proof_of(made, f"limit uses(b) <= {many}", good), given) == "T302"
    assert code_of(proof_of(made, asked, good[:-1]), given) == "T302"
    if many > 1:
        assert code_of(proof_of(made, "limit uses(b) <= 0", good), given) == "T302"


def test_any_byte_changed_of_such_a_session_keeps_the_verdict_or_is_refused() -> None:
    rng = random.Random(6)
    for form, good, _ in SHOWN:
        made = artifact_of(tcc.compile_text(f"{NEWER}{form}{ENDS}"))
        asked = f"limit uses(b) <= {sum(tool == 'b' for tool, _, _ in good) - 1}"
        data, given = proof_of(made, asked, good), [artifact_bytes(made)]
        for _ in range(40):
            at = rng.randrange(len(data))
            forged = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            report = check_proof(forged, given)
            if report.verdict == 0:
                assert report.question == {"kind": "statement", "text": asked}
                assert report.proof == "refuted"


def test_a_session_that_is_a_proof_need_not_be_shortest() -> None:
    made = artifact_of(tcc.compile_text(f"{NEWER}{SHOWN[0][0]}{ENDS}"))
    calls = of_lists([], ["p", "q"])
    assert code_of(proof_of(made, "limit uses(b) <= 0", calls), [artifact_bytes(made)]) == "VALID"


def test_what_a_session_is_given_may_be_a_list() -> None:
    text = "given l: list of text\ntool b(; x: text max 9)\nrequire b where x in session.l\n"
    made = artifact_of(tcc.compile_text(f"{NEWER}{text}{ENDS}"))
    for value, code in (["x"], "VALID"), (["y"], "T301"), ([], "T301"):
        data = proof_of(made, "limit uses(b) <= 0", [b(x="x")], {"l": value})
        assert code_of(data, [artifact_bytes(made)]) == code


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("tool a gives (; s: text max 8)", "tool a gives (; s: text max 9)"),
        ("tool a gives (s: ok | bad)", "tool a(s: ok | bad)"),
        ('tool a(; j: json, x: flag at "/j/x")', 'tool a(; j: json, x: flag at "/j/y")'),
        ('given u: text max 4\ntool a\nrequire a where session.u = "x"',
         'given u: text max 5\ntool a\nrequire a where session.u = "x"'),
        ("tool a", 'given u: text\ntool a\nrequire a where session.u = "x"'),
    ],
)  # fmt: skip
def test_of_sides_that_are_not_alike_a_session_shows_nothing(mine: str, theirs: str) -> None:
    """The same values would be other calls there."""
    both = tuple(
        [artifact_of(tcc.compile_text(f"{NEWER}{text}\n{ENDS}")) for text in (mine, theirs)]
    )
    of = ProvedQuestion(kind="implies", text=None, artifacts=both)
    session = WitnessSession(calls=(), ends="finish")
    assert shown(of, "refuted", session) is None
    head = of.head("refuted", calls=0, ends="finish")
    head |= {"given": [["u", "x"]]} if "given" in mine else {}
    assert code_of(file_of([head]), list(map(artifact_bytes, both))) == "D101"


def test_more_values_than_a_record_has_are_declined() -> None:
    """A gate refuses them, and no statement is asked."""
    fields = ", ".join(f"{name}: list of text" for name in "cdefghijklmnopqrstu")
    says = ", ".join(f"count({name}) <= 1000" for name in "cdefghijklmnopqrstu")
    made = artifact_of(
        tcc.compile_text(f"{NEWER}tool b(; {fields})\nrequire b where {says}\n{ENDS}")
    )
    many = dict.fromkeys("cdefghijklmnopqrstu", ["v"] * 1000)
    data = proof_of(made, "limit uses(b) <= 0", [b(**many)])
    assert code_of(data, [artifact_bytes(made)]) == "D201"
    with tcc.Gate(made) as gate:
        assert gate.check("b", many).code == "R105"
        gate.finish(abandon=True)


BARE = """tool a(; u: text max 5) gives (; all: list of text)
tool b(; u: text max 5)
require a where count(seen.all) >= 2 before b
require a before b same u
limit uses(a) per u <= 1
"""


def test_what_is_proved_without_a_statement_has_a_list_without_it() -> None:
    """`limit uses(a) per u` proves it, in a list of the whole space, and `count` is left aside."""
    made = artifact_of(tcc.compile_text(f"{NEWER}{BARE}{ENDS}"))
    found = tcc.prove(made, "require a where seen.u = u before b")
    assert found.proved and found.certificate is not None
    given, lines = [artifact_bytes(made)], lines_of(found.certificate)
    assert [part["keys"] for part in lines[0]["parts"]] == ["bare"]
    assert code_of(found.certificate, given) == "VALID"
    whole = changed_at(lines, lambda x: x[0]["parts"][0].update(keys="all"))
    assert code_of(whole, given) == "D101"
    less = changed_at(lines, lambda x: x[0]["parts"][0].update(uses=[1]))
    assert code_of(less, given)[:2] == "T2"
    twice = changed_at(lines, lambda x: x[0]["parts"].append(x[0]["parts"][0]))
    assert code_of(twice, given) == "D101"  # one key at a time is asked of statements of 1.1
    # A question that only the statement decides that was left aside.
    of = ProvedQuestion(kind="statement", text="limit uses(b) <= 0", artifacts=(made,))
    other = changed_at(lines, lambda x: x[0].update(question=of.head("proved")["question"]))
    assert code_of(other, given) == "T101"
