"""Puts a gate before a real server: connects, checks the tools against the lock, relays.

Nothing is passed on before the server's tools are known to be those that were locked, and to have
every tool of the grammar.  A client is shown the tools of the grammar, their schemas narrowed to
it: a help for models and clients, while the gate decides what may be called.  Values of listed
parameters are those that some call of the automaton has; descriptions of parameters, and schemas of
`json` parameters, are the server's.
Cost: that of the server's start, linear in calls and schemas; then the relay's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tcc_certs.policy.core import Core
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.schemas import all_of, tools_of
from tcc_runtime.mcp.calls import ToolTraits
from tcc_runtime.mcp.door import ClientConnection
from tcc_runtime.mcp.passing import passes_of
from tcc_runtime.mcp.relay import POLL, Relay, Served
from tcc_runtime.mcp.upstream import Command, Protocol, Steps, Upstream
from tcc_runtime.mcp.upstream.lock import check_tools, tool_digest
from tcc_runtime.mcp.upstream.pipes import MAX_CLIENT_LINE, Pipe, Stopping

_CONNECT_SECONDS = 60.0
_LAST = 0.7  # seconds after we were asked to stop, for the end of the session


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """How a server is relayed.

    Attributes:
        command: the program of the server and its arguments, or what is started in place of one.
        locked: digests of its tools by name; None takes them as they are at the start.
        seconds: how long a call may take before its outcome is unknown.
        finishes: whether the session ends with the connection, where a plan may end.
        of_connection: whether the session is the connection's own: one that nothing was called in
            is taken back with it.
        idle: as of :class:`tcc_runtime.mcp.relay.Relay`.
        shadow: whether calls that the grammar forbids are made all the same; then clients see all
            tools of the server.
        masks: whether clients of the handshake see only the tools that may be called now.
        protocol: how the server is spoken to.
        version: ours, which both sides are told.
    """

    command: Command
    locked: Mapping[str, str] | None
    seconds: float
    finishes: bool
    masks: bool
    protocol: Protocol
    version: str
    of_connection: bool = False
    idle: float | None = None
    shadow: bool = False


def guard(
    open_gate: Callable[[], Gate | None], how: Guarded, note: Callable[[str], None]
) -> str | None:
    """Relay the server over our own standard input and output, until the client is gone.

    A session that nothing was relayed for is taken back, where it was begun here.

    Args:
        open_gate: reopens the ledger; None while another process has its lock.
        note: is told, for people, what went wrong.

    Returns:
        why it ended early, where it did.

    Raises:
        ServerError: the server cannot be started, or is not understood.
        ServerDrift: its tools are not those that were locked, or that the grammar names.
    """
    door = ClientConnection(instructions="", changes=how.masks)
    with Stopping() as stopping:
        relay = Relay(
            client=Pipe(0, 1, MAX_CLIENT_LINE),
            door=door,
            stopping=stopping,
            seconds=how.seconds,
            note=note,
            idle=how.idle,
        )
        start = Start(relay, door, how, stopping)
        try:
            return relay.run(start.steps(open_gate))
        finally:
            if relay.upstream is not None:
                relay.upstream.close(stopping)
            start.end()


class Start:
    """What a relay begins with: the session, then the server, then its tools."""

    def __init__(
        self, relay: Relay, door: ClientConnection, how: Guarded, stopping: Stopping
    ) -> None:
        self._relay = relay
        self._door = door
        self._how = how
        self._stopping = stopping
        self._gate: Gate | None = None

    def steps(self, open_gate: Callable[[], Gate | None]) -> Steps[None]:
        """Go through it; what waits is waited for in the relay's loop."""
        relay, how = self._relay, self._how
        while True:
            with self._stopping.at_once():
                gate = self._gate = open_gate()
            if gate is not None:
                break
            yield None
        upstream = Upstream(how.command, seconds=_CONNECT_SECONDS, version=how.version)
        relay.upstream = upstream
        yield from upstream.connecting(how.protocol)
        listed = yield from upstream.listing()
        artifact = gate.artifact
        shown = tools_of(artifact.core, artifact.texts, listed)
        if not upstream.several:  # each of several is held to its tools by itself
            check_tools(tuple(shown), listed, how.locked)
        locked = {tool["name"]: tool_digest(tool) for tool in listed if tool["name"] in shown}

        def look() -> Steps[None]:
            check_tools(tuple(shown), (yield from upstream.listing()), locked)

        self._present(gate, upstream, all_of(listed) if how.shadow else shown)
        masked = gate.tools if how.masks else None
        tools = _known(artifact.core)
        relay.serve(Served(session=gate, tools=tools, masked=masked, look=look))

    def _present(
        self, gate: Gate, upstream: Upstream, shown: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Say at the door who is behind it."""
        door, masks = self._door, self._how.masks

        def tools() -> Sequence[Mapping[str, Any]]:
            if door.stateless:
                return tuple(shown.values())
            visible = frozenset(gate.tools()) if masks else shown.keys()
            return [_older(tool) for tool in shown.values() if tool["name"] in visible]

        door.instructions = _instructions(gate.artifact.core, self._how.shadow)
        door.tools = tools
        door.passes = passes_of(
            gate.artifact.core.passed, upstream.capabilities, hears=upstream.hears
        )
        door.rounds = "input" in gate.artifact.core.passed
        door.info = _info(upstream.info)

    def end(self) -> None:
        """Let go of the session: taken back, ended, or to be gone on with."""
        gate = self._gate
        if gate is None:
            return
        try:
            if self._relay.served is None or (self._how.of_connection and gate.untouched):
                gate.withdraw()
            elif self._how.finishes:
                self._finish(gate)
        finally:
            gate.close()

    def _finish(self, gate: Gate) -> None:
        """End the session where it may end; another's lock is waited for until we have to stop."""
        while gate.may_finish:
            with suppress(Refused):
                turn = gate.try_turn()
                if turn is not None:
                    gate.finish(turn=turn)
                    return
            if time.monotonic() >= self._stopping.until(POLL, _LAST):
                return
            time.sleep(POLL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What a server is, as it was seen before anything was relayed.

    Attributes:
        artifact: the digest of the artifact that it is held to.
        info: its name and version, as clients are told them.
        instructions: what a model is told.
        shown: its tools by name, as clients are shown them.
        headers: of each tool, the parameters that are told in headers, by the header's token.
        locked: the digests of its tools.
        passes: the capabilities that pass; over HTTP without what a server says by itself.
        rounds: whether a server may ask for more before it answers a call.
    """

    artifact: bytes
    info: Mapping[str, Any]
    instructions: str
    shown: Mapping[str, Mapping[str, Any]]
    headers: Mapping[str, Mapping[str, str]]
    locked: Mapping[str, str]
    passes: Mapping[str, Mapping[str, Any]]
    rounds: bool

    def tools(self, *, modern: bool) -> Sequence[Mapping[str, Any]]:
        """The tools, as clients of either way are shown them."""
        tools = tuple(self.shown.values())
        return tools if modern else [_older(tool) for tool in tools]


def probe(artifact: Artifact, how: Guarded) -> Probed:
    """Start the server once, look at its tools, and end it.

    Raises:
        ServerError, ServerDrift: as of :func:`guard`.
    """
    upstream = Upstream(how.command, seconds=_CONNECT_SECONDS, version=how.version)
    try:
        upstream.connect(how.protocol)
        listed = upstream.tools()
        shown = tools_of(artifact.core, artifact.texts, listed)
        if not upstream.several:
            check_tools(tuple(shown), listed, how.locked)
        used = [tool for tool in listed if tool["name"] in shown]
        told = listed if how.shadow else used
        return Probed(
            artifact=artifact.digest,
            info=_info(upstream.info),
            instructions=_instructions(artifact.core, how.shadow),
            shown=all_of(listed) if how.shadow else shown,
            headers={tool["name"]: _headers(tool.get("inputSchema")) for tool in told},
            locked={tool["name"]: tool_digest(tool) for tool in used},
            passes=passes_of(artifact.core.passed, upstream.capabilities, hears=False),
            rounds="input" in artifact.core.passed,
        )
    finally:
        upstream.close()


def _headers(schema: object) -> Mapping[str, str]:
    """The parameters of a tool that go into headers, by the token of each."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    found = {}
    for name, told in properties.items() if isinstance(properties, dict) else ():
        token = told.get("x-mcp-header") if isinstance(told, dict) else None
        if isinstance(token, str):
            found[token.lower()] = name
    return found


def _instructions(core: Core, shadow: bool) -> str:
    if shadow:
        return (
            f"Calls are compared with the grammar {core.name}, and none is refused: this gate is "
            "in the shadow."
        )
    return (
        f"Calls are held to the grammar {core.name}: what no plan allows is "
        "refused, and the refusal says what is allowed instead. Make one call at a time."
    )


def _known(core: Core) -> Mapping[str, ToolTraits]:
    return {
        tool.name: ToolTraits(
            observed=tuple(one.name for one in tool.answers if one.type is None),
            errors_failed=tool.errors_failed,
            error_text=tool.error_text,
            parallel=tool.parallel,
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
