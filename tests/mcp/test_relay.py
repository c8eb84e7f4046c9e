"""The relay between a client and a server that both do as they should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tests.mcp.speaking import GRAMMAR, Relayed

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"sampling": {}, "elicitation": {}},
}


def test_what_is_allowed_is_executed_and_recorded(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        assert relay.call("open_case", id="c-1")["content"] == [{"type": "text", "text": "ok"}]
        assert "isError" not in relay.call("act", kind="safe", how="", id="c-1")
    assert relay.executed == [
        ("open_case", {"id": "c-1"}),
        ("act", {"kind": "safe", "how": "", "id": "c-1"}),
    ]
    assert relay.outcomes() == ["done", "done"]
    assert relay.process.returncode == 0
    assert (relay.judged.word, relay.judged.claim_type) == ("INCOMPLETE", "ConformantPrefix")


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("never", {}, "R101"),
    ("open_case", {"id": "c-1", "force": True}, "R102"),
    ("open_case", {}, "R103"),
    ("act", {"kind": "wild", "how": "", "id": "c-1"}, "R104"),
    ("open_case", {"id": "x"}, "R105"),
    ("open_case", {"id": 5}, "R105"),
    ("act", {"kind": "safe", "how": "", "id": "c-1"}, "R202"),
    ("delete_case", {"id": "c-1"}, "R202"),
]


def test_what_is_refused_reaches_nobody(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        for tool, arguments, code in REFUSED:
            result = relay.call(tool, **arguments)
            assert result["isError"] is True
            assert result["structuredContent"]["code"] == code
            allowed = result["structuredContent"]["allowed_next"]
            assert {"tool": "open_case", "arguments": {}} in allowed
            assert code in result["content"][0]["text"]
    assert relay.executed == []
    kinds = [record["kind"] for record in relay.records]
    assert kinds == ["session", *["refusal"] * len(REFUSED)]


def test_a_monitor_holds_across_calls(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        relay.call("open_case", id="c-1")
        refused = relay.call("delete_case", id="c-2")
        assert refused["structuredContent"]["code"] == "R202"
        assert "isError" not in relay.call("delete_case", id="c-1")
    assert [name for name, _ in relay.executed] == ["open_case", "delete_case"]


def test_observed_values_come_from_structured_content(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        relay.call("open_case", id="c-1")
        relay.call("run_tests", suite="unit", how='gives:"fail"')
        refused = relay.call("act", kind="risky", how="", id="c-1")
        assert refused["structuredContent"]["code"] == "R202"
        relay.call("run_tests", suite="unit", how='gives:"pass"')
        assert "isError" not in relay.call("act", kind="risky", how="", id="c-1")
    assert [name for name, _ in relay.executed].count("act") == 1


@pytest.mark.parametrize("how", ['gives:"broken"', "gives:5", ""])
def test_a_foreign_observation_is_any_that_is_listed(
    tmp_path: Path, artifact: Path, how: str
) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        relay.call("run_tests", suite="unit", how=how)
        assert "isError" not in relay.call("open_case", id="c-1")
    assert [name for name, _ in relay.executed] == ["run_tests", "open_case"]
    assert relay.judged.checked["unforeseen"] == 1


def test_the_list_is_that_of_the_grammar_sorted_and_narrowed(
    tmp_path: Path, artifact: Path
) -> None:
    with Relayed(tmp_path, artifact) as relay:
        answer = relay.greet()["result"]
        assert answer["capabilities"] == {"tools": {}}
        assert answer["serverInfo"] == {"name": "hostile", "version": "1"}
        tools = relay.ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["act", "delete_case", "open_case", "run_tests"]
    schema = tools[0]["inputSchema"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["kind", "how", "id"]
    assert schema["properties"]["kind"] == {"enum": ["safe", "risky"]}
    assert schema["properties"]["how"]["maxLength"] == 40
    assert schema["properties"]["id"]["pattern"] == "^(?:c-[0-9]{1,4})$"
    assert "result" not in tools[3]["inputSchema"]["properties"]
    assert tools[0]["description"] == "does act"


def test_a_stateless_client_is_answered_as_such(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        found = relay.ask("server/discover", {"_meta": META})["result"]
        assert found["supportedVersions"] == ["2026-07-28"]
        assert found["capabilities"] == {"tools": {}}
        assert found["resultType"] == "complete"
        listed = relay.ask("tools/list", {"_meta": META})["result"]
        assert len(listed["tools"]) == 4
        assert listed["ttlMs"] >= 0
        call = {"name": "open_case", "arguments": {"id": "c-1"}, "_meta": META}
        done = relay.ask("tools/call", call)["result"]
        assert done["resultType"] == "complete"
        assert done["content"]
    assert relay.outcomes() == ["done"]


def test_a_call_with_more_than_its_arguments_is_refused(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        for member in ("task", "inputResponses", "requestState", "other"):
            call = {"name": "open_case", "arguments": {"id": "c-1"}, member: {}}
            assert relay.ask("tools/call", call)["error"]["code"] == -32602, member
    assert relay.executed == []


OTHER_METHODS = (
    "resources/list", "resources/read", "prompts/list", "prompts/get", "completion/complete",
    "logging/setLevel", "sampling/createMessage", "tasks/get", "server/discover",
    "subscriptions/listen", "",
)  # fmt: skip


def test_other_methods_are_not_there(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        for method in OTHER_METHODS:
            assert relay.ask(method, {})["error"]["code"] == -32601, method


def test_nothing_is_called_before_the_handshake(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        call = {"name": "open_case", "arguments": {"id": "c-1"}}
        assert relay.ask("tools/call", call)["error"]["code"] == -32600
        assert relay.ask("ping")["result"] == {}
        relay.greet()
        assert relay.ask("initialize", {"protocolVersion": "2025-11-25"})["error"]
    assert relay.executed == []


def test_the_ways_of_the_protocol_are_not_mixed(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        call = {"name": "open_case", "arguments": {"id": "c-1"}, "_meta": META}
        assert relay.ask("tools/call", call)["error"]["code"] == -32600
    with Relayed(tmp_path, artifact) as relay:
        relay.ask("server/discover", {"_meta": META})
        refused = relay.ask("initialize", {"protocolVersion": "2025-11-25"})["error"]
        assert refused["code"] == -32022
        assert refused["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}
        assert relay.ask("tools/call", {"name": "open_case"})["error"]["code"] == -32602
        old = {**META, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
        assert relay.ask("tools/list", {"_meta": old})["error"]["code"] == -32022
    assert relay.executed == []


def test_the_session_is_the_ledgers(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        relay.call("open_case", id="c-7")
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        assert "isError" not in relay.call("delete_case", id="c-7")
        assert relay.call("delete_case", id="c-7")["structuredContent"]["code"] == "R202"
    assert relay.outcomes() == ["done", "done"]


def test_a_session_may_end_with_its_connection(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact, "--finish") as relay:
        relay.greet()
        relay.call("open_case", id="c-7")
    assert relay.records[-1]["kind"] == "end"
    assert (relay.judged.word, relay.judged.claim_type) == ("VALID", "Conformant")
    whole, name = relay.ledger.read_bytes(), relay.records[0]["session_id"]
    again = Relayed(tmp_path, artifact)
    assert again.end()[0] == 0
    kept = relay.ledger.with_name(f"s.ledger.{name}")
    assert kept.read_bytes() == whole


def test_masking_shows_what_may_be_called_now(tmp_path: Path, artifact: Path) -> None:
    def names(relay: Relayed) -> list[str]:
        return [tool["name"] for tool in relay.ask("tools/list")["result"]["tools"]]

    with Relayed(tmp_path, artifact, "--mask") as relay:
        assert relay.greet()["result"]["capabilities"] == {"tools": {"listChanged": True}}
        assert names(relay) == ["open_case", "run_tests"]
        relay.call("open_case", id="c-1")
        assert names(relay) == ["act", "delete_case", "open_case", "run_tests"]
        changed = [one for one in relay.aside if one.get("method")]
        assert [one["method"] for one in changed] == ["notifications/tools/list_changed"]
        relay.call("delete_case", id="c-1")
        assert names(relay) == ["open_case", "run_tests"]


def test_masking_is_not_for_stateless_clients(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact, "--mask") as relay:
        found = relay.ask("server/discover", {"_meta": META})["result"]
        assert found["capabilities"] == {"tools": {}}
        assert len(relay.ask("tools/list", {"_meta": META})["result"]["tools"]) == 4


def test_progress_goes_under_the_clients_token_alone(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        relay.call("open_case", id="c-1")
        arguments = {"kind": "safe", "how": "progress", "id": "c-1"}
        call = {"name": "act", "arguments": arguments, "_meta": {"progressToken": "mine"}}
        relay.ask("tools/call", call)
        told = [one["params"] for one in relay.aside]
    assert told == [{"progressToken": "mine", "progress": 0.5, "message": "half"}]


def test_numbers_of_a_result_are_not_touched(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        relay.call("open_case", id="c-1")
        arguments = {"kind": "safe", "how": "exact", "id": "c-1"}
        call = {"name": "act", "arguments": arguments}
        relay.post({"id": 99, "method": "tools/call", "params": call})
        assert relay.process.stdout is not None
        assert b'{"n":1e999,"m":1.10}' in relay.process.stdout.read(1 << 16)


def test_a_client_that_ends_its_input_has_no_call_made_that_still_waits(
    tmp_path: Path, artifact: Path
) -> None:
    with Relayed(tmp_path, artifact) as relay:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}
        relay.post({"id": 1, "method": "initialize", "params": hello})
        call = {"name": "open_case", "arguments": {"id": "c-1"}}
        for identity in (2, 3):
            relay.post({"id": identity, "method": "tools/call", "params": call})
        assert relay.process.stdin is not None
        relay.process.stdin.close()
        first, *others = [relay.hear() for _ in range(3)]
        assert first is not None and first["result"]["serverInfo"]["name"] == "hostile"
        told = [(one["id"], one["error"]["message"]) for one in others if one is not None]
        assert told == [
            (2, "not called: the client is gone"),
            (3, "not called: the client is gone"),
        ]
        assert relay.hear() is None
    assert relay.process.returncode == 0
    assert (relay.executed, relay.outcomes()) == ([], [])


def test_several_relays_hold_one_session(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact) as one, Relayed(tmp_path, artifact) as other:
        one.greet()
        other.greet()
        assert other.call("delete_case", id="c-1")["structuredContent"]["code"] == "R202"
        one.call("open_case", id="c-1")
        assert "isError" not in other.call("delete_case", id="c-1")
        assert one.call("delete_case", id="c-1")["structuredContent"]["code"] == "R202"
    assert [name for name, _ in one.executed] == ["open_case", "delete_case"]


def test_a_server_is_told_the_model_that_the_ledger_names(tmp_path: Path) -> None:
    models = "{ model fast { price 1 execute } model deep { price 2 execute } }"
    named = GRAMMAR.replace('"c-[0-9]{1,4}")\n', f'"c-[0-9]{{1,4}}") {models}\n', 1)
    path = tmp_path / "a.tcca"
    library.save(library.compile_text(named), path)
    with library.Gate(path, ledger=tmp_path / "s.ledger") as gate:
        gate.budget(price_cap=9)
    with Relayed(tmp_path, path) as relay:
        relay.greet()
        relay.call("open_case", id="c-1")
        relay.call("delete_case", id="c-1")
    made, other = [
        json.loads(line)["_meta"] if "_meta" in line else {}
        for line in relay.executed_in.read_text().splitlines()
    ]
    assert made == {"tcc/model": "fast"}
    assert "tcc/model" not in other
    records = [json.loads(line) for line in relay.ledger.read_text().splitlines()]
    assert [one["execute"]["model_id"] for one in records if "execute" in one] == ["fast"]


def test_in_the_shadow_all_is_listed_and_made(tmp_path: Path, artifact: Path) -> None:
    with Relayed(tmp_path, artifact, "--shadow") as relay:
        relay.greet()
        listed = relay.ask("tools/list")["result"]["tools"]
        assert all(tool["_meta"] == {"tcc/shadow": True} for tool in listed)
        assert "isError" not in relay.call("delete_case", id="c-2")
        assert "isError" not in relay.call("open_case", id="x")
        assert "isError" not in relay.call("open_case", id="c-1")
        assert "isError" not in relay.call("delete_case", id="c-1")
        relay.call("no_tool_of_the_grammar")
    assert [name for name, _ in relay.executed][:4] == [
        "delete_case", "open_case", "open_case", "delete_case",
    ]  # fmt: skip
    refused = [(one["code"], one["made"]) for one in relay.records if one["kind"] == "refusal"]
    assert refused == [("R202", True), ("R105", True), ("R101", True)]
    assert "in the shadow: nothing is refused" in relay.said
    assert relay.judged.claim_type == "NoClaim"
    outcomes = [one["outcome"] for one in relay.records if one["kind"] == "outcome"]
    assert outcomes == ["done", "done"]
