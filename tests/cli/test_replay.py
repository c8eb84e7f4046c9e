"""`tcc replay`: recorded sessions, each format as its framework writes it, held to a grammar."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_openai_messages,
    messages_to_dict,
)
from opentelemetry.exporter.otlp.json.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

import tcc as library
from tcc.traces import Trace, TraceError, read_traces
from tests.cli.conftest import Tcc

GRAMMAR = """grammar desk version "1"

tool find_order(order: text ~ "ord-[0-9]+") gives (status: open | closed)
tool refund(part: half | full, order: text ~ "ord-[0-9]+", amount: number 0 .. 500) {
  errors mean failed
}
tool reply

plan = (find_order | refund)* reply

limit depth <= 9
limit count(refund) <= 1
before refund require find_order(same order, status = open)
"""
# Tool, arguments, answer; the answer None: there is none; an error where it begins with "Error".
CALLS: Sequence[tuple[str, dict[str, Any], str | None]] = (
    ("find_order", {"order": "ord-1"}, '{"status": "open"}'),
    ("find_order", {"order": "ord-2"}, '{"status": "closed"}'),
    ("refund", {"part": "half", "order": "ord-2", "amount": 4}, "paid"),  # it is closed
    ("refund", {"part": "half", "order": "ord-1", "amount": 4.5}, "Error: try again"),
    ("refund", {"part": "half", "order": "ord-1", "amount": 4.5}, "paid"),
    ("refund", {"part": "full", "order": "ord-1", "amount": 5}, "paid"),  # the second
    ("delete", {}, "gone"),  # nobody declared it
    ("reply", {}, None),
)
REFUSED = {
    ("before refund require find_order(same order, status = open)", "R202", 3),
    ("limit count(refund) <= 1", "R202", 6),
    ("the grammar has no such tool", "R101", 7),
}


def messages(calls: Sequence[tuple[str, dict[str, Any], str | None]]) -> list[BaseMessage]:
    found: list[BaseMessage] = [HumanMessage("please")]
    for number, (tool, arguments, answer) in enumerate(calls):
        asked = {"name": tool, "args": arguments, "id": f"c{number}", "type": "tool_call"}
        found.append(AIMessage("", tool_calls=[asked]))
        if answer is not None:
            status = "error" if answer.startswith("Error") else "success"
            found.append(ToolMessage(answer, tool_call_id=f"c{number}", status=status))
    return found


def anthropic(calls: Sequence[tuple[str, dict[str, Any], str | None]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "user", "content": "please"}]
    for number, (tool, arguments, answer) in enumerate(calls):
        use = {"type": "tool_use", "id": f"c{number}", "name": tool, "input": arguments}
        found.append({"role": "assistant", "content": [{"type": "text", "text": "so"}, use]})
        if answer is not None:
            block = {
                "type": "tool_result", "tool_use_id": f"c{number}",
                "content": [{"type": "text", "text": answer}],
                "is_error": answer.startswith("Error"),
            }  # fmt: skip
            found.append({"role": "user", "content": [block]})
    return found


def spans(calls: Sequence[tuple[str, dict[str, Any], str | None]]) -> str:
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("agent")
    for number, (tool, arguments, answer) in enumerate(calls):
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.conversation.id": "talk-1",
            "gen_ai.tool.call.id": f"c{number}",
            "gen_ai.tool.call.arguments": json.dumps(arguments),
        }
        with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes) as span:
            if answer is not None:
                span.set_attribute("gen_ai.tool.call.result", answer)
                if answer.startswith("Error"):
                    span.set_status(Status(StatusCode.ERROR))
    provider.shutdown()
    return encode_spans(kept.get_finished_spans()).to_json()


def own(calls: Sequence[tuple[str, dict[str, Any], str | None]]) -> dict[str, Any]:
    found = []
    for tool, arguments, answer in calls:
        call: dict[str, Any] = {"tool": tool, "arguments": arguments}
        if answer is not None:
            text = answer.startswith(("{", "["))
            call["answer"] = json.loads(answer) if text else answer
            call["outcome"] = "error" if answer.startswith("Error") else "done"
        found.append(call)
    return {"id": "talk-1", "calls": found}


def as_openai(calls: Sequence[tuple[str, dict[str, Any], str | None]]) -> list[Any]:
    """Chat completions have no mark of an error: the answer that is one is left out."""
    without = [(t, a, None if r and r.startswith("Error") else r) for t, a, r in calls]
    return list(convert_to_openai_messages(messages(without)))


FORMS = {
    "langchain": lambda: json.dumps(messages_to_dict(messages(CALLS))),
    "langchain-dump": lambda: json.dumps([message.model_dump() for message in messages(CALLS)]),
    "langchain-lc": lambda: json.dumps(dumpd(messages(CALLS))),
    "anthropic": lambda: json.dumps({"id": "talk-1", "messages": anthropic(CALLS)}, indent=1),
    "otlp": lambda: spans(CALLS),
    "tcc": lambda: json.dumps(own(CALLS)) + "\n",
}


@pytest.fixture
def grammar(tmp_path: Path) -> Path:
    path = tmp_path / "desk.tcg"
    path.write_text(GRAMMAR)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_each_format_is_replayed_alike(form: str, tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text(FORMS[form]())
    found = tcc("replay", grammar, trace, "--json", "--values")
    assert (found.code, found.err) == (1, ""), found.err
    told = found.json
    assert (told["sessions"], told["calls"], told["refused"]) == (1, 8, 3)
    refused = {
        (one["text"], one["code"], one["examples"][0]["position"]) for one in told["statements"]
    }
    assert refused == REFUSED
    # By its own name, too, as where it is found out.
    named = tcc("replay", grammar, trace, "--json", "--format", form.partition("-")[0], "--values")
    assert named.json == told


def test_messages_of_chat_completions_and_items_of_responses(
    tcc: Tcc, grammar: Path, tmp_path: Path
) -> None:
    (tmp_path / "chat").write_text(json.dumps(as_openai(CALLS)))
    items: list[dict[str, Any]] = []
    for number, (tool, arguments, answer) in enumerate(CALLS):
        made = {"call_id": f"c{number}", "name": tool, "arguments": json.dumps(arguments)}
        items.append({"type": "function_call", **made})
        if answer is not None and not answer.startswith("Error"):
            items.append(
                {"type": "function_call_output", "call_id": f"c{number}", "output": answer}
            )
    (tmp_path / "items").write_text(json.dumps(items))
    for name in ("chat", "items"):
        told = tcc("replay", grammar, tmp_path / name, "--json").json
        # The refund without an answer is unknown, so it counts, and the two after it are too many.
        at = {one["position"] for each in told["statements"] for one in each["examples"]}
        assert at == {3, 5, 6, 7}, name


def test_a_ledger_is_replayed_where_it_shows_its_values(
    tcc: Tcc, grammar: Path, tmp_path: Path
) -> None:
    artifact = library.compile_file(grammar)
    show = ["find_order.order", "refund.order", "refund.amount"]
    for name, shown in (("shown", show), ("hidden", [])):
        with library.Gate(artifact, ledger=tmp_path / name, show=shown, durable=False) as gate:
            with gate.call("find_order", {"order": "ord-1"}) as permit:
                permit.done({"status": "open"})
            with gate.call("refund", {"part": "half", "order": "ord-1", "amount": 4.5}) as permit:
                permit.done()
    strict = tmp_path / "strict.tcg"
    strict.write_text(GRAMMAR.replace("0 .. 500", "0 .. 4"))
    assert tcc("replay", grammar, tmp_path / "shown").code == 0
    told = tcc("replay", strict, tmp_path / "shown", "--json")
    assert (told.code, told.json["refused"]) == (1, 1)
    assert told.json["statements"][0]["code"] == "R105"
    hidden = tcc("replay", grammar, tmp_path / "hidden")
    assert hidden.code == 2 and "order is not shown in this ledger" in hidden.err


PLACES = """grammar desk version "1"

tool look(id: text, order: json, item: text at "/order/lines/0/item")
  gives (state: open | shut at "/head/state", owner: text at "/head/user/id",
         cards: list of text at "/cards/*/id", first: text at "/cards/0/id",
         kinds: list of text at "/cards/*/kind", deep: list of text at "/rows/*/cells/*",
         legs: list of (flight: text at "/f/no", free: number), final: text at "/log/-1",
         due?: time utc or null at "/due")
tool act(id: text, card: text)

plan = any{0,9}
"""
RELATIONS = (
    'seen.owner = "ann"',
    "card in seen.cards",
    'seen.first = "c1"',
    'count(seen.kinds(it = "b")) = 1',
    "count(seen.deep) = 3",
    'count(seen.legs(flight = "F2", free >= 1)) = 1',
    'seen.final = "z"',
    "now >= seen.due",
    "seen.state = open",
    'seen.item = "i"',
)
ANSWER = {
    "head": {"state": "open", "user": {"id": "ann"}}, "log": ["x", "y", "z"],
    "cards": [{"id": "c1", "kind": "a"}, {"id": "c2", "kind": "b"}], "due": "2024-01-01T00:00:00Z",
    "rows": [{"cells": ["p", "q"]}, {"cells": ["r"]}],
    "legs": [{"f": {"no": "F1"}, "free": 0}, {"f": {"no": "F2"}, "free": 2.5}],
}  # fmt: skip


@pytest.mark.parametrize("relation", RELATIONS)
def test_answers_of_a_ledger_stand_at_their_places_again(
    relation: str, tcc: Tcc, tmp_path: Path
) -> None:
    """What the gate let through is let through again, and what it refused is refused again."""
    grammar, ledger = tmp_path / "g.tcg", tmp_path / "s.ledger"
    grammar.write_text(
        f"{PLACES}before act {{\n  let seen = last(look(same id))\n  require {relation}\n}}\n"
    )
    artifact = library.compile_file(grammar)
    answers = ["owner", "cards", "first", "kinds", "deep", "legs", "final", "due"]
    show = [*(f"look.{one}" for one in (*answers, "id", "order", "item")), "act.id", "act.card"]
    order = {"lines": [{"item": "i"}]}
    with library.Gate(artifact, ledger=ledger, show=show, durable=False) as gate:
        with gate.call("look", {"id": "o", "order": order}) as permit:
            permit.done(ANSWER)
        assert not permit.unforeseen
        with gate.call("act", {"id": "o", "card": "c2"}) as permit:
            permit.done()
    told = tcc("replay", grammar, ledger, "--json")
    assert (told.code, told.json["refused"]) == (0, 0), told.json
    other = tmp_path / "other.tcg"
    other.write_text(grammar.read_text().replace(relation, f"not ({relation})"))
    told = tcc("replay", other, ledger, "--json")
    assert (told.code, told.json["refused"]) == (1, 1), told.json


def test_a_refused_call_is_taken_as_not_made(tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    """What came after it is decided without it; with --stop, not at all."""
    closed = CALLS[1:3]
    lines = [own([*closed, *closed, ("reply", {}, "ok")]), own(closed)]
    (tmp_path / "two").write_text("".join(json.dumps({**one, "id": "s"}) + "\n" for one in lines))
    told = tcc("replay", grammar, tmp_path / "two", "--json").json
    assert (told["sessions"], told["calls"], told["refused"]) == (2, 7, 3)
    told = tcc("replay", grammar, tmp_path / "two", "--json", "--stop").json
    assert (told["sessions"], told["calls"], told["refused"]) == (2, 4, 2)


def test_values_are_digests_unless_they_are_asked_for(
    tcc: Tcc, grammar: Path, tmp_path: Path
) -> None:
    secret = own([("refund", {"part": "half", "order": "ord-77", "amount": 4}, "paid")])
    (tmp_path / "one").write_text(json.dumps(secret))
    for more in ((), ("--json",)):
        assert "ord-77" not in tcc("replay", grammar, tmp_path / "one", *more).out
        assert "ord-77" in tcc("replay", grammar, tmp_path / "one", "--values", *more).out


HOSTILE = {
    "empty": ("", "the file is empty"),
    "no JSON": ("{", "not JSON"),
    "twice": ('{"calls": [], "calls": []}', "not JSON"),
    "a NaN": ('{"calls": [{"tool": "t", "answer": NaN}]}', "not JSON"),
    "deep": ("[" * 5000 + "]" * 5000, "not JSON"),
    "a number": ("3", "has the member 'calls'"),
    "no list": ('{"calls": 3}', "has the member 'calls'"),
    "no tool": ('{"calls": [{"name": "t"}]}', "call 1 is no object with the member 'tool'"),
    "a member": ('{"calls": [{"tool": "t", "args": {}}]}', "unknown member 'args'"),
    "an outcome": ('{"calls": [{"tool": "t", "outcome": "fine"}]}', "call 1: an outcome is"),
    "a message": ('[{"tool_calls": []}, 3]', "a message is an object"),
    "no function": ('[{"tool_calls": [{"id": "a"}]}]', "call 1 has no member 'function'"),
    "no name": ('[{"tool_calls": [{"function": {}}]}]', "call 1 has no name of a tool"),
    "a second line": ('{"calls": []}\n{"calls": 3}\n', ":2: "),
    "a span": (
        (
            '{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":'
            '"gen_ai.operation.name","value":{"stringValue":"execute_tool"}}]}]}]}]}'
        ),
        "has no attribute gen_ai.tool.name",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_trace_is_told_with_its_place(
    name: str, tcc: Tcc, grammar: Path, tmp_path: Path
) -> None:
    text, said = HOSTILE[name]
    (tmp_path / "trace").write_text(text)
    found = tcc("replay", grammar, tmp_path / "trace")
    assert found.code == 2 and said in found.err, found.err
    with pytest.raises(TraceError):
        list(read_traces(tmp_path / "trace"))


@pytest.mark.parametrize("number", ["\u00b2", "--1", "-", "", "9" * 5000, "1.5"])
def test_numbers_of_spans_that_are_none_count_as_absent(number: str, tmp_path: Path) -> None:
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x"}
    attributes: list[Any] = [{"key": k, "value": {"stringValue": v}} for k, v in told.items()]
    attributes.append({"key": "n", "value": {"intValue": number}})
    span = {"traceId": "t", "startTimeUnixNano": number, "attributes": attributes}
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    (tmp_path / "trace").write_text(json.dumps(document))
    assert [len(trace.calls) for trace in read_traces(tmp_path / "trace")] == [1]


def test_arguments_that_are_no_object_are_refused(tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    for arguments in ("[1]", "no json", '{"order": "ord-1", "order": "ord-2"}', "[" * 900):
        call = {"id": "a", "function": {"name": "find_order", "arguments": arguments}}
        (tmp_path / "trace").write_text(json.dumps([{"role": "assistant", "tool_calls": [call]}]))
        told = tcc("replay", grammar, tmp_path / "trace", "--json")
        assert (told.code, told.json["refused"]) == (1, 1), arguments
        assert told.json["statements"][0]["code"].startswith("R10"), told.json


def test_a_file_of_many_sessions_is_read_line_by_line(tmp_path: Path) -> None:
    line = json.dumps(own(CALLS)) + "\n"
    (tmp_path / "many").write_text(line * 50)
    found = list(read_traces(tmp_path / "many"))
    assert [type(one) for one in found] == [Trace] * 50
    assert {len(one.calls) for one in found} == {len(CALLS)}


GIVEN = """grammar desk version "1"

given user: text, most: number 0 .. 100

tool look
tool refund(amount: number 0 .. 500, user: text)

plan = any{0,9}

before refund require look within 5 m
before refund require user = session.user and amount <= session.most
"""


def test_a_session_is_replayed_with_what_it_was_given_and_its_times(
    tcc: Tcc, tmp_path: Path
) -> None:
    grammar = tmp_path / "given.tcg"
    grammar.write_text(GIVEN)
    refund = {"tool": "refund", "arguments": {"amount": 5, "user": "ann"}, "answer": {}}
    look = {"tool": "look", "arguments": {}, "answer": {}}
    ann = {"user": "ann", "most": 5}
    lines = [
        {"id": "in time", "given": ann,
         "calls": [{**look, "at_ms": 1000}, {**refund, "at_ms": 301_000}]},
        {"id": "late", "given": ann,
         "calls": [{**look, "at_ms": 1000}, {**refund, "at_ms": 301_001}]},
        {"id": "bob", "given": {**ann, "user": "bob"}, "calls": [look, refund]},
        {"id": "told", "calls": [look, refund]},
    ]  # fmt: skip
    sessions = tmp_path / "sessions"
    sessions.write_text("".join(json.dumps(one) + "\n" for one in lines))
    told = tcc("replay", grammar, sessions, "--given", "user=ann", "--given", "most=4.5", "--json")
    refused = [(e["session"], s["text"]) for s in told.json["statements"] for e in s["examples"]]
    where = "before refund require user = session.user and amount <= session.most"
    assert sorted(refused) == [
        ("bob", where), ("late", "before refund require look within 5 m"), ("told", where),
    ]  # fmt: skip
    missing = tcc("replay", grammar, sessions)
    assert missing.code == 2 and "R103" in missing.err
    # A ledger has both.
    artifact = library.compile_file(grammar)
    clock = itertools.chain([1000] * 3, itertools.repeat(301_002)).__next__
    show = ["refund.amount", "refund.user"]
    ledger = tmp_path / "ledger"
    with library.Gate(artifact, ledger=ledger, show=show, given=ann, clock=clock) as gate:
        with gate.call("look") as permit:
            permit.done()
        with pytest.raises(library.Refused), gate.call("refund", refund["arguments"]):
            pass
    (trace,) = read_traces(ledger)
    assert (trace.given, trace.calls[0].at_ms) == ({"most": 5}, 1000)
    # It has the user by a digest alone.
    missing = tcc("replay", grammar, ledger)
    assert missing.code == 2 and "R103" in missing.err
    assert tcc("replay", grammar, ledger, "--given", "user=ann").code == 0


@pytest.mark.parametrize("value", [-1, 1 << 48, "1", 1.5, True])
def test_a_time_that_is_none_is_told(value: Any, tmp_path: Path) -> None:
    call = {"tool": "look", "arguments": {}, "at_ms": value}
    (tmp_path / "one").write_text(json.dumps({"calls": [call]}))
    with pytest.raises(TraceError, match="at_ms"):
        list(read_traces(tmp_path / "one"))
    (tmp_path / "one").write_text(json.dumps({"calls": [], "given": [value]}))
    with pytest.raises(TraceError, match="given"):
        list(read_traces(tmp_path / "one"))


def test_all_refused_calls_are_listed_in_json_and_with_all(
    tcc: Tcc, grammar: Path, tmp_path: Path
) -> None:
    refund = {"tool": "refund", "arguments": {"part": "half", "order": "ord-1", "amount": 4}}
    (tmp_path / "trace").write_text(json.dumps({"id": "s", "calls": [refund] * 5}))
    [statement] = tcc("replay", grammar, tmp_path / "trace", "--json").json["statements"]
    assert [one["position"] for one in statement["examples"]] == [1, 2, 3, 4, 5]
    for options, shown in (((), 3), (("--all",), 5)):
        text = tcc("replay", grammar, tmp_path / "trace", *options).out
        assert text.count("        s, call ") == shown


def test_limits_across_sessions_are_named_because_each_session_is_counted_alone(
    tcc: Tcc, grammar: Path, tmp_path: Path
) -> None:
    limit = "limit count(refund) per order <= 1 across sessions"
    look = {"tool": "find_order", "arguments": {"order": "ord-1"}, "answer": {"status": "open"}}
    refund = {"tool": "refund", "arguments": {"part": "half", "order": "ord-1", "amount": 4}}
    line = json.dumps({"calls": [look, {**refund, "answer": {}}]}) + "\n"
    (tmp_path / "trace").write_text(line * 2)
    assert tcc("replay", grammar, tmp_path / "trace", "--json").json["counted_per_session"] == []
    grammar.write_text(f"{GRAMMAR}{limit}\n")
    found = tcc("replay", grammar, tmp_path / "trace", "--json")
    assert (found.code, found.json["counted_per_session"]) == (0, [limit])
    text = tcc("replay", grammar, tmp_path / "trace").out
    assert f"note: this limit counted each session alone: {limit}\n" in text


def test_sessions_without_a_refused_call_are_counted(
    tcc: Tcc, grammar: Path, tmp_path: Path
) -> None:
    look = {"tool": "find_order", "arguments": {"order": "ord-1"}, "answer": {"status": "open"}}
    refund = {"tool": "refund", "arguments": {"part": "half", "order": "ord-2", "amount": 4}}
    lines = [{"calls": [look]}, {"calls": [look, refund, refund]}, {"calls": [refund]}]
    (tmp_path / "trace").write_text("".join(json.dumps(one) + "\n" for one in lines))
    found = tcc("replay", grammar, tmp_path / "trace")
    assert (found.code, found.out.splitlines()[-1]) == (
        1, "refused: 3 of 5 calls, in 2 of 3 sessions",
    )  # fmt: skip
    found = tcc("replay", grammar, tmp_path / "trace", "--json")
    assert (found.json["refused"], found.json["refused_sessions"]) == (3, 2)
