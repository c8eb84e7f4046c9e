"""Random policies: what the gate decides, and what the definition says (tests/oracle_policies)."""

from __future__ import annotations

import logging

import pytest

from tests.campaigns.blocks import blocks
from tests.campaigns.policies import campaign
from tests.oracle_policies.beside import Tally, beside
from tests.oracle_policies.drawn import FORMS, LISTED, OLD


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="tcc.gate")


@pytest.mark.parametrize("part", blocks(3, 6))
def test_grammars_of_the_forms_of_1_1(part: int) -> None:
    tally = Tally()
    for seed in range(part * 20, part * 20 + 20):
        tally.add(beside(seed, OLD, sessions=2))
    assert not tally.differences, tally.differences[0]
    assert not tally.unread, tally.unread[0]
    assert tally.decisions > 250 and tally.ledgers > 30
    assert set(tally.codes) >= {"allowed", "R201", "R202"}


@pytest.mark.parametrize("part", blocks(3, 6))
def test_statements_over_arguments_and_answers(part: int) -> None:
    tally = Tally()
    for seed in range(part * 20, part * 20 + 20):
        tally.add(beside(seed, FORMS, sessions=2))
    assert not tally.differences, tally.differences[0]
    assert not tally.unread, tally.unread[0]
    assert tally.decisions > 250 and tally.ledgers > 30
    assert set(tally.codes) >= {"allowed", "R201", "R202"}


@pytest.mark.parametrize("part", blocks(2, 3))
def test_grammars_of_listed_fields_alone(part: int) -> None:
    tally = Tally()
    for seed in range(part * 20, part * 20 + 20):
        tally.add(beside(seed, LISTED, sessions=2))
    assert not tally.differences, tally.differences[0]
    assert not tally.unread, tally.unread[0]
    assert tally.decisions > 100 and tally.ledgers > 20


@pytest.mark.parametrize(("seed", "sessions"), [(25285, 1), (37880, 1), (58372, 1)])
def test_grammars_that_told_a_difference_once(seed: int, sessions: int) -> None:
    tally = beside(seed, FORMS, sessions=sessions)
    assert not tally.differences, tally.differences[0]


@pytest.mark.campaign
def test_ten_thousand_grammars_of_1_2() -> None:
    tally = campaign(10_000, 2, FORMS)
    assert not tally.differences, tally.differences[0]
    assert tally.decisions >= 100_000


@pytest.mark.campaign
def test_a_hundred_thousand_grammars() -> None:
    tally = campaign(100_000, 2, FORMS)
    assert not tally.differences, tally.differences[0]
    assert tally.decisions >= 1_000_000
