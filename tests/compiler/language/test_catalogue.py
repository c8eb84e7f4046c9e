"""The catalogue: its page is current, its examples show what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcc
from tcc.library import answers
from tcc_compiler.imports.graph_grammar import read_graph
from tcc_compiler.language.catalogue import CATALOGUE, explain, page
from tcc_compiler.language.catalogue.lints import LINTS
from tcc_compiler.language.catalogue.statements import STATEMENTS
from tcc_compiler.language.source import MAX_SOURCE_BYTES
from tcc_compiler.names.compile import compile_file
from tcc_compiler.names.files import MAX_FILES
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_compiler.syntax.parse import MAX_TOKENS

PAGE = Path(__file__).parents[3] / "docs" / "errors.md"
# Those of statements are in tests/compiler/names.
GRAMMARS = [code for code, entry in CATALOGUE.items() if entry.example and code not in STATEMENTS]
FRONT = sorted(code for code in GRAMMARS if code[3] not in "457")
BEHIND = sorted(code for code in GRAMMARS if code[3] in "45")
LINTED = sorted(code for code in LINTS if LINTS[code].example)


def test_the_page_of_errors_is_current() -> None:
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize("code", FRONT)
def test_the_example_has_the_error_and_no_other(code: str, tmp_path: Path) -> None:
    path = tmp_path / ("graph.json" if code.startswith("TCC6") else "grammar.tcg")
    path.write_text(CATALOGUE[code].example, "utf-8")
    result = read_graph(path) if code.startswith("TCC6") else compile_file(path)
    assert {item.code for item in result.diagnostics} == {code}


@pytest.mark.parametrize("code", BEHIND)
def test_the_front_end_reads_the_example_of_a_later_error(code: str, tmp_path: Path) -> None:
    path = tmp_path / "grammar.tcg"
    path.write_text(CATALOGUE[code].example, "utf-8")
    assert compile_file(path).diagnostics == ()


@pytest.mark.parametrize("code", BEHIND)
def test_compiling_the_example_of_a_later_error_gives_it_alone(code: str) -> None:
    found = compile_text(CATALOGUE[code].example, Options(answers=answers)).diagnostics
    assert [item.code for item in found] == [code]


@pytest.mark.parametrize("code", LINTED)
def test_linting_the_example_of_a_lint_gives_it_alone(code: str, tmp_path: Path) -> None:
    path = tmp_path / "grammar.tcg"
    path.write_text(CATALOGUE[code].example, "utf-8")
    linted = tcc.lint(path)
    found = linted.notes if code == "TCC745" else linted.findings
    assert {item.diagnostic.code for item in found} == {code}
    assert code != "TCC745" or not linted.findings


def test_the_sizes_that_a_page_names_are_those_of_the_code() -> None:
    text = CATALOGUE["TCC107"].explanation
    sizes = (f"{MAX_SOURCE_BYTES >> 20} MiB", str(MAX_TOKENS), f"{MAX_FILES} files")
    assert all(size in text for size in sizes)


def test_explain_gives_title_text_and_example() -> None:
    found = explain("TCC207")
    assert found is not None
    assert found.startswith("TCC207: left recursion\n\n")
    assert "    rule r = r search | search" in found
    assert explain("TCC999") is None
