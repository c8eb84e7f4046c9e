"""Large artifacts: automata of every kind with wide counts, and hostile texts in a good frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any

from tcc_compiler.artifact import write_artifact
from tests.campaigns.large import drawn_size, texts
from tests.campaigns.mutate import TOKENS, mutate_bytes
from tests.oracle.cores import depth as depth_limit, letters, make_core
from tests.runtime.graphs import (
    chain_rows,
    free_core,
    parts,
    random_network,
    random_rows,
    wide_core,
)

MOST = 1 << 18
_TEXTS = ("core", "tools", "call_text", "manifest")


def _costs(rng: Random, number: int) -> list[int]:
    return [rng.randrange(-(10**8), 2 * 10**9) for _ in range(number)]


def layered(rng: Random, **kind: Any) -> bytes:
    """A deterministic automaton of some hundred states."""
    calls, layers = rng.choice(((4, 24), (10, 12), (2, 60)))
    rows = random_rows(rng, calls, layers, 9)
    core = free_core(_costs(rng, calls), layers + 1)
    return write_artifact(*parts(core, rows, tilt=rng.choice((0, 8)), **kind))


def deep(rng: Random, **kind: Any) -> bytes:
    """A chain whose counts take very many bits."""
    length = rng.choice((300, 1200))
    core = free_core(_costs(rng, 3), length)
    return write_artifact(
        *parts(core, chain_rows(rng, 3, length, 1), tilt=rng.choice((0, 4)), **kind)
    )


def wide(rng: Random, **kind: Any) -> bytes:
    """States with very many calls, of one tool."""
    number = rng.choice((200, 1500))
    core = wide_core(_costs(rng, number), 2)
    every = range(number)
    rows = [(True, []), (True, [(a, 0) for a in every]), (True, [(a, 1) for a in every])]
    return write_artifact(*parts(core, rows, tilt=rng.choice((0, 8)), **kind))


def network(rng: Random, **kind: Any) -> bytes:
    """A nondeterministic automaton."""
    rows = random_network(rng, 4, rng.choice((9, 24)), 8)
    core = free_core(_costs(rng, 4), 40)
    return write_artifact(*parts(core, rows, tilt=8, nondeterministic=True, **kind))


def relaxed(rng: Random, **kind: Any) -> bytes:
    """Very many statements that the automaton leaves to the run."""
    number = rng.choice((9, 26))
    every, size = set(range(number)), rng.choice((50, 400))
    pairs = sorted({tuple(rng.sample(range(number), 2)) for _ in range(size)})
    core = make_core(
        **letters(number, cost=_costs(rng, number)),
        plan=["repeat", ["call", every], 0, 6],
        statements=[depth_limit(6), *(["before", {a}, {b}] for a, b in pairs)],
    )
    rows = chain_rows(rng, number, 6, 2)
    named = range(1, 1 + len(pairs))
    return write_artifact(*parts(core, rows, tilt=8, relaxed=named, **kind))


KINDS: Sequence[tuple[Callable[..., bytes], Mapping[str, Any]]] = tuple(
    (make, kind)
    for make in (layered, deep, wide, network, relaxed)
    for kind in ({}, {"round_counts": 1}, {"round_counts": 24})
)


@lru_cache(1)
def artifacts() -> tuple[bytes, ...]:
    """Well-formed artifacts of 10 KB to some hundred, each kind with exact and rounded counts."""
    return tuple(make(Random(f"large {at}"), **kind) for at, (make, kind) in enumerate(KINDS))


def hostile_text(rng: Random, columns: Mapping[str, Any]) -> tuple[str, bytes]:
    """A column of text, or the manifest, that is hostile JSON or has some in the middle."""
    name = rng.choice([name for name in _TEXTS if name in columns or name == "manifest"])
    data = texts.hostile(rng, drawn_size(rng, 1 << 10, 1 << 17))
    if name in columns and rng.random() < 0.4:
        old = columns[name][2]
        at = rng.randrange(len(old) + 1)
        data = old[:at] + data + old[at:]
    return name, data


def hostile_frame(rng: Random) -> bytes:
    """A file whose header is hostile JSON, at and past the most bytes that a header has."""
    header = texts.hostile(rng, drawn_size(rng, 1 << 10, 1 << 17))
    size = rng.choice((len(header), len(header), len(header) + 9, 65_536, 2**40))
    return size.to_bytes(8, "little") + header + bytes(rng.choice((0, 9, 1 << 16)))


def cut(rng: Random, data: bytes) -> bytes:
    """A part of a file: cut off, lengthened, or with a block doubled, moved or overwritten."""
    at, other = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    low, high = min(at, other), max(at, other)
    return rng.choice(
        (
            data[:at],
            data + rng.choice(TOKENS) * rng.choice((1, 1000)),
            data[:high] + data[low:high] + data[high:],
            data[:low] + data[high:] + data[low:high],
            data[:low] + bytes([rng.randrange(256)]) * (high - low) + data[high:],
            mutate_bytes(rng, data, [data], TOKENS),
        )
    )
