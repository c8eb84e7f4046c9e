"""The fast version of the definition gives exactly its answers, in random sessions.

The long run: ``TCC_DECISIONS=1000000 python -m pytest -m campaign tests/gate/decide``; it takes 40
minutes on one core.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tcc_certs.policy import meaning
from tcc_certs.policy.history import DONE
from tcc_certs.policy.meaning import Policy
from tcc_certs.values.places import NONE, State
from tcc_runtime.gate.decide import FastPolicy
from tests.gate.decide.desk import core_of
from tests.gate.decide.sessions import Differential, Digests, Sides

CAMPAIGN = int(os.environ.get("TCC_DECISIONS", "1000000"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little work that many sources are cut."""
    monkeypatch.setattr(meaning, "BOUNDS", (3, 2, 1))
    monkeypatch.setattr(meaning, "MAX_COMBINATIONS", 3)


def run(seed: int, decisions: int) -> Counter[str]:
    """Decide so many calls; every kind of event is among them."""
    counts = Differential(seed).run(decisions)
    print(dict(counts))
    words = ("R202", "R203", "R211", "debts True", "unmet True", "resolves")
    for word in (*words, "outcome answered", "records of a settled call"):
        assert counts[word] > decisions // 1000, word
    assert min(counts["allowed"], counts["calls under way"]) > decisions // 10
    return counts


def test_refusals_draws_and_debts_agree() -> None:
    counts = run(1, 1200)
    assert counts["R207"] == 0 < counts["R208"]


@pytest.mark.usefixtures("small")
def test_decisions_agree_where_the_bounds_of_work_are_reached() -> None:
    counts = run(2, 1500)
    assert counts["R207"] > 50


def sides(text: str) -> Sides:
    """A session of a policy, decided by every version."""
    core = core_of(text)
    policy = Policy(core)
    return Sides((policy, FastPolicy(core)), Digests(policy), {})


def test_a_record_without_a_member_differs_from_one_with_it_by_their_digests_too() -> None:
    session = sides(
        "tool t(rows: list max 5 of (name: text, late?: flag))\nbefore t require no t(same rows)"
    )

    def rows(late: State) -> dict[str, State]:
        return {"rows": ("l", (("r", (("name", ("s", "a")), ("late", late))),))}

    session.add("t", rows(NONE), 0)
    session.record(0, DONE, {})
    assert session.decide("t", rows(NONE), 0) == [(0, "R202")]
    assert session.decide("t", rows(("b", True)), 0) == []


@pytest.mark.usefixtures("small")
def test_every_asks_its_conditions_of_elements_behind_the_mark_only() -> None:
    session = sides(
        "tool mark\ntool s\ntool t\ntool u\nbefore u require not every t(no s) since mark"
    )
    for tool in ("s", "s", "s", "t", "mark"):
        session.add(tool, {}, 0)
        session.record(len(session.calls) - 1, DONE, {})
    assert session.decide("u", {}, 0) == [(0, "R202")]


@pytest.mark.campaign
def test_a_million_decisions_agree() -> None:
    run(11, CAMPAIGN)


@pytest.mark.campaign
@pytest.mark.usefixtures("small")
def test_many_decisions_agree_where_the_bounds_of_work_are_reached() -> None:
    run(12, CAMPAIGN // 4)
