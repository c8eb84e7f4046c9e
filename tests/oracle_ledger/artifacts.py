"""Small artifacts for ledger tests, checked by the kernel; built from lists of plans."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from tcc_certs.formats.codec import encode
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.reader import read_core
from tests.oracle.build import build
from tests.oracle.cores import at_most, call, depth, letters, make_core, random_core
from tests.oracle.network import without
from tests.oracle.plans import plans
from tests.oracle_ledger.upper import Shape, upper


def checked(core: bytes, words: list, **options: Any) -> CheckedArtifact:
    """The artifact of `words`, as the kernel passes it."""
    return check(build(core, words, **options))


@cache
def small(tilt: int = 8, beta: str = "1", name: str = "g") -> CheckedArtifact:
    """Three letters, the empty plan among 13 of at most two calls."""
    core = make_core(
        **letters(3, cost=[300_000_000, -100_000_000, 1_250_000_000]),
        plan=["repeat", ["call", {0, 1, 2}], 0, 2],
        name=name,
        statements=[depth(2)],
    )
    return checked(core, plans(read_core(core), 2), tilt=tilt, beta=beta)


@cache
def tiny(tilt: int = 8) -> CheckedArtifact:
    """Two letters, the empty plan among 7 of at most two calls."""
    core = make_core(
        **letters(2, cost=[300_000_000, 1_250_000_000]),
        plan=["repeat", ["call", {0, 1}], 0, 2],
        statements=[depth(2)],
    )
    return checked(core, plans(read_core(core), 2), tilt=tilt)


@cache
def relaxed(tilt: int = 8, split: int | None = None) -> CheckedArtifact:
    """Two letters, at most 4 cents in two or three calls, the limit left to the run.

    With `split` nondeterministic and rounded too.
    """
    core = make_core(
        **letters(2, cost=[0, 250_000_000], price=[2, 1]),
        plan=["repeat", ["call", {0, 1}], 2, 3],
        statements=[depth(3), at_most("price", 4)],
    )
    left = (1,)
    words = plans(without(read_core(core), left), 3)
    rounding = None if split is None else 3
    shape = Shape(relaxed=left, split=split, round_counts=rounding, tilt=tilt)
    return check(upper(core, words, shape))


@cache
def vectors(tilt: int) -> CheckedArtifact:
    """The grammar of tests/conformance/vectors/race.json."""
    tools = [
        {"name": "a"},
        {"name": "b", "fields": [{"name": "k", "values": ["1", "2"]}]},
        {"name": "c"},
    ]
    calls = [
        call(0, cost=300_000_000),
        call(1, [0], cost=100_000_000),
        call(1, [1], cost=200_000_000),
        call(2, cost=1_250_000_000, price=2),
    ]
    a, b, c = ["call", {0}], ["call", {1, 2}], ["call", {3}]
    optional = [["repeat", part, 0, 1] for part in (b, c)]
    core = make_core(
        tools=tools,
        calls=calls,
        plan=["alt", [["seq", [a, *optional]], ["repeat", b, 1, 2]]],
        statements=[depth(3), at_most("price", 5)],
        name="vec",
        version="1.0",
    )
    return checked(core, plans(read_core(core), 3), tilt=tilt)


def drawn(rng: random.Random) -> CheckedArtifact:
    """A random artifact with 1 .. 200 plans of at most four calls."""
    while True:
        core, read = random_core(rng)
        words = plans(read, 4)
        if 1 <= len(words) <= 200:
            beta = rng.choice(["0", "0.5", "1", "3.25"])
            return checked(core, words, tilt=rng.choice([0, 1, 8, 16]), beta=beta)


def canonical(value: Any) -> bytes:
    """Canonical JSON, for digests in tests."""
    return encode(value)
