"""Tails of cut runs: the runtime's, the validator's, and a list of all longer plans.

Scores here reach far beyond what a binary exponent of 30 or 62 bits can express.
"""

from __future__ import annotations

import random
from collections import Counter
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from struct import error as too_wide

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats.ledger import Q64_MIN
from tcc_certs.kernel import check
from tcc_certs.replay import validate
from tcc_certs.replay.closing import _fewest, tail_lse as validators, tail_steps
from tcc_certs.replay.language import read_language
from tcc_runtime.artifact.cuts import cut_of
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.numbers.tail import tail_lse
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.campaigns.blocks import blocks
from tests.differential.test_runtime_modes import q64
from tests.runtime.graphs import build, free_core, plan_rows, random_network, random_rows

EXTREME = 9 * 10**18  # nano-units; a cost has 64 bits
# The validator passes these beside any cost of the same automaton, as long as its best plans score
# below 2^31.
BETAS = ("0", "1", "400", "0.000000001", "0.25", "123456789012345678.000000000987654321", "9" * 39)


def scores(artifact: Artifact) -> list[tuple[int, Fraction]]:
    """Length and exact score of each plan, each derivation of a network."""
    beta, places = artifact.manifest.beta
    found, todo = [], [(artifact.root, 0, 0)]
    while todo:
        q, calls, cost = todo.pop()
        if artifact.accepts(q):
            found.append((calls, Fraction(-beta * cost, 10 ** (places + 9))))
        costs = artifact.cost_low
        todo += [(target, calls + 1, cost + costs[a]) for a, target in artifact.edges(q)]
    return found


def due(longer: list[Fraction]) -> int:
    """The least number of 2^-64 that is not below ln of the sum of e^score, held above Q64_MIN."""
    top = max(longer)
    exact = -(-(top.numerator << 64) // top.denominator)
    if len(longer) == 1:
        return max(exact, Q64_MIN)
    with localcontext(Context(prec=520, Emax=10**15, Emin=-(10**15))):
        total = Decimal(0)
        for score in longer:
            less = score - top
            # Below e^-1000 a plan adds something, and nothing that 430 digits show.
            if less > -1000:
                total += (Decimal(less.numerator) / less.denominator).exp()
        more = total.ln() * 2**64
        if total == 1:  # more than nothing, less than 10^-430
            floor = top.numerator * 2**64 // top.denominator
            return max(floor + 1, Q64_MIN)
        value = Decimal(top.numerator) * 2**64 / top.denominator + more
        assert abs(value - value.to_integral_value()) > Decimal("1e-410")
        return max(int(value.to_integral_value(ROUND_CEILING)), Q64_MIN)


def costs_of(rng: random.Random, calls: int) -> list[int]:
    def one() -> int:
        kind = rng.randrange(6)
        if kind == 0:
            return rng.randrange(-(10**9), 3 * 10**9)
        if kind == 1:
            return rng.choice((-1, 1)) * 10 ** rng.randint(9, 18)
        if kind == 2:
            return rng.randrange(10**17, EXTREME)
        if kind == 3:
            return rng.choice((-600, 600, -2147, 5)) * 10**15
        return rng.choice((0, 0, 1, -1, 5 * 10**8))

    return [one() for _ in range(calls)]


def drawn(number: int) -> bytes | None:
    """A random artifact, None where its bounds leave their columns."""
    rng = random.Random(number)
    calls = rng.randint(1, 4)
    network = rng.random() < 0.3
    rows = (random_network if network else random_rows)(rng, calls, rng.randint(1, 3), 2)
    core = free_core(costs_of(rng, calls), 12)
    told = {"nondeterministic": True} if network else {}
    try:
        data = build(core, rows, rng.choice(BETAS), rng.choice((0, 0, 0, 8)), **told)
        check(data)
    except (Rejected, too_wide, OverflowError):
        return None
    return data


@pytest.mark.parametrize("part", blocks(1, 6))
def test_both_programs_have_the_tail_of_the_list_at_any_cost_and_any_cut(part):
    met: Counter[str] = Counter()
    for number in range(80 * part, 80 * part + 80):
        data = drawn(number)
        if data is None:
            continue
        artifact, language = load(data), read_language(check(data))
        plans = scores(artifact)
        for most in range(artifact.rank(artifact.root)):
            longer = [score for calls, score in plans if calls > most]
            expected = due(longer)
            assert tail_lse(artifact, most) == expected
            assert validators(language, most) == expected
            fewest = _fewest(language.automaton)
            assert cut_of(artifact, most).steps == tail_steps(language.automaton, fewest, most)
            met["tails"] += 1
            met["far"] += max(map(abs, longer)) > 2**30
            met["single"] += len(longer) == 1
            met["least"] += expected == Q64_MIN
    assert met["tails"] > 40 and met["far"] > 5 and met["single"] > 3


@pytest.mark.parametrize("part", blocks(2, 3))
def test_a_cut_run_over_extreme_costs_is_valid_and_claims_the_tail_or_nothing(part):
    claims: Counter[str] = Counter()
    for number in range(40 * part, 40 * part + 40):
        data = drawn(number)
        if data is None:
            continue
        artifact = load(data)
        for most in range(artifact.rank(artifact.root)):
            run, ledger = recorded(artifact, truncate=most)
            found = validate(ledger, data)
            assert (found.verdict, found.findings) == (0, ())
            assert found.claim_upheld == (run.claim_type == "TruncationOnly")
            if found.claim_upheld:
                longer = [score for calls, score in scores(artifact) if calls > most]
                assert q64(run.tail_lse) == due(longer)
            claims[run.claim_type] += 1
    assert claims["TruncationOnly"] > 12


def recorded(artifact: Artifact, **told):
    sink = MemorySink()
    settings = Settings(seed=bytes(32), **told)
    return search(artifact, settings, Recorder(sink, started_ms=7)), bytes(sink.data)


P, M, Q, S = range(4)
NEAR_AND_FAR = [(S,), (P, P, M, M), (Q, Q, Q, Q), (Q, Q, Q, S)]


@pytest.mark.parametrize(
    ("most", "tail"),
    [
        # ln(e^0 + e^-1 + e^-16 + e^-20): the costs of p p m m make up for each other.
        (0, "0.31326177129484823850"),
        # ln(e^0 + e^-16 + e^-20)
        (1, "0.00000011459632177555"),
        (2, "0.00000011459632177555"),
        (3, "0.00000011459632177555"),
    ],
)
def test_a_path_that_is_light_on_its_way_and_heavy_at_its_end_counts(most, tail):
    costs = [600_000_000 * 10**9, -600_000_000 * 10**9, 5 * 10**9, 10**9]
    data = build(free_core(costs, 4), plan_rows(NEAR_AND_FAR), "1", 0)
    run, ledger = recorded(load(data), truncate=most)
    assert (run.claim_type, run.tail_lse) == ("TruncationOnly", tail)
    assert validate(ledger, data).claim_upheld


def test_a_tail_of_two_to_the_thirty_is_no_infinity():
    data = build(free_core([-2147483 * 10**9, 0], 1), plan_rows([(), (0,), (1,)]), "400", 0)
    run, ledger = recorded(load(data), truncate=0)
    assert (run.claim_type, run.tail_lse) == (
        "TruncationOnly",
        "858993200.00000000000000000005",
    )
    assert validate(ledger, data).claim_upheld
