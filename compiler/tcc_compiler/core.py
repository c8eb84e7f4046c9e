"""The canonical JSON of a resolved grammar.

Normative text: docs/spec/core.md.  Whatever has an order there is sorted here, so that statements
in another order give the same bytes.  Cost: linear in the core, and its sorts.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.formats.codec import Json, encode, large
from tcc_compiler.resolve.letters import Call
from tcc_compiler.resolve.limits import limit_json, limit_text
from tcc_compiler.resolve.resolved import Resolved
from tcc_compiler.resolve.tools import Tool


def core_bytes(grammar: Resolved) -> bytes:
    """The core."""
    tools = grammar.alphabet.tools
    names = sorted(tools)
    numbers = {name: number for number, name in enumerate(names)}
    limits = {limit_text(limit, tools): limit for limit in grammar.limits}
    members: dict[str, Json] = {
        "format": "tcc.core",
        "version": [1, 0],
        "grammar": {"name": grammar.name, "version": grammar.version},
        "tools": [_tool(tools[name]) for name in names],
        "calls": [_call(call, numbers) for call in grammar.alphabet.calls],
        "patterns": [[list(pair) for pair in pattern] for pattern in grammar.patterns],
        "rules": [[name, grammar.rules[name]] for name in sorted(grammar.rules)],
        "plan": grammar.plan,
        "limits": [limit_json(limits[text], numbers) for text in sorted(limits, key=str.encode)],
        "requires": [list(item) for item in sorted(set(grammar.requires))],
        "forbids": _forbids(grammar),
    }
    if grammar.start is not None:
        members["start"] = grammar.start
        members["goals"] = sorted(grammar.goals)
    return encode(members)


def _forbids(grammar: Resolved) -> Json:
    chains: list[Json] = [["next", list(chain)] for chain in sorted(set(grammar.chains))]
    pairs = sorted({(min(pair), max(pair)) for pair in grammar.pairs})
    return chains + [["with", one, other] for one, other in pairs]


def _tool(tool: Tool) -> Json:
    found: dict[str, Json] = {
        "name": tool.name,
        "params": [
            {"name": parameter.name, "values": list(parameter.values)}
            for parameter in tool.parameters
        ],
        **tool.extras,
    }
    if tool.takes is not None and tool.gives is not None:
        found["in"] = tool.takes
        found["out"] = tool.gives
    return found


def _call(call: Call, numbers: Mapping[str, int]) -> Json:
    return [numbers[call.tool], list(call.values), *(large(weight) for weight in call.weights)]
