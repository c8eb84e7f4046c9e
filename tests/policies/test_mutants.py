"""The tests of the shipped grammars notice each mutant of their policies but the argued ones.

`argued_mutants.json` has the mutants that no test of their grammar notices, each with the reason
why no recorded session can notice it.

    python -m pytest tests/policies/test_mutants.py -m campaign
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tcc.library.mutation import judge
from tcc.library.recorded import read_recorded
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_frontend, read_source
from tcc_compiler.resources import Timer
from tcc_runtime.artifact.load import load
from tcc_runtime.fastcheck.kernel import check

ROOT = Path(__file__).parents[2]
GRAMMARS = ROOT / "grammars"
NAMES = sorted(path.stem for path in GRAMMARS.glob("*.tcg"))
ARGUED = json.loads((ROOT / "tests/data/policies/argued_mutants.json").read_text("utf-8"))
QUICK = ("numeric_answers", "research")


def unnoticed(name: str) -> list[dict[str, Any]]:
    """The mutants of a grammar that its tests do not notice."""
    path, options = GRAMMARS / f"{name}.tcg", Options(check=check)
    front = read_source(path)
    compiled = compile_frontend(front, options, Timer(options))
    assert compiled.artifact is not None
    artifact = load(compiled.artifact, checked=compiled.checked)
    # This test needs no sessions, so the search for them gets no time.
    judged = judge(
        front, artifact, read_recorded(path), options, question_seconds=0.001, budget=3600
    )
    return [
        {"statement": one.statement, "change": one.change, "mutant": one.mutant}
        for one in judged
        if one.verdict != "killed"
    ]


def argued(name: str) -> list[dict[str, Any]]:
    fields = ("statement", "change", "mutant")
    return [{key: one[key] for key in fields} for one in ARGUED if one["grammar"] == name]


@pytest.mark.parametrize("name", QUICK)
def test_tests_notice_each_mutant_but_the_argued_ones(name: str) -> None:
    assert unnoticed(name) == argued(name)


@pytest.mark.campaign
@pytest.mark.parametrize("name", [one for one in NAMES if one not in QUICK])
def test_tests_of_all_grammars_notice_each_mutant_but_the_argued_ones(name: str) -> None:
    assert unnoticed(name) == argued(name)


def test_each_argument_has_a_reason() -> None:
    assert {one["grammar"] for one in ARGUED} <= set(NAMES)
    assert all(len(one["why"].split()) >= 5 for one in ARGUED)
