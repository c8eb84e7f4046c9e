"""The race by its definition, against the vectors and against a listing of all leaves."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import gmpy2
import pytest

from tcc_certs.formats.ledger import Q64_MAX, Q64_MIN, format_q64
from tcc_certs.race.arrivals import Arrival, child_masses, leaf_uniform, neg_log, publish, winner
from tcc_certs.race.digest import child_context, leaf_digest, race_key, root_context, uniform
from tcc_experiments.evidence import q64_of
from tests.oracle_ledger.artifacts import drawn, vectors
from tests.oracle_ledger.brute import leaf_values, rounded
from tests.oracle_ledger.writer import reference_records

_VECTORS = Path(__file__).parents[1] / "conformance" / "vectors"
_RACE = json.loads((_VECTORS / "race.json").read_text())
_TOY = json.loads((_VECTORS / "toy4.json").read_text())
_CASES = [c for c in _RACE["cases"] if c["race"] == "coupled" and c["inflate"] == "1"]


@pytest.mark.parametrize("case", _CASES, ids=lambda c: f"tilt{c['tilt']}-{c['seed'][:2]}")
def test_every_leaf_of_the_vectors_comes_out_in_order(case):
    artifact = vectors(case["tilt"])
    seed = bytes.fromhex(case["seed"])
    records = reference_records(artifact, seed=seed, top=12)
    found = records[-1]["plans"]
    assert [plan["calls"] for plan in found] == [leaf["calls"] for leaf in case["leaves"]]
    assert [plan["value"] for plan in found] == [leaf["value"] for leaf in case["leaves"]]
    assert records[-1]["stop"] == "exhausted" or records[-1]["stop"] == "bound"


@pytest.mark.parametrize("case", _CASES, ids=lambda c: f"tilt{c['tilt']}-{c['seed'][:2]}")
def test_digests_and_weights_of_the_vectors(case):
    artifact = vectors(case["tilt"])
    root = root_context(artifact.file.manifest.root_document)
    key = race_key(bytes.fromhex(case["seed"]), root)
    assert root.hex() == _RACE["root_ctx"]
    assert child_context(root, b"a").hex() == _RACE["ctx_a"]
    assert leaf_digest(child_context(root, b"a")).hex() == _RACE["leaf_a"]
    assert key.hex() == case["K"]
    assert str(uniform(key, 1, root)) == case["x_first"]
    assert str(uniform(key, 2, root)) == case["x_winner_root"]
    assert artifact.file.manifest.fraction_bits == case["F"]
    assert str(artifact.race_count[-1]) == case["m_root"]
    weights = artifact.file.columns["call_weight"].items()
    assert {text: str(w) for text, w in zip(artifact.calls, weights, strict=True)} == case["W"]


def test_masses_add_up_to_the_race_count_and_the_phantom_is_what_is_missing():
    edges = [(3, 5, 2), (7, 1, 0)]  # weights 3/4 and 7/4; n of the targets 5/4 and 1
    assert child_masses(4, True, edges, 2) == [15, 7 << 2, 1 << 4]
    total = 15 + 28 + 16
    assert winner(2**64 - 1, total, child_masses(4, True, edges, 2)) == 2
    assert winner(2**64 - 1, total + 1, child_masses(4, True, edges, 2)) is None
    assert winner(0, total, [0, 1, total - 1]) == 1


def test_winner_boundary_is_strict():
    # (2x+1)/2^65 of a total of 2^65 with a first mass of 2x+1: not below, so the second wins.
    assert winner(10, 1 << 65, [21, (1 << 65) - 21]) == 1
    assert winner(10, 1 << 65, [22, (1 << 65) - 22]) == 0


def test_toy_replay_of_the_paper_with_the_right_digits():
    # U as a 64-bit word: the printed digits agree to 18 places.
    def word(text: str) -> int:
        return int(Fraction(text) * 2**64)

    root = Arrival(parent=None, weight=1, fraction_bits=0, x=word(_TOY["U_root"]), count=4, unit=0)
    first = publish(root, (5, 1))
    assert format_q64(first.neg_log_t)[:18] == _TOY["exact"]["neg_log_t_r"][:18]
    assert format_q64(first.key)[:18] == _TOY["exact"]["key_r"][:18]
    assert winner(word(_TOY["W_root"]), 4, [3, 1]) == 0
    u1 = Arrival(parent=root, weight=1, fraction_bits=0, x=None, count=3, unit=0)
    assert format_q64(publish(u1, (9, 2)).key)[:18] == _TOY["exact"]["key_u1"][:18]
    u2 = Arrival(
        parent=root, weight=1, fraction_bits=0, x=word(_TOY["U_residual_u2"]), count=1, unit=0
    )
    assert format_q64(publish(u2, (21, 5)).key)[:18] == _TOY["exact"]["key_u2"][:18]


def test_random_runs_find_the_plans_that_a_listing_of_all_leaves_finds():
    rng = random.Random(11)
    for _ in range(40):
        artifact, seed = drawn(rng), rng.randbytes(32)
        race = rng.choice(["coupled", "rest"])
        truth = leaf_values(artifact, seed, race=race)
        top, recipe = rng.choice([1, 2, 5, 1000]), rng.choice(["r1", "r2"])
        close = reference_records(artifact, seed=seed, top=top, recipe=recipe, race=race)[-1]
        assert [tuple(plan["calls"]) for plan in close["plans"]] == [c for _, c in truth[:top]]
        values = [q64_of(plan["value"]) for plan in close["plans"]]
        assert values == [rounded(value) for value, _ in truth[:top]]


def chain(rng: random.Random, length: int):
    """A random path of arrivals, and its exact value to 800 bits."""
    count = rng.getrandbits(rng.choice([1, 60, 300, 3000])) + 1
    unit = rng.choice([0, 10, 640])
    with gmpy2.context(gmpy2.get_context(), precision=800, emax=2**30, emin=-(2**30)):
        x = rng.getrandbits(rng.choice([1, 30, 64]))
        node = Arrival(parent=None, weight=1, fraction_bits=0, x=x, count=count, unit=unit)
        true = residual(x, count, unit)
        for _ in range(length):
            bits = rng.choice([0, 10, 64])
            weight = rng.getrandbits(rng.choice([1, 10, 62])) + 1
            x = rng.choice([None, rng.getrandbits(64), 0, 2**64 - 1])
            count = rng.getrandbits(rng.choice([1, 60, 300])) + 1
            unit = rng.choice([0, 10, 640])
            node = Arrival(
                parent=node, weight=weight, fraction_bits=bits, x=x, count=count, unit=unit
            )
            true = true * weight / gmpy2.mpfr(2) ** bits
            if x is not None:
                true += residual(x, count, unit)
    return node, true


def residual(x: int, count: int, unit: int) -> gmpy2.mpfr:
    e = -gmpy2.log1p(-gmpy2.mpfr(2 * x + 1) / gmpy2.mpfr(2) ** 65)
    return e * gmpy2.mpfr(2) ** unit / count


def test_arrivals_are_enclosed_on_long_paths_of_extreme_weights_and_counts():
    rng = random.Random(12)
    for _ in range(300):
        node, true = chain(rng, rng.randint(0, 60))
        with gmpy2.context(gmpy2.get_context(), precision=800, emax=2**30, emin=-(2**30)):
            for bits in (128, 256):
                low, more, scale = node.enclose(bits)
                assert 0 < low <= true * gmpy2.mpfr(2) ** scale <= low + more
                assert more << bits - 8 <= low  # relative width below 2^(8 - bits)
                low, high = neg_log(node, bits)
                assert low <= -gmpy2.log(true) * gmpy2.mpfr(2) ** bits <= high
            published = publish(node, (-7, 3))
            key = (gmpy2.mpfr(-7) / 3 - gmpy2.log(true)) * gmpy2.mpfr(2) ** 64
            assert published.key == int(gmpy2.rint(key))
            due = int(gmpy2.floor(gmpy2.mpfr(2) ** 64 * -gmpy2.expm1(-true)))
            assert leaf_uniform(node) == min(due, 2**64 - 1)
            assert not published.clamped


def test_a_key_beyond_q64_is_clamped_and_says_so():
    node = Arrival(parent=None, weight=1, fraction_bits=0, x=5, count=3, unit=0)
    high, low = publish(node, (2**64, 1)), publish(node, (-(2**64), 1))
    assert (high.key, high.clamped) == (Q64_MAX, True)
    assert (low.key, low.clamped) == (Q64_MIN, True)
    assert not publish(node, (2**62, 1)).clamped


def test_an_undecided_rounding_is_narrowed_until_it_is_decided():
    # A bound that puts the key next to a tie: 128 bits cannot tell on which side it is.
    node = Arrival(parent=None, weight=1, fraction_bits=0, x=2**63, count=1, unit=0)
    low, _ = neg_log(node, 300)
    tie = (1 << 300 - 65) - low % (1 << 300 - 64)  # brings -ln t to a tie, within 2^-300
    for nudge in (-(1 << 90), 1 << 90):
        published = publish(node, (tie + nudge, 1 << 300))
        due = (low + tie >> 300 - 64) + (1 if nudge > 0 else 0)
        assert published.key == due
