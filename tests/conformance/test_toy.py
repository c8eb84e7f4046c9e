"""The four-leaf replay with uniforms given: arrivals and keys, exact counts and a bound of six."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tcc_certs.race.digest import FIRST_ARRIVAL, WINNER
from tcc_runtime.artifact.load import load
from tcc_runtime.item import ORDER, WON, WORD
from tcc_runtime.numbers.mpfr import TIME
from tcc_runtime.races.interface import Race
from tcc_runtime.states import Tables
from tests.runtime.engines import Given, race_over
from tests.runtime.graphs import build, free_core

TOY = json.loads((Path(__file__).parent / "vectors" / "toy4.json").read_text())
CLOSE = Decimal("1e-18")  # a uniform of the text is hit to 2^-65 only


def word(text: str) -> int:
    return int(Decimal(text) * 2**64)


def draw(purpose: int, identity: bytes) -> int:
    named = {FIRST_ARRIVAL: "U_root", WINNER: "W_root"}
    return word(TOY[named.get(purpose, "U_residual_u2")])


def race(count: int, drawn=draw) -> Race:
    """Root r with u1 (calls a, b, c lead to its leaves) by a, and u2 by b, one leaf."""
    rows = [(True, []), (False, [(0, 0), (1, 0), (2, 0)]), (False, [(0, 1), (1, 0)])]
    artifact = load(build(free_core([0, 0, 0], 2), rows, tilt=0))
    tables = Tables(artifact, "r2")
    root = tables.state((artifact.root,))
    root.open()
    (_, u1), (_, u2) = root.edges
    assert [root.count, u1.count, u2.count] == [TOY["N"][name] for name in ("r", "u1", "u2")]
    for state, name in ((root, "r"), (u1, "u1"), (u2, "u2")):
        state.residual = int(Decimal(TOY["M"][name]) * 2**32)
    root.count = count
    return race_over(artifact, Given(drawn), tables=tables)


def near(found: int, due: str, bound: str = "0") -> bool:
    # M is no dyadic number, so it is taken off again as the integer that went in.
    inside = Decimal(int(Decimal(bound) * 2**32)) / 2**32
    value = Decimal(found) / 2**64 - inside
    return abs(value - (Decimal(due) - Decimal(bound))) < CLOSE


def test_exact_counts():
    due, given_m = TOY["exact"], TOY["M"]
    coupled = race(4)
    root = coupled.root()
    assert near(coupled.shown(root)[0], due["neg_log_t_r"])
    assert near(-root[ORDER], due["key_r"], given_m["r"])
    _, _, winner, (u1, u2), _, _ = coupled.expand(root)
    assert winner == 0
    assert coupled.shown(u1) == coupled.shown(root)
    assert near(-u1[ORDER], due["key_u1"], given_m["u1"])
    assert abs(Decimal(str(u2[TIME])) - Decimal(due["t_u2"])) < CLOSE
    assert near(-u2[ORDER], due["key_u2"], given_m["u2"])


def test_a_bound_of_six():
    coupled = race(TOY["Nub_root"])
    root = coupled.root()
    assert near(coupled.shown(root)[0], TOY["surrogate"]["neg_log_that_r"])
    assert near(-root[ORDER], TOY["surrogate"]["key_r"], TOY["M"]["r"])


@pytest.mark.parametrize(("words", "winner"), [("0.4", 0), ("0.6", 1), ("0.7", None)])
def test_with_bounds_a_phantom_may_win(words, winner):
    # Masses 3 and 1 of 6.
    coupled = race(6, lambda purpose, identity: word(words if purpose == WINNER else "0.5"))
    _, _, found, children, _, _ = coupled.expand(coupled.root())
    assert found == winner
    assert [child[WORD] == WON for child in children] == [winner == 0, winner == 1]
