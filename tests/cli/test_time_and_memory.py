"""`--timeout` bounds a whole command, in every phase; what would take too much is declined."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tcc as library
import tcc.commands.diff_command as tcc_commands_diff
from tcc.library import plan_questions
from tcc.library.linting import _Linting
from tcc_certs.errors import Rejected
from tcc_runtime.analysis import difference
from tcc_runtime.analysis.difference import only_in
from tcc_runtime.analysis.graph import graph_of
from tests.cli.conftest import Tcc

# Limits that count apart from each other: the states are their product.
GROWS = """grammar boom version "1"

tool a(k: 1..9) { cost 1 price 1 latency 3 ms }
tool b(k: 1..9) { cost 2 price 2 latency 5 ms }

plan = (a | b){0,60}

limit price <= 90
limit latency <= 210 ms
limit count(a(k = 1)) <= 14
limit count(b(k = 2)) <= 13
limit count(b(k = 3)) <= 12
"""
SMALL = """grammar g version "1"

tool a
tool b

plan = a b
"""


def for_ever(*_: Any, **__: Any) -> Any:
    while True:
        time.sleep(0.01)


def quick(work: Callable[[], Any], seconds: float) -> Any:
    begun = time.monotonic()
    found = work()
    assert time.monotonic() - begun < seconds
    return found


# The alarm may ring in a destructor, where Python reports it and goes on; it rings again.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_grammar_that_explodes_ends_with_the_time(tcc: Tcc, tmp_path: Path) -> None:
    grows, small = tmp_path / "grows.tcg", tmp_path / "small.tcg"
    grows.write_text(GROWS)
    small.write_text(SMALL)
    lint = quick(lambda: tcc("lint", grows, "--timeout", "0.5", "--json"), 20)
    assert lint.code == 0
    codes = {one["code"] for one in lint.json["notes"]}
    assert codes & {"TCC404", "TCC715"} and codes <= {"TCC404", "TCC715"}
    for sides in ((grows, small), (small, grows)):
        ended = quick(lambda sides=sides: tcc("diff", *sides, "--timeout", "0.5"), 20)  # type: ignore[misc]
        assert (ended.code == 2 and "TCC404" in ended.err + ended.out) or "D201" in ended.err


@pytest.mark.parametrize(
    ("of", "phase"), [(tcc_commands_diff, "open_artifact"), (plan_questions, "compare_written")]
)
def test_a_phase_of_diff_without_a_clock_ends_with_the_time(
    tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: ModuleType, phase: str
) -> None:
    small = tmp_path / "small.tcg"
    small.write_text(SMALL)
    monkeypatch.setattr(of, phase, for_ever)
    ended = quick(lambda: tcc("diff", small, small, "--timeout", "0.2", "--json"), 20)
    assert (ended.code, ended.json["findings"][0]["code"]) == (2, "D201")


def test_a_phase_of_lint_without_a_clock_ends_with_the_time(
    tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = tmp_path / "small.tcg"
    small.write_text(SMALL)
    monkeypatch.setattr(_Linting, "_search", for_ever)
    ended = quick(lambda: tcc("lint", small, "--timeout", "0.2", "--json"), 20)
    assert (ended.code, [one["code"] for one in ended.json["notes"]]) == (0, ["TCC404"])


def test_the_time_of_diff_is_for_both_sides(
    tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    opened = tcc_commands_diff.open_artifact

    def noted(path: Path, **more: Any) -> Any:
        given.append(more["options"].timeout)
        time.sleep(0.05)
        return opened(path, **more)

    small = tmp_path / "small.tcg"
    small.write_text(SMALL)
    monkeypatch.setattr(tcc_commands_diff, "open_artifact", noted)
    assert tcc("diff", small, small, "--timeout", "60").code == 0
    assert given[0] == 60 and given[1] <= 59.95


def test_the_memory_of_a_comparison_is_bounded_by_its_edges(
    tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'grammar g version "1"\ntool a(k: 1..9)\nplan = a*\nlimit depth <= {}'
    text += "\nlimit count(a(k = 1)) <= 20\nlimit count(a(k = 2)) <= 20"
    one, other = (library.compile_text(text.replace("{}", str(most))) for most in (30, 31))
    graphs = graph_of(one), graph_of(other)
    tracemalloc.start()
    only_in(*graphs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    each = peak / max(one.manifest.edges, other.manifest.edges)
    assert one.manifest.edges > 5_000
    assert each * difference.MOST_EDGES < 512 << 20, each
    with pytest.raises(Rejected) as declined:
        only_in(*graphs, 1000)
    assert declined.value.code.value == "D201"
