"""Servers and clients that misbehave: nothing forbidden is executed, and the record stays true."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.mcp.speaking import Relayed


def opened(relay: Relayed) -> None:
    relay.greet()
    assert "isError" not in relay.call("open_case", id="c-1")


def act(relay: Relayed, how: str) -> dict[str, object]:
    return relay.call("act", kind="safe", how=how, id="c-1")


ANSWERS = {
    "done": [
        "noise", "slow", "stranger", "asks", "twice", "kind:complete", "huge:1000000", "deep:100",
        "deep:900",
    ],
    "unknown": [
        "nan", "twins", "batch", "utf8", "shape", "number", "is_error", "error", "input_required",
        "kind:input_required", "kind:task", "deep:100000", "huge:30000000",
    ],
}  # fmt: skip


@pytest.mark.parametrize("outcome", ANSWERS)
def test_an_answer_is_done_where_it_is_plain_and_else_unknown(
    tmp_path: Path, artifact: Path, outcome: str
) -> None:
    hows = ANSWERS[outcome]
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        for how in hows:
            result = act(relay, how)
            if how not in ("is_error", "error") and outcome == "unknown":
                assert result["structuredContent"]["outcome"] == "unknown", how  # type: ignore[index]
            # The session goes on: what is allowed in every state that it may be in.
            assert "isError" not in relay.call("open_case", id="c-2"), how
    assert relay.outcomes() == ["done", *[outcome, "done"] * len(hows)]
    assert [name for name, _ in relay.executed] == ["open_case", *["act", "open_case"] * len(hows)]
    assert relay.process.returncode == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.sampled(3)
def test_garbage_of_a_server_harms_nothing(tmp_path: Path, artifact: Path, seed: int) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        act(relay, f"garbage:{seed}")
        assert "isError" not in relay.call("open_case", id="c-2")
    assert relay.process.returncode == 0
    assert [name for name, _ in relay.executed] == ["open_case", "act", "open_case"]


def test_garbage_of_a_client_executes_nothing_forbidden(tmp_path: Path, artifact: Path) -> None:
    chance = random.Random(11)
    line = CALL.replace(b"open_case", b"delete_case") % b'{"id":"c-1"}'
    marks = [b"{", b"}", b'"', b",", b"9", b"\xff", b"\n"]
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        for _ in range(2000):
            junk = bytearray(line)
            for _ in range(chance.randint(0, 3)):
                at = chance.randrange(len(junk))
                junk[at : at + chance.randint(0, 2)] = chance.choice(marks)
            relay.send(bytes(junk) + b"\n")
            relay.drain()  # what is answered is not what is asked here
        assert relay.ask("ping")["result"] == {}
    assert relay.process.returncode == 0
    assert relay.executed == []  # no case was opened


def test_an_error_of_the_server_goes_on_as_one(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        error = act(relay, "error")["error"]
        assert error == {
            "code": -32050,
            "message": "no luck",
            "data": {
                "outcome": "unknown",
                "seq": 2,
                "because": "the server answered with error -32050: no luck",
            },
        }


def test_errors_mean_failed_where_the_grammar_says_so(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        assert relay.call("delete_case", id="c-1", how="is_error")["isError"] is True
        # It did not happen, so it may be tried again, though once alone is allowed.
        assert "isError" not in relay.call("delete_case", id="c-1")
    assert relay.outcomes() == ["done", "failed", "done"]


def test_a_server_that_asks_is_told_nothing(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        replies = act(relay, "asks")["structuredContent"]["replies"]  # type: ignore[index]
        assert [reply.get("error", {}).get("code") for reply in replies] == [-32601, -32601, None]
        assert replies[2]["result"] == {}
        assert relay.aside == []


def test_a_call_that_hangs_is_unknown_and_may_be_resolved(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact, "--deadline", "0.4") as relay:
        opened(relay)
        relay.call("run_tests", suite="unit", how="late_pass:0.7")
        # Not known to have passed: what needs that is refused, and what does not is allowed.
        refused = relay.call("act", kind="risky", how="", id="c-1")
        assert refused["structuredContent"]["code"] == "R202"
        time.sleep(1)
        assert "isError" not in relay.call("act", kind="risky", how="", id="c-1")
    assert relay.outcomes() == ["done", "done", "done"]
    kinds = [record["kind"] for record in relay.records]
    assert kinds.count("resolve") == 1


def test_a_late_answer_that_nobody_foresaw_stops_all_calls(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact, "--deadline", "0.3") as relay:
        opened(relay)
        relay.call("run_tests", suite="unit", how='late_gives:0.6:"broken"')
        time.sleep(0.9)
        answer = relay.call("open_case", id="c-2")
        assert answer["error"]["message"].startswith("not called: call 2 was answered late")
    assert relay.outcomes() == ["done", "unknown"]
    assert [name for name, _ in relay.executed] == ["open_case", "run_tests"]


def test_a_server_that_crashes_leaves_an_unknown_call(tmp_path: Path, artifact: Path) -> None:
    for how in ("crash", "half_crash"):
        folder = tmp_path / how
        folder.mkdir()
        with Relayed(folder, artifact) as relay:
            opened(relay)
            result = act(relay, how)
            assert result["structuredContent"]["outcome"] == "unknown"  # type: ignore[index]
            assert relay.hear() is None
        assert relay.process.returncode == 2
        assert "the server ended" in relay.said
        assert relay.outcomes() == ["done", "unknown"]


def test_parallel_calls_are_made_one_after_the_other(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        for number in range(20):
            name = "delete_case" if number else "open_case"
            call = {"name": name, "arguments": {"id": "c-1"}}
            relay.post({"id": f"p{number}", "method": "tools/call", "params": call})
        results = [relay.answer_to(f"p{number}")["result"] for number in range(20)]
    refused = [result.get("isError", False) for result in results]
    assert refused == [False, False] + [True] * 18
    assert [name for name, _ in relay.executed] == ["open_case", "delete_case"]


def test_a_call_that_is_cancelled_before_its_turn_is_never_made(
    tmp_path: Path, artifact: Path
) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        for number, how in enumerate(("late:0.5", "second", "third")):
            arguments = {"kind": "safe", "how": how, "id": "c-1"}
            call = {"name": "act", "arguments": arguments}
            relay.post({"id": f"p{number}", "method": "tools/call", "params": call})
        for identity in ("p1", "nobody"):
            gone = {"requestId": identity}
            relay.post({"method": "notifications/cancelled", "params": gone})
        relay.answer_to("p0")
        relay.answer_to("p2")
    assert [given.get("how") for name, given in relay.executed if name == "act"] == [
        "late:0.5",
        "third",
    ]
    assert relay.outcomes() == ["done", "done", "done"]


def test_a_call_that_is_cancelled_under_way_is_unknown(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        call = {"name": "act", "arguments": {"kind": "safe", "how": "hang", "id": "c-1"}}
        relay.post({"id": "p", "method": "tools/call", "params": call})
        while len(relay.executed) < 2:
            time.sleep(0.01)
        relay.post({"method": "notifications/cancelled", "params": {"requestId": "p"}})
        assert "isError" not in relay.call("open_case", id="c-2")
        assert all(one.get("id") != "p" for one in relay.aside)
    assert relay.outcomes() == ["done", "unknown", "done"]


def test_two_calls_under_one_id_are_one(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        for how in ("late:0.3", "again"):
            call = {"name": "act", "arguments": {"kind": "safe", "how": how, "id": "c-1"}}
            relay.post({"id": "p", "method": "tools/call", "params": call})
        assert relay.answer_to("p")["error"]["code"] == -32000
        assert "result" in relay.answer_to("p")
    assert [name for name, _ in relay.executed] == ["open_case", "act"]


CALL = (
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"open_case","arguments":%s}}'
)


READ_DIFFERENTLY = [
    (CALL % b'{"id":"c-1","id":"c-2"}', -32700),
    (CALL % b'{"id":NaN}', -32700),
    (CALL % b'{"id":"\xff"}', -32700),
    (CALL % b'{"id":"c-1"}' + b"}", -32700),
    (b"[" + CALL % b'{"id":"c-1"}' + b"]", -32700),
    ((CALL % b'{"id":"c-1"}').replace(b'"2.0"', b'"1.0"'), -32600),
    ((CALL % b'{"id":"c-1"}').replace(b'"id":7', b'"id":null'), -32600),
    ((CALL % b'{"id":"c-1"}').replace(b'"id":7', b'"id":7.5'), -32600),
    ((CALL % b'{"id":"c-1"}').replace(b'"id":7', b'"id":true'), -32600),
    ((CALL % b'{"id":"c-1"}').replace(b'"id":7', b'"id":7,"result":{}'), -32600),
    (CALL % b'["c-1"]', -32602),
    (CALL % b"null", -32602),
    (CALL % (b'{"id":' + b"[" * 5000 + b"]" * 5000 + b"}"), -32700),
    (CALL % (b'{"id":' + b"9" * 5000 + b"}"), -32700),
    (b"x" * 5_000_000, -32600),
    (b"nonsense", -32700),
    (b"{}", -32600),
]


def test_a_line_that_two_readers_may_read_differently_is_none(
    tmp_path: Path, artifact: Path
) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        for line, code in READ_DIFFERENTLY:
            relay.send(line + b"\n")
            answer = relay.hear()
            assert answer is not None and answer["error"]["code"] == code, line[:200]
            assert relay.ask("ping")["result"] == {}
    assert relay.executed == []
    assert len(relay.records) == 1


def test_a_value_that_is_none_is_refused_by_the_gate(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        for number, value in enumerate(("9007199254740993", "1e400", '"\\ud800"', "1e999999999")):
            call = CALL.replace(b'"id":7', b'"id":%d' % (7 + number))
            relay.send(call % f'{{"id":{value}}}'.encode() + b"\n")
            result = relay.answer_to(7 + number)["result"]
            assert result["structuredContent"]["code"] in ("R105", "R106"), value
    assert relay.executed == []


def test_a_line_that_the_end_cuts_off_is_not_acted_on(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        relay.send(CALL % b'{"id":"c-1"}')
    assert relay.executed == []
    assert relay.process.returncode == 0


def test_a_client_that_is_slow_holds_nothing_up(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        for byte in (CALL % b'{"id":"c-1"}') + b"\n":
            relay.send(bytes([byte]))
            time.sleep(0.002)
        assert "result" in relay.answer_to(7)
    assert relay.outcomes() == ["done"]


def test_a_client_that_reads_nothing_costs_no_memory(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        until = time.monotonic() + 3
        os.set_blocking(relay.process.stdin.fileno(), False)  # type: ignore[union-attr]
        while time.monotonic() < until:
            try:
                relay.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n' * 50)
            except BlockingIOError:
                break
            if relay.process.stdin is None:
                break
        status = Path(f"/proc/{relay.process.pid}/status").read_text("ascii")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < 300_000
        relay.process.terminate()
    assert relay.process.returncode == 0


def test_a_huge_answer_costs_no_more_than_its_bound(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        assert act(relay, "huge:100000000")["isError"] is True
        status = Path(f"/proc/{relay.process.pid}/status").read_text("ascii")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < 300_000
    assert relay.outcomes() == ["done", "unknown"]


def test_a_list_that_grows_gives_no_new_tool(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        act(relay, "grow")
        assert relay.call("new_tool")["structuredContent"]["code"] == "R101"
        assert "isError" not in relay.call("open_case", id="c-2")
    assert "new_tool" not in [name for name, _ in relay.executed]


def test_a_tool_that_changes_under_way_stops_all_calls(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        act(relay, "drift")
        answer = relay.call("open_case", id="c-2")
        assert answer["error"]["message"].startswith("not called: the server's tools have changed")
    assert [name for name, _ in relay.executed] == ["open_case", "act"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_settles_what_is_open(
    tmp_path: Path, artifact: Path, number: signal.Signals
) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        call = {"name": "act", "arguments": {"kind": "safe", "how": "hang", "id": "c-1"}}
        relay.post({"id": "p", "method": "tools/call", "params": call})
        while len(relay.executed) < 2:
            time.sleep(0.01)
        relay.process.send_signal(number)
        told = relay.answer_to("p")["result"]["structuredContent"]
        assert told["because"] == "asked to stop"
    assert relay.process.returncode == 0
    assert relay.outcomes() == ["done", "unknown"]


def test_killed_in_a_call_it_is_unknown_to_the_next_relay(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        opened(relay)
        call = {"name": "delete_case", "arguments": {"id": "c-1", "how": "hang"}}
        relay.post({"id": "p", "method": "tools/call", "params": call})
        while len(relay.executed) < 2:
            time.sleep(0.01)
        relay.process.kill()
        relay.process.wait()
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        # Perhaps it was made, and one is all that is allowed.
        assert relay.call("delete_case", id="c-1")["structuredContent"]["code"] == "R202"
    assert relay.outcomes() == ["done", "unknown"]
    assert [name for name, _ in relay.executed] == ["open_case", "delete_case"]


def test_a_server_that_does_not_start_is_an_error(tmp_path: Path, artifact: Path) -> None:
    relay = Relayed(tmp_path, artifact, server="absent.py")
    code, said = relay.end()
    assert (code, "the server ended before it answered initialize" in said) == (2, True)


def test_noise_before_the_handshake_is_passed_over(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact, env={"GREETING": "Hello\nListening ...\n"}) as relay:
        opened(relay)
    assert relay.outcomes() == ["done"]


def test_tools_that_are_nested_without_end_are_refused(tmp_path: Path, artifact: Path) -> None:
    schema = "[" * 500 + "]" * 500
    relay = Relayed(tmp_path, artifact, env={"TOOLS": f'[{{"name":"act","x":{schema}}}]'})
    code, said = relay.end()
    assert (code, "is nested too deeply" in said) == (2, True)


def test_a_server_without_a_tool_of_the_grammar_is_refused(tmp_path: Path, artifact: Path) -> None:
    tools = json.dumps([{"name": "open_case", "inputSchema": {"type": "object"}}])
    relay = Relayed(tmp_path, artifact, env={"TOOLS": tools})
    code, said = relay.end()
    assert code == 1
    assert 'the server has no tool "act"' in said
    assert relay.executed == []
