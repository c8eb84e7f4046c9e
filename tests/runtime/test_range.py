"""Working reals at the ends of their range: what leaves it is no number, and no claim follows."""

from __future__ import annotations

import random
from itertools import product

import gmpy2
import pytest

from tcc_certs.replay import validate
from tcc_compiler.artifact import pack
from tcc_runtime.artifact.load import load
from tcc_runtime.errors import Undecided
from tcc_runtime.guards import CountKind, counts_of
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.numbers.arrivals import context_of as of_arrivals
from tcc_runtime.numbers.reals import UNDECIDED, Reals, context_of
from tcc_runtime.numbers.tail import POWER_UNITS, Scaled
from tcc_runtime.races.fallback import Fallback
from tcc_runtime.run import Engine, search
from tcc_runtime.settings.settings import Settings
from tests.runtime.engines import MPFR
from tests.runtime.graphs import build, vec_core, vec_rows
from tests.runtime.test_search import SEED, changed, recorded

REALS = Reals(160)
GREAT, SMALL = REALS.scaled(1, -(2**30) + 40), REALS.scaled(1, 2**30 - 40)


@pytest.mark.parametrize(
    "left",
    [
        lambda: REALS.scaled(1, 2**31),
        lambda: REALS.scaled(3, -(2**31)),
        lambda: REALS.scaled(1, 2**62),
        lambda: REALS.mul(GREAT, GREAT),
        lambda: REALS.mul(SMALL, SMALL),
        lambda: REALS.div(GREAT, SMALL),
        lambda: REALS.div(SMALL, GREAT),
        lambda: REALS.div(1, REALS.scaled(0, 0)),
        lambda: REALS.fms(GREAT, GREAT, 1),
        lambda: REALS.fms(SMALL, SMALL, REALS.scaled(0, 0)),
        lambda: REALS.add(REALS.scaled(1, -(2**30) + 2), REALS.scaled(1, -(2**30) + 2)),
        lambda: REALS.log(REALS.scaled(0, 0)),
    ],
    ids=range(12),
)
def test_what_leaves_the_range_is_an_error_and_no_number(left):
    with pytest.raises(UNDECIDED):
        left()


def test_every_context_of_working_reals_traps_what_leaves_its_range():
    for context in (context_of(160), of_arrivals(128)):
        assert context.trap_overflow and context.trap_underflow
        assert context.trap_invalid and context.trap_divzero


@pytest.mark.parametrize("exponent", [6, 29, 30 - 1e-9])
def test_an_arrival_late_beyond_any_power_of_e_has_the_last_word(exponent):
    assert REALS.arrival_word(gmpy2.mpfr(2.0**exponent), 3) == 2**64 - 1
    assert REALS.arrival_word(GREAT, 3) == 2**64 - 1


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_run_whose_numbers_leave_their_range_is_closed_and_claims_nothing(race):
    # A rank of 2^26 and 2^32 leaves: the root's rate is the quotient of a count and 2^(2^31).
    data = build(vec_core(), vec_rows(), tilt=32)
    ranks = pack("rank", [0, 1, 1, 2, 1 << 26])
    run, records = recorded(load(changed(data, {"rank": ranks}), verify=False), race=race)
    assert (run.stop, run.claim_type) == ("precision", "NoCert")
    assert [record["kind"] for record in records] == ["open", "close"]


WAYS = [
    {},
    {"race": "rest"},
    {"keys": "anchored"},
    {"mode": "surrogate", "recipe": "r1"},
    {"mode": "surrogate", "race": "literal", "keys": "anchored"},
    {"mode": "fallback", "tau": "0.5"},
    {"truncate": 2},
    {"truncate": 1, "race": "rest"},
]


@pytest.mark.parametrize("told", WAYS, ids=str)
@pytest.mark.parametrize("error", [Undecided("open"), gmpy2.UnderflowResultError("lost")])
@pytest.mark.sampled(6)
def test_wherever_a_number_is_not_known_the_ledger_is_closed_and_valid(told, error, monkeypatch):
    tilt = 0 if told.get("race") == "literal" else 8
    data = build(vec_core(), vec_rows(), tilt=tilt)
    artifact = load(data)
    right = Reals.nearest
    stops = set()
    for known in range(40):
        left = iter(range(known))

        def nearest(self, *numbers, left=left):
            if next(left, None) is None:
                raise error
            return right(self, *numbers)

        with monkeypatch.context() as patch:
            patch.setattr(Reals, "nearest", nearest)
            run, ledger = ledger_of(artifact, MPFR, top=12, **told)
        assert run.claim_type == "NoCert" or run.stop.certifies
        found = validate(ledger, data)
        assert (found.verdict, found.findings) == (0, ())
        stops.add(run.stop.value)
    assert "precision" in stops


def ledger_of(artifact, engine, **told):
    sink = MemorySink()
    settings = Settings(**{"seed": SEED, "race": "coupled", **told})
    run = search(artifact, settings, Recorder(sink, started_ms=9), engine=engine)
    return run, bytes(sink.data)


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_downgrade_that_stays_open_half_way_leaves_the_keys_that_were_there(race, monkeypatch):
    data = build(vec_core(), vec_rows())
    artifact, scored = load(data), Fallback._scored
    ended = set()
    for after, known in product(range(1, 6), range(4)):
        expansions, left = iter(range(after)), iter(range(known))

        def none_later(state, expansions=expansions):
            over = next(expansions, None) is None
            return CountKind.NONE if over else counts_of(state)

        def open_later(self, word, cost, left=left):
            if next(left, None) is None:
                raise Undecided("open")
            return scored(self, word, cost)

        with monkeypatch.context() as patch:
            patch.setattr(Fallback, "_scored", open_later)
            engine = Engine(counts=none_later)
            run, ledger = ledger_of(artifact, engine, race=race, top=12)
        if b'"downgrade"' not in ledger:
            found = validate(ledger, data)
            assert (found.verdict, found.findings) == (0, ())
            assert (run.stop, run.claim_type) == ("precision", "NoCert")
            ended.add((after, known))
    assert len(ended) >= 5


@pytest.mark.parametrize("bits", [160, 640])
def test_powers_sums_and_products_of_any_size_are_within_their_units(bits):
    rng = random.Random(bits)
    coarse, fine = Scaled(bits), Scaled(4 * bits)

    def off(found, true) -> int:
        """The relative error in units of 2^-bits, rounded up."""
        with gmpy2.context(precision=8 * bits, emin=gmpy2.get_emin_min()):
            lift = found[1] - true[1]
            assert abs(lift) <= 2
            ratio = gmpy2.mul_2exp(found[0], lift + 4) / true[0] / 16
            return int(abs(ratio - 1) * 2**bits) + 1

    for _ in range(400):
        size = 10 ** rng.randint(0, 60)
        one, other = (rng.randrange(-size, size + 1) for _ in range(2))
        places = 10 ** rng.randint(0, 40)
        powers = [coarse.power(one, places), fine.power(one, places)]
        others = [coarse.power(other, places), fine.power(other, places)]
        assert off(*powers) <= POWER_UNITS
        product = [coarse.product(powers[0], others[0]), fine.product(powers[1], others[1])]
        assert off(*map(fine.settled, product)) <= 2 * POWER_UNITS + 1
        total = [coarse.sum(powers[0], others[0]), fine.sum(powers[1], others[1])]
        assert off(*map(fine.settled, total)) <= POWER_UNITS + 1
