"""``tools.lock``: the digests of a server's tools, by which the gate notices changed tools.

A digest is BLAKE3 over the canonical text of the parts that a model sees or that are forwarded:
name, title, description, annotations and both schemas.  Absent parts are left out.  In a canonical
text, members are sorted by code point, numbers are written by their exact value, and all characters
are ASCII without spaces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from blake3 import blake3

from tcc_runtime.errors import ServerDrift, ServerError
from tcc_runtime.mcp import wire

_CONTEXT = "tcc.tools_lock/1.0 tool"
_FORMAT = "tcc.tools_lock"
_VERSION = "1.0"
_LOCKED = ("annotations", "description", "inputSchema", "name", "outputSchema", "title")
DEEPEST_TOOL = 100
_DEEPEST = 128
_HEX = re.compile("[0-9a-f]{64}")


def tool_digest(tool: Mapping[str, Any]) -> str:
    """Return the digest of a tool as a server lists it, hex.

    Raises:
        ServerError: the tool is nested too deeply.
    """
    shown = {name: tool[name] for name in _LOCKED if name in tool}
    text = _canonical(shown, _DEEPEST)
    return blake3(text.encode("ascii"), derive_key_context=_CONTEXT).hexdigest()


def lock_text(tools: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of a lock file for these tools."""
    digests = {tool["name"]: tool_digest(tool) for tool in tools}
    document = {"format": _FORMAT, "format_version": _VERSION, "tools": digests}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def read_lock(path: Path) -> Mapping[str, str]:
    """Return the digests in a lock file, by the names of the tools.

    Raises:
        ServerError: the file is no lock file.
        OSError: the file cannot be read.
    """
    try:
        document = wire.read_json(path.read_bytes())
    except wire.MalformedMessage as error:
        raise ServerError(f"{path} is no lock file: {error}") from None
    tools = document.get("tools") if isinstance(document, dict) else None
    known = (
        isinstance(document, dict)
        and document.get("format") == _FORMAT
        and document.get("format_version") == _VERSION
        and document.keys() == {"format", "format_version", "tools"}
    )
    if not known or not isinstance(tools, dict) or not all(map(_is_digest, tools.values())):
        raise ServerError(f"{path} is no lock file")
    return tools


def check_tools(
    needed: Sequence[str], tools: Iterable[Mapping[str, Any]], locked: Mapping[str, str] | None
) -> None:
    """Check that a server has the tools of a grammar, as they were locked.

    Args:
        needed: the names of the tools of the grammar.  Other tools of the server can never be
            called.
        locked: digests by name; None: accept any tool.

    Raises:
        ServerDrift: a tool is missing or has changed.
    """
    there = {tool["name"]: tool for tool in tools}
    findings = []
    for name in sorted(needed):
        shown = wire.dumps(name)
        if name not in there:
            findings.append(f"the server has no tool {shown}")
        elif locked is not None and name not in locked:
            findings.append(f"the lock has no tool {shown}")
        elif locked is not None and locked[name] != tool_digest(there[name]):
            findings.append(f"tool {shown} is not the one that was locked")
    if findings:
        raise ServerDrift(tuple(findings))


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def canonical_text(value: Any) -> str:
    """Return the canonical text of a JSON value: members sorted, numbers by their exact value.

    Raises:
        ServerError: the value is nested too deeply.
    """
    return _canonical(value, DEEPEST_TOOL)


def _canonical(value: Any, depth: int) -> str:
    if depth == 0:
        raise ServerError("a tool's schema is nested too deeply")
    if isinstance(value, dict):
        members = (
            f"{wire.dumps(name)}:{_canonical(value[name], depth - 1)}" for name in sorted(value)
        )
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_canonical(item, depth - 1) for item in value) + "]"
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return _number(Decimal(value))
    return wire.dumps(value)


def _number(value: Decimal) -> str:
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    if not short or not isinstance(exponent, int):
        return "0"
    return f"{'-' if sign else ''}{short}E{exponent + len(text) - len(short)}"
