"""`tcc import`: a refreshed grammar, sets of the server's hints, and tools of Python libraries."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tcc.importing import tools_of_module
from tcc_runtime.errors import ServerError
from tests.mcp.speaking import tcc

TEXT = {"type": "string"}


def tool(name: str, hints: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "inputSchema": schema, "annotations": hints or {}}


def listed(path: Path, *tools: dict[str, Any]) -> str:
    path.write_text(json.dumps(tools))
    return str(path)


READS, DESTROYS = {"readOnlyHint": True}, {"destructiveHint": True}


def test_an_update_keeps_the_text_of_the_author(tmp_path: Path) -> None:
    grammar, tools = tmp_path / "g.tcg", tmp_path / "tools.json"
    before = [tool("get", READS, id=TEXT), tool("pay", DESTROYS, id=TEXT, sum={"type": "number"})]
    assert tcc("import", "mcp", listed(tools, *before), "-o", str(grammar)).returncode == 0
    text = grammar.read_text()
    assert "let read_only = get\n" in text and "let destructive = pay\n" in text
    narrowed = text.replace("sum: number", "sum: number 0 .. 500")
    narrowed += "\n# Mine.\nbefore pay require get(same id)\n"
    grammar.write_text(narrowed)
    after = [
        tool("pay", DESTROYS, id=TEXT, sum={"type": "number"}, note={"type": ["string", "null"]}),
        tool("find", READS, x=TEXT), tool("get", READS, id={"type": "integer"}),
    ]  # fmt: skip
    done = tcc("import", "mcp", listed(tools, *after), "--update", str(grammar))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:4] == [
        "came: find", "changed: get.id: id: text -> id: integer",
        "changed: pay.sum: sum: number 0 .. 500 -> sum: number", "came: pay.note",
    ]  # fmt: skip
    found = grammar.read_text()
    assert "tool pay(id: text, sum: number 0 .. 500, note: text or null)" in found
    assert "tool get(id: text)" in found and "\ntool find(x: text)" in found
    assert "let read_only = find | get\n" in found
    assert "# Mine.\nbefore pay require get(same id)\n" in found
    assert tcc("fmt", "--check", str(grammar)).returncode == 0
    assert tcc("compile", str(grammar)).returncode == 0


def test_an_update_reports_what_went(tmp_path: Path) -> None:
    grammar, tools = tmp_path / "g.tcg", tmp_path / "tools.json"
    listed(tools, tool("a", x=TEXT, y=TEXT), tool("b"))
    assert tcc("import", "mcp", str(tools), "-o", str(grammar)).returncode == 0
    text = grammar.read_text()
    listed(tools, tool("a", x=TEXT))
    done = tcc("import", "mcp", str(tools), "--update", str(grammar), "--json")
    changes = json.loads(done.stdout)["changes"]
    kinds = [(one["kind"], one["tool"], one["field"]) for one in changes]
    assert kinds == [("went", "a", "y"), ("went", "b", None)]
    assert grammar.read_text() == text


def test_an_update_of_a_text_with_a_mistake_changes_nothing(tmp_path: Path) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text("grammar g version\n")
    tools = listed(tmp_path / "tools.json", tool("a"))
    done = tcc("import", "mcp", tools, "--update", str(grammar))
    assert done.returncode == 2
    assert "TCC101" in done.stderr
    assert grammar.read_text() == "grammar g version\n"


MODULE = """
from typing import Literal
from langchain_core.tools import tool
from pydantic import BaseModel, Field


class Address(BaseModel):
    street: str
    number: int = Field(ge=1)


@tool
def move(to: Address, kind: Literal["home", "work"] = "home") -> str:
    "Move somewhere."
    return ""


def find(order: str, most: int | None = None, tags: list[str] | str = "") -> str:
    "Find an order."
    return ""


TOOLS = [move, {"find": find}]
NOTHING = []
NUMBER = 5
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "shop_tools.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "shop_tools", raising=False)
    return "shop_tools"


def test_tools_of_langchain_and_functions_are_imported(module: str, tmp_path: Path) -> None:
    grammar = tmp_path / "g.tcg"
    done = tcc("import", "python", f"{module}:TOOLS", "-o", str(grammar), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = grammar.read_text()
    for declared in (
        "grammar shop_tools version",
        "tool find(order: text, most?: integer or null, tags?: list of text or text)",
        "tool move(to: object (street: text, number: integer 1 .. 18446744073709551615),",
        "kind?: home | work)",
    ):
        assert declared in text
    assert tcc("compile", str(grammar)).returncode == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is no MODULE:NAME"), (":TOOLS", "is no MODULE:NAME"), ("shop_tools", "is no MODULE"),
        ("shop_tools:MISSING", "has no MISSING"), ("no_such_module:X", "cannot be imported"),
        ("shop_tools:NOTHING", "has no tools"), ("shop_tools:NUMBER", "a int is no tool"),
        ("shop_tools:find.x", "has no find.x"),
    ],
)  # fmt: skip
def test_what_has_no_tools_is_refused(module: str, name: str, said: str) -> None:
    with pytest.raises(ServerError, match=said):
        tools_of_module(name)
