"""Artifacts with upper counts, for ledger tests: relaxed, nondeterministic, rounded, any mixture.

Slow and plain, all columns by hand; it shares the digests, the weights and the byte writer with the
kernel, and no equation.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from tcc_certs.corecheck.graphs import state_digest
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.formats.codec import call_digest
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import Total
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.reader import read_core
from tcc_certs.race.enclosures import call_residual
from tcc_compiler.artifact import pack, pack_limbs, write_artifact
from tests.oracle.build import build
from tests.oracle.cores import random_core
from tests.oracle.network import without
from tests.oracle.plans import Word, plans


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What to make of the words: options of the artifact."""

    relaxed: tuple[int, ...] = ()
    split: int | None = None  # nondeterministic: words are told apart at random, by this seed
    round_counts: int | None = None
    beta: str = "1"
    tilt: int = 8


def upper(core_bytes: bytes, words: list[Word], shape: Shape) -> bytes:
    """The artifact of `words`, which are those of the core less what is relaxed."""
    data = build(core_bytes, words, beta=shape.beta, tilt=shape.tilt)
    file = read_artifact(data)
    columns = {name: bytes(t.data) for name, t in file.columns.items() if name != "manifest"}
    manifest = file.manifest
    if shape.split is not None:
        states = _split_states(read_core(core_bytes), words, random.Random(shape.split))
        columns |= _columns(file, states)
        if columns["race_count"] == columns["plans"]:
            del columns["race_count"]
        manifest = replace(
            manifest,
            states=len(states),
            edges=sum(len(state.edges) for state in states),
            root=states[-1].digest,
            nondeterministic=True,
        )
    if shape.round_counts is not None:
        view = read_artifact(write_artifact(manifest, columns))
        columns.pop("race_count", None)
        columns |= _rounded(view, shape.round_counts)
        manifest = replace(manifest, round_counts=shape.round_counts)
    if shape.relaxed:
        manifest = replace(manifest, relaxed=shape.relaxed)
    return write_artifact(manifest, columns)


@dataclass(eq=False, kw_only=True)
class State:
    """A state: its edges as (call of the core, state)."""

    accept: bool
    edges: list[tuple[int, State]]
    rank: int
    digest: bytes


def _split_states(core: Core, words: list[Word], rng: random.Random) -> list[State]:
    """Nondeterministic states, merged by digest, in canonical order, the root last."""
    label = [call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in core.calls]
    found: dict[bytes, State] = {}

    def state(suffixes: list[Word]) -> State:
        edges: dict[tuple[int, bytes], State] = {}
        for call in sorted({word[0] for word in suffixes if word}):
            rest = [word[1:] for word in suffixes if word and word[0] == call]
            groups: list[list[Word]] = [[], []]
            for word in rest:
                groups[rng.random() < 0.5].append(word)
                if rng.random() < 0.2:  # twice: two derivations of one plan
                    groups[rng.random() < 0.5].append(word)
            for group in groups:
                if group:
                    target = state(sorted(set(group)))
                    edges[call, target.digest] = target
        ordered = sorted(edges)
        digest = state_digest(() in suffixes, [(label[call], to) for call, to in ordered])
        made = State(
            accept=() in suffixes,
            edges=[(call, edges[call, to]) for call, to in ordered],
            rank=max((1 + edges[key].rank for key in edges), default=0),
            digest=digest,
        )
        return found.setdefault(digest, made)

    root = state(words)
    reached, todo = {root.digest: root}, [root]
    while todo:
        for _, target in todo.pop().edges:
            if target.digest not in reached:
                reached[target.digest] = target
                todo.append(target)
    return sorted(reached.values(), key=lambda s: (s.rank, s.digest))


def _columns(file: Any, states: list[State]) -> dict[str, bytes]:
    core = read_core(bytes(file.columns["core"].data))
    used = sorted({call for state in states for call, _ in state.edges})
    position = {call: at for at, call in enumerate(used)}
    number = {state.digest: q for q, state in enumerate(states)}
    weight = file.columns["call_weight"].items()
    manifest = file.manifest
    bits = manifest.fraction_bits
    low = [core.calls[call].cost_low for call in used]
    residual = [call_residual(manifest.beta, c, w, bits) for c, w in zip(low, weight, strict=True)]
    rows, counts, races, costs, residuals = [], [], [], [], []
    for state in states:
        row = sorted((position[call], number[to.digest]) for call, to in state.edges)
        rows.append(row)
        counts.append(state.accept + sum(counts[p] for _, p in row))
        races.append(
            (int(state.accept) << bits * state.rank)
            + sum(weight[a] * races[p] << bits * (state.rank - 1 - states[p].rank) for a, p in row)
        )
        ends = [(0, 0)] * state.accept
        ends += [(low[a] + costs[p], residual[a] + residuals[p]) for a, p in row]
        costs.append(min(h for h, _ in ends))
        residuals.append(max(g for _, g in ends))
    starts = [sum(len(row) for row in rows[:q]) for q in range(len(rows) + 1)]
    return {
        "edge_start": pack("edge_start", starts),
        "edge_call": pack("edge_call", [a for row in rows for a, _ in row]),
        "edge_target": pack("edge_target", [p for row in rows for _, p in row]),
        "rank": pack("rank", [state.rank for state in states]),
        "accept": bytes(state.accept for state in states),
        "plans": pack_limbs(counts),
        "race_count": pack_limbs(races),
        "cost_to_go": pack("cost_to_go", costs),
        "residual_to_go": pack("residual_to_go", residuals),
        "state_digest": b"".join(state.digest for state in states),
    }


def _rounded(file: Any, bits: int) -> dict[str, bytes]:
    columns, fraction = file.columns, file.manifest.fraction_bits
    start, rank = columns["edge_start"].items(), columns["rank"].items()
    call, target = columns["edge_call"].items(), columns["edge_target"].items()
    weight, accept = columns["call_weight"].items(), columns["accept"].items()
    mantissas, exponents, counts = [], [], []
    for q in range(file.manifest.states):
        total = accept[q] << fraction * rank[q]
        for e in range(start[q], start[q + 1]):
            lift = fraction * (rank[q] - 1 - rank[target[e]])
            total += weight[call[e]] * counts[target[e]] << lift
        exponent = max(0, total.bit_length() - bits)
        mantissa = -(-total >> exponent)
        if mantissa == 1 << bits:
            mantissa, exponent = mantissa >> 1, exponent + 1
        mantissas.append(mantissa)
        exponents.append(exponent)
        counts.append(mantissa << exponent)
    return {
        "race_mantissa": pack("race_mantissa", mantissas),
        "race_exponent": pack("race_exponent", exponents),
    }


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A random artifact: its bytes, what the kernel made of them, and the true plans."""

    data: bytes
    checked: CheckedArtifact
    exact: bytes  # the artifact of the true plans; empty where there are none
    words: list[Word]


def drawn_upper(rng: random.Random, tilt: int | None = None, most: int = 200) -> Drawn:
    """A random artifact of any shape, with exact counts now and then."""
    while True:
        core_bytes, core = random_core(rng)
        relaxed = _relaxed(rng, core) if rng.random() < 0.7 else ()
        words = plans(without(core, relaxed), 4)
        if not 1 <= len(words) <= most:
            continue
        shape = Shape(
            relaxed=relaxed,
            split=rng.randrange(10**6) if rng.random() < 0.4 else None,
            round_counts=rng.randint(1, 12) if rng.random() < 0.3 else None,
            beta=rng.choice(["0", "0.5", "1", "3.25"]),
            tilt=rng.choice([0, 1, 8, 16]) if tilt is None else tilt,
        )
        data = upper(core_bytes, words, shape)
        true = plans(core, 4)
        exact = build(core_bytes, true, beta=shape.beta, tilt=shape.tilt) if true else b""
        return Drawn(data=data, checked=check(data), exact=exact, words=true)


def _relaxed(rng: random.Random, core: Core) -> tuple[int, ...]:
    found = []
    for part in parts_of(core):
        statement = core.statements[part.number]
        # Without the limit on depth the plans may have no bound.
        bound = isinstance(statement, Total) and statement.what == "depth"
        if not bound and part.place != "gate" and rng.random() < 0.7:
            found.append(part.number)
    return tuple(found)
