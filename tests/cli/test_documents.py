"""Each command that prints JSON, run once: its output has the schema that is published of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import tcc as library
from tcc.outputs.schemas import DOCUMENTS
from tests.cli.conftest import Tcc
from tests.runtime import adapters as peft

PUBLISHED = Path(__file__).parents[2] / "docs" / "schemas"
GRAMMAR = """grammar g version "1"

tool find(order: text) gives (status: open | closed)
tool pay(order: text, amount: number 0 .. 50) { cost 1 price 2 }

plan = find pay?

before pay require find(same order) because "Only what was looked up is paid."
limit count(pay) <= 3
limit depth <= 4

accept find pay

expect plans <= 100
"""
TOOLS = """def find(order):
    return {"status": "open"}

def pay(order, amount):
    return None
"""
TRACE = {
    "id": "one",
    "messages": [
        {"role": "assistant", "tool_calls": [
            {"id": "1", "function": {"name": "find", "arguments": '{"order": "a"}'}}]},
        {"role": "tool", "tool_call_id": "1", "content": '{"status": "open"}'},
        {"role": "assistant", "tool_calls": [
            {"id": "2", "function": {"name": "pay", "arguments": '{"order": "b", "amount": 1}'}}]},
        {"role": "tool", "tool_call_id": "2", "content": "null"},
    ],
}  # fmt: skip
ATOMS = [{"mechanism": "laplace", "scale": "8", "sensitivity": "1", "times": 3}]
SEED = "11" * 32
# The command line of each document, and its exit code.  Names of files are those of `folder`.
RUN: Mapping[str, tuple[str, int]] = {
    "compile": ("compile g.tcg -o other.tcca", 0),
    "inspect": ("inspect g.tcca", 0),
    "test": ("test g.tcg", 0),
    "count": ("count g.tcca", 0),
    "enumerate": ("enumerate g.tcca --limit 2", 0),
    "lint": ("lint g.tcg", 1),
    "fmt": ("fmt --check g.tcg", 0),
    "init": ("init made", 0),
    "import": ("import mcp tools.json", 0),
    "run": (f"run g.tcca --seed {SEED}", 0),
    "epsilon": ("epsilon atoms.json", 0),
    "exec": ("exec g.tcca --tools tools.py --arguments arguments.json", 0),
    "batch": ("batch g.tcca --requests requests.jsonl --out batch", 0),
    "experiments": ("experiments --list", 0),
    "mine": ("mine trace.jsonl -o mined.tcg", 0),
    "replay": ("replay g.tcca trace.jsonl", 1),
    "why": ("why g.tcca pay", 1),
    "diff": ("diff g.tcg g.tcg", 0),
    "prove": ('prove g.tcca "before pay require find(same order)"', 0),
    "cheapest": ("cheapest g.tcca -n 2", 0),
    "sample": (f"sample g.tcca --seed {SEED}", 0),
    "check": ("check g.tcca", 0),
    "validate": ("validate s.ledger --artifact g.tcca", 0),
    "pin": ("pin g.tcca", 0),
    "adapters": ("adapters id lora", 0),
    "account": ("account create account.json --price 12", 0),
    "session": ("session show s.ledger --artifact g.tcca", 0),
    "report": ("report g.tcca -o report.html", 0),
    "explain": ("explain TCC205", 0),
    "error": ("check no-such-file", 2),
    "schema": ("schema check", 0),
    "sign": ("sign --new-key k.pem", 0),
    "verify": ("verify g.tcca.dsse.json g.tcca --key own.pub.pem", 0),
    "graph": ("graph g.tcca", 0),
    "unroll": ("unroll g.tcca --depth 2", 0),
}


@pytest.fixture
def folder(tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an input for each command; it is the current one."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "g.tcg": GRAMMAR,
        "tools.py": TOOLS,
        "trace.jsonl": json.dumps(TRACE),
        "atoms.json": json.dumps(ATOMS),
        "arguments.json": '{"find": {"order": "a"}, "pay": {"order": "a", "amount": 1}}',
        "requests.jsonl": json.dumps({"seed": SEED}),
        "tools.json": '[{"name": "a", "inputSchema": {"type": "object", "properties": {}}}]',
    }.items():
        Path(name).write_text(text)
    assert tcc("compile", "g.tcg").code == 0
    with library.Gate(library.load("g.tcca"), ledger="s.ledger") as gate:
        with gate.call("find", {"order": "a"}) as permit:
            permit.done({"status": "open"})
        gate.finish()
    assert tcc("sign", "--new-key", "own.pem").code == 0
    assert tcc("sign", "g.tcca", "--key", "own.pem").code == 0
    peft.folder(tmp_path / "lora")
    return tmp_path


def test_every_document_is_run() -> None:
    # `tcc demo pipeline` is run by tests/experiments/pipeline/test_command.py.
    assert {*RUN, "demo"} == set(DOCUMENTS)


@pytest.mark.parametrize("name", RUN)
def test_the_output_of_a_command_has_its_published_schema(
    tcc: Tcc, folder: Path, name: str
) -> None:
    line, code = RUN[name]
    ended = tcc(*shlex.split(line), "--json")
    assert ended.code == code, ended
    document = ended.json
    assert document["format"] == f"tcc.{name}"
    schema = json.loads((PUBLISHED / f"{name}.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(document)
