"""Tools on MCP servers over stdio, as the grammar binds them: real servers, of the SDK."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tcc as library
from tcc_runtime.errors import BindingError
from tests.answer_forms import FORMS, LONG, SHORT, TIMES, Form
from tests.forking import launcher

SERVER = Path(__file__).with_name("server.py")
TEXT = """grammar shop version "1"

tool find(by: email | phone) { cost 0.1 bind mcp "shop" "find-it" }
tool check(kind: stock | credit) gives (answer: yes | no) { cost 0.1 bind mcp "shop" "check" }
tool escalate { cost 0.1 bind mcp "shop" "escalate" }

plan = find check escalate
"""


def command(log: Path, *more: str) -> dict[str, list[str]]:
    return {"shop": launcher("sdk", str(SERVER), str(log), *more)}


def called(log: Path) -> list[str]:
    return [json.loads(line)["tool"] for line in log.read_text().splitlines()]


def test_a_plan_is_done_on_a_server(tmp_path: Path) -> None:
    artifact, log = library.compile_text(TEXT), tmp_path / "log"
    gate = library.Gate(artifact, ledger=tmp_path / "s")
    found = library.execute(None, gate=gate, servers=command(log), seed=bytes(32))
    assert found.stop == "finished"
    assert called(log) == ["find-it", "check", "escalate"]
    assert found.calls[1].observed == {"answer": "no"} and found.results[2] == {"answer": "no"}


@pytest.mark.parametrize(("says", "stop"), [("", "unknown"), ("errors mean failed", "failed")])
def test_what_an_error_means_is_for_the_grammar_to_say(says: str, stop: str, tmp_path) -> None:
    text = TEXT.replace("tool escalate {", f"tool escalate {{ {says}")
    artifact, log = library.compile_text(text), tmp_path / "log"
    found = library.execute(
        None, gate=library.Gate(artifact), servers=command(log, "fails"), retries=1
    )
    assert found.stop == stop
    assert called(log).count("escalate") == (1 if stop == "unknown" else 2)


def test_a_server_that_is_too_slow_leaves_an_unknown_outcome(tmp_path: Path) -> None:
    artifact, log = library.compile_text(TEXT), tmp_path / "log"
    found = library.execute(
        None,
        gate=library.Gate(artifact),
        servers=command(log, "slow"),
        deadline={"escalate": 0.5},
    )
    assert (found.stop, called(log)[-1]) == ("unknown", "escalate")
    assert "the deadline has passed" in found.reason


def test_servers_that_are_none_are_refused_before_the_first_call(tmp_path: Path) -> None:
    artifact = library.compile_text(TEXT)
    gate = library.Gate(artifact)
    with pytest.raises(BindingError, match="no command was given for the server 'shop'"):
        library.execute(None, gate=gate)
    with pytest.raises(BindingError, match="no command was given for the server 'shop'"):
        library.execute(None, gate=gate, servers={"other": command(tmp_path / "log")["shop"]})
    with pytest.raises(BindingError, match="a command is a list of texts"):
        library.execute(None, gate=gate, servers={"shop": []})
    assert gate.history == ()


ANSWERING = Path(__file__).parents[1] / "mcp" / "servers" / "answering.py"
SAYS = """grammar desk version "1"

tool say(how: text max 9000) gives (v?: 0 | 0.1 | 5) {
  cost 0.1
  errors mean failed ~ "Error: .*"
  bind mcp "desk" "say"
}

plan = say
"""


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.sampled(9)
def test_what_an_answer_of_a_server_means(form: Form, tmp_path: Path) -> None:
    ledger = tmp_path / "s.ledger"
    with library.Gate(library.compile_text(SAYS), ledger=ledger) as gate:
        found = library.execute(
            None,
            gate=gate,
            arguments={"say": {"how": json.dumps(form.result)}},
            servers={"desk": launcher("sdk", str(ANSWERING))},
            retries=0,
        )
    call = found.calls[0]
    records = map(json.loads, ledger.read_bytes().splitlines())
    outcome = next(one for one in records if one["kind"] == "outcome")
    assert outcome.get("answered", False) is (form.outcome == "failed")
    assert call.outcome == form.outcome
    if form.outcome == "done":
        seen = {} if form.seen is None else {"v": form.seen}
        assert (call.observed, call.unforeseen) == (seen, form.seen is None)
        texts = [block["text"] for block in form.content]
        assert found.results[1] == (texts if form.structured is None else form.structured)
    else:
        assert found.stop == form.outcome and found.results == {}


def test_times_of_many_digits() -> None:
    bound = TIMES
    for tool in ("look", "pay"):
        bound = re.sub(f"(tool {tool}.*)", rf'\1 {{ cost 0.1 bind mcp "desk" "{tool}" }}', bound)
    found = library.execute(
        None,
        gate=library.Gate(library.compile_text(bound)),
        arguments={"look": {"at": LONG}, "pay": {"at": SHORT}},
        servers={"desk": launcher("sdk", str(ANSWERING))},
    )
    assert found.stop == "finished"
