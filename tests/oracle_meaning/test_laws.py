"""The definition against the quantification over all worlds of random histories.

The long run: ``python -m pytest -m campaign tests/oracle_meaning -s``, about 6 minutes on one core.
"""

from __future__ import annotations

import pytest

from tcc_certs.policy import meaning
from tests.oracle_meaning.laws import Conditions, Statements


def run_conditions(first: int, cases: int, *, exact: bool) -> None:
    checked = Conditions(first, exact=exact)
    checked.run(cases)
    counts = checked.counts
    print(dict(counts))
    assert min(counts["True"], counts["False"]) > cases // 2
    assert counts["None"] > cases // 5 and counts["later"] > cases // 3
    assert counts["known"] > cases // 20 or not exact


def run_statements(first: int, cases: int, *, exact: bool) -> None:
    checked = Statements(first, exact=exact)
    checked.run(cases)
    counts = checked.counts
    print(dict(counts))
    for kind in ("Require", "Forbid", "Limit", "Total"):
        assert min(counts[f"{kind} True True"], counts[f"{kind} False True"]) > cases // 50
    assert min(counts["Owe True False"], counts["Require True False"]) > cases // 50
    assert counts["Owe False False"] > cases // 100


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little work that most sources are cut."""
    monkeypatch.setattr(meaning, "BOUNDS", (3, 2, 1))
    monkeypatch.setattr(meaning, "MAX_COMBINATIONS", 3)


def test_what_a_condition_is_holds_in_every_world() -> None:
    run_conditions(1, 1200, exact=True)


def test_what_a_statement_does_holds_in_every_world() -> None:
    run_statements(1, 600, exact=True)


@pytest.mark.usefixtures("small")
def test_what_is_cut_is_still_sound_and_monotone() -> None:
    run_conditions(2, 600, exact=False)
    run_statements(2, 300, exact=False)


@pytest.mark.campaign
def test_a_hundred_thousand_conditions() -> None:
    run_conditions(11, 100_000, exact=True)


@pytest.mark.campaign
def test_thirty_thousand_statements() -> None:
    run_statements(11, 30_000, exact=True)


@pytest.mark.campaign
@pytest.mark.usefixtures("small")
def test_fifty_thousand_conditions_that_are_cut() -> None:
    run_conditions(12, 50_000, exact=False)
    run_statements(12, 15_000, exact=False)
