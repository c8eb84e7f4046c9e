"""What calls cost and take, as the attributes of edges.

A decimal is a float where that float's shortest text is the decimal, and else the exact text: so
reading it again gives the same amount.  Cost: linear in the calls.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from tcc_certs.core.model import Call, Tool
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.values.listed import json_of
from tcc_runtime.artifact.load import Artifact

_NANO = 10**9


def decimal_number(nano: int) -> float | str:
    """A number of nano-units as a float that says it exactly, or as text."""
    text = format_decimal(nano, 9)
    near = float(text)
    return near if Fraction(repr(near)) == Fraction(nano, _NANO) else text


def call_attributes(artifact: Artifact) -> list[dict[str, Any]]:
    """For each call of the artifact, in order, the attributes of its edges.

    Raises:
        Rejected: of an unverified artifact whose core is damaged, or has not all of its calls.
    """
    core = artifact.core
    known = {call.text: call for call in core.calls}
    weights = artifact.weight
    found = []
    for index, text in enumerate(artifact.texts):
        call = known.get(text)
        if call is None:
            raise Rejected(Code.CORE_MISMATCH, f"call_text[{index}]", "a call of the core", text)
        found.append(_attributes(call, core.tools[call.tool]) | {"race_weight": weights[index]})
    return found


def _attributes(call: Call, tool: Tool) -> dict[str, Any]:
    low, high = call.cost_low, call.cost_high
    return {
        "call": call.text,
        "tool": tool.name,
        "arguments": _arguments(call, tool),
        "cost": decimal_number(low),
        **({} if low == high else {"cost_high": decimal_number(high)}),
        "price": call.price,
        "latency_ms": call.latency,
        "epsilon": decimal_number(call.epsilon),
    }


def _arguments(call: Call, tool: Tool) -> str:
    """The listed arguments as the text of a JSON object; one that is left out is not in it."""
    pairs = []
    for parameter, place in zip(tool.parameters, call.values, strict=True):
        text = parameter.values[place]
        if text:
            value = json_of(text)
            written = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else text
            pairs.append(f"{json.dumps(parameter.name, ensure_ascii=False)}: {written}")
    return f"{{{', '.join(pairs)}}}"
