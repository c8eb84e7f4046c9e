"""Every difference in the errata has a command that shows it, and the command is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcc_experiments.runner import EXPERIMENTS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
NUMBERED = re.findall(r"^### (\d+)\. .*?(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
SECTIONS = re.split(r"^##+ ", TEXT, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("section", [s for s in SECTIONS if s[0].isdigit()])
def test_each_point_has_a_command(section: str) -> None:
    assert re.search(r"^    (tcc experiments \w+|python -m pytest \S+)", section, re.MULTILINE)


def test_points_are_numbered_in_order() -> None:
    assert [str(at + 1) for at in range(len(NUMBERED))] == NUMBERED and len(NUMBERED) >= 8


def test_the_experiments_named_are_there() -> None:
    named = set(re.findall(r"tcc experiments (\w+)", TEXT))
    assert named == set(EXPERIMENTS)


def test_the_tests_named_are_there() -> None:
    named = re.findall(r"python -m pytest (tests/[\w/.]+)(?: -k (\w+))?", TEXT)
    assert named
    for path, word in named:
        files = [ROOT / path] if path.endswith(".py") else sorted((ROOT / path).glob("test_*.py"))
        names = [n for f in files for n in re.findall(r"def (test_\w+)", f.read_text())]
        assert any(word in name for name in names), (path, word)
