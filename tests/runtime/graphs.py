"""Artifacts from a shared graph written down row by row: for automata too deep to list plans of,
and for counts that are not exact.

The equations are those of docs/spec/artifact.md, section 5, one loop each.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from tcc_certs.corecheck.graphs import state_digest
from tcc_certs.errors import Code
from tcc_certs.formats.artifact import Manifest
from tcc_certs.formats.codec import call_digest, decode, encode, parse_decimal, root_document
from tcc_certs.policy.core import Core
from tcc_certs.policy.plans import Call
from tcc_certs.policy.reader import read_core
from tcc_certs.race.enclosures import call_residual, call_weight, fraction_bits
from tcc_compiler.artifact import pack, pack_limbs, pack_texts, write_artifact
from tcc_runtime.artifact.load import Artifact, load
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
            {"name": "a"},
            {"name": "b", "fields": [{"name": "k", "values": ["1", "2"]}]},
            {"name": "c"},
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
        statements=[depth(3), at_most("price", 5)],
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
    core_bytes: bytes,
    rows: Sequence[Row],
    beta: str = "1",
    tilt: int = 8,
    inflate: str = "1",
    **upper,
) -> bytes:
    """The artifact of the last row's plans.

    Args:
        core_bytes: the artifact has those of its calls that stand on an edge.
        rows: (accepts, [(call, number of an earlier row)]).
        inflate: F of the stress surrogate; above 1 the race counts are bounds and no longer pass.
        upper: what makes the counts bounds: `nondeterministic` True, `relaxed` (numbers of
            statements), `round_counts` bits.
    """
    return write_artifact(*parts(core_bytes, rows, beta, tilt, inflate, **upper))


def parts(
    core_bytes: bytes,
    rows: Sequence[Row],
    beta: str = "1",
    tilt: int = 8,
    inflate: str = "1",
    nondeterministic: bool = False,
    relaxed: Sequence[int] = (),
    round_counts: int | None = None,
) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest and the columns of :func:`build`."""
    core = read_core(core_bytes)
    exact = parse_decimal(beta, "beta", Code.MANIFEST_VALUE)
    rows, used = _used(rows, core)
    calls = [core.calls[index] for index in used]
    bits = fraction_bits(exact, max((c.cost_low for c in calls), default=0), tilt)
    rows, ranks, digests = merge(rows, calls)
    weights = [call_weight(exact, c.cost_low, bits, tilt) for c in calls]
    columns = {
        **_edges(rows, ranks, digests),
        **_counts(rows, ranks, weights, bits, Fraction(inflate), round_counts),
        **_bounds(rows, calls, exact, weights, bits),
        **_calls(calls, core_bytes, weights),
    }
    manifest = Manifest(
        grammar=core.name,
        version=core.version,
        beta=exact,
        tilt=tilt,
        fraction_bits=bits,
        states=len(rows),
        edges=sum(len(edges) for _, edges in rows),
        calls=len(calls),
        root=digests[-1],
        cost_max=max((c.cost_high for c in calls), default=0),
        root_document=root_document(core.name, core.version, core.limit_texts),
        nondeterministic=nondeterministic,
        relaxed=tuple(relaxed),
        round_counts=round_counts,
    )
    return manifest, columns


def opened(*args, **upper) -> Artifact:
    """The artifact of :func:`build`, checked; it keeps its bytes for a validator."""
    data = build(*args, **upper)
    artifact = load(data)
    artifact.kept["test.bytes"] = data
    return artifact


def merge(rows: Sequence[Row], calls: Sequence[Call]) -> tuple[list[Row], list[int], list[bytes]]:
    """One row for each digest, by (rank, digest); unreached rows are dropped."""
    labels = [call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in calls]
    rank: list[int] = []
    digest: list[bytes] = []
    for accept, edges in rows:
        rank.append(max((1 + rank[p] for _, p in edges), default=0))
        pairs = sorted({(a, digest[p]) for a, p in edges})
        digest.append(state_digest(accept, [(labels[a], d) for a, d in pairs]))
    reached = {len(rows) - 1}
    for q in range(len(rows) - 1, -1, -1):
        if q in reached:
            reached.update(p for _, p in rows[q][1])
    order = sorted({(rank[q], digest[q]) for q in reached})
    number = {d: at for at, (_, d) in enumerate(order)}
    first = {digest[q]: rows[q] for q in sorted(reached, reverse=True)}
    kept = [
        (first[d][0], sorted({(a, number[digest[p]]) for a, p in first[d][1]})) for _, d in order
    ]
    return kept, [r for r, _ in order], [d for _, d in order]


def named_rows(core_bytes: bytes, rows: Sequence[Row]):
    """The same rows with the texts of the calls, as the oracle reads them."""
    core = read_core(core_bytes)
    rows, used = _used(rows, core)
    calls = [core.calls[index] for index in used]
    kept, _, _ = merge(rows, calls)
    return [(accept, [(calls[a].text, p) for a, p in edges]) for accept, edges in kept]


def random_network(rng: random.Random, calls: int, layers: int, width: int) -> list[Row]:
    """As :func:`random_rows`, but a call may lead to two or three rows."""
    rows: list[Row] = [(True, [])]
    for layer in range(layers + 1):
        below = len(rows)
        for _ in range(width if layer < layers else 1):
            last = layer == layers
            some = range(calls) if last else rng.sample(range(calls), rng.randint(1, calls))
            edges = [
                (a, rng.randrange(below)) for a in some for _ in range(rng.choice((1, 1, 2, 3)))
            ]
            rows.append((rng.random() < 0.4, sorted(set(edges))))
    return rows


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


def _counts(rows, ranks, weights, bits, inflate, round_counts) -> dict[str, bytes]:
    plans, exact, used = [], [], []
    for q, (accept, edges) in enumerate(rows):
        plans.append(accept + sum(plans[p] for _, p in edges))
        exact.append(_race(ranks, weights, bits, q, accept, edges, exact))
        superadditive = _race(ranks, weights, bits, q, accept, edges, used)
        used.append(max(ceil(inflate * exact[q]), superadditive))
        if round_counts is not None:
            drop = max(0, used[q].bit_length() - round_counts)
            used[q] = -(-used[q] >> drop) << drop
    columns = {"plans": pack_limbs(plans)}
    if round_counts is not None:
        exponents = [max(0, count.bit_length() - round_counts) for count in used]
        shifted = [count >> e for count, e in zip(used, exponents, strict=True)]
        columns["race_mantissa"] = pack("race_mantissa", shifted)
        columns["race_exponent"] = pack("race_exponent", exponents)
    elif used != plans:
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


def _calls(calls: Sequence[Call], core_bytes: bytes, weights) -> dict[str, bytes]:
    document = decode(core_bytes, "core")
    owners = {c.tool for c in calls}
    return {
        "call_cost_low": pack("call_cost_low", [c.cost_low for c in calls]),
        "call_cost_high": pack("call_cost_high", [c.cost_high for c in calls]),
        "call_weight": pack("call_weight", weights),
        "call_price": pack("call_price", [c.price for c in calls]),
        "call_latency_ms": pack("call_latency_ms", [c.latency for c in calls]),
        "call_epsilon": pack("call_epsilon", [c.epsilon for c in calls]),
        "call_text": pack_texts(c.text for c in calls),
        "tools": encode([tool for t, tool in enumerate(document["tools"]) if t in owners]),
        "core": core_bytes,
    }


def _used(rows: Sequence[Row], core: Core) -> tuple[list[Row], list[int]]:
    """The rows over the calls that stand on an edge of a row that is reached, and those calls."""
    reached = {len(rows) - 1}
    for q in range(len(rows) - 1, -1, -1):
        if q in reached:
            reached.update(p for _, p in rows[q][1])
    used = sorted({a for q in reached for a, _ in rows[q][1]})
    at = {index: place for place, index in enumerate(used)}
    return [(accept, [(at[a], p) for a, p in edges if a in at]) for accept, edges in rows], used


def plan_rows(plans: Sequence[Sequence[int]]) -> list[Row]:
    """The trie of a list of plans, leaves first."""
    found: list[Row] = []

    def row(some: Sequence[Sequence[int]]) -> int:
        edges = []
        for first in sorted({plan[0] for plan in some if plan}):
            edges.append((first, row([plan[1:] for plan in some if plan and plan[0] == first])))
        found.append((any(not plan for plan in some), edges))
        return len(found) - 1

    row([tuple(plan) for plan in plans])
    return found


def free_core(costs: Sequence[int], most: int, highs: Sequence[int] | None = None) -> bytes:
    """A core of tools a, b, c .. with these costs; ``any*`` of at most `most` calls."""
    parts = letters(len(costs), cost=costs, high=highs or costs)
    everything = set(range(len(costs)))
    return make_core(**parts, plan=["repeat", ["call", everything], 0], statements=[depth(most)])


def wide_core(costs: Sequence[int], most: int) -> bytes:
    """A core of one tool with as many calls as there are costs; ``any*`` of at most `most`."""
    texts = [f"v{at:06d}" for at in range(len(costs))]
    return make_core(
        tools=[{"name": "t", "fields": [{"name": "k", "values": texts}]}],
        calls=[call(0, (at,), cost) for at, cost in enumerate(costs)],
        plan=["repeat", ["call", set(range(len(costs)))], 0],
        statements=[depth(most)],
    )


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
