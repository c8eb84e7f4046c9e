"""`tcc mine`: a first grammar out of recorded sessions, which admits every one of them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tcc.library import compile_text
from tcc.traces import Trace, TraceCall, read_traces
from tcc.traces.mining import mine
from tcc.traces.replaying import replay
from tcc_compiler.layout.format import format_text
from tests.cli.conftest import Tcc

DONE, UNKNOWN = "done", "unknown"


def made(tool: str, outcome: str = DONE, **arguments: Any) -> TraceCall:
    return TraceCall(tool=tool, arguments=arguments, outcome=outcome)


def desk(order: str, *, by: str = "mail") -> Trace:
    calls = [
        made("find", by=by),
        made("get_order", order=order),
        made("refund", order=order, amount=3),
    ]
    return Trace(name=order, calls=calls)


def refused(text: str, *traces: Trace) -> list[str]:
    found = replay(compile_text(text), traces)
    return [one.text for one in found.statements]


def test_relations_that_are_tied_by_a_value_are_statements_and_orders_are_comments() -> None:
    found = mine([desk("a"), desk("b"), desk("c")], "desk")
    assert found.admitted == found.sessions == 3
    tied = "before refund require get_order(same order)"
    assert [one.text for one in found.relations if one.is_written] == [tied]
    assert f"{tied}  # 3 of 3 calls" in found.text
    assert "# before get_order require find  (3 of 3 calls)" in found.text
    assert "# limit count(refund) <= 1  (3 of 3 calls)" in found.text
    assert "tool refund(amount: " in found.text
    wrong = Trace(
        name="x", calls=[made("get_order", order="a"), made("refund", order="b", amount=1)]
    )
    assert refused(found.text, wrong) == [tied]
    # A bare order is for a person to write: it holds by chance.
    assert refused(found.text, Trace(name="y", calls=[made("get_order", order="a")])) == []


@pytest.mark.parametrize("outcome", ["unknown", "error", "failed"])
def test_what_was_not_done_is_no_reason_and_still_is_admitted(outcome: str) -> None:
    odd = Trace(
        name="odd",
        calls=[made("get_order", outcome, order="z"), made("refund", order="z", amount=1)],
    )
    found = mine([desk("a"), desk("b"), odd], "desk")
    assert found.admitted == 3
    assert [one for one in found.relations if one.is_written] == []


def test_schemas_come_before_data() -> None:
    schemas = [
        {
            "name": name,
            "inputSchema": {
                "type": "object",
                "properties": {
                    "order": {"type": "string", "pattern": "^[a-z]$"},
                    "amount": {"type": "number", "minimum": 0, "maximum": 10},
                    "by": {"enum": ["mail", "phone"]},
                },
            },
        }
        for name in ("find", "get_order", "refund")
    ]
    found = mine([desk("a"), desk("b"), desk("c", by="fax")], "desk", schemas)
    # `fax` widens nothing: that session is told of, and not admitted.
    assert (found.sessions, found.admitted) == (3, 2)
    assert "by?: mail | phone" in found.text


def test_random_sessions_are_admitted_and_the_grammar_is_the_same_each_time() -> None:
    chance = random.Random(27)
    for _ in range(12):
        sessions = []
        for number in range(chance.randint(1, 8)):
            calls = []
            for _ in range(chance.randint(0, 25)):
                value: Any = chance.choice(["a", "b", 3, 2.5, True, None, [1], {"x": []}, "é\n"])
                arguments = {chance.choice(["k", "l m", "plan"]): value}
                tool = chance.choice(["read", "write", "require", "sp ace"])
                outcome = chance.choice([DONE, DONE, DONE, "failed"])
                calls.append(made(tool, outcome, **(arguments if chance.random() < 0.8 else {})))
            sessions.append(Trace(name=str(number), calls=calls))
        found = mine(sessions, "random")
        assert found.admitted == found.sessions, found.text
        assert refused(found.text, *sessions) == []
        assert format_text(found.text).text == found.text
        assert mine(sessions, "random") == found


def test_sessions_that_were_left_out_are_counted() -> None:
    sessions = [desk(order) for order in "abcdefghi"]
    assert mine(sessions, "desk").held_out == 9
    # One that is alone in its kind is not admitted by the rest.
    alone = Trace(name="alone", calls=[made("close")])
    assert mine([*sessions, alone], "desk").held_out == 9
    assert mine(sessions[:4], "desk").held_out is None


def write(path: Path, traces: list[Trace]) -> Path:
    lines = [
        json.dumps(
            {
                "id": trace.name,
                "calls": [
                    {"tool": one.tool, "arguments": one.arguments, "outcome": one.outcome}
                    for one in trace.calls
                ],
            }
        )
        for trace in traces
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_writes_a_grammar_that_replay_finds_nothing_against(
    tcc: Tcc, tmp_path: Path
) -> None:
    traces = write(tmp_path / "desk.jsonl", [desk(order) for order in "abcde"])
    grammar = tmp_path / "g.tcg"
    found = tcc("mine", traces, "-o", grammar, "--json")
    assert found.code == 0, found.err
    assert found.json["sessions"] == found.json["admitted"] == found.json["held_out"] == 5
    assert found.json["grammar"] == grammar.read_text()
    assert 'grammar desk version "1"' in grammar.read_text()
    assert tcc("replay", grammar, traces).code == 0
    again = tcc("mine", traces, "-o", grammar)
    assert (again.code, "give --overwrite" in again.err) == (2, True)
    other = write(tmp_path / "other.jsonl", [desk("f")])
    schemas = tmp_path / "tools.json"
    schemas.write_text('[{"name": "find"}]')
    for read, written in (
        ([traces], traces),
        ([other, traces], traces),
        ([other, "--schemas", schemas], schemas),
    ):
        itself = tcc("mine", *read, "-o", written, "--overwrite")
        assert (itself.code, "is what is read" in itself.err) == (2, True)
    assert len(list(read_traces(traces))) == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("{", "not JSON"),
        ('{"calls": [{"tool": 3}]}', "call 1 is no object with the member 'tool'"),
        ('{"calls": []}\n{"calls": 3}\n', ":2: "),
    ],
)
def test_what_is_no_trace_is_told_with_its_place(
    tcc: Tcc, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "t").write_text(text)
    found = tcc("mine", tmp_path / "t", "-o", tmp_path / "g.tcg")
    assert (found.code, said in found.err) == (2, True), found.err
    assert not (tmp_path / "g.tcg").exists()


def test_a_session_that_no_tool_has_arguments_for_is_told_of(tcc: Tcc, tmp_path: Path) -> None:
    traces = tmp_path / "t.jsonl"
    traces.write_text('{"calls": [{"tool": "a", "arguments": "no object"}, {"tool": "b"}]}\n')
    found = tcc("mine", traces, "-o", tmp_path / "g.tcg", "--json")
    assert (found.code, found.json["admitted"], found.json["sessions"]) == (1, 0, 1)


def test_sessions_whose_tools_no_grammar_has_are_declined(tcc: Tcc, tmp_path: Path) -> None:
    named = [Trace(name=str(at), calls=[made("a\nb", k="v")]) for at in range(6)]
    traces = write(tmp_path / "t.jsonl", named)
    found = tcc("mine", traces, "-o", tmp_path / "g.tcg")
    assert (found.code, "no grammar of these tools compiles" in found.err) == (2, True), found.err
    assert not (tmp_path / "g.tcg").exists()
    # Where one session has a tool, those that are left when it is left out have none.
    write(traces, [*named, desk("a")])
    found = tcc("mine", traces, "-o", tmp_path / "g.tcg", "--json")
    assert (found.code, found.json["admitted"], found.json["held_out"]) == (1, 1, 0)


def test_schemas_that_are_none_are_declined(tcc: Tcc, tmp_path: Path) -> None:
    traces = write(tmp_path / "t.jsonl", [desk("a")])
    schemas = tmp_path / "tools.json"
    for text in ("[1]", "{", "[" * 5000):
        schemas.write_text(text)
        found = tcc("mine", traces, "--schemas", schemas, "-o", tmp_path / "g.tcg")
        assert found.code == 2, found.err


def test_sessions_of_one_shape_are_replayed_once_where_folds_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tcc.traces import mining

    replayed: list[int] = []
    once = mining.replay

    def counting(artifact: Any, traces: Any) -> Any:
        replayed.append(len(traces))
        return once(artifact, traces)

    monkeypatch.setattr(mining, "replay", counting)
    calls = [
        [
            TraceCall(tool=tool, arguments={"order": f"o-{at}"}, answer="ok", outcome="done")
            for tool in ("find", "pay")
        ]
        for at in range(40)
    ]
    found = mining.mine([Trace(name=str(at), calls=tuple(c)) for at, c in enumerate(calls)], "g")
    assert (found.admitted, found.held_out) == (40, 40)
    assert replayed == [1]


@pytest.mark.parametrize("seed", range(6))
def test_sessions_of_one_shape_are_refused_alike(seed: int) -> None:
    """Each session replayed for itself, beside one of each shape."""
    from tcc.traces import mining

    rng = random.Random(seed)
    artifact = compile_text(
        """grammar g version "1"

tool get(order: text max 3, n?: number 0 .. 9)
tool refund(order: text, amount: json)
tool probe(order: text) { errors mean failed }

plan = any{0,6}

before refund require get(same order)
before refund require unused get(same order)
before get require probe(same order)
"""
    )
    orders: list[Any] = ["a", "b", "long", 1, None, True]

    def call() -> TraceCall:
        tool = rng.choice(("get", "refund", "probe", "none"))
        given: Any = {"order": rng.choice(orders[:2] if rng.random() < 0.8 else orders)}
        if tool == "refund":
            given["amount"] = rng.choice(("a", 1, 1.0, {"x": 1}))
        if tool == "get" and rng.random() < 0.3:
            given["n"] = rng.choice((1, 1.0, 10))
        outcome = rng.choice(("done", "done", "unknown", "failed", "error"))
        return TraceCall(
            tool=tool, arguments=given, outcome=outcome, answer=rng.choice((None, "x"))
        )

    traces = [
        Trace(name=str(at), calls=[call() for _ in range(rng.randint(0, 8))]) for at in range(150)
    ]
    found = mining._try(artifact, traces).refusing
    for at, trace in enumerate(traces):
        alone = replay(artifact, [trace])
        assert (at in found) is bool(alone.refused), trace
        if alone.refused:
            assert found[at] == {one.text for one in alone.statements}, trace
