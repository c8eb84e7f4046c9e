"""The artifact's columns from a certified machine, and its bytes.

Specification: docs/spec/artifact.md, sections 2 and 3.  Cost: linear in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tcc_certs.artifact import pack, pack_texts, write_artifact
from tcc_certs.codec import Json, encode
from tcc_certs.digest import root_document
from tcc_certs.grammar import Core
from tcc_certs.manifest import Manifest, Relaxed
from tcc_certs.weights import Beta
from tcc_compiler.bounds import Bounds
from tcc_compiler.certify import CallEdges, Numbering
from tcc_compiler.count import Counts, Weights
from tcc_compiler.sums import Limbs, narrowed
from tcc_compiler.table import Ints, Table


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
        root=columns["state_digest"][-32:],
        cost_max=bounds.cost_max,
        root_document=root_document(core.name, core.version, core.limit_texts),
        nondeterministic=table.nondeterministic,
        relaxed=relaxed,
        round_counts=counts.round_bits,
    )
    return write_artifact(manifest, columns)


def _states(table: Table, numbering: Numbering, counts: Counts, bounds: Bounds) -> dict[str, bytes]:
    order = numbering.order
    ranks = np.repeat(np.arange(len(table.levels) - 1), np.diff(table.levels))
    columns = {
        "accept": table.accept[order].tobytes(),
        "rank": ranks.astype("<u4").tobytes(),
        "plans": _limbs(counts.plans, order),
        "cost_to_go": bounds.cost_to_go[order].astype("<i8").tobytes(),
        "residual_to_go": bounds.residual_to_go[order].astype("<i8").tobytes(),
        "state_digest": numbering.digest_bytes(),
    }
    if counts.rounded is not None:
        mantissa, exponent = (np.array(part, dtype=np.uint64)[order] for part in counts.rounded)
        columns["race_mantissa"] = mantissa.astype("<u8").tobytes()
        columns["race_exponent"] = exponent.astype("<u4").tobytes()
    elif counts.race is not None and not np.array_equal(counts.race, counts.plans):
        columns["race_count"] = _limbs(counts.race, order)
    return columns


def _limbs(limbs: Limbs, order: Ints) -> bytes:
    return narrowed(limbs).take(order, axis=0).astype("<u8", copy=False).tobytes()


def _edges(
    table: Table, edges: CallEdges, numbering: Numbering, calls: Sequence[int]
) -> dict[str, bytes]:
    if table.nondeterministic:
        edges = edges.sorted_by(numbering.number)
    rows = edges.of_states(numbering.order)
    index = np.zeros(max(calls, default=-1) + 1, dtype="<u4")
    index[list(calls)] = np.arange(len(calls))
    return {
        "edge_start": rows.start.astype("<u8").tobytes(),
        "edge_call": index.take(rows.call).tobytes(),
        "edge_target": numbering.number.take(rows.target).astype("<u4", copy=False).tobytes(),
    }


def _calls(core: Core, calls: Sequence[int], weights: Weights) -> dict[str, bytes]:
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


def _documents(core: Core, value: Mapping[str, Json], calls: Sequence[int]) -> dict[str, bytes]:
    owners = {core.calls[call].tool for call in calls}
    tools = value["tools"]
    kept = (
        [tool for at, tool in enumerate(tools) if at in owners] if isinstance(tools, list) else []
    )
    return {"core": encode(value), "tools": encode(kept)}
