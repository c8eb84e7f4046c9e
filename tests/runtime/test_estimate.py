"""The work of a run over a relaxed artifact: estimated beforehand, and held against runs."""

from __future__ import annotations

from statistics import mean

import pytest

from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.run import search
from tcc_runtime.settings.predict import estimate, needs_estimate, predict, why_no_estimate
from tcc_runtime.settings.settings import Settings

SEED = bytes(32)
SUMS = """grammar g version "1"

tool a(k: 1 | 2) { cost 1 price 1 }
tool b { cost 2 price 3 }
tool c { cost 0.5 price 2 }

plan = any+

limit depth <= 8
limit price <= 9
before b require a(k = 1)
before c require no c since any - c
before c require no a
before a require no c
"""
LATE = """grammar g version "1"

tool a { cost 0.5 }
tool b

plan = (a | b)* a (a | b){3}

limit depth <= 9
"""
# The automaton's plans of 200 calls weigh far more than those below the price.
DEAR = """grammar g version "1"

tool a { cost 0.11 price 31 }
tool b { cost 0.23 price 77 }
tool c { cost 0.37 price 113 }

plan = any{0,200}

limit price <= 3000
"""
ALL = ("price", "require")


def made(text: str, **options: object) -> Artifact:
    data = compile_text(text, Options(**options)).artifact  # type: ignore[arg-type]
    assert data is not None
    return load(data)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (SUMS, {"relax": ("price",)}),
        (SUMS, {"relax": ALL}),
        (SUMS, {"relax": ("require",), "tilt": 0}),
        (SUMS, {"relax": ("price", "before b require a(k = 1)"), "beta": "3"}),
        (LATE, {"relax": ("auto",), "max_states": 14}),
        (LATE, {"relax": ("auto",), "max_states": 14, "tilt": 0}),
    ],
)
def test_an_estimate_is_near_what_runs_take(text: str, options: dict[str, object]) -> None:
    artifact = made(text, **options)
    found = estimate(artifact, Settings(seed=SEED))
    assert found is not None and found.upper is not None
    taken = mean(
        search(artifact, Settings(seed=n.to_bytes(32, "little"))).expansions for n in range(120)
    )
    assert found.lower / 1.3 <= taken <= found.upper * 1.3
    assert needs_estimate(artifact) and predict(artifact, Settings(seed=SEED)) is None


def test_more_plans_take_more() -> None:
    artifact = made(SUMS, relax=ALL)
    sizes = [estimate(artifact, Settings(seed=SEED, top=top)) for top in (1, 3, 9)]
    lower = [size.lower for size in sizes if size is not None]
    assert len(lower) == 3 and lower == sorted(lower) and lower[0] < lower[2]


def test_where_hardly_a_plan_is_kept_a_run_is_known_to_be_long() -> None:
    found = estimate(made(DEAR, relax=("price",)), Settings(seed=SEED))
    assert found is not None
    assert (found.kept, found.upper) == (0, None)
    # The exact artifact takes some 55.
    assert found.lower > 5_000
    exact = predict(made(DEAR), Settings(seed=SEED))
    assert exact is not None and exact.upper < 100
    run = search(made(DEAR, relax=("price",)), Settings(seed=SEED, max_expansions=5_000))
    assert run.plans == ()


def test_the_same_artifact_has_the_same_estimate() -> None:
    artifact = made(SUMS, relax=ALL)
    assert estimate(artifact, Settings(seed=SEED)) == estimate(
        made(SUMS, relax=ALL), Settings(seed=b"\x01" * 32)
    )


def test_the_effort_is_bounded() -> None:
    artifact = made(SUMS, relax=ALL)
    few = estimate(artifact, Settings(seed=SEED), effort=1)
    assert few is not None and few.drawn == 20


def test_an_exact_artifact_needs_none() -> None:
    assert not needs_estimate(made(SUMS)) and not needs_estimate(made(SUMS, round_counts=3))
    assert needs_estimate(made(SUMS, relax=("require",)))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"mode": "fallback"}, "the run has no race that its keys bound"),
        ({"keys": "anchored"}, "it is known for finalized keys alone"),
    ],
)
def test_why_there_is_no_estimate(settings: dict[str, str], why: str) -> None:
    artifact = made(SUMS, relax=ALL)
    told = Settings(seed=SEED, **settings)  # type: ignore[arg-type]
    assert why_no_estimate(artifact, told) == why
    assert estimate(artifact, told) is None


def test_numbers_beyond_floats_have_none() -> None:
    steep = SUMS.replace("cost 1 ", "cost 1000 ").replace("cost 0.5", "cost 900")
    assert estimate(made(steep, relax=ALL), Settings(seed=SEED)) is None
