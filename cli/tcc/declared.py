"""What the tools of a core declare beside their listed parameters, and the monitors, for people.

Open parameters are texts as a grammar has them.  Nothing is shown of a core that has none of this.
Cost: linear in the tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcc_certs.core.enforced import shortened
from tcc_certs.core.model import Core, Tool
from tcc_certs.formats.codec import encode
from tcc_certs.values.types import FlagType, JsonType, NumberType, OpenParameter, TextType

_MOST = 65536  # unless a grammar says otherwise


def declared(core: Core) -> dict[str, Any]:
    """The JSON fields ``tools`` and ``monitors``; each only where there is something to say."""
    tools = [fields for fields in map(_tool, core.tools) if len(fields) > 1]
    monitors = [monitor.text for monitor in core.monitors]
    fields = {"tools": tools, "monitors": monitors}
    return {name: found for name, found in fields.items() if found}


def declared_rows(fields: Mapping[str, Any]) -> list[tuple[str, object]]:
    """The same as rows for people, without the monitors."""
    tools = fields.get("tools", ())
    opened = [f"{tool['name']}({', '.join(tool['open'])})" for tool in tools if "open" in tool]
    observed = [_observed_text(tool) for tool in tools if "observed" in tool]
    failing = [tool["name"] for tool in tools if "errors" in tool]
    rows = [("open", opened), ("observed", observed), ("errors mean failed", failing)]
    return [(name, shortened(tuple(texts))) for name, texts in rows if texts]


def _observed_text(tool: Mapping[str, Any]) -> str:
    strict = ", strict" if "strict" in tool else ""
    return f"{tool['name']}({', '.join(tool['observed'])}){strict}"


def _tool(tool: Tool) -> dict[str, Any]:
    observed = [f"{p.name}: {' | '.join(p.values)}" for p in tool.parameters if p.observed]
    fields: dict[str, Any] = {"name": tool.name}
    if tool.opened:
        fields["open"] = [open_text(parameter) for parameter in tool.opened]
    if observed:
        fields["observed"] = observed
    if tool.strict:
        fields["strict"] = True
    if tool.errors_failed:
        fields["errors"] = "failed"
    return fields


def open_text(parameter: OpenParameter) -> str:
    """An open parameter as a grammar has it; limits that hold unless said are left out."""
    optional = "?" if parameter.optional else ""
    return f"{parameter.name}{optional}: {_type_text(parameter)}"


def _type_text(parameter: OpenParameter) -> str:
    match parameter.type:
        case TextType(least=least, most=most, pattern=pattern):
            words = ["text"]
            words += [f"min {least}"] if least else []
            words += [f"max {most}"] if most != _MOST else []
            words += [f"~ {encode(pattern).decode()}"] if pattern is not None else []
            return " ".join(words)
        case NumberType(whole=whole, low=low, high=high):
            kind = "integer" if whole else "number"
            return kind if low is None else f"{kind} {low} .. {high}"
        case FlagType():
            return "flag"
        case JsonType(most=most):
            return "json" if most == _MOST else f"json max {most}"
