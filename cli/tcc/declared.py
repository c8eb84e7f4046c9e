"""What the tools of a core declare beside their listed parameters, and the monitors, for people.

Open parameters are texts as a grammar has them; nothing is shown of a core that has none of this.
Cost: linear in the tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcc_certs.core.enforced import shortened, type_text
from tcc_certs.core.model import Core, Tool
from tcc_certs.formats.names import written
from tcc_certs.values.types import OpenParameter


def declared(core: Core) -> dict[str, Any]:
    """The JSON fields ``tools`` and ``monitors``; each only where there is something to say."""
    tools = [fields for fields in map(_tool, core.tools) if len(fields) > 1]
    monitors = [monitor.text for monitor in core.monitors]
    fields = {"tools": tools, "monitors": monitors}
    return {name: found for name, found in fields.items() if found}


def declared_rows(fields: Mapping[str, Any]) -> list[tuple[str, object]]:
    """The same as rows for people, without what a gate holds to: that has a row of its own."""
    tools = fields.get("tools", ())
    observed = [_observed_text(tool) for tool in tools if "observed" in tool]
    failing = [f"mean failed of {written(tool['name'])}" for tool in tools if "errors" in tool]
    rows = [("observed", observed), ("errors", failing)]
    return [(name, shortened(tuple(texts))) for name, texts in rows if texts]


def _observed_text(tool: Mapping[str, Any]) -> str:
    strict = ", strict" if "strict" in tool else ""
    return f"{written(tool['name'])}({', '.join(tool['observed'])}){strict}"


def _tool(tool: Tool) -> dict[str, Any]:
    observed = [f"{written(p.name)}: {' | '.join(p.values)}" for p in tool.parameters if p.observed]
    fields: dict[str, Any] = {"name": tool.name}
    if tool.opened:
        fields["open"] = [_open_text(parameter) for parameter in tool.opened]
    if observed:
        fields["observed"] = observed
    if tool.strict:
        fields["strict"] = True
    if tool.errors_failed:
        fields["errors"] = "failed"
    return fields


def _open_text(parameter: OpenParameter) -> str:
    optional = "?" if parameter.optional else ""
    return f"{written(parameter.name)}{optional}: {type_text(parameter.type)}"
