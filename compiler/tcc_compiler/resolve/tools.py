"""Tools: parameters, signature, amounts of every call, and what a run needs to know besides.

Normative text: docs/spec/language.md, sections 5 and 6.  Cost: linear in the calls and their terms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcc_certs.formats.codec import Json, large
from tcc_compiler.ast import (
    Amount,
    Attribute,
    BindMcp,
    BindPython,
    Doc,
    Model,
    Quotes,
    Text,
    ToolStatement,
)
from tcc_compiler.diagnostics import Report, quote
from tcc_compiler.resolve.amounts import MILLISECONDS, Steps, Weights, in_unit, weights_of
from tcc_compiler.resolve.domains import Parameter, parameters_of

_TARGET = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool, resolved.

    Attributes:
        takes, gives: the signature, both or neither.
        extras: members of the core's tool object that no plan depends on.
        weights: of every call, the last parameter fastest.
        places: of each parameter's name, its number.
    """

    name: str
    parameters: tuple[Parameter, ...]
    takes: str | None
    gives: str | None
    extras: Mapping[str, Json]
    weights: Sequence[Weights]
    places: Mapping[str, int]


def tool_of(statement: ToolStatement, steps: Steps, report: Report) -> Tool | None:
    """The resolved tool, None after an error in it; its amounts take some of `steps`."""
    extras = _extras(statement.attributes, report)
    parameters = parameters_of(statement, report)
    if parameters is None:
        return None
    amounts = [a for a in statement.attributes if isinstance(a, Amount)]
    weights = weights_of(statement.name, parameters, amounts, steps, report)
    if weights is None or extras is None:
        return None
    takes, gives = statement.signature or (None, None)
    return Tool(
        name=statement.name.text,
        parameters=parameters,
        takes=takes.text if takes else None,
        gives=gives.text if gives else None,
        extras=extras,
        weights=weights,
        places={parameter.name: place for place, parameter in enumerate(parameters)},
    )


def _extras(attributes: Sequence[Attribute], report: Report) -> Mapping[str, Json] | None:
    extras: dict[str, Json] = {}
    sound = _single([a for a in attributes if isinstance(a, Doc)], "doc", report)
    sound &= _single([a for a in attributes if isinstance(a, Quotes)], "quotes", report)
    sound &= _single([a for a in attributes if isinstance(a, BindMcp | BindPython)], "bind", report)
    for attribute in attributes:
        match attribute:
            case Doc():
                extras["doc"] = attribute.text.value
            case Quotes():
                extras["quotes"] = "same"
            case BindMcp() | BindPython():
                binding = _binding(attribute, report)
                sound &= binding is not None
                extras["bind"] = binding or {}
    models = _models([a for a in attributes if isinstance(a, Model)], report)
    if models:
        extras["models"] = models
    return extras if sound and models is not None else None


def _single(
    found: Sequence[Doc | Quotes | BindMcp | BindPython], what: str, report: Report
) -> bool:
    for other in found[1:]:
        report.error(
            "TCC310", other.region, f"a second '{what}'",
            notes=[("the first is here", found[0].region)],
        )  # fmt: skip
    return len(found) < 2


def _binding(bind: BindMcp | BindPython, report: Report) -> Mapping[str, Json] | None:
    if isinstance(bind, BindPython):
        if _TARGET.fullmatch(bind.target.value):
            return {"kind": "python", "target": bind.target.value}
        message = f"{quote(bind.target.value)} names no Python function"
        report.error("TCC313", bind.target.region, message, 'write "module:function"')
        return None
    empty = [text for text in (bind.server, bind.tool) if not text.value]
    for text in empty:
        report.error("TCC313", text.region, "a binding names a server and a tool, neither empty")
    return None if empty else {"kind": "mcp", "server": bind.server.value, "tool": bind.tool.value}


def _models(models: Sequence[Model], report: Report) -> list[Json] | None:
    """The model objects; None after an error."""
    first: dict[str, Model] = {}
    found: list[Json] = []
    sound = True
    for model in models:
        known = first.setdefault(model.name.text, model)
        if known is not model:
            report.error(
                "TCC201", model.name.region, f"model {quote(model.name.text)} is defined twice",
                notes=[("first defined here", known.name.region)],
            )  # fmt: skip
            sound = False
        parts = _model_parts(model, report)
        sound &= parts is not None
        found.append({"name": model.name.text, **(parts or {})})
    return found if sound else None


def _model_parts(model: Model, report: Report) -> Mapping[str, Json] | None:
    numbers = {"price": 0, "latency": 0, "epsilon": 0}
    adapter: Text | None = None
    seen: set[str] = set()
    sound = True
    for part in model.parts:
        if part.kind in seen:
            report.error("TCC310", part.region, f"a second '{part.kind}' in this model")
            sound = False
        seen.add(part.kind)
        if part.number is None:
            adapter = part.text
            continue
        value = part.number.value * MILLISECONDS[part.unit]
        number = in_unit(part.kind, value, part.number.region, report)
        sound &= number is not None
        numbers[part.kind] = number or 0
    if not sound:
        return None
    found: dict[str, Json] = {
        "price": large(numbers["price"]),
        "latency_ms": large(numbers["latency"]),
        "epsilon": large(numbers["epsilon"]),
    }
    return found if adapter is None else {**found, "adapter": adapter.value}
