"""A small artifact from an explicit list of plans: a trie, merged by digest, all columns by hand.

Slow and plain; it shares the digests, the weights and the byte writer with the kernel, and no
equation.  With `features` the artifact's counts are bounds: the caller answers for what they say of
the core.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tcc_certs.corecheck.graphs import state_digest
from tcc_certs.errors import Code
from tcc_certs.formats.artifact import Manifest
from tcc_certs.formats.codec import Json, call_digest, decode, encode, parse_decimal, root_document
from tcc_certs.policy.reader import read_core
from tcc_certs.race.enclosures import call_residual, call_weight, fraction_bits
from tcc_compiler.artifact import pack, pack_limbs, pack_texts, write_artifact

Word = tuple[int, ...]


@dataclass(kw_only=True)
class Node:
    """A state of the trie: acceptance, and its children by call (an index into the core)."""

    accept: bool = False
    children: dict[int, Node] = field(default_factory=dict)
    twins: list[tuple[int, Node]] = field(default_factory=list)  # more edges, of any call
    rank: int = 0
    digest: bytes = b""

    def edges(self) -> list[tuple[int, Node]]:
        """All edges; once digests are taken, each pair of a call and a digest once."""
        pairs = [*self.children.items(), *self.twins]
        return [found for _, found in sorted({(c, n.digest): (c, n) for c, n in pairs}.items())]


def trie(plans: Iterable[Word]) -> Node:
    """The tree of all prefixes."""
    root = Node()
    for plan in plans:
        node = root
        for call in plan:
            node = node.children.setdefault(call, Node())
        node.accept = True
    return root


def build(
    core_bytes: bytes,
    plans: Iterable[Word],
    beta: str = "1",
    tilt: int | None = None,
    **features: Any,
) -> bytes:
    """The artifact of exactly these plans (a non-empty list), with `core_bytes` as its source.

    Args:
        tilt: None is 8, and 0 where no call of the core has a cost.
    """
    return build_graph(core_bytes, trie(plans), beta, tilt, **features)


def build_graph(
    core_bytes: bytes, root: Node, beta: str = "1", tilt: int | None = None, **features: Any
) -> bytes:
    """The artifact of the plans that an acyclic graph of nodes spells out; nodes may be shared.

    `features` are `nondeterministic`, `relaxed`, `round_counts` and `gate` of the manifest.
    """
    core = read_core(core_bytes)
    if tilt is None:
        tilt = 8 if any(call.cost_low or call.cost_high for call in core.calls) else 0
    nodes = _parts_first(root)
    used = sorted({call for node in nodes for call, _ in node.edges()})
    calls = [core.calls[index] for index in used]
    states = _merge(nodes, {i: core.calls[i] for i in used})
    position = {index: at for at, index in enumerate(used)}
    number = {node.digest: q for q, node in enumerate(states)}
    edges = [
        sorted((position[c], number[child.digest]) for c, child in node.edges()) for node in states
    ]
    exact = parse_decimal(beta, "beta", Code.MANIFEST_VALUE)
    bits = fraction_bits(exact, max((call.cost_low for call in calls), default=0), tilt)
    weights = [call_weight(exact, call.cost_low, bits, tilt) for call in calls]
    counts, races, costs, residuals = [], [], [], []
    for q, node in enumerate(states):
        races.append(int(node.accept) << bits * node.rank)
        counts.append(sum(counts[p] for _, p in edges[q]) + node.accept)
        if features.get("gate"):
            counts[q] = _least(counts[q], 63)
        ends = [(0, 0)] if node.accept else []
        for a, p in edges[q]:
            races[q] += weights[a] * races[p] << bits * (node.rank - 1 - states[p].rank)
            residual = call_residual(exact, calls[a].cost_low, weights[a], bits)
            ends.append((calls[a].cost_low + costs[p], residual + residuals[p]))
        if features.get("round_counts"):
            races[q] = _least(races[q], features["round_counts"])
        costs.append(min(h for h, _ in ends))
        residuals.append(max(g for _, g in ends))
    starts = [sum(len(row) for row in edges[:q]) for q in range(len(states) + 1)]
    document: Json = decode(core_bytes, "core")
    owners = {call.tool for call in calls}
    columns = {
        "edge_start": pack("edge_start", starts),
        "edge_call": pack("edge_call", [a for row in edges for a, _ in row]),
        "edge_target": pack("edge_target", [p for row in edges for _, p in row]),
        "rank": pack("rank", [node.rank for node in states]),
        "accept": bytes(node.accept for node in states),
        "plans": pack_limbs(counts),
        "cost_to_go": pack("cost_to_go", costs),
        "residual_to_go": pack("residual_to_go", residuals),
        "state_digest": b"".join(node.digest for node in states),
        "call_cost_low": pack("call_cost_low", [call.cost_low for call in calls]),
        "call_cost_high": pack("call_cost_high", [call.cost_high for call in calls]),
        "call_weight": pack("call_weight", weights),
        "call_price": pack("call_price", [call.price for call in calls]),
        "call_latency_ms": pack("call_latency_ms", [call.latency for call in calls]),
        "call_epsilon": pack("call_epsilon", [call.epsilon for call in calls]),
        "call_text": pack_texts(call.text for call in calls),
        "tools": encode([tool for t, tool in enumerate(document["tools"]) if t in owners]),
        "core": core_bytes,
    }
    if features.get("gate"):
        pairs = [_pair(count, 63) for count in counts]
        del columns["plans"]
        columns["plans_mantissa"] = pack("plans_mantissa", [m for m, _ in pairs])
        columns["plans_exponent"] = pack("plans_exponent", [e for _, e in pairs])
    elif features.get("round_counts"):
        pairs = [_pair(race, features["round_counts"]) for race in races]
        columns["race_mantissa"] = pack("race_mantissa", [m for m, _ in pairs])
        columns["race_exponent"] = pack("race_exponent", [e for _, e in pairs])
    elif races != counts:
        columns["race_count"] = pack_limbs(races)
    manifest = Manifest(
        grammar=core.name,
        version=core.version,
        beta=exact,
        tilt=tilt,
        fraction_bits=bits,
        states=len(states),
        edges=starts[-1],
        calls=len(calls),
        root=states[-1].digest,
        cost_max=max((call.cost_high for call in calls), default=0),
        root_document=root_document(core.name, core.version, core.limit_texts),
        **features,
    )
    return write_artifact(manifest, columns)


def _least(count: int, bits: int) -> int:
    """The least number of `bits` bits and zeros behind them that is no less than `count`."""
    mantissa, exponent = _pair(count, bits)
    return mantissa << exponent


def _pair(count: int, bits: int) -> tuple[int, int]:
    exponent = 0
    while -(-count // (1 << exponent)) >= 1 << bits:
        exponent += 1
    return -(-count // (1 << exponent)), exponent


def _parts_first(root: Node) -> list[Node]:
    """Every node once, children before parents."""
    done: dict[int, Node] = {}
    todo = [(root, False)]
    while todo:
        node, entered = todo.pop()
        if id(node) in done:
            continue
        if entered:
            done[id(node)] = node
        else:
            todo.append((node, True))
            todo.extend((child, False) for child in node.children.values())
            todo.extend((child, False) for _, child in node.twins)
    return list(done.values())


def _merge(nodes: list[Node], calls: dict) -> list[Node]:
    """One node for each digest, by (rank, digest)."""
    label = {i: call_digest(c.text.encode(), c.cost_low, c.cost_high) for i, c in calls.items()}
    found: dict[bytes, Node] = {}
    for node in nodes:  # parts first, so that the digests of the targets are there
        node.rank = max((1 + child.rank for _, child in node.edges()), default=0)
        pairs = [(label[c], child.digest) for c, child in node.edges()]
        node.digest = state_digest(node.accept, pairs)
        found.setdefault(node.digest, node)
    return sorted(found.values(), key=lambda node: (node.rank, node.digest))
