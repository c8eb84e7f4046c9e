"""`tcc exec`: the best plan is done, and a session that was stopped goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
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


def test_a_plan_is_done_and_reopened(tcc, shop, tmp_path: Path) -> None:
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
    assert (
        ended.code == 2 and "expected an open session, found its end: use another path" in ended.err
    )


DESK = """grammar desk version "1"

tool find(by: email | phone) { cost 0.1 }
tool answer {
  model fast { price 1 latency 50 ms execute { price 2 latency 300 ms } }
  model deep { price 9 latency 100 ms execute }
}

plan = find answer{3} find
"""


def test_models_make_calls_within_caps_and_an_account(tcc, tmp_path: Path) -> None:
    grammar, artifact, tools = (tmp_path / name for name in ("s.tcg", "s.tcca", "tools.py"))
    grammar.write_text(DESK)
    tools.write_text("def find(by): pass\ndef answer(model): return {'by': model}\n")
    assert tcc("compile", grammar, "-o", artifact).code == 0
    ledger, account = tmp_path / "s.session", tmp_path / "account"
    assert tcc("account", "create", account, "--price", "12").code == 0
    told = ("exec", artifact, "--tools", tools, "--account", account)
    ended = tcc(*told, "--ledger", ledger, "--price-cap", "7", "--json")
    assert ended.code == 0 and ended.json["stop"] == "finished"
    assert [call.get("model") for call in ended.json["calls"]] == [
        None, "fast", "fast", "fast", None,
    ]  # fmt: skip
    budget = ended.json["budget"]
    assert (budget["price_spent"], budget["left"]) == ("6", {"price": "1"})
    held = tcc("validate", ledger, "--artifact", artifact, "--account", account)
    assert held.code == 0 and "the named models made 3 calls" in held.out
    shown = tcc("session", "show", ledger, "--artifact", artifact)
    assert "budget: price at most 7, account " in shown.out and "answer by fast: done" in shown.out
    assert "took 2 cents" in shown.out
    # The account has 6 left: two more by the cheapest model, then none that fits.
    second = tcc(*told, "--ledger", tmp_path / "two", "--price-cap", "5")
    assert second.code == 2 and "budget: R205: no model" in second.out + second.err
    assert "4 cents (1 left)" in second.out
    again = tcc(*told, "--ledger", tmp_path / "two", "--price-cap", "50")
    assert again.code == 2 and "this ledger cannot be reopened: budget" in again.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--price-cap", "-1"), "-1 is not in the range"),
        (("--epsilon-cap", "x"), "--epsilon-cap"),
        (("--delta", "2"), "above 0 and below 1"),
        (("--margin", "1"), "--margin"),
        (("--account", "nothing"), "does not exist"),
    ],
)
def test_limits_that_are_none_are_bad_usage(tcc, tmp_path: Path, more, said: str) -> None:
    (tmp_path / "s.tcg").write_text(DESK)
    (tmp_path / "tools.py").write_text("def find(by): pass\ndef answer(model): pass\n")
    ended = tcc("exec", tmp_path / "s.tcg", "--tools", tmp_path / "tools.py", *more)
    assert ended.code == 2 and said in ended.err


def test_a_limit_of_nothing_is_bad_usage(tcc, shop) -> None:
    artifact, tools = shop
    ended = tcc("exec", artifact, "--tools", tools, "--price-cap", "5")
    assert ended.code == 2 and "--price-cap" in ended.err
    assert "no cost is a range and no model makes calls" in ended.err


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
        (("--show", "refund.part"), "expected open arguments and answers as tool.field"),
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


EXITS = ["import sys; sys.exit()", "raise SystemExit(0)", "import sys; sys.exit(7)"]
RAISES = [
    "import sys; sys.exit(0)",
    "raise BaseException('odd')",
    "import asyncio; raise asyncio.CancelledError",
]


@pytest.mark.parametrize("text", [*EXITS, "raise BaseException('odd')"])
def test_a_module_that_exits_is_bad_usage_with_its_path(tcc, shop, tmp_path: Path, text) -> None:
    artifact, tools = shop
    tools.write_text(text)
    ended = tcc("exec", artifact, "--tools", tools, "--ledger", tmp_path / "s")
    assert ended.code == 2 and ended.err.startswith(f"Error: {tools}: ")
    assert "Traceback" not in ended.err and not (tmp_path / "s").exists()
    tools.write_text("raise KeyboardInterrupt")
    ended = tcc("exec", artifact, "--tools", tools)
    assert ended.code == 2 and ended.err.strip() == "interrupted"


def test_what_the_file_says_now_is_run_and_nothing_is_written_beside_it(
    tcc, shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytecode is kept by the second and the size of its file; two edits may have both alike."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    artifact, tools = shop
    for name in ("first", "other"):
        tools.write_text(f"raise ValueError('{name}')")
        os.utime(tools, (10**9, 10**9))
        assert f"ValueError: {name}" in tcc("exec", artifact, "--tools", tools).err
    assert not (tools.parent / "__pycache__").exists()


@pytest.mark.parametrize(
    ("how", "text"),
    # In a coroutine GeneratorExit is how its own task is closed.
    [*product(("def", "async def"), RAISES), ("def", "raise GeneratorExit")],
)
def test_a_tool_that_exits_is_an_unknown_outcome_and_no_clean_end(
    tcc, shop, tmp_path: Path, how: str, text: str
) -> None:
    artifact, tools = shop
    ledger = tmp_path / "s.session"
    tools.write_text(f"{TOOLS}\n{how} find(by):\n    {text}\n")
    ended = tcc("exec", artifact, "--tools", tools, "--ledger", ledger, "--json")
    assert ended.code == 2 and ended.json["stop"] == "unknown" and ended.err == ""
    assert [made["outcome"] for made in ended.json["calls"]] == ["unknown"]
    assert '"outcome":"unknown"' in ledger.read_text()


@pytest.mark.parametrize("how", ["def", "async def"])
def test_an_interrupt_in_a_tool_is_an_interrupt(tcc, shop, tmp_path: Path, how: str) -> None:
    artifact, tools = shop
    ledger = tmp_path / "s.session"
    tools.write_text(f"{TOOLS}\n{how} find(by):\n    raise KeyboardInterrupt\n")
    ended = tcc("exec", artifact, "--tools", tools, "--ledger", ledger)
    assert ended.code == 2 and ended.err.strip() == "interrupted"
    assert '"outcome":"unknown"' in ledger.read_text()


@pytest.mark.parametrize("name", ["arguments", "resolve"])
@pytest.mark.parametrize("text", ["raise SystemExit(0)", "raise ValueError('odd')"])
def test_what_the_module_is_asked_may_exit_too(tcc, shop, tmp_path, name: str, text: str) -> None:
    artifact, tools = shop
    ledger = tmp_path / "s.session"
    tools.write_text(f"{TOOLS}\ndef find(by): raise OSError\ndef {name}(asked): {text}\n")
    ended = tcc("exec", artifact, "--tools", tools, "--ledger", ledger)
    error = "SystemExit: 0" if "Exit" in text else "ValueError: odd"
    assert ended.code == 2 and ended.err.strip() == f"Error: {tools}: {name}: {error}"


def test_a_bound_module_that_exits_is_bad_usage(tcc, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "exiting_tools.py").write_text("raise SystemExit(0)")
    grammar = tmp_path / "g.tcg"
    text = """grammar g version "1"

tool a { bind python "exiting_tools:a" }

plan = a
"""
    grammar.write_text(text)
    ended = tcc("exec", grammar)
    assert ended.code == 2 and "the import of exiting_tools: SystemExit: 0" in ended.err


def test_no_exit_but_that_of_a_closed_pipe_is_clean(tcc, monkeypatch, artifact) -> None:
    def leaves(*_: object, **__: object) -> None:
        raise SystemExit(0)

    monkeypatch.setattr("tcc.commands.count_command.open_bounded", leaves)
    ended = tcc("count", artifact)
    assert ended.code == 3 and "internal error: SystemExit: 0" in ended.err


def test_a_closed_pipe_is_clean(artifact: Path) -> None:
    for arguments in (["enumerate", str(artifact)], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as out:
            ended = subprocess.run(
                [sys.executable, "-m", "tcc", *arguments], stdout=out, stderr=subprocess.PIPE
            )
        assert ended.returncode == 0 and ended.stderr == b""
