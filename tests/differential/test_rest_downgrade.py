"""Down to fallback while parts of nodes are left: runtime, validator and reference agree.

By counts alone no verified artifact gets there, as no state's count is wider than the root's.  So
here a count that is small, not large, makes a guard fire, in all three.
"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tcc_certs.replay import validate
from tcc_runtime.artifact.load import load
from tcc_runtime.guards import CountKind, counts_of
from tcc_runtime.run import Engine
from tests.differential.test_ledgers import STARTED, drawn, runtime_ledger
from tests.oracle_ledger.falling import counts_fall
from tests.oracle_ledger.upper import drawn_upper
from tests.oracle_ledger.writer import Plan, Reference, chained


@pytest.fixture(params=[1, 9, 20, 40])
def least(request, monkeypatch):
    """A count of so many bits or fewer fires the guard."""
    most = request.param
    counts_fall(monkeypatch, lambda bits: bits <= most)
    return most


def fires(most):
    """The run's guard, likewise."""

    def counts(state):
        return CountKind.NONE if state.count.bit_length() <= most else counts_of(state)

    return counts


class Small(Reference):
    least = 0

    def ending(self, pops):
        found = super().ending(pops)
        if found or self.regime == "fallback" or self.frontier[0].left:
            return found
        states = self.frontier[0].states
        if states is None:
            return None
        unit = Fraction(2 ** (self.bits * self.depth_left(states)))
        bits = int(self.masses.n(states) * unit).bit_length()
        return ("downgrade", None) if bits <= self.least else None


def test_what_is_left_of_a_node_goes_on_in_fallback(least):
    rng = random.Random(least)
    late, dead = 0, 0
    for number in range(24):
        if number % 2:
            checked, artifact = drawn(rng)
        else:
            made = drawn_upper(rng)
            checked, artifact = made.checked, load(made.data)
        told = {"seed": rng.randbytes(32), "race": "rest", "top": rng.choice([1, 2, 5, 1000])}
        if rng.random() < 0.3:
            told |= {"mode": "surrogate", "inflate": "2.5"}
        engine = Engine(numbers=rng.choice((None, "mpfr")), counts=fires(least))
        written = runtime_ledger(artifact, engine=engine, **told)
        found = validate(written, checked)
        assert (found.verdict, found.findings) == (0, ()), told
        reference = Small(checked, Plan(started_ms=STARTED, **told))
        reference.least = least
        assert written == chained(reference.run()), told
        before, down, after = written.partition(b'"kind":"downgrade"')
        if down:
            assert found.claim_type == "NoCert"
            assert b'"W"' not in after
            late += b'"kind":"draw"' in after and b'"kind":"rest"' in before
            dead += b'"dead_end":true,"kind":"draw"' in after
    print(f"{late} runs with draws in fallback, {dead} with dead ends")
    assert late >= 2 or least == 1
