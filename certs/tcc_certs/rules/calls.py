"""The table of calls: texts in order, costs in order, weights and residuals to the last bit.

Normative text: docs/spec/artifact.md, section 2; weights and residuals: docs/spec/race.md,
section 3.  Cost: one exponential and one logarithm for each distinct cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.errors import Code, ensure, require
from tcc_certs.formats.artifact import ArtifactFile
from tcc_certs.formats.codec import decode
from tcc_certs.formats.hashes import call_digest
from tcc_certs.formats.schema import as_list, as_text
from tcc_certs.limits import MAX_CALLS
from tcc_certs.race.weights import call_residual, call_weight, fraction_bits

_TABLE = Code.CALL_TABLE


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
    low, high, weight, price, latency, epsilon = (
        file.columns[f"call_{name}"].items().tolist()
        for name in ("cost_low", "cost_high", "weight", "price", "latency_ms", "epsilon")
    )
    for i in range(size):
        ensure(low[i] <= high[i], _TABLE, f"call_cost_high[{i}]", f"at least {low[i]}", high[i])
    residual = _check_weights(file, low, weight)
    require(max(high, default=0), file.manifest.cost_max, Code.COST_MAX, "manifest.cost_max")
    return CallTable(
        texts=texts,
        cost_low=low,
        cost_high=high,
        price=price,
        latency=latency,
        epsilon=epsilon,
        weight=weight,
        residual=residual,
        digest=[call_digest(texts[i].encode(), low[i], high[i]) for i in range(size)],
    )


def _texts(file: ArtifactFile) -> tuple[str, ...]:
    value = decode(bytes(file.columns["call_text"].data), "call_text")
    items = as_list(value, "call_text", _TABLE)
    require(file.manifest.calls, len(items), _TABLE, "call_text length")
    texts = tuple(as_text(item, f"call_text[{i}]", _TABLE) for i, item in enumerate(items))
    for i in range(1, len(texts)):
        # Strings compare by code point, which is the order of their UTF-8 bytes.
        low, high = texts[i - 1], texts[i]
        ensure(low < high, _TABLE, f"call_text[{i}]", f"greater than {low}", high)
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
