"""Golden layouts: a title, the input, ``---``, the same grammar laid out.

``pytest --update-golden`` writes the output.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc_compiler.layout.format import format_text

FOLDER = Path(__file__).parent / "layout"
GOLDEN = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_a_text_is_laid_out_as_written(golden: Path, request: pytest.FixtureRequest) -> None:
    head, _, expected = golden.read_text("utf-8").partition("\n---\n")
    formatted = format_text(head.partition("\n\n")[2])
    assert formatted.text is not None, formatted.diagnostics
    if request.config.getoption("--update-golden"):
        golden.write_text(f"{head}\n---\n{formatted.text}", encoding="utf-8")
        return
    assert formatted.text == expected
    assert format_text(formatted.text).text == formatted.text
