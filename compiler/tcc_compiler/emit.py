"""The artifact's columns from a certified machine, and its bytes.

Specification: docs/spec/artifact.md, sections 2 and 3.  Cost: linear in the file.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from tcc_certs.artifact import pack, pack_limbs, pack_texts, write_artifact
from tcc_certs.codec import Json, encode
from tcc_certs.digest import root_document
from tcc_certs.grammar import Core
from tcc_certs.manifest import Manifest, Relaxed
from tcc_certs.weights import Beta
from tcc_compiler.bounds import Bounds
from tcc_compiler.certify import CallEdges, Numbering
from tcc_compiler.count import Counts, Weights
from tcc_compiler.machine import Machine


def emit(
    core: Core,
    value: Mapping[str, Json],
    machine: Machine,
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
        machine: minimal; `numbering`, `counts` and `bounds` are over its states.
        relaxed: the statements that `machine` leaves to the run, None where there are none.
    """
    calls = sorted(weights.weight)
    columns = {
        **_states(machine, numbering, counts, bounds),
        **_edges(edges, numbering, calls),
        **_calls(core, calls, weights),
        **_documents(core, value, calls),
    }
    manifest = Manifest(
        grammar=core.name,
        version=core.version,
        beta=beta,
        tilt=tilt,
        fraction_bits=weights.fraction_bits,
        states=machine.states,
        edges=len(columns["edge_call"]) // 4,
        calls=len(calls),
        root=numbering.digest[machine.start],
        cost_max=bounds.cost_max,
        root_document=root_document(core.name, core.version, core.limit_texts),
        nondeterministic=machine.nondeterministic,
        relaxed=relaxed,
        round_counts=counts.round_bits,
    )
    return write_artifact(manifest, columns)


def _states(
    machine: Machine, numbering: Numbering, counts: Counts, bounds: Bounds
) -> dict[str, bytes]:
    order = numbering.order
    columns = {
        "accept": bytes(machine.accept[q] for q in order),
        "rank": pack("rank", [counts.rank[q] for q in order]),
        "plans": pack_limbs([counts.plans[q] for q in order]),
        "cost_to_go": pack("cost_to_go", [bounds.cost_to_go[q] for q in order]),
        "residual_to_go": pack("residual_to_go", [bounds.residual_to_go[q] for q in order]),
        "state_digest": b"".join(numbering.digest[q] for q in order),
    }
    if counts.round_bits is not None:
        columns["race_mantissa"] = pack("race_mantissa", [counts.race[q] for q in order])
        columns["race_exponent"] = pack("race_exponent", [counts.exponent[q] for q in order])
    elif counts.race != counts.plans:
        columns["race_count"] = pack_limbs([counts.race[q] for q in order])
    return columns


def _edges(edges: CallEdges, numbering: Numbering, calls: Sequence[int]) -> dict[str, bytes]:
    index = {call: at for at, call in enumerate(calls)}
    number = numbering.number
    starts, numbers, targets = [0], array("I"), array("I")
    for q in numbering.order:
        pairs = edges.of(q, number)
        numbers.extend([index[call] for call, _ in pairs])
        targets.extend([number[target] for _, target in pairs])
        starts.append(len(numbers))
    return {
        "edge_start": pack("edge_start", starts),
        "edge_call": pack("edge_call", numbers),
        "edge_target": pack("edge_target", targets),
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
