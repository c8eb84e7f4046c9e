"""The columns of an artifact from the finished automaton, and the bytes of the file.

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
from tcc_compiler.artifact.call_edges import CallEdges
from tcc_compiler.artifact.certify import Numbering
from tcc_compiler.automata.table import Ints, Table, portions, starts
from tcc_compiler.counting.bounds import Bounds
from tcc_compiler.counting.count import Counts, Weights
from tcc_compiler.counting.digits import Limbs
from tcc_compiler.frozen import frozen

Column: TypeAlias = "bytes | memoryview"

_PORTION = 1 << 12


@frozen(eq=False)
class Contents:
    """What an artifact is made of.

    Attributes:
        core: the grammar that was compiled.
        document: the JSON object of the core; the tools are copied from it as they stand.
        table: the automaton, ranked and minimal; `edges`, `numbering`, `counts` and `bounds` are
            over its states.
        beta, tilt: the options that the weights were computed with.
        relaxed: the statements that `table` leaves to the run, None where there are none.
    """

    core: Core
    document: Mapping[str, Json]
    table: Table
    edges: CallEdges
    numbering: Numbering
    counts: Counts
    weights: Weights
    bounds: Bounds
    beta: Beta
    tilt: int
    relaxed: Relaxed | None


def emit(contents: Contents) -> bytes:
    """The bytes of the artifact."""
    core, table = contents.core, contents.table
    calls = sorted(contents.weights.weight)
    columns = {
        **_states(contents),
        **_edges(contents, calls),
        **_calls(core, calls, contents.weights),
        **_documents(core, contents.document, calls),
    }
    manifest = Manifest(
        grammar=core.name,
        version=core.version,
        beta=contents.beta,
        tilt=contents.tilt,
        fraction_bits=contents.weights.fraction_bits,
        states=table.states,
        edges=len(columns["edge_call"]) // 4,
        calls=len(calls),
        root=bytes(columns["state_digest"][-32:]),
        cost_max=contents.bounds.cost_max,
        root_document=root_document(core.name, core.version, core.limit_texts),
        nondeterministic=table.nondeterministic,
        relaxed=contents.relaxed,
        round_counts=contents.counts.round_bits,
    )
    return write_artifact(manifest, columns)


def _states(contents: Contents) -> dict[str, Column]:
    table, counts, bounds = contents.table, contents.counts, contents.bounds
    order = contents.numbering.order
    ranks = np.repeat(np.arange(len(table.levels) - 1), np.diff(table.levels))
    columns = {
        "accept": _column(table.accept.take(order), "u1"),
        "rank": _column(ranks, "<u4"),
        "plans": _limbs(counts.plans, order),
        "cost_to_go": _column(bounds.cost_to_go.take(order), "<i8"),
        "residual_to_go": _column(bounds.residual_to_go.take(order), "<i8"),
        # Digests are bytes: their order in memory is kept, whatever the byte order of the machine.
        "state_digest": _column(contents.numbering.digest.take(order, axis=0), "=u8"),
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
    rows = np.empty((len(order), len(limbs)), dtype="<u8")
    # A portion at a time, so that what is transposed is still in the cache.
    for begin in range(0, len(order), _PORTION):
        some = slice(begin, begin + _PORTION)
        rows[some] = limbs.take(order[some], axis=1).T
    return _column(rows, "<u8")


def _column(values: NDArray[Any], dtype: str) -> Column:
    """The bytes of `values`; they are not copied where they have that type already."""
    return values.astype(dtype, copy=False).reshape(-1).view(np.uint8).data


def _edges(contents: Contents, calls: Sequence[int]) -> dict[str, Column]:
    edges, numbering = contents.edges, contents.numbering
    order = numbering.order
    key = numbering.number if contents.table.nondeterministic else None
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
    rows = [core.calls[call] for call in calls]
    return {
        "call_cost_low": pack("call_cost_low", [call.cost_low for call in rows]),
        "call_cost_high": pack("call_cost_high", [call.cost_high for call in rows]),
        "call_weight": pack("call_weight", [weights.weight[call] for call in calls]),
        "call_price": pack("call_price", [call.price for call in rows]),
        "call_latency_ms": pack("call_latency_ms", [call.latency for call in rows]),
        "call_epsilon": pack("call_epsilon", [call.epsilon for call in rows]),
        "call_text": pack_texts(call.text for call in rows),
    }


def _documents(core: Core, document: Mapping[str, Json], calls: Sequence[int]) -> dict[str, Column]:
    """The core, and the tools that have a call on some edge."""
    owners = {core.calls[call].tool for call in calls}
    tools = document["tools"]
    kept = (
        [tool for at, tool in enumerate(tools) if at in owners] if isinstance(tools, list) else []
    )
    return {"core": encode(document), "tools": encode(kept)}
