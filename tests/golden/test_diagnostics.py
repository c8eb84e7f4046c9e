"""Golden diagnostics: a title, the input, ``---``, the exact text of all diagnostics.

The name of a golden file ends in the suffix of its input and ``.txt``.  In the input a line
``=== NAME`` begins another file, ``<<TEXT*N>>`` stands for N times TEXT, ``<<hex:..>>`` for bytes.
An empty input stands for a file that is not there.  ``pytest --update-golden`` writes the output.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcc_compiler.imports.graph_grammar import read_graph
from tcc_compiler.language.catalogue import CATALOGUE
from tcc_compiler.language.catalogue.statements import STATEMENTS
from tcc_compiler.language.diagnostics import render
from tcc_compiler.names.compile import Compiled, compile_file
from tcc_compiler.options import GRAPH_SUFFIXES

FOLDER = Path(__file__).parent / "diagnostics"
GOLDEN = sorted(FOLDER.glob("*.txt"))
# Raised behind the front end (TCC7xx: lints; TCC8xx: what is written; TCC9xx: runs), or (TCC112)
# only after 200 others, or (TCC611 to TCC613) of schemas that are imported; tested elsewhere.
# Those of statements are in tests/compiler/names/test_messages.py.
ELSEWHERE = re.compile("TCC[45789]|TCC112|TCC61[123]")
_MACRO = re.compile(r"<<(?:hex:([0-9a-f]+)|(.+?)\*([0-9]+))>>", re.DOTALL)


def write_input(text: str, name: str, folder: Path) -> None:
    """Write the files of an input into a folder; the first one is called `name`."""
    parts = re.split(r"^=== (.+)\n", text, flags=re.MULTILINE)
    for file, content in [(name, parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]:
        if content:
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_expand(content))


def _expand(text: str) -> bytes:
    done = b""
    at = 0
    for match in _MACRO.finditer(text):
        done += text[at : match.start()].encode()
        done += bytes.fromhex(match[1]) if match[1] else match[2].encode() * int(match[3])
        at = match.end()
    return done + text[at:].encode()


def run(file: str) -> Compiled:
    path = Path(file)
    return read_graph(path) if path.suffix in GRAPH_SUFFIXES else compile_file(path)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_diagnostics_are_as_written(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    text = golden.read_text("utf-8")
    head, _, expected = text.partition("\n---\n")
    name = f"main{golden.with_suffix('').suffix}"
    write_input(
        head.partition("\n")[2].removeprefix("\n") + "\n" * bool(head.count("\n")), name, tmp_path
    )
    monkeypatch.chdir(tmp_path)
    result = run(name)
    found = "\n".join(render(item, result.sources) for item in result.diagnostics) + "\n"
    if request.config.getoption("--update-golden"):
        golden.write_text(f"{head}\n---\n{found}", "utf-8")
        return
    assert found == expected
    assert result.core is None


def test_every_code_of_the_front_end_has_a_golden_file() -> None:
    golden = [*GOLDEN, *(FOLDER.parent / "messages").glob("*.txt")]
    shown = "".join(path.read_text("utf-8").partition("\n---\n")[2] for path in golden)
    others = [code for code in CATALOGUE if not ELSEWHERE.match(code) and code not in STATEMENTS]
    missing = [code for code in others if f"[{code}]" not in shown]
    assert missing == []


def test_every_code_that_is_shown_is_in_the_catalogue() -> None:
    shown = "".join(path.read_text("utf-8").partition("\n---\n")[2] for path in GOLDEN)
    assert sorted(set(re.findall(r"\[(TCC[0-9]+)\]", shown)) - set(CATALOGUE)) == []
