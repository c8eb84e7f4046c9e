"""Rules that are not about single states: the table of calls, C7 leaf ids, C8 source.

Normative text: docs/spec/artifact.md, sections 2 and 5; weights and residuals: docs/spec/race.md,
section 3.  With the root context document every leaf's digest, and so every uniform of a race,
follows from the grammar's name, version and limits and from the calls.  That the automaton is the
core's is for :mod:`tcc_certs.corecheck.check`.
Cost: one exponential and one logarithm for each distinct cost; linear in the core's calls, tools
and limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, ensure, require
from tcc_certs.formats.artifact import STATEMENTS, ArtifactFile, Manifest, Relaxed
from tcc_certs.formats.codec import Json, call_digest, decode, encode, root_document
from tcc_certs.formats.schema import as_list, as_text, ensure_increasing
from tcc_certs.limits import MAX_CALLS
from tcc_certs.race.enclosures import call_residual, call_weight, fraction_bits

_MISMATCH = Code.CORE_MISMATCH
_TABLE = Code.CALL_TABLE
# The members of a call that a core and an artifact both have, and the columns that hold them.
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
        cost_low, cost_high: nano-units.  price: cents.  latency: ms.  epsilon: nano.
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
    """The calls; their texts strictly increase, their weights are those of their costs.

    Raises:
        Rejected: M301 the texts or an interval of costs; M302 F or a weight; C503 the greatest
            cost; C504 a residual that leaves 64 bits; D201 too many calls.
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
    """The residuals of the calls, once F and every weight are shown to be what costs make them."""
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
    """J is that of the core's name, version and limits.

    Raises:
        Rejected: C702.
    """
    expected = encode(root_document(core.name, core.version, core.limit_texts))
    found = encode(manifest.root_document)
    require(expected.decode(), found.decode(), Code.ROOT_CONTEXT, "manifest.leaf_policy.root")


def check_source(manifest: Manifest, table: CallTable, core: Core) -> tuple[int, ...]:
    """For each call of the artifact its index in the core, where it is the same call.

    Raises:
        Rejected: C802 the grammar's name or version, or a call that the core does not have so.
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


def check_relaxed(relaxed: Relaxed | None, core: Core) -> None:
    """What is relaxed are statements of the core, a limit on costs only where no cost is negative.

    A run adds up what a call may cost at most and looks at no later call: with a negative cost, a
    sum past the limit could still come back below it.

    Raises:
        Rejected: C803.
    """
    if relaxed is None:
        return
    for name in STATEMENTS:
        size = len(getattr(core, name))
        for index in getattr(relaxed, name):
            path = f"manifest.relaxed.{name}"
            ensure(index < size, Code.RELAXED, path, f"an index below {size}", index)
    costs = any(core.limits[index].kind == "cost" for index in relaxed.limits)
    least = min((call.cost_low for call in core.calls), default=0)
    holds = not costs or least >= 0
    ensure(holds, Code.RELAXED, "manifest.relaxed.limits", "no limit on negative costs", least)


def check_tools(column: bytes, tools: Json, owners: set[int]) -> None:
    """The column ``tools`` holds those tool objects of the core that own a call, word for word.

    Args:
        column: its bytes.
        tools: the member ``tools`` of the core.
        owners: indices of the tools that own a call of the artifact.

    Raises:
        Rejected: M303.
    """
    items = as_list(tools, "core.tools", Code.CORE_SCHEMA)
    expected = encode([tool for index, tool in enumerate(items) if index in owners])
    ensure(
        expected == column, Code.TOOL_TABLE, "tools", "the core's tools that own a call", "others"
    )
