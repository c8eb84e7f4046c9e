"""Golden layouts: a title, the input, ``---``, the same grammar laid out.

``pytest --update-golden`` writes the output.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc_compiler.format.text import format_source
from tcc_compiler.language.source import source_of
from tests.compiler.format.reading import parts_of

FOLDER = Path(__file__).parent / "layout"
GOLDEN = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_a_text_is_laid_out_as_written(golden: Path, request: pytest.FixtureRequest) -> None:
    head, _, expected = golden.read_text("utf-8").partition("\n---\n")
    text = head.partition("\n\n")[2]
    made = format_source(source_of(text, "main.tcg"))
    assert made.text is not None, made.diagnostics
    if request.config.getoption("--update-golden"):
        golden.write_text(f"{head}\n---\n{made.text}", encoding="utf-8")
        return
    assert made.text == expected
    assert parts_of(made.text) == parts_of(text)
    assert format_source(source_of(made.text, "main.tcg")).text == made.text
