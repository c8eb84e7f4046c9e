"""The artifact's columns from a certified machine, and its bytes.

Specification: docs/spec/artifact.md, sections 2 and 3.  Cost: linear in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcc_certs.core.model import Core
from tcc_certs.formats.artifact_writer import pack, pack_texts, write_artifact
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.hashes import root_document
from tcc_certs.formats.manifest import Manifest, Relaxed
from tcc_certs.race.weights import Beta
from tcc_compiler.bounds import Bounds
from tcc_compiler.certify import Numbering
from tcc_compiler.count import Counts, Weights
from tcc_compiler.digits import Limbs
from tcc_compiler.edges import CallEdges
from tcc_compiler.table import Ints, Table, portions, starts

Column: TypeAlias = "bytes | memoryview"

_PORTION = 1 << 12


def emit(
    core: Core,
    value: Mapping[str, Json],
    table: Table,
    edges: CallEdges,
    numbering: Numbering,
    counts: Counts,
    weights: Weights,
    bounds: Bounds,
    beta: Beta,
    tilt: int,
    relaxed: Relaxed | None,
) -> bytes:
    """The bytes of the artifact.

    Args:
        value: the core's JSON object, from which the tools are taken word for word.
        table: ranked and minimal; `edges`, `numbering`, `counts` and `bounds` are over its states.
        relaxed: the statements that `table` leaves to the run, None where there are none.
    """
    calls = sorted(weights.weight)
    columns = {
        **_states(table, numbering, counts, bounds),
        **_edges(table, edges, numbering, calls),
        **_calls(core, calls, weights),
        **_documents(core, value, calls),
    }
    manifest = Manifest(
        grammar=core.name,
        version=core.version,
        beta=beta,
        tilt=tilt,
        fraction_bits=weights.fraction_bits,
        states=table.states,
        edges=len(columns["edge_call"]) // 4,
        calls=len(calls),
        root=bytes(columns["state_digest"][-32:]),
        cost_max=bounds.cost_max,
        root_document=root_document(core.name, core.version, core.limit_texts),
        nondeterministic=table.nondeterministic,
        relaxed=relaxed,
        round_counts=counts.round_bits,
    )
    return write_artifact(manifest, columns)


def _states(
    table: Table, numbering: Numbering, counts: Counts, bounds: Bounds
) -> dict[str, Column]:
    order = numbering.order
    ranks = np.repeat(np.arange(len(table.levels) - 1), np.diff(table.levels))
    columns = {
        "accept": _column(table.accept.take(order), "u1"),
        "rank": _column(ranks, "<u4"),
        "plans": _limbs(counts.plans, order),
        "cost_to_go": _column(bounds.cost_to_go.take(order), "<i8"),
        "residual_to_go": _column(bounds.residual_to_go.take(order), "<i8"),
        # These are bytes already, whatever the machine takes them for.
        "state_digest": _column(numbering.digest.take(order, axis=0), "=u8"),
    }
    if counts.rounded is not None:
        mantissa, exponent = (np.array(part, dtype=np.uint64)[order] for part in counts.rounded)
        columns["race_mantissa"] = _column(mantissa, "<u8")
        columns["race_exponent"] = _column(exponent, "<u4")
    elif counts.race is not None and not np.array_equal(counts.race, counts.plans):
        columns["race_count"] = _limbs(counts.race, order)
    return columns


def _limbs(limbs: Limbs, order: Ints) -> Column:
    """The limbs of a state side by side, states in `order`."""
    found = np.empty((len(order), len(limbs)), dtype="<u8")
    # A portion is turned round where it is near.
    for begin in range(0, len(order), _PORTION):
        some = slice(begin, begin + _PORTION)
        found[some] = limbs.take(order[some], axis=1).T
    return _column(found, "<u8")


def _column(values: NDArray[Any], dtype: str) -> Column:
    """The bytes of `values`, where they stand if they are of that type already."""
    return values.astype(dtype, copy=False).reshape(-1).view(np.uint8).data


def _edges(
    table: Table, edges: CallEdges, numbering: Numbering, calls: Sequence[int]
) -> dict[str, Column]:
    order = numbering.order
    key = numbering.number if table.nondeterministic else None
    start = starts(edges.degree.take(order))
    index = np.zeros(max(calls, default=-1) + 1, dtype="<u4")
    index[list(calls)] = np.arange(len(calls))
    edge_call, edge_target = (np.empty(edges.count, dtype="<u4") for _ in range(2))
    for begin, end in portions(start):
        call, target = edges.of(order[begin:end], key)
        rows = slice(start[begin], start[end])
        edge_call[rows] = index.take(call)
        edge_target[rows] = numbering.number.take(target)
    return {
        "edge_start": _column(start, "<u8"),
        "edge_call": _column(edge_call, "<u4"),
        "edge_target": _column(edge_target, "<u4"),
    }


def _calls(core: Core, calls: Sequence[int], weights: Weights) -> dict[str, Column]:
    found = [core.calls[call] for call in calls]
    return {
        "call_cost_low": pack("call_cost_low", [call.cost_low for call in found]),
        "call_cost_high": pack("call_cost_high", [call.cost_high for call in found]),
        "call_weight": pack("call_weight", [weights.weight[call] for call in calls]),
        "call_price": pack("call_price", [call.price for call in found]),
        "call_latency_ms": pack("call_latency_ms", [call.latency for call in found]),
        "call_epsilon": pack("call_epsilon", [call.epsilon for call in found]),
        "call_text": pack_texts(call.text for call in found),
    }


def _documents(core: Core, value: Mapping[str, Json], calls: Sequence[int]) -> dict[str, Column]:
    owners = {core.calls[call].tool for call in calls}
    tools = value["tools"]
    kept = (
        [tool for at, tool in enumerate(tools) if at in owners] if isinstance(tools, list) else []
    )
    return {"core": encode(value), "tools": encode(kept)}
