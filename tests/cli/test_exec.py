"""`tcc exec`: the best plan is done, and a session that was stopped goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.executor.grammars import SHOP
from tests.executor.test_servers import TEXT, called, command

TOOLS = """
import json, pathlib
LOG = pathlib.Path(__file__).with_name("log")

def note(name, **given):
    with LOG.open("a") as file:
        file.write(json.dumps({"tool": name, **given}) + "\\n")

def find(by): note("find", by=by)
def check(kind):
    note("check", kind=kind)
    return {"answer": "yes"}
def refund(**given): note("refund", **given)
def tell():
    note("tell")
    if pathlib.Path(__file__).with_name("broken").exists():
        raise OSError("the line is dead")
def escalate(): note("escalate")
"""


@pytest.fixture
def shop(tcc, tmp_path: Path) -> tuple[Path, Path]:
    grammar, artifact, tools = (tmp_path / name for name in ("s.tcg", "s.tcca", "tools.py"))
    grammar.write_text(SHOP.replace("| find escalate", ""))
    tools.write_text(TOOLS)
    assert tcc("compile", grammar, "-o", artifact).code == 0
    return artifact, tools


def test_a_plan_is_done_and_taken_up(tcc, shop, tmp_path: Path) -> None:
    artifact, tools = shop
    ledger, arguments, broken = (tmp_path / name for name in ("s.session", "args", "broken"))
    arguments.write_text(json.dumps({"refund": {"order": "ord-7", "amount": 2.5}}))
    told = ("exec", artifact, "--tools", tools, "--ledger", ledger, "--arguments", arguments)
    broken.touch()
    ended = tcc(*told, "--json")
    assert ended.code == 2 and ended.json["stop"] == "unknown"
    assert ended.json["reason"].endswith("tell: OSError: the line is dead")
    assert called(tmp_path / "log") == ["find", "check", "refund", "tell"]
    broken.unlink()
    ended = tcc(*told)
    assert ended.code == 2 and "unknown: call 4, tell" in ended.out + ended.err
    assert called(tmp_path / "log")[-1] == "tell" and len(called(tmp_path / "log")) == 4
    tools.write_text(TOOLS + "\ndef resolve(made): return 'done'\n")
    ended = tcc(*told)
    assert ended.code == 0 and "finished: the plan was done to its end" in ended.out
    assert len(called(tmp_path / "log")) == 4
    ended = tcc(*told)
    assert ended.code == 2 and "expected a session that goes on, found its end" in ended.err


def test_a_server_is_called(tcc, tmp_path: Path) -> None:
    grammar, log = tmp_path / "s.tcg", tmp_path / "log"
    grammar.write_text(TEXT)
    server = "shop=" + " ".join(command(log)["shop"])
    ended = tcc("exec", grammar, "--server", server, "--json", "--seed", "00" * 32)
    assert ended.code == 0 and ended.json["stop"] == "finished"
    assert called(log) == ["find-it", "check", "escalate"]
    assert ended.json["searches"][0] == {"claim_type": "RunWiseExact", "after": []}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (("--server", "x"), "is no NAME=COMMAND"),
        (("--server", "x='"), "No closing quotation"),
        (("--deadline", "0"), "expected more than 0 seconds"),
        (("--once", "nothing"), "'nothing': the grammar has no such tool"),
        (("--show", "refund.part"), "expected open parameters as tool.parameter"),
        ((), "'find': give a function for it, or bind it in the grammar"),
        (("--after", "find"), "No such option"),
    ],
)
def test_bad_usage(tcc, shop, told, said: str) -> None:
    ended = tcc("exec", shop[0], *told)
    assert ended.code == 2 and said in ended.err and "Traceback" not in ended.err


def test_hostile_files(tcc, shop, tmp_path: Path) -> None:
    artifact, tools = shop
    arguments = tmp_path / "args"
    for text, said in (("[1]", "an object of objects"), ("{", "no JSON"), ("[" * 9999, "no JSON")):
        arguments.write_text(text)
        ended = tcc("exec", artifact, "--tools", tools, "--arguments", arguments)
        assert ended.code == 2 and said in ended.err
    tools.write_text("1 / 0")
    ended = tcc("exec", artifact, "--tools", tools)
    assert ended.code == 2 and "ZeroDivisionError" in ended.err
    tools.write_text("TOOLS = 1")
    ended = tcc("exec", artifact, "--tools", tools)
    assert ended.code == 2 and "TOOLS is no mapping" in ended.err
    tools.write_text(TOOLS)
    ended = tcc("exec", artifact, "--tools", tools, "--ledger", tools)
    assert ended.code == 2 and tools.read_text() == TOOLS
