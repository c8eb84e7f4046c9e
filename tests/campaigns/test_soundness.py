"""A small campaign in every test run, the full one on request; and that a violation is seen."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from tcc_certs.formats.ledger import format_q64
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.campaigns import soundness
from tests.campaigns.soundness import tree_trial, trial, upper_limit, violations
from tests.differential.tree_oracle import Oracle


def test_no_plan_outside_beats_a_certified_stop():
    found: Counter[str] = Counter()
    for number in range(60):
        found += trial(10**9 + number)
    assert found["certified"] == found["runs"] == 60 * soundness.RUNS_EACH
    assert (found["violations"], found["differing"], found["refused"]) == (0, 0, 0)
    assert found["recorded"] == found["runs"] // 2
    assert min(found[name] for name in ("RunWiseExact", "RunWiseSurrogate", "TruncationOnly")) >= 10
    assert min(found[race] for race in ("coupled", "rest")) >= 50


def test_no_way_on_from_a_prefix_beats_a_certified_stop():
    found: Counter[str] = Counter()
    for number in range(150):
        found += trial(2 * 10**9 + number, behind=True)
    assert found["certified"] == found["runs"] == 150 * soundness.RUNS_EACH
    assert (found["violations"], found["differing"], found["refused"]) == (0, 0, 0)
    assert found["behind"] > 650  # a relaxed language may have no plan at all
    assert min(found[name] for name in ("RunWiseExact", "RunWiseSurrogate", "TruncationOnly")) >= 15
    assert min(found[race] for race in ("coupled", "rest")) >= 130


def test_a_campaign_can_be_done_in_parts(capsys):
    def figures(*told: str) -> list[int]:
        assert soundness.main(["--processes", "1", "--trees", "0", *told]) == 0
        listed = next(line for line in capsys.readouterr().out.splitlines() if "listed" in line)
        return [int(word.strip(";")) for word in listed.split() if word.strip(";").isdigit()]

    whole, first = figures("--runs", "40"), figures("--runs", "15")
    second = figures("--runs", "25", "--first", "3")
    assert whole == [one + other for one, other in zip(first, second, strict=True)]


def test_the_literal_race_is_violated_where_the_coupled_one_is_not():
    found: Counter[str] = Counter()
    for number in range(60):
        found += tree_trial((3, 10**9 + number))
    assert found["coupled violations"] == 0
    assert 20 <= found["literal violations"] <= 44  # about half
    assert found["exact pops"] < found["coupled pops"] < found["literal pops"]


def test_a_run_that_stops_too_early_is_a_violation():
    seen = 0
    for number in range(40):
        artifact, tree = soundness.automaton(random.Random(number))
        told = Settings(seed=bytes(32), race="coupled", mode="surrogate")
        leaves = Oracle(tree, told.seed, races=("coupled",)).numbers.coupled
        run = search(artifact, told)
        assert violations(run, leaves, 1) == 0
        if len(leaves) > 1:
            # The second best in the place of the best.
            worse = replace(
                run.plans[0], value=format_q64(leaves[1][0]), leaf_id=leaves[1][1].hex()
            )
            seen += violations(replace(run, plans=(worse,)), leaves, 1) == 1
    assert seen > 20


@pytest.mark.parametrize(
    ("events", "runs", "due"),
    [(0, 100_000, 2.9957e-5), (0, 100, 0.029513), (1, 10, 0.394163), (10, 10, 1.0)],
)
def test_the_upper_limit_is_that_of_clopper_and_pearson(events, runs, due):
    assert abs(upper_limit(events, runs) - due) < 1e-4 * due


@pytest.mark.campaign
def test_no_plan_outside_beats_a_certified_stop_campaign(capsys):
    assert soundness.main(["--runs", "100000"]) == 0
    assert "violations: 0" in capsys.readouterr().out
