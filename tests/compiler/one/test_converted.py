"""The project's own grammars in the one language: they compile, and their layout is stable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc_compiler.language.diagnostics import render
from tcc_compiler.layout.format import format_text
from tcc_compiler.names.compile import Compiled, compile_source
from tests.compiler.one.corpus import ROOT

FOLDER = ROOT / "one"
CONVERTED = sorted(FOLDER.rglob("*.tcg"))
# Files that others `use` have no `grammar` line.
GRAMMARS = [path for path in CONVERTED if path.parent.name != "shared"]


def compiled(text: str, path: Path) -> Compiled:
    found = compile_source(text, path.name, path=path)
    shown = [render(one, found.sources) for one in found.diagnostics]
    assert found.core is not None, "\n".join(shown)
    return found


def test_each_area_of_the_project_has_files() -> None:
    areas = {path.relative_to(FOLDER).parts[0] for path in CONVERTED}
    assert areas >= {"benchmarks", "docs", "experiments", "grammars", "templates", "tests"}


@pytest.mark.parametrize("path", GRAMMARS, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_file_compiles_and_its_layout_changes_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    laid_out = format_text(text).text
    assert laid_out is not None
    assert format_text(laid_out).text == laid_out
    before, after = (compiled(one, path) for one in (text, laid_out))
    assert before.core == after.core
    assert [one.code for one in before.diagnostics] == [one.code for one in after.diagnostics]
