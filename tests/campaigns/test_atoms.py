"""Random lists of all atoms: honest runs validate, changed ones do not, no epsilon is too low.

A small part in every test run, the whole on request:
``python -m pytest -m campaign tests/campaigns/test_atoms.py -s``.
The bounds are written here once more, in floats of mpmath: for atoms that have one mean, the exact
delta at the epsilon that was stated; for all, what follows from that no list takes less than any
atom of it alone.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mpmath import exp, expm1, log, mp, mpf

import tcc as library
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.privacy.spending import account as taken, exact_delta
from tcc_runtime.pricing.quotes import point
from tests.campaigns.targets import chained
from tests.certs.privacy.truth import laplace_delta, response_delta, shift_delta

GRAMMAR = """grammar atoms version "1"

tool find { cost 0.2 .. 0.9 model probe { price 4 epsilon 0.01 } }

plan = find{1,3}
"""
SAMPLED = GRAMMAR.replace(" epsilon 0.01", "")  # a plain epsilon has another relation of neighbours
DELTAS = ("0.01", "0.00001", "0.000000001")


def number(rng: random.Random, low: float, high: float) -> str:
    """A decimal between two powers of ten."""
    return decimal_text(10 ** rng.uniform(low, high))


def decimal_text(value: float) -> str:
    """Its canonical text, of three places."""
    return f"{max(value, 0.001):.3f}".rstrip("0").rstrip(".")


def drawn(rng: random.Random, kind: str) -> dict[str, Any]:
    times = {"times": rng.randint(2, 6)} if rng.random() < 0.5 else {}
    one: dict[str, Any] = {"mechanism": kind}
    match kind:
        case "randomized_response":
            one |= {"probability": f"0.{rng.randint(51, 99)}", "choices": rng.choice((2, 2, 5))}
            one["probability"] = one["probability"].rstrip("0")
        case "gaussian":
            one |= {"sigma": number(rng, -0.2, 1.3), "sensitivity": number(rng, -0.5, 0.5)}
        case "laplace":
            one |= {"scale": number(rng, -0.2, 1.3), "sensitivity": "1"}
        case "discrete_gaussian":
            one |= {"sigma": number(rng, 0, 1.3), "sensitivity": rng.randint(1, 3)}
        case "subsampled_gaussian":
            one |= {"rate": f"0.{rng.randint(1, 9)}", "sigma": number(rng, -0.1, 0.8)}
            one["sensitivity"] = "1"
        case "rdp":
            one["points"] = [["2", number(rng, -2, 0)], ["8", "1.5"], ["64", "9"]]
    return one | times


def atoms_drawn(rng: random.Random) -> list[dict[str, Any]]:
    if rng.random() < 0.25:
        return [drawn(rng, "subsampled_gaussian") for _ in range(rng.randint(1, 3))]
    kinds = ("randomized_response", "gaussian", "laplace", "discrete_gaussian", "rdp")
    only = rng.sample(kinds, rng.choice((1, 1, 2, 5)))
    return [drawn(rng, rng.choice(only)) for _ in range(rng.randint(1, 4))]


def discrete_delta(sigma: mpf, steps: int, epsilon: mpf) -> mpf:
    """The delta of one discrete Gaussian, the sum of what is left of each integer."""
    reach = int(14 * sigma) + steps + 2
    weight = {y: exp(-(mpf(y) ** 2) / (2 * sigma**2)) for y in range(-reach - steps, reach + steps)}
    whole = sum(weight.values())
    moved = (
        max(mpf(0), w - exp(epsilon) * weight.get(y + steps, mpf(0)))
        for y, w in weight.items()
        if abs(y) <= reach
    )
    return sum(moved, mpf(0)) / whole


def sampled_delta(rate: mpf, sigma: mpf, epsilon: mpf) -> mpf:
    """The delta of one subsampled Gaussian: a record that is there, against one that is not."""
    share = (expm1(epsilon) + rate) / rate
    if share <= 0:
        return mpf(0)
    at = sigma**2 * log(share) + mpf(1) / 2
    there = (1 - rate) * mp.ncdf(-at / sigma) + rate * mp.ncdf((1 - at) / sigma)
    return there - exp(epsilon) * mp.ncdf(-at / sigma)


def alone(of: dict[str, Any], epsilon: mpf) -> mpf:
    """The exact delta of an atom by itself; of a curve, and of many choices, nothing is known."""
    times = of.get("times", 1)
    match of["mechanism"]:
        case "randomized_response" if of["choices"] == 2:
            return response_delta(mpf(of["probability"]), epsilon, times)
        case "gaussian":
            mu = mpf(of["sensitivity"]) / mpf(of["sigma"]) * mp.sqrt(times)
            return shift_delta(mu, epsilon)
        case "laplace":  # of many, one alone takes no more
            return laplace_delta(mpf(of["scale"]), epsilon)
        case "discrete_gaussian":
            return discrete_delta(mpf(of["sigma"]), of["sensitivity"], epsilon)
        case "subsampled_gaussian":
            return sampled_delta(mpf(of["rate"]), mpf(of["sigma"]), epsilon)
    return mpf(0)


def least_delta(atoms: list[dict[str, Any]], epsilon: mpf) -> mpf:
    """A delta that the list cannot be below: of its Gaussians together, and of each atom alone."""
    squares = mpf(0)
    for of in atoms:
        if of["mechanism"] == "gaussian":
            share = mpf(of["sensitivity"]) / mpf(of["sigma"])
            squares += of.get("times", 1) * share**2
    joint = shift_delta(mp.sqrt(squares), epsilon) if squares else mpf(0)
    return max(joint, *(alone(of, epsilon) for of in atoms))


def changed(rng: random.Random, records: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """One atom, the delta, or one epsilon said otherwise, in a copy."""
    copy = json.loads(json.dumps(records))
    head = copy[0]
    kind = rng.choice(("atom", "left out", "doubled", "delta", "epsilon"))
    if kind == "epsilon":
        said = [r for r in copy if "eps_delta" in r]
        record = rng.choice(said)
        eps = record["eps_delta"]["eps"]
        record["eps_delta"]["eps"] = other_digit(rng, eps)
    elif kind == "delta":
        head["delta"] = rng.choice([d for d in (*DELTAS, "0.02") if d != head["delta"]])
    else:
        at = rng.randrange(len(head["atoms"]))
        if kind == "atom":
            head["atoms"][at]["times"] = head["atoms"][at].get("times", 1) + 1
        elif kind == "left out":
            del head["atoms"][at]
        else:
            head["atoms"].append(head["atoms"][at])
    return kind, copy


def other_digit(rng: random.Random, text: str) -> str:
    """The number with another last digit, which is not 0."""
    return text[:-1] + rng.choice([d for d in "123456789" if d != text[-1]])


def trial(seed: int, at: Path, made: dict[bool, tuple[Any, Path]]) -> Counter[str]:
    """One run with a random list: honest, then changed four times."""
    rng, found = random.Random(f"atoms {seed}"), Counter[str]()
    atoms, delta = atoms_drawn(rng), rng.choice(DELTAS)
    artifact, path = made[atoms[0]["mechanism"] == "subsampled_gaussian"]
    account = library.Account(at / f"{seed}.account", price=10**6, epsilon="900000")
    ledger = at / f"{seed}.ledger"
    library.search(
        artifact, seed=rng.randbytes(32), ledger=ledger, atoms=atoms, delta=delta,
        quoter=lambda _: point("0.5"), account=account,
    )  # fmt: skip
    data = ledger.read_bytes()
    honest = library.validate(data, path, account=account)
    assert (honest.word, honest.findings) == ("VALID", ()), (seed, honest.findings)
    found.update(of["mechanism"] for of in atoms)
    records = [json.loads(line) for line in data.splitlines()]
    for record in records:
        record.pop("~", None)
        if "eps_delta" in record:
            epsilon = mpf(record["eps_delta"]["eps"])
            assert least_delta(atoms, epsilon) <= mpf(delta) * (1 + mpf(10) ** -20), seed
            found["epsilons"] += 1
    assert b"".join(chained(records, 0)) == data
    sums = [mpf(record["epsilon_used"]) for record in records if record["kind"] == "refine"]
    before = taken(exact_delta(delta), atoms_of(atoms), says=True).nano
    sums.insert(0, mpf(before) / 10**9)
    found["lowered"] += any(one > other for one, other in pairwise(sums))
    for _ in range(4):
        kind, other = changed(rng, records)
        for known in (None, account):
            judged = library.validate(b"".join(chained(other, 0)), path, account=known)
            assert judged.word == "INVALID", (seed, kind, judged.word)
        found[f"changed: {kind}"] += 1
    found["runs"] += 1
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, tuple[Any, Path]]:
    at = tmp_path_factory.mktemp("made")
    found = {}
    for sampled, text in ((False, GRAMMAR), (True, SAMPLED)):
        artifact = library.compile_text(text)
        library.save(artifact, at / f"{sampled}.tcca")
        found[sampled] = artifact, at / f"{sampled}.tcca"
    return found


def test_an_epsilon_that_is_a_tenth_lower_is_seen() -> None:
    of = {"mechanism": "gaussian", "sigma": "2", "sensitivity": "1"}
    one = {"mechanism": "discrete_gaussian", "sigma": "2", "sensitivity": 1}
    for atom in (of, one):
        low, high = mpf(0), mpf(20)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if alone(atom, middle) > mpf("0.00001") else (low, middle)
        assert least_delta([atom], high * mpf("0.9")) > mpf("0.00001")


def test_random_lists_of_atoms_hold(tmp_path: Path, made: dict[bool, tuple[Any, Path]]) -> None:
    found: Counter[str] = Counter()
    for seed in range(8):
        found += trial(10**6 + seed, tmp_path, made)
    assert found["runs"] == 8 and found["epsilons"] >= 8
    # An ask after which the bound is lower draws no epsilon of the account, and ends no run.
    assert found["lowered"] >= 1


@pytest.mark.campaign
def test_random_lists_of_atoms_hold_campaign(
    tmp_path: Path, made: dict[bool, tuple[Any, Path]]
) -> None:
    found: Counter[str] = Counter()
    for seed in range(200):
        found += trial(seed, tmp_path, made)
    print(dict(sorted(found.items())))
