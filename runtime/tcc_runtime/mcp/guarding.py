"""A gate in front of a server: connects, checks the tools against the lock, and relays.

Before anything is forwarded, the gate checks two facts: the server has every tool of the grammar,
and these tools are those that were locked.  A client sees the tools of the grammar with narrowed
schemas.  The schemas help models; the gate decides the calls.
Text: docs/mcp.md.  Cost: the start of the server, linear in calls and schemas; then the cost of the
relay.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from tcc_certs.policy.core import Core
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.schemas import all_of, tools_of
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.asking import Asking
from tcc_runtime.mcp.client import Cancelled, Client, passes_of
from tcc_runtime.mcp.deciding import Decisions
from tcc_runtime.mcp.links import Link, Stop, Target
from tcc_runtime.mcp.links.stdio import MAX_CLIENT_LINE, PipeLink, new_loop
from tcc_runtime.mcp.lock import check_tools, tool_digest
from tcc_runtime.mcp.relay import GONE, POLL, Look, Relay
from tcc_runtime.mcp.server import Protocol, Server, Tool, connected

STOPPED: Final = "asked to stop"
_CONNECT_SECONDS: Final = 60.0
_LAST: Final = 0.7  # seconds after the stop request, for the end of the session
_FLUSH: Final = (1.0, 0.2)  # seconds for the last answers: usually, and after a stop request
_MAX_EARLY: Final = 256
_MAX_BYTES: Final = 8 << 20
# if a client has more unread bytes than this, the server's messages are not read
_BEHIND: Final = 32 << 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """Options for relaying a server.

    Attributes:
        target: the server.
        locked: the digests of its tools by name; None: the tools at the start count as locked.
        seconds: the time limit of each call, after which its outcome is unknown.
        finishes: whether the session ends with the connection, if a plan may end there.
        of_connection: whether the session began with the connection.  If it has no calls, it is
            withdrawn.
        idle: seconds without a message of the client and without a call under way, after which the
            client counts as gone; None: no limit.
        shadow: whether refused calls are made all the same.  Clients then see all tools.
        masks: whether clients of the handshake see only tools that may be called now.
        protocol: the form of the protocol.
        version: the version of this program, which both sides get.
        elicits: the roles of the person at the client.
        notify: called with each new question to a person, and the id of its session.
    """

    target: Target
    locked: Mapping[str, str] | None
    seconds: float
    finishes: bool
    masks: bool
    protocol: Protocol
    version: str
    of_connection: bool = False
    idle: float | None = None
    shadow: bool = False
    elicits: frozenset[str] = frozenset()
    notify: Callable[[Pending, str], None] | None = None

    def persons(self, gate: Callable[[], Gate | None], who: str = "") -> Asking:
        """Return the receivers of questions about calls of a session.

        Args:
            gate: returns the gate of the session.
            who: the name of the person at the client; '' if unknown.
        """

        def asked(question: Pending) -> None:
            of = gate()
            if question.is_new and self.notify is not None and of is not None:
                self.notify(question, of.session_id)

        name = who or f"{', '.join(sorted(self.elicits))} at the client"
        return Asking(roles=self.elicits, who=name, asked=asked)

    def server(self, link: Link) -> Server:
        """Return the server at the other end of a link."""
        return Server(link, seconds=_CONNECT_SECONDS, version=self.version)

    def shown(self, artifact: Artifact, listed: Sequence[Tool], several: bool) -> Shown:
        """Check the tools of a server, and return what clients see.

        Raises:
            ServerDrift: a tool of the grammar is missing, or differs from the locked one.
        """
        narrowed = tools_of(artifact.core, artifact.texts, listed)
        if not several:  # the fan-out checks each of its servers
            check_tools(tuple(narrowed), listed, self.locked)
        used = [tool for tool in listed if tool["name"] in narrowed]
        return Shown(
            tools=all_of(listed) if self.shadow else narrowed,
            needed=tuple(narrowed),
            locked={tool["name"]: tool_digest(tool) for tool in used},
        )

    async def start(self, server: Server, gate: Gate, note: Callable[[str], None]) -> Started:
        """Connect to a server, and check its tools.

        Raises:
            ServerError: the server does not follow the protocol.
            ServerDrift: see :meth:`shown`.
        """
        await server.connect(self.protocol)
        shown = self.shown(gate.artifact, await server.tools(), server.link.away is not None)

        async def look() -> None:
            check_tools(shown.needed, await server.tools(), shown.locked)

        return Started(decisions=Decisions(gate, note), look=look, shown=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The tools of a server.

    Attributes:
        tools: the tools that clients see, by name.
        needed: the names of the tools that the grammar needs.
        locked: the digests of the tools of the grammar.
    """

    tools: Mapping[str, Mapping[str, Any]]
    needed: tuple[str, ...]
    locked: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A server whose tools were checked.

    Attributes:
        decisions: the decisions of the session.
        look: checks the tools of the server again.
        shown: the tools.
    """

    decisions: Decisions
    look: Look
    shown: Shown


def guard(
    open_gate: Callable[[], Gate | None], how: Guarded, note: Callable[[str], None]
) -> str | None:
    """Relay a server over this process's standard input and output, until the client is gone.

    Args:
        open_gate: reopens the ledger; returns None while another process has its lock.
        note: called with messages for the owner.

    Returns:
        Why relaying ended early; None: the client left.

    Raises:
        ServerError: the server cannot be started, or does not follow the protocol.
        ServerDrift: see :meth:`Guarded.shown`.
    """

    async def whole() -> str | None:
        stop = Stop()
        with signals(stop.ask):
            link = PipeLink(0, 1, MAX_CLIENT_LINE)
            return await Guarding(link, stop, open_gate, how, note).run()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(whole())


class Guarding:
    """One client at the other end of a link, and its session.

    Args:
        link: the link to the client.
        stop: tells that relaying shall end soon.
        open_gate, how, note: see :func:`guard`.
    """

    def __init__(
        self,
        link: Link,
        stop: Stop,
        open_gate: Callable[[], Gate | None],
        how: Guarded,
        note: Callable[[str], None],
    ) -> None:
        self._link, self._stop = link, stop
        self._open_gate, self._how, self._note = open_gate, how, note
        self._client = Client(link, changes=how.masks)
        persons = how.persons(lambda: self._gate)
        self._relay = Relay(seconds=how.seconds, note=note, persons=persons)
        self._heard = asyncio.get_running_loop().time()
        self._gate: Gate | None = None
        self._opening: asyncio.Future[Gate | None] | None = None
        self._server: Server | None = None
        self._started: Started | None = None
        self._is_locked_out = False  # another process has the lock of the ledger
        self._masked: Sequence[str] | None = None
        self._early: deque[wire.Request] = deque()  # requests that wait until the server is known

    async def run(self) -> str | None:
        """Relay until the client is gone; return why relaying ended early, or None."""
        try:
            return await self._until_end()
        finally:
            if self._server is not None:
                await self._server.link.close()
            await self._let_go()

    async def _until_end(self) -> str | None:
        """Relay; then settle the open calls, and answer the waiting requests."""
        stopping, listening, relaying, leaving, idling = tasks = [
            asyncio.ensure_future(work)
            for work in (
                self._stop.wait(), self._listen(), self._serve(), self._leave(), self._idle()
            )
        ]  # fmt: skip
        trouble: str | None = None
        reason = "the server cannot be relayed"
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                await asyncio.wait(
                    (stopping, relaying, leaving, idling), return_when=asyncio.FIRST_COMPLETED
                )
            for task in tasks:
                if task.done():
                    task.result()
            if stopping.done():
                trouble = STOPPED
            elif relaying.done():
                trouble = "the server ended"
            reason = trouble or GONE
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._relay.end(reason)
            for request in self._early:
                self._link.send(
                    wire.error(request.identity, wire.INTERNAL_ERROR, f"not called: {reason}")
                )
            until = self._stop.until(*_FLUSH)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._link.drained(0)
        return trouble

    # The client.

    async def _listen(self) -> None:
        """Read the client's messages until it sends no more."""
        number = 0
        while True:
            number += 1
            if number % 64 == 0:
                await asyncio.sleep(0)
            # While a client does not read its answers, its messages are not read.
            await self._link.drained()
            try:
                message = await self._link.receive()
            except wire.MalformedMessage as error:
                wire.log("a message of the client is refused", error.code)
                self._link.send(wire.error(error.identity, error.code, str(error), error.data))
            except EOFError:
                self._relay.leave()
                return
            else:
                self._take(message)
            self._heard = asyncio.get_running_loop().time()

    def _take(self, message: wire.Message) -> None:
        if self._client.is_early(message) and isinstance(message, wire.Request):
            size = sum(one.size for one in self._early) + message.size
            if len(self._early) < _MAX_EARLY and size <= _MAX_BYTES:
                self._early.append(message)
            elif message.identity is not None:
                said = "too many calls wait; not called"
                self._link.send(wire.busy(message.identity, said))
            return
        if isinstance(message, wire.Response):
            self._relay.answered(message)
            return
        taken = self._client.take(message)
        if isinstance(taken, wire.Response):
            self._link.send(taken)
        elif isinstance(taken, Cancelled):
            self._early = deque(one for one in self._early if one.identity != taken.identity)
            self._relay.cancel(taken.identity)
        elif taken is not None:
            self._relay.take(taken)

    async def _leave(self) -> None:
        """Wait until the client is gone, and all requests that it waits for are answered."""
        await self._link.gone()
        while not self._link.broken:
            if self._started is None:
                # Do not wait for the ledger of another process. But wait for a server that is
                # starting.
                if self._is_locked_out:
                    return
            elif not (self._relay.is_busy or self._early or self._link.waiting):
                return
            await asyncio.sleep(2 * POLL)

    async def _idle(self) -> None:
        """Wait until the client counts as gone, because it has been silent for the idle time."""
        loop, idle = asyncio.get_running_loop(), self._how.idle
        left = idle if idle is not None else 1e9
        while left > 0:
            await asyncio.sleep(left)
            if idle is not None:
                heard = max(self._heard, self._relay.heard)
                is_busy = self._relay.is_busy or self._started is None
                left = idle if is_busy else heard + idle - loop.time()

    # The server.

    async def _serve(self) -> None:
        """Open the ledger, start the server, and relay until it ends."""
        gate: Gate | None = None
        while gate is None:
            self._opening = asyncio.ensure_future(aside(self._open_gate, _drop_gate))
            gate = await asyncio.shield(self._opening)
            self._is_locked_out = gate is None
            if gate is None:
                await asyncio.sleep(POLL)
        self._gate = gate
        how = self._how
        self._server = server = how.server(await how.target.open(self._stop, self._note))

        async def start() -> tuple[Decisions, Look]:
            self._started = started = await how.start(server, gate, self._note)
            self._present(gate, server, started.shown)
            asyncio.get_running_loop().call_soon(self._take_early)
            return started.decisions, started.look

        await self._relay.run(
            server, start, ready=lambda: self._link.drained(_BEHIND), settled=self._tell_changes,
            forward=self._forward,
        )  # fmt: skip

    def _take_early(self) -> None:
        early, self._early = self._early, deque()
        for request in early:
            self._take(request)
        if self._link.is_ended:
            self._relay.leave()

    def _present(self, gate: Gate, server: Server, shown: Shown) -> None:
        """Give the client's side the data of the server that it needs."""
        client, core, how = self._client, gate.artifact.core, self._how
        self._masked = gate.tools() if how.masks else None

        def tools() -> Sequence[Mapping[str, Any]]:
            if client.stateless:
                return tuple(shown.tools.values())
            visible = frozenset(gate.tools()) if how.masks else shown.tools.keys()
            return [older(tool) for tool in shown.tools.values() if tool["name"] in visible]

        client.instructions = instructions(core, how.shadow)
        client.tools = tools
        client.passes = passes_of(core.passed, server.capabilities, hears=server.link.hears)
        client.rounds = "input" in core.passed
        client.asks = bool(how.elicits)
        client.info = info_of(server.info)

    def _tell_changes(self) -> None:
        if self._masked is not None and self._gate is not None:
            masked = self._gate.tools()
            if masked != self._masked:
                self._masked = masked
                self._client.notify_changed()

    def _forward(self, message: wire.Request) -> None:
        if self._link.waiting <= _MAX_BYTES:
            self._client.forward(message)

    # The session.

    async def _let_go(self) -> None:
        """Withdraw the session, end it, or close it so that it can be continued."""
        gate = self._gate
        if gate is None and self._opening is not None:
            await asyncio.wait((self._opening,), timeout=_LAST)
            if self._opening.done() and self._opening.exception() is None:
                gate = self._opening.result()
        if gate is None:
            return
        try:
            if self._started is None or (self._how.of_connection and gate.untouched):
                gate.withdraw()
            elif self._how.finishes:
                await finish(gate, self._stop)
        finally:
            gate.close()


async def finish(gate: Gate, stop: Stop) -> None:
    """End a session if it may end.  Wait for its ledger for at most 0.7 s after the stop
    request.
    """
    while gate.may_finish:
        with suppress(Refused):
            turn = gate.try_turn()
            if turn is not None:  # a thread waits for the disk, not the loop
                await aside(partial(gate.finish, turn=turn), lambda _: None)
                return
        if asyncio.get_running_loop().time() >= stop.until(1.0, _LAST):
            return
        await asyncio.sleep(POLL)


@contextmanager
def signals(asked: Callable[[], None]) -> Iterator[None]:
    """Return a context manager; in its block SIGTERM and SIGINT call `asked`.

    A second signal ends the process.
    """
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    came: list[int] = []

    def note(number: int) -> None:
        if came:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        came.append(number)
        asked()

    for number in numbers:
        loop.add_signal_handler(number, note, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def aside(work: Callable[[], T], drop: Callable[[T], None]) -> T:
    """Run work that waits for files in a new thread, and return its result.

    A thread pool is not used: in it work would wait for other work, and the process for the pool at
    its end.

    Args:
        drop: called with the result in another thread, if the caller was cancelled.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            if error is None:
                threading.Thread(target=drop, args=(result,), daemon=True).start()
        elif error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as caught:  # noqa: BLE001 - raised where the result is waited for
            error = caught
        with suppress(RuntimeError):  # the loop is closed: the process ends
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await done


def _drop_gate(gate: Gate | None) -> None:
    if gate is not None:
        drop_gate(gate)


def drop_gate(gate: Gate) -> None:
    """Close a gate that no task waits for.  A session that it began is withdrawn if it is
    unused.
    """
    if gate.untouched:
        gate.withdraw()
    else:
        gate.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """The description of a server, read before relaying begins.

    Attributes:
        artifact: the digest of the artifact that its calls are compared with.
        info: the server's name and version, as clients see them.
        instructions: text for a model about the server.
        shown: the tools by name, as clients see them.
        headers: for each tool, the parameters that HTTP headers repeat, by the header's token.
        locked: the digests of the tools of the grammar.
        passes: the capabilities that pass over HTTP.
        rounds: whether a server may ask for input during a call.
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
        """Return the tools as clients see them."""
        tools = tuple(self.shown.values())
        return tools if modern else [older(tool) for tool in tools]


async def probe(artifact: Artifact, how: Guarded) -> Probed:
    """Start the server, read its tools, and end it.

    Raises:
        ServerError, ServerDrift: see :func:`guard`.
    """
    look = connected(how.target, how.protocol, seconds=_CONNECT_SECONDS, version=how.version)
    async with look as server:
        listed = await server.tools()
        shown = how.shown(artifact, listed, server.link.away is not None)
        told = [tool for tool in listed if tool["name"] in shown.tools]
        return Probed(
            artifact=artifact.digest,
            info=info_of(server.info),
            instructions=instructions(artifact.core, how.shadow),
            shown=shown.tools,
            headers={
                tool["name"]: {token.lower(): name for token, name in wire.headers_of(tool).items()}
                for tool in told
            },
            locked=shown.locked,
            passes=passes_of(artifact.core.passed, server.capabilities, hears=False),
            rounds="input" in artifact.core.passed,
        )


def instructions(core: Core, shadow: bool) -> str:
    """Return a text for a model about the gate in front of the server."""
    if shadow:
        return (
            f"Calls are compared with the grammar {core.name}, and none is refused: this gate is "
            "in the shadow."
        )
    return (
        f"Calls are held to the grammar {core.name}: what no plan allows is "
        "refused, and the refusal says what is allowed instead. Make one call at a time."
    )


def info_of(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the server's name and version, as clients see them."""
    name, version = told.get("name"), told.get("version")
    return {
        "name": name if isinstance(name, str) else "server",
        "version": version if isinstance(version, str) else "0",
    }


def older(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool as clients of the handshake accept it: an output schema must be that of an
    object.
    """
    schema = tool.get("outputSchema")
    if schema is None or (isinstance(schema, Mapping) and schema.get("type") == "object"):
        return tool
    return {name: value for name, value in tool.items() if name != "outputSchema"}
