"""The examples of the language in docs/spec compile, or fail with the code that they show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tcc_certs.policy import nodes as n
from tcc_certs.policy.reader import core_json
from tcc_compiler.language.diagnostics import Report, render
from tcc_compiler.language.source import source_of
from tcc_compiler.names.compile import Compiled, compile_source
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.statements import definition_of
from tcc_compiler.syntax.parse import parse

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "spec"
GRAMMAR = ROOT / "compiler" / "tcc_compiler" / "syntax" / "grammar.lark"
# A line with a mistake ends with a comment that is the code of the mistake.
_MISTAKE = re.compile(r"# (TCC[0-9]+)$")
_FILE = re.compile(r"# (\S+\.tcg)\n")


def blocks(page: Path, kind: str) -> list[tuple[int, str]]:
    """The fenced blocks with an info string: the line of each fence, and the text."""
    text = page.read_text("utf-8")
    found = re.finditer(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, one.start()) + 1, one[1]) for one in found]


PAGES = [FOLDER / f"{name}.md" for name in ("core", "language", "session")]
BLOCKS = [(page.name, *one) for page in PAGES for one in blocks(page, "tcg")]
DESK = next(block for _, _, block in BLOCKS if block.startswith("grammar desk "))
FILES = {found[1]: block for _, _, block in BLOCKS if (found := _FILE.match(block))}


def code_of(line: str) -> str | None:
    """The code of the mistake in a line."""
    mark = _MISTAKE.search(line)
    return mark[1] if mark else None


def examples() -> Iterator[Any]:
    """Each block without mistakes, and with each of its mistakes: lines, code, line number."""
    for page, start, block in BLOCKS:
        if block in FILES.values():
            continue
        lines = block.splitlines()
        head = [] if block.startswith("grammar") else DESK.splitlines()
        sound = ["" if code_of(line) else line for line in lines]
        yield pytest.param(head + sound, None, 0, id=f"{page}:{start}")
        for at, line in enumerate(lines):
            code = code_of(line)
            if code is not None:
                text = [*head, *sound[:at], line, *sound[at + 1 :]]
                where = f"{page}:{start + at + 1}"
                yield pytest.param(text, code, len(head) + at + 1, id=f"{where}-{code}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that examples use."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "parent.tcg").write_text(DESK, "utf-8")
    return tmp_path


def compiled(text: str, folder: Path) -> Compiled:
    return compile_source(text, path=folder / "example.tcg")


def shown(found: Compiled) -> str:
    return "\n".join(render(one, found.sources) for one in found.diagnostics)


@pytest.mark.parametrize(("lines", "code", "line"), list(examples()))
def test_an_example_compiles_or_fails_with_its_code(
    lines: list[str], code: str | None, line: int, folder: Path
) -> None:
    found = compiled("\n".join(lines) + "\n", folder)
    reported = [(one.code, one.span.line if one.span else 0) for one in found.diagnostics]
    assert reported == ([] if code is None else [(code, line)]), shown(found)
    assert (found.core is None) == (code is not None)


def test_a_used_file_has_no_mistakes(folder: Path) -> None:
    head = 'grammar g version "1"\n'
    for name in FILES:
        found = compiled(f'{head}use "{name}"\n', folder)
        assert found.core is not None, shown(found)


def test_the_page_has_an_example_of_each_code() -> None:
    """The page names some codes of files, sizes and sessions without an example."""
    page = (FOLDER / "language.md").read_text("utf-8")
    named = set(re.findall(r"TCC[0-9]+", page))
    sizes = {"TCC105", "TCC106", "TCC107", "TCC113", "TCC303", "TCC304", "TCC307", "TCC314"}
    files = {"TCC213", "TCC214", "TCC221", "TCC222", "TCC223", "TCC224"}
    sessions = {"TCC505", "TCC506"}
    lines = [line for _, _, block in BLOCKS for line in block.splitlines()]
    assert named - sizes - files - sessions == {code for line in lines if (code := code_of(line))}


def test_the_syntax_has_the_words_and_marks_of_the_grammar() -> None:
    syntax = "".join(block for _, block in blocks(FOLDER / "language.md", "ebnf"))
    lark = re.sub(r"(^|\s)//.*$", "", GRAMMAR.read_text("utf-8"), flags=re.MULTILINE)
    lark = re.sub(r"^[_A-Z.0-9]+: /.*$|^%.*$", "", lark, flags=re.MULTILINE)
    written, words = (set(re.findall(r'"([^"\s]+)"', text)) for text in (syntax, lark))
    # These are names to the parser: a limit and a set of calls give them their meaning.
    assert written == words | {"count", "sum", "depth", "any"}


# The examples of the core, as a grammar.

_JSON = [json.loads(block) for _, block in blocks(FOLDER / "core.md", "json")]
_DESK_CORE = next(
    block for block in _JSON if "schema" in block and block["grammar"]["name"] == "desk"
)
_CORES = [block for block in _JSON if "texts" in block]
_CORE_TOOLS = """\
grammar desk version "1.0"
given customer: text
given user from login.user
tool find_order(order: text)
  gives (owner: text, total: number, status: open | closed | *,
         items?: list of (sku: text, price?: number)) {
  price 2
  price 4 when status = open
  price 3 when status = closed
}
tool approve(order: text, amount: number) gives (answer: yes | no)
tool refund(order: text, amount: number 0 .. 10000, note?: text) {
  errors mean failed
  price 5
}
tool login gives (user: text)
tool read_file(path: text)
tool send(to: list of text, codes?: list of number, urgent?: flag)
"""


@pytest.mark.parametrize("example", _CORES, ids=[example["texts"][0] for example in _CORES])
def test_the_texts_of_the_core_examples_compile_to_their_statements(
    example: dict[str, Any], folder: Path
) -> None:
    lets = [
        f"let {let['name']}({', '.join(let['parameters'])}) = {n.text_of(_node_of(let['is']))}"
        for let in example.get("lets", [])
    ]
    found = compiled("\n".join([_CORE_TOOLS, *lets, *example["texts"]]) + "\n", folder)
    assert found.core is not None, shown(found)
    expected = _DESK_CORE | {"statements": example["statements"]}
    expected |= {"lets": example["lets"]} if lets else {}
    assert json.loads(json.dumps(core_json(found.core))) == expected


def _node_of(value: list[Any]) -> n.Node:
    """The node that a JSON list writes down."""
    kind = n.NODES[value[0]]
    members: list[Any] = []
    for letter, member in zip(kind.SHAPE, value[1:], strict=False):
        if letter in "NS":
            rest = value[1 + len(members) :]
            members.append(tuple([_node_of(part) if letter == "N" else part for part in rest]))
        else:
            members.append(_node_of(member) if letter == "n" else member)
    return kind(*members)


def _node_lines() -> list[str]:
    return [line for _, block in blocks(FOLDER / "core.md", "nodes") for line in block.splitlines()]


@pytest.mark.parametrize("line", _node_lines())
def test_the_text_of_a_node_is_read_as_the_node(line: str) -> None:
    value, end = json.JSONDecoder().raw_decode(line)
    source = source_of(f"let it_is = {line[end:].strip()}\n", "<text>")
    report = Report([source])
    b = Builder(parse(source, 0, report), report)
    node = definition_of(b, b.file.statements[0]).body
    assert not report.diagnostics()
    assert n.json_of(node) == value
