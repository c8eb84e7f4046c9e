"""A real server behind a gate: connected, checked against its lock, and relayed.

Nothing is passed on before the server's tools are known to be those that were locked, and to have
every tool of the grammar.  Cost: that of the server's start; then the relay's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcc_certs.core.model import Core
from tcc_runtime.gate.gate import Gate
from tcc_runtime.mcp.door import Door
from tcc_runtime.mcp.lines import MAX_CLIENT_LINE
from tcc_runtime.mcp.lock import check_tools, tool_digest
from tcc_runtime.mcp.narrowed import tools_of
from tcc_runtime.mcp.pipes import Pipe
from tcc_runtime.mcp.relay import Relay
from tcc_runtime.mcp.signals import Stopping
from tcc_runtime.mcp.under_way import Tool
from tcc_runtime.mcp.upstream import Protocol, Upstream

_CONNECT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """How a server is relayed.

    Attributes:
        command: the program of the server and its arguments.
        locked: digests of its tools by name; None takes them as they are at the start.
        seconds: how long a call may take before its outcome is unknown.
        masks: whether clients of the handshake see only the tools that may be called now.
        protocol: how the server is spoken to.
        version: ours, which both sides are told.
    """

    command: Sequence[str]
    locked: Mapping[str, str] | None
    seconds: float
    masks: bool
    protocol: Protocol
    version: str


def guard(gate: Gate, how: Guarded, note: Callable[[str], None]) -> str | None:
    """Relay the server over our own standard input and output, until the client is gone.

    Args:
        note: is told, for people, what went wrong.

    Returns:
        why it ended early, where it did.

    Raises:
        ServerError: the server cannot be started, or is not understood.
        ServerDrift: its tools are not those that were locked, or that the grammar names.
    """
    upstream = Upstream(how.command, seconds=_CONNECT_SECONDS, version=how.version)
    try:
        upstream.connect(how.protocol)
        listed = upstream.tools()
        artifact = gate.artifact
        shown = tools_of(artifact.core, artifact.texts, listed)
        check_tools(tuple(shown), listed, how.locked)
        relay = _relay(gate, how, upstream, shown, listed, note)
        with Stopping() as stopping:
            return relay.run(stopping)
    finally:
        upstream.close()


def _relay(
    gate: Gate,
    how: Guarded,
    upstream: Upstream,
    shown: Mapping[str, Mapping[str, Any]],
    listed: Sequence[Mapping[str, Any]],
    note: Callable[[str], None],
) -> Relay:
    locked = {tool["name"]: tool_digest(tool) for tool in listed if tool["name"] in shown}
    name = gate.artifact.core.name

    def tools() -> Sequence[Mapping[str, Any]]:
        if door.stateless:
            return tuple(shown.values())
        visible = frozenset(gate.tools()) if how.masks else shown.keys()
        return [_older(tool) for tool in shown.values() if tool["name"] in visible]

    door = Door(
        info=_info(upstream.info),
        instructions=f"Calls are held to the grammar {name}: what no plan allows is refused, and "
        "the refusal says what is allowed instead. Make one call at a time.",
        tools=tools,
        changes=how.masks,
    )
    return Relay(
        session=gate,
        upstream=upstream,
        client=Pipe(0, 1, MAX_CLIENT_LINE),
        door=door,
        tools=_known(gate.artifact.core),
        seconds=how.seconds,
        masked=gate.tools if how.masks else None,
        check=lambda: check_tools(tuple(shown), upstream.tools(), locked),
        note=note,
    )


def _known(core: Core) -> Mapping[str, Tool]:
    return {
        tool.name: Tool(
            observed=tuple(one.name for one in tool.parameters if one.observed),
            errors_failed=tool.errors_failed,
        )
        for tool in core.tools
    }


def _info(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """The server's name and version, as the client is to see them."""
    name, version = told.get("name"), told.get("version")
    return {
        "name": name if isinstance(name, str) else "server",
        "version": version if isinstance(version, str) else "0",
    }


def _older(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool as clients of the handshake know it: what it gives back is an object."""
    schema = tool.get("outputSchema")
    if schema is None or (isinstance(schema, Mapping) and schema.get("type") == "object"):
        return tool
    return {name: value for name, value in tool.items() if name != "outputSchema"}
