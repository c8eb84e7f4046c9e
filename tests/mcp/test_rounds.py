"""A call of several rounds: one record, one outcome; and what does not pass for a round of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, ListRootsResult, Root

from tests.mcp.sdk import listening
from tests.mcp.speaking import Relayed, serving
from tests.mcp.test_http import KEYS, VERSION, Web, pem, signed, web
from tests.mcp.test_passing import TEXT as OFFERED, compiled, served, talk

__all__ = ["served"]
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ALL = {
    "elicitation": {"form": {}, "url": {}},
    "roots": {},
    "sampling": {"tools": {}, "context": {}},
}
TEXT = """grammar cases version "1"

tool open_case(id: text max 2000)
tool refund(id: text max 2000, amount: integer 0 .. 100)
tool look(id: text max 2000) { parallel }

limit depth <= 60
limit count(refund) <= 1
"""
UNKNOWN = "It is not known whether this call happened"


def made(folder: Path, passed: str = "input") -> Path:
    return compiled(folder, passed, TEXT)


class Asked(Relayed):
    """A gate before a server that asks, spoken to as since 2026-07-28."""

    number = 1000

    def ask_round(
        self,
        how: str,
        state: str | None = None,
        responses: Mapping[str, Any] | None = None,
        *,
        can: Mapping[str, Any] = ALL,
        tool: str = "refund",
        amount: Any = 1,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One round: the answer's result, or its error."""
        self.want_round(how, state, responses, can=can, tool=tool, amount=amount, meta=meta)
        found = self.answer_to(self.number)
        result: dict[str, Any] = found.get("result", found)
        return result

    def want_round(
        self,
        how: str,
        state: str | None = None,
        responses: Mapping[str, Any] | None = None,
        *,
        can: Mapping[str, Any] = ALL,
        tool: str = "refund",
        amount: Any = 1,
        meta: Mapping[str, Any] | None = None,
    ) -> int:
        self.number += 1
        envelope = {VERSION: "2026-07-28", CAPABILITIES: can, **(meta or {})}
        arguments = {"id": how, **({} if tool != "refund" else {"amount": amount})}
        params = {"name": tool, "arguments": arguments, "_meta": envelope}
        params |= {} if state is None else {"requestState": state}
        params |= {} if responses is None else {"inputResponses": responses}
        self.post({"id": self.number, "method": "tools/call", "params": params})
        return self.number

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls that came to the server, with all that came with them."""
        return [arguments for name, arguments in self.executed if name == "tools/call"]


@contextmanager
def asking(folder: Path, *options: str, passed: str = "input") -> Iterator[Asked]:
    options = (*options, "--protocol", "2026-07-28")
    with Asked(folder, made(folder, passed), *options, server="asking.py") as found:
        yield found


def kinds(relay: Relayed) -> list[str]:
    return [one["kind"] for one in relay.records]


YES = {"a": {"action": "accept", "content": {}}}


def test_a_call_of_three_rounds_is_one_record(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        first = relay.ask_round("ask:2")
        assert first["resultType"] == "input_required"
        assert first["inputRequests"]["a"]["params"]["message"] == "sure?"
        assert "s1" not in first["requestState"]
        assert [one["kind"] for one in relay.records] == ["session", "call"]
        second = relay.ask_round("ask:2", first["requestState"], YES)
        assert second["resultType"] == "input_required"
        assert second["requestState"] != first["requestState"]
        last = relay.ask_round("ask:2", second["requestState"], YES)
        assert last["resultType"] == "complete" and last["content"][0]["text"] == "done ask:2"
        assert [one.get("requestState") for one in relay.calls] == [None, "s1", "s2"]
        assert [one.get("inputResponses") for one in relay.calls] == [None, YES, YES]
        assert [one["arguments"] for one in relay.calls] == [{"id": "ask:2", "amount": 1}] * 3
        for one in relay.calls:
            assert one["_meta"][CAPABILITIES] == ALL
        # It counts once, and it has been used.
        assert relay.ask_round("ask:0")["structuredContent"]["code"] == "R202"
    assert kinds(relay) == ["session", "call", "outcome", "refusal"]
    assert relay.outcomes() == ["done"]
    assert "sure?" not in relay.ledger.read_text()
    assert any(one.startswith("passed: input") for one in relay.judged.asserted)


def test_without_the_word_it_is_unknown(tmp_path: Path) -> None:
    with asking(tmp_path, passed="resources") as relay:
        assert UNKNOWN in str(relay.ask_round("ask:2"))
        found = relay.ask_round("ask:2", "s1", YES)
        assert found["error"]["code"] == -32602
        assert [one["_meta"][CAPABILITIES] for one in relay.calls] == [{}]
    assert relay.outcomes() == ["unknown"]


def test_a_client_of_the_handshake_is_asked_for_nothing(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        relay.greet()
        assert UNKNOWN in str(relay.call("refund", id="ask:2", amount=1))
        for more in ({"requestState": "s1"}, {"inputResponses": YES}):
            params = {"name": "look", "arguments": {"id": "x"}, **more}
            assert relay.ask("tools/call", params)["error"]["code"] == -32602
        assert [one["_meta"][CAPABILITIES] for one in relay.calls] == [{}]
    assert relay.outcomes() == ["unknown"]


# States that are none.


def test_a_state_holds_once_and_for_its_call_alone(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        first = relay.ask_round("ask:2")["requestState"]
        changed = "B" + first[1:]
        longer = first + "A"
        other = first[:-1] + ("A" if first[-1] != "A" else "B")
        for forged in ("", "s1", changed, longer, other, first[:11], first + "\n", "=" * 900,
                       first.lower(), "é", "x" * 5000):  # fmt: skip
            found = relay.ask_round("ask:2", forged, YES)
            assert found["error"]["code"] == -32602, forged
        assert len(relay.calls) == 1
        second = relay.ask_round("ask:2", first, YES)["requestState"]
        assert relay.ask_round("ask:2", first, YES)["error"]["code"] == -32602
        assert relay.ask_round("ask:2", second, YES)["content"]
        for old in (first, second):
            assert relay.ask_round("ask:2", old, YES)["error"]["code"] == -32602
        assert len(relay.calls) == 3
    assert kinds(relay) == ["session", "call", "outcome"]


def test_a_state_that_is_asked_for_twice_at_once_holds_once(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        state = relay.ask_round("ask:1")["requestState"]
        numbers = [relay.want_round("ask:1", state, YES) for _ in range(8)]
        answers: dict[Any, Any] = {}
        while len(answers) < 8:
            found = relay.hear()
            assert found is not None
            answers[found["id"]] = found
        assert [("result" in answers[one]) for one in numbers] == [True] + [False] * 7
        assert len(relay.calls) == 2
    assert relay.outcomes() == ["done"]


def test_a_state_of_another_session_or_process_is_none(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with asking(tmp_path / "a") as one, asking(tmp_path / "b") as other:
        theirs = other.ask_round("ask:1")["requestState"]
        assert one.ask_round("ask:1", theirs, YES)["error"]["code"] == -32602
        mine = one.ask_round("ask:1")["requestState"]
        assert mine != theirs
        assert one.ask_round("ask:1", theirs, YES)["error"]["code"] == -32602
        assert one.ask_round("ask:1", mine, YES)["content"]
        other.stop_seconds()
    assert other.outcomes() == ["unknown"]
    with asking(tmp_path / "b") as again:
        assert again.ask_round("ask:1", theirs, YES)["error"]["code"] == -32602
        assert again.calls == [other.calls[0]]
        assert again.ask_round("ask:0")["structuredContent"]["code"] == "R202"


@pytest.mark.parametrize(
    ("more", "same"),
    [
        ({"amount": 2}, False),
        ({"amount": 1.0}, True),
        ({"amount": True}, False),
        ({"amount": "1"}, False),
        ({"tool": "look"}, False),
        ({"how": "ask:3"}, False),
        ({}, True),
    ],
)
@pytest.mark.sampled(3)
def test_other_arguments_are_another_call(tmp_path: Path, more: Any, same: bool) -> None:
    """It is decided as such: it waits for the first one, and the limit is used up by that."""
    with asking(tmp_path, *([] if same else ["--deadline", "1"])) as relay:
        state = relay.ask_round("ask:1")["requestState"]
        other = {"how": "ask:1", **more}
        found = relay.ask_round(other.pop("how"), state, YES, **other)
        if same:
            assert found["content"] and relay.calls[1]["arguments"] == {"id": "ask:1", "amount": 1}
        elif more.get("tool") == "look":
            # It may be made beside the one whose outcome is unknown by then.
            assert found["resultType"] == "input_required"
            assert relay.calls[1].keys() == {"name", "arguments", "_meta"}
        else:
            assert found["structuredContent"]["code"] in ("R105", "R202"), found
            assert len([one for one in relay.calls if one["name"] == "refund"]) == 1
    if same:
        assert relay.outcomes() == ["done"]


def test_other_arguments_leave_the_state_as_it_was(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        state = relay.ask_round("ask:1")["requestState"]
        waiting = relay.want_round("ask:1", state, YES, amount=7)
        assert relay.ask_round("ask:1", state, YES)["content"]
        assert relay.answer_to(waiting)["result"]["structuredContent"]["code"] == "R202"


# What a server may ask for.

FORM = {"method": "elicitation/create", "params": {"message": "x"}}
URL = {"method": "elicitation/create", "params": {"mode": "url", "url": "https://x"}}
SAMPLE = {"method": "sampling/createMessage", "params": {"messages": []}}
WITH_TOOLS = {"method": "sampling/createMessage", "params": {"tools": []}}
CONTEXT = {"method": "sampling/createMessage", "params": {"includeContext": "allServers"}}
ROOTS = {"method": "roots/list"}


ASKED: list[tuple[Any, Any, bool]] = [
    (FORM, {"elicitation": {}}, True),
    (FORM, {"elicitation": {"form": {}}}, True),
    (FORM, {"elicitation": {"url": {}}}, False),
    (FORM, {"roots": {}, "sampling": {}}, False),
    (FORM, {}, False),
    (FORM, {"elicitation": True}, False),
    (URL, {"elicitation": {}}, False),
    (URL, {"elicitation": {"url": {}}}, True),
    ({**URL, "params": {"mode": "other"}}, ALL, False),
    ({**URL, "params": {"mode": ["url"]}}, ALL, False),
    (SAMPLE, {"sampling": {}}, True),
    (SAMPLE, {"elicitation": {}}, False),
    (WITH_TOOLS, {"sampling": {}}, False),
    (WITH_TOOLS, {"sampling": {"tools": {}}}, True),
    (CONTEXT, {"sampling": {"tools": {}}}, False),
    (CONTEXT, {"sampling": {"context": {}}}, True),
    (ROOTS, {"roots": {}}, True),
    (ROOTS, {"elicitation": {}}, False),
    ({"method": "tools/call", "params": {}}, ALL, False),
    ({"method": 5}, ALL, False),
    ({"method": "roots/list", "params": []}, ALL, False),
    ("roots/list", ALL, False),
]


def test_a_server_asks_for_what_the_client_announced(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        for asked, can, passes in ASKED:
            how = "params:" + json.dumps(asked)
            found = relay.ask_round(how, can=can, tool="look")
            told = {kind: parts for kind, parts in can.items() if isinstance(parts, dict)}
            assert relay.calls[-1]["_meta"][CAPABILITIES] == told
            if passes:
                assert found["inputRequests"] == {"a": asked}
                state = found["requestState"]
                assert relay.ask_round(how, state, {"a": {}}, can=can, tool="look")["content"]
            else:
                assert UNKNOWN in str(found) and "inputRequests" not in found, asked
    assert relay.outcomes() == ["done" if passes else "unknown" for _, _, passes in ASKED]


OTHERWISE = [
    "raw:{}",
    'raw:{"inputRequests":{}}',
    'raw:{"inputRequests":[]}',
    'raw:{"inputRequests":null}',
    'raw:{"requestState":5}',
    'raw:{"inputRequests":{"a":{"method":"roots/list"}},"requestState":{}}',
    "state:1048577",
    "state:9000000",
    "many:65",
    'raw:{"inputRequests":{"' + "k" * 257 + '":{"method":"roots/list"}}}',
]


def test_a_server_that_asks_otherwise_leaves_it_unknown(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        for how in OTHERWISE:
            assert UNKNOWN in str(relay.ask_round(how, tool="look")), how
        assert relay.ask_round("x", tool="look")["content"]
    assert relay.outcomes() == [*["unknown"] * len(OTHERWISE), "done"]


@pytest.mark.parametrize(
    ("how", "responses"), [("state:1048576", None), ("state:0", None), ("silent", YES)]
)
def test_a_state_alone_or_none_and_a_large_one(tmp_path: Path, how: str, responses: Any) -> None:
    with asking(tmp_path) as relay:
        first = relay.ask_round(how)
        assert first["resultType"] == "input_required" and len(first["requestState"]) < 64
        again = relay.ask_round(how, first["requestState"], responses)
        if how == "state:0":  # an empty state is one, and goes back
            assert again["resultType"] == "input_required"
            assert relay.calls[1]["requestState"] == ""
            return
        assert again["content"]
        size = len(relay.calls[1].get("requestState", ""))
        assert size == (0 if how == "silent" else 1048576)
    assert relay.outcomes() == ["done"]


# What a client may answer.


WRONG = [{"b": {}}, {"a": {}, "b": {}}, [], "x", 5, {"a": {"n": "DEEP"}}, {"a": {"n": "DIGITS"}}]


def test_answers_to_what_was_not_asked_use_up_no_state(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    with asking(tmp_path) as relay:
        state = relay.ask_round("ask:1")["requestState"]
        envelope = {VERSION: "2026-07-28", CAPABILITIES: ALL}
        params = {"name": "refund", "arguments": {"id": "ask:1", "amount": 1}, "_meta": envelope}
        whole = json.dumps({"requestState": state, **params})[:-1]
        for number, responses in enumerate(WRONG, 7):
            text = json.dumps(responses).replace('"DIGITS"', "0.1000000000000000055")
            text = text.replace('"DEEP"', json.dumps(deep))
            line = f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{whole},'
            relay.send(f'{line}"inputResponses":{text}}}}}\n'.encode())
            assert relay.answer_to(number)["error"]["code"] == -32602, responses
        assert len(relay.calls) == 1
        assert relay.ask_round("ask:1", state, YES)["content"]


def test_answers_without_a_state_are_none(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        assert relay.ask_round("silent", None, YES)["error"]["code"] == -32602
        assert relay.ask_round("silent", None, {})["error"]["code"] == -32602
        assert relay.calls == []


# Ends in between.


def test_the_deadline_is_that_of_the_call(tmp_path: Path) -> None:
    with asking(tmp_path, "--deadline", "1") as relay:
        state = relay.ask_round("ask:2")["requestState"]
        until_unknown(relay)
        assert relay.ask_round("ask:2", state, YES)["error"]["code"] == -32602
        assert relay.ask_round("x", tool="look")["content"]
        assert [name for name, _ in relay.executed] == ["tools/call"] * 2  # nothing to cancel
    assert relay.outcomes() == ["unknown", "done"]


def test_a_late_answer_to_a_later_round_resolves(tmp_path: Path) -> None:
    with asking(tmp_path, "--deadline", "1") as relay:
        state = relay.ask_round("late")["requestState"]
        assert UNKNOWN in str(relay.ask_round("late", state, YES))
        assert relay.ask_round("x", tool="look")["content"]
    assert relay.outcomes() == ["done", "done"]
    assert "resolve" in kinds(relay)


def test_an_answer_beside_the_round_is_none(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        state = relay.ask_round("twice")["requestState"]
        assert relay.ask_round("twice", state)["content"]
        assert relay.ask_round("x", tool="look")["content"]
    assert relay.outcomes() == ["done", "done"]


@pytest.mark.parametrize("how", ["cancel", "leave", "stop", "kill"])
@pytest.mark.sampled(2)
def test_who_ends_it_in_between_leaves_it_unknown(tmp_path: Path, how: str) -> None:
    with asking(tmp_path) as relay:
        state = relay.ask_round("ask:1")["requestState"]
        if how == "cancel":
            relay.cancel(relay.number)
            assert relay.ask_round("ask:1", state, YES)["error"]["code"] == -32602
            assert [name for name, _ in relay.executed] == ["tools/call"]
        elif how == "stop":
            assert relay.stop_seconds() < 5
        elif how == "kill":
            relay.process.kill()
            relay.process.wait()
    assert relay.outcomes() == ["unknown"]
    with asking(tmp_path) as again:
        assert again.ask_round("ask:1", state, YES)["error"]["code"] == -32602


@pytest.mark.parametrize("way", ["cancel", "leave"])
def test_a_later_round_is_cancelled_like_a_call(tmp_path: Path, way: str) -> None:
    with asking(tmp_path, "--deadline", "3" if way == "cancel" else "1") as relay:
        state = relay.ask_round("hang")["requestState"]
        number = relay.want_round("hang", state, YES)
        if way == "cancel":
            while len(relay.calls) < 2:
                time.sleep(0.005)
            relay.cancel(number)
            assert relay.ask_round("x", tool="look")["content"]
            names = [name for name, _ in relay.executed]
            assert names == ["tools/call", "tools/call", "notifications/cancelled", "tools/call"]
    assert relay.outcomes()[0] == "unknown"


def test_progress_of_a_later_round_goes_to_its_token(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        state = relay.ask_round("progress", meta={"progressToken": "one"})["requestState"]
        assert relay.ask_round("progress", state, meta={"progressToken": "two"})["content"]
        assert [one["params"]["progressToken"] for one in relay.aside] == ["two"]


def test_parallel_calls_go_on_in_between(tmp_path: Path) -> None:
    with asking(tmp_path) as relay:
        first = relay.ask_round("ask:1", tool="look")["requestState"]
        second = relay.ask_round("ask:1", tool="look")["requestState"]
        assert first != second
        assert relay.ask_round("plain", tool="look")["content"]
        assert relay.ask_round("ask:1", second, YES, tool="look")["content"]
        assert relay.ask_round("ask:1", first, YES, tool="look")["content"]
        assert relay.ask_round("ask:1", second, YES, tool="look")["error"]["code"] == -32602
    assert relay.outcomes() == ["done"] * 3


@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_client_does_a_round_goes_on_once(tmp_path: Path, seed: int) -> None:
    """Calls, answers, replays, changes and cancellations at random: the server sees one course."""
    rng = random.Random(f"rounds {seed}")
    states: dict[int, list[str]] = {}  # by call: those that its client was given
    over: set[int] = set()
    ids: dict[int, int] = {}  # of the last request of a call
    with asking(tmp_path, "--deadline", "60") as relay:
        for _ in range(120):
            waiting = [one for one in states if one not in over]
            choice = rng.random()
            if choice < 0.3 and len(states) < 40:
                one = len(states)
                states[one] = []
                found = relay.ask_round(f"ask:{one % 4}:{one}", tool="look")
                ids[one] = relay.number
            elif choice < 0.4 and waiting:
                one = rng.choice(waiting)
                relay.cancel(ids[one])
                over.add(one)
                continue
            elif not states or not any(states.values()):
                continue
            elif choice < 0.75 and waiting:
                one = rng.choice(waiting)
                found = relay.ask_round(f"ask:{one % 4}:{one}", states[one][-1], YES, tool="look")
                assert "error" not in found, found
                ids[one] = relay.number
            else:
                other = rng.choice([one for one in states if states[one]])
                last = other not in over and rng.random() < 0.3
                old = states[other][-1] if last else rng.choice(states[other])
                if last:  # a good state with answers to something else
                    wrong = relay.ask_round(f"ask:{other % 4}:{other}", old, {"b": {}}, tool="look")
                elif other in over or old != states[other][-1]:
                    wrong = relay.ask_round(f"ask:{other % 4}:{other}", old, YES, tool="look")
                else:
                    continue
                assert wrong["error"]["code"] == -32602
                continue
            if found.get("resultType") == "input_required":
                states[one].append(found["requestState"])
            else:
                assert found["content"][0]["text"] == f"done ask:{one % 4}:{one}"
                over.add(one)
        courses: dict[str, list[Any]] = {}
        for call in relay.calls:
            courses.setdefault(call["arguments"]["id"], []).append(call.get("requestState"))
    for one in states:
        course = courses[f"ask:{one % 4}:{one}"]
        assert course == [None, "s1", "s2", "s3"][: len(course)]
    assert len(courses) == len(states) == kinds(relay).count("call")
    ended = relay.outcomes()
    assert len(ended) == len(states) and ended.count("done") > 3


# The SDK on both sides.


async def sure(_: Any, asked: Any) -> ElicitResult:
    assert asked.message == "Pay 7?"
    return ElicitResult(action="accept", content={"sure": True})


async def roots(_: Any) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///a")])  # type: ignore[arg-type]


PAID = [(None, []), ("one of c-1", ["sure"]), ("two of c-1", ["roots"])]


def paid(folder: Path) -> list[tuple[Any, Any]]:
    lines = [json.loads(line) for line in (folder / "executed").read_text().splitlines()]
    return [
        (one["arguments"]["state"], one["arguments"]["answered"])
        for one in lines
        if one["name"] == "refund"
    ]


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_the_sdk_asks_and_answers_through_a_gate(tmp_path: Path, way: str, served: str) -> None:
    async def say(client: Client) -> None:
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error
        done = await client.call_tool("refund", {"id": "c-1", "amount": 7})
        assert done.content[0].text == "paid 7"  # type: ignore[union-attr]

    artifact = compiled(tmp_path, "input", OFFERED)
    behind = ("--", served) if way == "http" else ()
    options = ("--protocol", "2026-07-28", *behind)
    talk(tmp_path, artifact, "auto", say, *options, elicitation_callback=sure,
         list_roots_callback=roots)  # fmt: skip
    if way == "stdio":
        assert paid(tmp_path) == PAID
    ledger = [json.loads(line) for line in (tmp_path / "s.ledger").read_text().splitlines()]
    found = [(one["kind"], one.get("outcome")) for one in ledger]
    assert found == [("session", None), *[("call", None), ("outcome", "done")] * 2]


def test_several_servers_ask_through_the_hub(tmp_path: Path) -> None:
    async def say(client: Client) -> None:
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error
        done = await client.call_tool("refund", {"id": "c-1", "amount": 7})
        assert done.content[0].text == "paid 7"  # type: ignore[union-attr]

    bound = OFFERED.replace("20)", '20) { bind mcp "a" "open_case" }', 1).replace(
        "100)", '100) { bind mcp "a" "refund" }'
    )
    server = f"a={shlex.join(serving('offering.py'))}"
    artifact = compiled(tmp_path, "input", bound)
    options = ("--server", server, "--protocol", "2026-07-28")
    talk(tmp_path, artifact, "auto", say, *options, elicitation_callback=sure,
         list_roots_callback=roots)  # fmt: skip
    assert paid(tmp_path) == PAID


def test_in_the_shadow_a_deep_call_is_never_the_same(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    with asking(tmp_path, "--shadow") as relay:
        state = relay.ask_round("ask:1", amount=deep)["requestState"]
        again = relay.ask_round("ask:1", state, YES, amount=deep)
        assert again["requestState"] != state
        assert relay.ask_round("ask:1", state, YES)["resultType"] == "input_required"


class Hubbed(Asked):
    """A gate with `pass input` before several servers, of which one is named `a`."""

    def __init__(self, folder: Path, *options: str, **env: str) -> None:
        bound = TEXT
        for tool in ("open_case", "refund"):
            head = next(line for line in bound.splitlines() if line.startswith(f"tool {tool}"))
            bound = bound.replace(head, f'{head} {{ bind mcp "a" "{tool}" }}')
        bound = bound.replace("{ parallel }", '{ parallel bind mcp "a" "look" }')
        command = f"a={shlex.join(serving('asking.py'))}"
        super().__init__(
            folder, compiled(folder, "input", bound), "--server", command, *options,
            server="", env=env,
        )  # fmt: skip


def test_a_long_state_reaches_one_of_several_servers(tmp_path: Path) -> None:
    with Hubbed(tmp_path, "--protocol", "2026-07-28", "--deadline", "15") as relay:
        first = relay.ask_round("wide:1000000")
        told = relay.ask_round("wide:1000000", first["requestState"], YES)
        assert told["content"][0]["text"] == "1000000"


def test_of_several_servers_one_of_the_handshake_asks_for_nothing(tmp_path: Path) -> None:
    with Hubbed(tmp_path, "--protocol", "handshake", HANDSHAKE="1") as relay:
        told = relay.ask_round("ask:1")
        assert "inputRequests" not in told
        assert [one.get("outcome") for one in relay.records] == [None, None, "unknown"]


@pytest.mark.parametrize("way", ["url", "hub"])
def test_a_later_round_that_is_not_sent_leaves_it_unknown(tmp_path: Path, way: str) -> None:
    """Its first round came to the server: that nothing happened is known of no such call."""
    with listening(tmp_path, "offering.py") as (process, url):

        async def gone(_: Any, __: Any) -> ElicitResult:
            process.kill()
            process.wait()
            return ElicitResult(action="accept", content={"sure": True})

        async def say(client: Client) -> None:
            assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error
            answer = await client.call_tool("refund", {"id": "c-1", "amount": 7})
            assert answer.is_error and UNKNOWN in str(answer.content)

        bound = OFFERED.replace("20)", '20) { bind mcp "a" "open_case" }', 1).replace(
            "100)", '100) { bind mcp "a" "refund" }'
        )
        artifact = compiled(tmp_path, "input", bound)
        behind = ("--server", f"a={url}") if way == "hub" else ("--", url)
        talk(tmp_path, artifact, "auto", say, "--protocol", "2026-07-28", *behind,
             elicitation_callback=gone, list_roots_callback=roots)  # fmt: skip
    ledger = [json.loads(line) for line in (tmp_path / "s.ledger").read_text().splitlines()]
    assert [one["outcome"] for one in ledger if one["kind"] == "outcome"] == ["done", "unknown"]


@pytest.mark.parametrize(("mode", "protocol"), [("auto", "handshake"), ("legacy", "2026-07-28")])
def test_where_one_side_has_no_rounds_it_is_unknown(
    tmp_path: Path, mode: str, protocol: str
) -> None:
    async def say(client: Client) -> None:
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error
        # The SDK's server cannot ask in the handshake, and answers with an error.
        with contextlib.suppress(MCPError):
            assert (await client.call_tool("refund", {"id": "c-1", "amount": 7})).is_error

    artifact = compiled(tmp_path, "input", OFFERED)
    talk(tmp_path, artifact, mode, say, "--protocol", protocol, elicitation_callback=sure,
         list_roots_callback=roots)  # fmt: skip
    ledger = [json.loads(line) for line in (tmp_path / "s.ledger").read_text().splitlines()]
    assert [one.get("outcome") for one in ledger if one["kind"] == "outcome"] == ["done", "unknown"]


def test_the_sdk_asks_and_answers_over_http(tmp_path: Path) -> None:
    async def talk_to(url: str) -> None:
        bearer = {"Authorization": f"Bearer {signed()}"}
        async with httpx2.AsyncClient(headers=bearer, timeout=60) as web_client:
            transport = streamable_http_client(url, http_client=web_client)
            async with Client(
                transport, mode="auto", elicitation_callback=sure, list_roots_callback=roots
            ) as client:
                assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error
                done = await client.call_tool("refund", {"id": "c-1", "amount": 7})
                assert done.content[0].text == "paid 7"  # type: ignore[union-attr]

    with gate_over_http(tmp_path, compiled(tmp_path, "input", OFFERED), "offering.py") as found:
        asyncio.run(asyncio.wait_for(talk_to(found.url), 60))
        assert paid(tmp_path) == PAID
        lines = found.ledgers()[0].read_text().splitlines()
        outcomes = [json.loads(line).get("outcome") for line in lines]
        assert [one for one in outcomes if one] == ["done", "done"]


@contextmanager
def gate_over_http(folder: Path, artifact: Path, server: str, *options: str) -> Iterator[Web]:
    (folder / "k").write_bytes(pem(KEYS["ed25519"]))
    known = ("--jwt-key", str(folder / "k"), "--jwt-audience", "desk", "--protocol", "2026-07-28")
    with web(folder, artifact, *known, *options, server=server) as found:
        yield found


def test_over_http_a_state_is_of_one_principal(tmp_path: Path) -> None:
    def ask(found: Web, who: str, state: str | None = None, amount: int = 1) -> dict[str, Any]:
        arguments = {"id": "ask:1", "amount": amount}
        params: dict[str, Any] = {"name": "refund", "arguments": arguments}
        params |= {} if state is None else {"requestState": state, "inputResponses": YES}
        meta = {VERSION: "2026-07-28", CAPABILITIES: ALL}
        message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
                   "params": {**params, "_meta": meta}}  # fmt: skip
        headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call"}
        headers |= {"Mcp_Name": "refund", "Authorization": f"Bearer {signed(sub=who)}"}
        told: dict[str, Any] = json.loads(found.ask(message, **headers)[2])
        return told

    with gate_over_http(tmp_path, made(tmp_path), "asking.py") as found:
        ann = ask(found, "ann")["result"]["requestState"]
        bob = ask(found, "bob")["result"]["requestState"]
        assert ann != bob
        assert ask(found, "bob", ann)["error"]["code"] == -32602
        assert ask(found, "ann", bob)["error"]["code"] == -32602
        assert ask(found, "ann", ann)["result"]["content"]
        assert ask(found, "ann", ann)["error"]["code"] == -32602
        assert ask(found, "bob", bob)["result"]["content"]
        over = ask(found, "ann", bob, 2)
        assert over["error"]["code"] == -32602
        for ledger in found.ledgers():
            lines = [json.loads(line) for line in ledger.read_text().splitlines()]
            assert [one["kind"] for one in lines] == ["session", "call", "outcome"]


def test_over_http_nobody_waits_for_a_call_that_waits_for_its_client(tmp_path: Path) -> None:
    with gate_over_http(tmp_path, made(tmp_path), "asking.py", "--deadline", "15") as found:
        arguments = {"id": "ask:1", "amount": 1}
        call: dict[str, Any] = {"name": "refund", "arguments": arguments}

        def ask(state: str | None = None) -> dict[str, Any]:
            more = {} if state is None else {"requestState": state, "inputResponses": YES}
            meta = {VERSION: "2026-07-28", CAPABILITIES: ALL}
            message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
                       "params": {**call, **more, "_meta": meta}}  # fmt: skip
            headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call"}
            headers |= {"Mcp_Name": "refund", "Authorization": f"Bearer {signed(sub='ann')}"}
            told: dict[str, Any] = json.loads(found.ask(message, **headers)[2])
            return told

        state = ask()["result"]["requestState"]
        began = time.monotonic()
        found.greet(Authorization=f"Bearer {signed(sub='ann')}")
        assert time.monotonic() - began < 8
        assert ask(state)["result"]["content"][0]["text"] == "done ask:1"


def until_unknown(relay: Relayed) -> None:
    """Wait until the outcome stands in the ledger."""
    until = time.monotonic() + 10
    while "outcome" not in kinds(relay):
        assert time.monotonic() < until
        time.sleep(0.05)
