"""The five tools of `tcc serve mcp` as they are listed: names, descriptions and schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}, "maxItems": 1000}


def _tool(name: str, description: str, properties: Mapping[str, Any], *required: str) -> Any:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return {
        "name": name,
        "description": description,
        "inputSchema": {**schema, "additionalProperties": False},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }


TOOLS: Sequence[Mapping[str, Any]] = (
    _tool(
        "allowed",
        "The calls that plans allow after the calls in `after` (in order), and "
        "whether a plan may end there.",
        {"after": _TEXTS},
    ),
    _tool(
        "check",
        "Whether these calls may be made in this order, with these arguments: the first that may "
        "not be made, why, and what is allowed there instead. Nothing is called.",
        {
            "calls": {
                "type": "array",
                "maxItems": 1000,
                "items": {
                    "type": "object",
                    "properties": {
                        "tool": {"type": "string"},
                        "arguments": {"type": "object"},
                        "observed": {"type": "object"},
                    },
                    "required": ["tool"],
                    "additionalProperties": False,
                },
            }
        },
        "calls",
    ),
    _tool(
        "explain",
        "What a code of a refusal, a diagnostic or a finding means.",
        {"code": {"type": "string"}},
        "code",
    ),
    _tool(
        "route",
        "Search for the best plans, at most 10 seconds: the calls of each, its cost, and what is "
        "claimed. `after` are calls that were made already.",
        {
            "top": {"type": "integer", "minimum": 1, "maximum": 16},
            "after": _TEXTS,
            "seed": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        },
    ),
    _tool(
        "validate",
        "Whether a ledger, given as its text, is the record of a run or session over these plans.",
        {"ledger": {"type": "string"}},
        "ledger",
    ),
)
