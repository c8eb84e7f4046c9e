"""The grammars of the repository compile, and their layout is stable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc_compiler.language.diagnostics import render
from tcc_compiler.layout.format import format_text
from tcc_compiler.names.compile import Compiled, compile_source
from tests.compiler.names.corpus import ROOT

FOLDERS = ("grammars", "experiments", "cli/tcc/templates", "tests/data")
# Files that others `use` have no `grammar` line.
GRAMMARS = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.tcg"))
    if path.parent.name != "shared"
]


def compiled(text: str, path: Path) -> Compiled:
    result = compile_source(text, path.name, path=path)
    shown = [render(diagnostic, result.sources) for diagnostic in result.diagnostics]
    assert result.core is not None, "\n".join(shown)
    return result


def test_each_folder_has_grammars() -> None:
    assert all(any((ROOT / folder) in path.parents for path in GRAMMARS) for folder in FOLDERS)


@pytest.mark.parametrize("path", GRAMMARS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_compiles_and_its_layout_changes_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    laid_out = format_text(text).text
    assert laid_out is not None
    assert format_text(laid_out).text == laid_out
    before, after = (compiled(version, path) for version in (text, laid_out))
    assert before.core == after.core
    codes = [[diagnostic.code for diagnostic in one.diagnostics] for one in (before, after)]
    assert codes[0] == codes[1]
