"""Golden lints: a title, the grammar, ``---``, the exact text of all lints.

The name of a file begins with the code that it is about; ``_not`` in it says that there is none of
that code.  ``pytest --update-golden`` writes the output.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tcc
from tcc_compiler.language.catalogue.lints import LINTS
from tcc_compiler.language.diagnostics import render

GOLDEN = sorted((Path(__file__).parent / "lints").glob("*.txt"))
# What no short grammar shows; other tests do.
ELSEWHERE = {"TCC713", "TCC715"}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_lints_are_as_written(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    head, _, expected = golden.read_text("utf-8").partition("\n---\n")
    monkeypatch.chdir(tmp_path)
    Path("main.tcg").write_text(head.partition("\n")[2] + "\n", "utf-8")
    linted = tcc.lint("main.tcg")
    notes = linted.notes if golden.stem.startswith("tcc745") else ()
    said = [finding.diagnostic for finding in (*linted.findings, *notes)]
    shown = [render(one, linted.sources) for one in said]
    found = "".join(f"{text}\n" for text in shown) or "clean\n"
    if request.config.getoption("--update-golden"):
        golden.write_text(f"{head}\n---\n{found}", "utf-8")
        return
    assert found == expected
    code = golden.stem.split("_")[0].upper()
    assert (f"[{code}]" in found) == ("_not" not in golden.stem)


def test_every_lint_has_a_grammar_with_it_and_one_without() -> None:
    names = [path.stem for path in GOLDEN]
    for code in sorted(set(LINTS) - ELSEWHERE):
        assert any(name.startswith(code.lower()) and "_not" not in name for name in names), code
        assert any(name.startswith(f"{code.lower()}_not") for name in names), code
