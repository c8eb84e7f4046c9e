"""Golden messages: the slips of a newcomer, and all that `tcc test` says of them.

Files are as in :mod:`tests.golden.test_diagnostics`; here the grammar is compiled, and its
examples are explained.  Each message says where it is, and how to correct it; one slip gives one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcc.library.plan_questions import with_reasons
from tcc_compiler.language.diagnostics import Diagnostic, render
from tcc_compiler.options import Options
from tcc_compiler.pipeline import Compiled, compile_file
from tests.golden.test_diagnostics import write_input

FOLDER = Path(__file__).parent / "messages"
GOLDEN = sorted(FOLDER.glob("*.txt"))
# How many slips a file has, where it has not one.
SLIPS = {
    "arg_extra": 2,
    "comment": 2,
    "cr": 2,
    "name": 2,
    "name_limit": 2,
    "plan_semi": 4,
    "quotes3": 2,
}


def compiled_in(golden: Path, folder: Path) -> Compiled:
    head = golden.read_text("utf-8").partition("\n---\n")[0]
    text = head.partition("\n")[2].removeprefix("\n") + "\n"
    write_input(text, "main.tcg", folder)
    return compile_file(Path("main.tcg"), Options())


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name.removesuffix(".tcg.txt"))
def test_a_slip_is_answered_as_written_with_a_place_and_a_mend(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    head, _, expected = golden.read_text("utf-8").partition("\n---\n")
    monkeypatch.chdir(tmp_path)
    compiled = compiled_in(golden, tmp_path)
    said = with_reasons(compiled)
    found = "\n".join(render(item, compiled.sources) for item in said) + "\n"
    if request.config.getoption("--update-golden"):
        golden.write_text(f"{head}\n---\n{found}", "utf-8")
        return
    assert found == expected
    assert len(said) == SLIPS.get(golden.name.removesuffix(".tcg.txt"), 1)
    for item in said:
        check_useful(item, compiled)
    assert len(found) < 4000 * len(said)


def check_useful(item: Diagnostic, compiled: Compiled) -> None:
    """A message has a place in a text that was read, and a mend that is more than the message."""
    assert item.span is not None and item.span.file in compiled.sources
    assert item.hint and item.hint not in item.message
    assert all(note.span is not None for note in item.notes)


def test_the_carets_of_the_golden_files_stand_below_what_they_mark() -> None:
    for name, marked in (("wide", "cots"), ("emoji", "cots"), ("tabs", "bb"), ("crlf", "bb")):
        text = (FOLDER / f"{name}.tcg.txt").read_text("utf-8").partition("\n---\n")[2]
        line, carets = re.findall(r"^[0-9 ]+ \| (.*)$", text, flags=re.MULTILINE)[:2]
        start = _columns(line[: line.index(marked)])
        assert carets == " " * start + "^" * len(marked), name


def _columns(text: str) -> int:
    """The columns that a terminal takes for `text`: two for the wide characters of these files."""
    wide = re.findall("[\u3000-\u9fff\U0001f300-\U0001faff]", text)
    bare = re.findall("[\u0300-\u036f]", text)
    return len(text) + len(wide) - len(bare)
