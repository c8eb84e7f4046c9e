"""Rules that do not concern single states: the table of calls, C7 leaf ids, C8 source.

Normative text: docs/spec/artifact.md, sections 2 and 5; weights and residuals: docs/spec/race.md,
section 3.  The digest of a leaf follows from the root context document and the calls of its plan.
:mod:`tcc_certs.corecheck.check` compares the automaton with the core.  Cost: one exponential and
one logarithm for each distinct cost; linear in the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.errors import Code, ensure, require
from tcc_certs.formats.artifact import ArtifactFile, Manifest
from tcc_certs.formats.codec import call_digest, decode, encode, root_document
from tcc_certs.formats.schema import as_list, as_text, ensure_increasing
from tcc_certs.limits import MAX_CALLS
from tcc_certs.policy.core import Core
from tcc_certs.policy.places import left_out, parts_of
from tcc_certs.policy.reader import tool_json
from tcc_certs.race.enclosures import call_residual, call_weight, fraction_bits

_MISMATCH = Code.CORE_MISMATCH
_TABLE = Code.CALL_TABLE
# The attributes that the calls of a core and of an artifact share, and their columns.
_AMOUNTS = {
    "cost_low": "call_cost_low",
    "cost_high": "call_cost_high",
    "price": "call_price",
    "latency": "call_latency_ms",
    "epsilon": "call_epsilon",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTable:
    """The calls of an artifact, by index.

    Attributes:
        texts: canonical texts.
        cost_low, cost_high: nano-units.
        price: cents.
        latency: ms.
        epsilon: nano-units.
        weight: W(a).
        residual: r(a), Q31.32.
        digest: A(a).
    """

    texts: tuple[str, ...]
    cost_low: Sequence[int]
    cost_high: Sequence[int]
    price: Sequence[int]
    latency: Sequence[int]
    epsilon: Sequence[int]
    weight: Sequence[int]
    residual: Sequence[int]
    digest: Sequence[bytes]


def check_calls(file: ArtifactFile) -> CallTable:
    """Return the calls after checking their texts, costs, weights and residuals.

    Raises:
        Rejected: M301 the texts do not increase, or cost_low exceeds cost_high.  M302 F or a weight
            does not follow from the costs.  C503 the greatest cost is wrong.  C504 a residual
            exceeds 64 bits.  D201 there are too many calls.
    """
    size = file.manifest.calls
    ensure(size <= MAX_CALLS, Code.LIMIT, "manifest: calls", f"{MAX_CALLS} at most", size)
    texts = _texts(file)
    amounts = {name: file.columns[at].items().tolist() for name, at in _AMOUNTS.items()}
    weight = file.columns["call_weight"].items().tolist()
    low, high = amounts["cost_low"], amounts["cost_high"]
    for i in range(size):
        ensure(low[i] <= high[i], _TABLE, f"call_cost_high[{i}]", f"at least {low[i]}", high[i])
    residual = _check_weights(file, low, weight)
    require(max(high, default=0), file.manifest.cost_max, Code.COST_MAX, "manifest.cost_max")
    digest = [call_digest(texts[i].encode(), low[i], high[i]) for i in range(size)]
    return CallTable(texts=texts, weight=weight, residual=residual, digest=digest, **amounts)


def _texts(file: ArtifactFile) -> tuple[str, ...]:
    value = decode(bytes(file.columns["call_text"].data), "call_text")
    items = as_list(value, "call_text", _TABLE)
    require(file.manifest.calls, len(items), _TABLE, "call_text length")
    texts = tuple(as_text(item, f"call_text[{i}]", _TABLE) for i, item in enumerate(items))
    ensure_increasing(texts, "call_text", _TABLE)
    return texts


def _check_weights(file: ArtifactFile, low: Sequence[int], weight: Sequence[int]) -> list[int]:
    """Check F and the weight of each call against its cost; return the residuals."""
    beta, tilt = file.manifest.beta, file.manifest.tilt
    bits = fraction_bits(beta, max(low, default=0), tilt)
    require(bits, file.manifest.fraction_bits, Code.CALL_WEIGHT, "manifest: fraction_bits")
    known: dict[int, tuple[int, int]] = {}
    residuals = []
    for i, cost in enumerate(low):
        if cost not in known:
            expected = call_weight(beta, cost, bits, tilt)
            known[cost] = expected, call_residual(beta, cost, expected, bits)
        expected, residual = known[cost]
        require(expected, weight[i], Code.CALL_WEIGHT, f"call_weight[{i}]")
        fits = -(1 << 63) <= residual < 1 << 63
        ensure(fits, Code.BOUND_RANGE, f"residual of call {i}", "64 bits", residual)
        residuals.append(residual)
    return residuals


def check_leaf_ids(manifest: Manifest, core: Core) -> None:
    """Check that J has the name, version and limits of the core.

    Raises:
        Rejected: C702.
    """
    expected = encode(root_document(core.name, core.version, core.limit_texts))
    found = encode(manifest.root_document)
    require(expected.decode(), found.decode(), Code.ROOT_CONTEXT, "manifest.leaf_policy.root")


def check_source(manifest: Manifest, table: CallTable, core: Core) -> tuple[int, ...]:
    """Return, for each call of the artifact, the index of the same call in the core.

    Raises:
        Rejected: C802 the grammar's name or version, or a call that the core does not have.
    """
    require(core.name, manifest.grammar, _MISMATCH, "manifest.grammar.name")
    require(core.version, manifest.version, _MISMATCH, "manifest.grammar.version")
    number = {call.text: index for index, call in enumerate(core.calls)}
    found = []
    for i, text in enumerate(table.texts):
        ensure(text in number, _MISMATCH, f"call_text[{i}]", "a call of the core", text)
        call = core.calls[number[text]]
        for name, at in _AMOUNTS.items():
            require(getattr(call, name), getattr(table, name)[i], _MISMATCH, f"{at}[{i}]")
        found.append(number[text])
    return tuple(found)


def check_relaxed(manifest: Manifest, core: Core) -> None:
    """Check that an automaton of the core could contain each relaxed statement.

    An automaton with cycles leaves more statements to the gate.

    Raises:
        Rejected: C803.
    """
    relaxed = manifest.relaxed
    if not relaxed:
        return
    path, size = "manifest.relaxed", len(core.statements)
    ensure(relaxed[-1] < size, Code.RELAXED, path, f"numbers below {size}", relaxed[-1])
    parts, left = parts_of(core), left_out(core) if manifest.cyclic else ()
    for number in relaxed:
        expected = f"a statement that plans hold, unlike `{parts[number].text}`"
        gate = parts[number].place == "gate" or number in left
        ensure(not gate, Code.RELAXED, path, expected, f"{number}, which the gate holds")


def check_tools(column: bytes, core: Core, owners: set[int]) -> None:
    """Check that the column ``tools`` has exactly the tools of the core that own a call.

    Args:
        column: the bytes of the column.
        owners: the indices of the tools that own a call of the artifact.

    Raises:
        Rejected: M303.
    """
    expected = encode([tool_json(core.tools[index]) for index in sorted(owners)])
    ensure(
        expected == column, Code.TOOL_TABLE, "tools", "the core's tools that own a call", "others"
    )
