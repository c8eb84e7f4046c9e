"""`scripts/trusted_size.py` counts every module that a verdict may load."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.trusted_size import CERTS, DECIDES, code_lines, files, main


def names(module: str) -> set[str]:
    return {path.relative_to(CERTS / "tcc_certs").as_posix() for path in files(module)}


def test_imports_inside_of_functions_count_and_other_validators_do_not() -> None:
    session = names("session.validation")
    assert {
        "kernel.py",
        "policy/meaning.py",
        "session/executions.py",
        "session/__init__.py",
    } < session
    assert "replay/validation.py" not in session


def test_code_is_without_blank_lines_comments_and_docstrings(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    text = ['"""Title.', "", '"""', "# a comment", "def f():", '    """Doc."""',
            '    x = """', '  text"""  # why', "", "    return x", ""]  # fmt: skip
    path.write_text("\n".join(text))
    assert code_lines(path) == 4


def test_each_verdict_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row[:24].rstrip() for row in rows] == list(DECIDES)
