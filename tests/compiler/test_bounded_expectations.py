"""Examples hold for the grammar and not for its bounds; expectations hold, fail, or stay open."""

from __future__ import annotations

import pytest

from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text

TEXT = """grammar g version "1"

tool a(k: 1 | 2) { cost 0.25 price 1 }
tool b { cost 1 price 3 }

plan = any{1,4}

limit depth <= 4
limit price <= 6
finally require b
before b require a(k = 1)
"""
RELAXED = ("price", "require")


def codes(lines: str, relax: tuple[str, ...] = RELAXED) -> list[str]:
    found = compile_text(TEXT + lines, Options(relax=relax))
    assert (found.artifact is None) == any(d.severity == "error" for d in found.diagnostics)
    return [d.code for d in found.diagnostics]


@pytest.mark.parametrize(
    "line",
    [
        "accept a(k=1) b",
        "accept a a b",
        "accept a a a b",
        "reject b",
        "reject a a a a",
        "reject a(k=2) b",
        "reject a b b",
        "reject a b b a",
        "reject any any any any",
        "accept any any any any",
        "accept a(k=2) b",
        "accept b",
        "reject a b",
        "accept a",
    ],
)
def test_examples_are_decided_as_by_the_exact_grammar(line: str) -> None:
    line = line.replace("any", "a") if line.startswith("reject") else line.replace("any", "a", 1)
    line = line.replace(" any", " a", 1).replace(" any", " b", 1).replace(" any", " a")
    assert codes(line) == codes(line, ()) != ["TCC504"]


def test_the_plan_shown_is_one_of_the_grammar() -> None:
    found = compile_text(TEXT + "reject a a b\n", Options(relax=RELAXED))
    assert [d.message for d in found.diagnostics] == ["a plan matches this line: a(k=1) a(k=1) b"]


@pytest.mark.parametrize(
    ("line", "due"),
    [
        # 117 words at most; the plans are fewer.
        ("expect plans <= 120", []),
        ("expect plans <= 119", ["TCC504"]),
        ("expect plans = 7", ["TCC504"]),
        ("expect plans = 121", ["TCC503"]),
        ("expect plans >= 121", ["TCC503"]),
        ("expect plans >= 1", ["TCC504"]),
        ("expect min_cost >= 0.25", []),
        ("expect min_cost >= 0.26", ["TCC504"]),
        ("expect min_cost = 0.2", ["TCC503"]),
        ("expect min_cost <= 0.2", ["TCC503"]),
        ("expect min_cost <= 2", ["TCC504"]),
        ("expect max_depth <= 4", []),
        ("expect max_depth = 4", ["TCC504"]),
        ("expect max_depth >= 5", ["TCC503"]),
    ],
)
def test_expectations_on_bounds(line: str, due: list[str]) -> None:
    assert codes(line + "\n") == due


def test_rounding_leaves_every_expectation_decided() -> None:
    lines = "expect max_depth = 4\nexpect min_cost = 1.25\n"
    found = compile_text(TEXT + lines, Options(round_counts=2))
    assert found.diagnostics == () and found.artifact is not None


def test_sums_in_too_many_ways_leave_an_example_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcc_compiler.expectations._MOST_TRIPLES", 3)
    assert codes("accept a a b\n") == ["TCC504"]
