"""Artifacts from a shared graph written down row by row: for automata too deep to list plans of,
and for counts that are not exact.

The equations are those of docs/spec/artifact.md, section 5, one loop each.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from tcc_certs.artifact import pack, pack_limbs, pack_texts, write_artifact
from tcc_certs.codec import decode, encode
from tcc_certs.core import read_core
from tcc_certs.digest import call_digest, root_document, state_digest
from tcc_certs.errors import Code
from tcc_certs.fixed import parse_decimal
from tcc_certs.grammar import Call, Core
from tcc_certs.manifest import Manifest
from tcc_certs.weights import call_residual, call_weight, fraction_bits
from tests.oracle.cores import at_most, call, depth, letters, make_core

Row = tuple[bool, Sequence[tuple[int, int]]]

VEC_PLANS = (
    "a", "a b(k=1)", "a b(k=2)", "a b(k=1) c", "a b(k=2) c", "a c", "b(k=1)", "b(k=2)",
    "b(k=1) b(k=1)", "b(k=1) b(k=2)", "b(k=2) b(k=1)", "b(k=2) b(k=2)",
)  # fmt: skip


def vec_core() -> bytes:
    """The grammar of the published vectors: ``a b? c? | b{1,2}``, depth and price limited."""
    b = ["call", {1, 2}]
    return make_core(
        tools=[
            {"name": "a", "params": []},
            {"name": "b", "params": [{"name": "k", "values": ["1", "2"]}]},
            {"name": "c", "params": []},
        ],
        calls=[
            call(0, (), 300_000_000),
            call(1, (0,), 100_000_000),
            call(1, (1,), 200_000_000),
            call(2, (), 1_250_000_000, price=2),
        ],
        plan=[
            "alt",
            [
                ["seq", [["call", {0}], ["repeat", b, 0, 1], ["repeat", ["call", {3}], 0, 1]]],
                ["repeat", b, 1, 2],
            ],
        ],
        limits=[depth(3), at_most("price", 5)],
        name="vec",
        version="1.0",
    )


def vec_rows() -> list[Row]:
    """Its automaton: row 4 is the root."""
    return [
        (True, []),
        (True, [(3, 0)]),
        (True, [(1, 0), (2, 0)]),
        (True, [(1, 1), (2, 1), (3, 0)]),
        (False, [(0, 3), (1, 2), (2, 2)]),
    ]


def build(
    core_bytes: bytes, rows: Sequence[Row], beta: str = "1", tilt: int = 8, inflate: str = "1"
) -> bytes:
    """The artifact of the last row's plans.

    Args:
        core_bytes: its calls are those of the edges; each stands on some edge.
        rows: (accepts, [(call, number of an earlier row)]).
        inflate: F of the stress surrogate; above 1 the race counts are bounds and no longer pass.
    """
    core = read_core(core_bytes)
    exact = parse_decimal(beta, "beta", Code.MANIFEST_VALUE)
    bits = fraction_bits(exact, max((c.cost_low for c in core.calls), default=0), tilt)
    rows, ranks, digests = merge(rows, core.calls)
    weights = [call_weight(exact, c.cost_low, bits, tilt) for c in core.calls]
    columns = {
        **_edges(rows, ranks, digests),
        **_counts(rows, ranks, weights, bits, Fraction(inflate)),
        **_bounds(rows, core.calls, exact, weights, bits),
        **_calls(core, core_bytes, weights),
    }
    manifest = Manifest(
        grammar=core.name,
        version=core.version,
        beta=exact,
        tilt=tilt,
        fraction_bits=bits,
        states=len(rows),
        edges=sum(len(edges) for _, edges in rows),
        calls=len(core.calls),
        root=digests[-1],
        cost_max=max((c.cost_high for c in core.calls), default=0),
        root_document=root_document(core.name, core.version, core.limit_texts),
    )
    return write_artifact(manifest, columns)


def merge(rows: Sequence[Row], calls: Sequence[Call]) -> tuple[list[Row], list[int], list[bytes]]:
    """One row for each digest, by (rank, digest); unreached rows are dropped."""
    labels = [call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in calls]
    rank: list[int] = []
    digest: list[bytes] = []
    for accept, edges in rows:
        rank.append(max((1 + rank[p] for _, p in edges), default=0))
        digest.append(state_digest(accept, [(labels[a], digest[p]) for a, p in sorted(edges)]))
    reached = {len(rows) - 1}
    for q in range(len(rows) - 1, -1, -1):
        if q in reached:
            reached.update(p for _, p in rows[q][1])
    order = sorted({(rank[q], digest[q]) for q in reached})
    number = {d: at for at, (_, d) in enumerate(order)}
    first = {digest[q]: rows[q] for q in sorted(reached, reverse=True)}
    kept = [
        (first[d][0], [(a, number[digest[p]]) for a, p in sorted(first[d][1])]) for _, d in order
    ]
    return kept, [r for r, _ in order], [d for _, d in order]


def _edges(rows, ranks, digests) -> dict[str, bytes]:
    starts = [0]
    for _, edges in rows:
        starts.append(starts[-1] + len(edges))
    return {
        "edge_start": pack("edge_start", starts),
        "edge_call": pack("edge_call", [a for _, edges in rows for a, _ in edges]),
        "edge_target": pack("edge_target", [p for _, edges in rows for _, p in edges]),
        "rank": pack("rank", ranks),
        "accept": bytes(accept for accept, _ in rows),
        "state_digest": b"".join(digests),
    }


def _counts(rows, ranks, weights, bits, inflate) -> dict[str, bytes]:
    plans, exact, used = [], [], []
    for q, (accept, edges) in enumerate(rows):
        plans.append(accept + sum(plans[p] for _, p in edges))
        exact.append(_race(ranks, weights, bits, q, accept, edges, exact))
        superadditive = _race(ranks, weights, bits, q, accept, edges, used)
        used.append(max(ceil(inflate * exact[q]), superadditive))
    columns = {"plans": pack_limbs(plans)}
    if used != plans:
        columns["race_count"] = pack_limbs(used)
    return columns


def _race(ranks, weights, bits, q, accept, edges, count) -> int:
    rank = ranks[q]
    own = (1 << bits * rank) if accept else 0
    return own + sum(weights[a] * count[p] << bits * (rank - 1 - ranks[p]) for a, p in edges)


def _bounds(rows, calls, beta, weights, bits) -> dict[str, bytes]:
    residual = [
        call_residual(beta, c.cost_low, w, bits) for c, w in zip(calls, weights, strict=True)
    ]
    cost, best = [], []
    for accept, edges in rows:
        stop = [0] if accept else []
        cost.append(min(stop + [calls[a].cost_low + cost[p] for a, p in edges]))
        best.append(max(stop + [residual[a] + best[p] for a, p in edges]))
    return {"cost_to_go": pack("cost_to_go", cost), "residual_to_go": pack("residual_to_go", best)}


def _calls(core: Core, core_bytes: bytes, weights) -> dict[str, bytes]:
    document = decode(core_bytes, "core")
    owners = {c.tool for c in core.calls}
    return {
        "call_cost_low": pack("call_cost_low", [c.cost_low for c in core.calls]),
        "call_cost_high": pack("call_cost_high", [c.cost_high for c in core.calls]),
        "call_weight": pack("call_weight", weights),
        "call_price": pack("call_price", [c.price for c in core.calls]),
        "call_latency_ms": pack("call_latency_ms", [c.latency for c in core.calls]),
        "call_epsilon": pack("call_epsilon", [c.epsilon for c in core.calls]),
        "call_text": pack_texts(c.text for c in core.calls),
        "tools": encode([tool for t, tool in enumerate(document["tools"]) if t in owners]),
        "core": core_bytes,
    }


def free_core(costs: Sequence[int], most: int, highs: Sequence[int] | None = None) -> bytes:
    """A core of tools a, b, c .. with these costs; ``any*`` of at most `most` calls."""
    parts = letters(len(costs), cost=costs, high=highs or costs)
    everything = set(range(len(costs)))
    return make_core(**parts, plan=["repeat", ["call", everything], 0], limits=[depth(most)])


def random_rows(rng: random.Random, calls: int, layers: int, width: int) -> list[Row]:
    """A random shared graph: layers of `width` rows over one accepting end, then a root."""
    rows: list[Row] = [(True, [])]
    for _ in range(layers):
        below = len(rows)
        for _ in range(width):
            some = rng.sample(range(calls), rng.randint(1, calls))
            rows.append((rng.random() < 0.4, [(a, rng.randrange(below)) for a in sorted(some)]))
    below = len(rows)
    # The root takes every call, so that each stands on an edge.
    rows.append((rng.random() < 0.3, [(a, rng.randrange(below)) for a in range(calls)]))
    return rows


def chain_rows(rng: random.Random, calls: int, layers: int, width: int) -> list[Row]:
    """A deep shared graph: from each layer only into the next, plans of `layers` calls alone."""
    rows: list[Row] = [(True, [])]
    last = [0]
    for _ in range(layers - 1):
        first = len(rows)
        rows += [(False, [(a, rng.choice(last)) for a in range(calls)]) for _ in range(width)]
        last = list(range(first, len(rows)))
    rows.append((False, [(a, rng.choice(last)) for a in range(calls)]))
    return rows
