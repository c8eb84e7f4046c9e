"""Sessions of an HTTP server: the session of each client, and limits on their number.

The name of a session is its handle: its id, and a keyed hash of the principal and the id.  Only
gates of this store can make one.  A made-up handle, a handle of another principal and one of an
ended session get the same answer.  If principals are known, a handle is no credential: a token
authorises each request.  Otherwise a client has the session whose handle it sends.  Clients of the
handshake send it in a header, others in a cookie (:mod:`tcc_runtime.mcp.cookies`).

A session with calls has a relay and a connection to the server; at most 64 sessions have one.  Any
other session is an entry of a table.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from uuid import UUID
from weakref import WeakValueDictionary

from blake3 import blake3

from tcc_certs.errors import Rejected
from tcc_runtime import errors
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.store import Sessions
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.approvals import Desk
from tcc_runtime.mcp.asking import Asking
from tcc_runtime.mcp.client import Client, ClientCall, PassedRequest
from tcc_runtime.mcp.cookies import Begins, ClientCookies
from tcc_runtime.mcp.deciding import Decisions
from tcc_runtime.mcp.guarding import STOPPED, Guarded, Probed, aside, drop_gate, finish, probe
from tcc_runtime.mcp.links import Link, Stop
from tcc_runtime.mcp.metrics import Meter
from tcc_runtime.mcp.relay import GONE, POLL, Look, Relay
from tcc_runtime.mcp.tokens import MissingClaim, Principal

MAX_SESSIONS: Final = 10_000
MAX_OF_PRINCIPAL: Final = 16
MAX_SERVERS: Final = 64
MAX_STREAMS: Final = 64
MAX_OPENING: Final = 256
_DESCRIPTORS: Final = 1 << 15  # enough for all sessions and connections
_CONTEXT: Final = "tcc.store/1.0 handle"
_LAST_CALLS: Final = 10.0  # seconds for calls under way after their connection ended
_LOOK: Final = 1.0  # seconds between two looks at a ledger for the end of its session
_MAC: Final = 16
_NOBODY: Final = bytes(32)


def descriptors() -> int:
    """Raise the limit of open files and connections as far as possible, and return it.

    Each connection and each live session takes one.  If they could take all, no client could
    connect.  So their limits together stay below this number.
    """
    if sys.platform == "win32":
        return _DESCRIPTORS
    import resource

    found, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if found == resource.RLIM_INFINITY or found >= _DESCRIPTORS:
        return _DESCRIPTORS
    wanted = _DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, _DESCRIPTORS)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class NotFound(Exception):
    """The handle is unknown, belongs to another principal, or its session has ended."""


class HostFull(Exception):
    """A limit is reached at present.  The HTTP status of the answer is `status`: 429 or 503."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(str(status))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostingTerms:
    """Rules for the sessions of clients.

    Attributes:
        kind: `new`: a session for each connection; `principal`: one for each principal; any other
            text: the id of the session that all connections share.
        idle: seconds without a request after which a connection has ended.
        given: returns the attributes of a principal's session.
    """

    kind: str
    idle: float
    given: Callable[[Principal | None], Mapping[str, Any]] = lambda _: {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloading:
    """How the gate takes a new artifact: for new sessions, and for open ones if the store moves
    them.

    Attributes:
        look: returns the artifact if it differs from the last one, else None.  Raises
            :class:`ReloadRefused` if the file has no artifact.
        how: options for relaying the server, with the owner's tool lock.
    """

    look: Callable[[], Artifact | None]
    how: Guarded


class ReloadRefused(Exception):
    """A file has no artifact that the gate can take.  The text of the exception is the reason."""


_REFUSED: Final = (
    ReloadRefused, Rejected, OSError, errors.SettingsError, errors.ResumeError, errors.ServerDrift,
    errors.ServerError,
)  # fmt: skip


class Session:
    """A live session: its gate, and its relay from the first call on.

    Attributes:
        gate: the gate of the session.
        principal: the principal of the client; None: unknown.
        handle: the name of the session for clients.
        last: the time of its last use, in seconds of the event loop.
    """

    def __init__(
        self, hosting: Hosting, gate: Gate, principal: Principal | None, given: Mapping[str, Any]
    ) -> None:
        self.gate, self.principal = gate, principal
        self.handle = hosting.handle(gate.session_id, principal)
        self._loop = asyncio.get_running_loop()
        self.last = self._loop.time()
        self._hosting, self._given = hosting, given
        self._looked = self.last - _LOOK
        self._relay: Relay | None = None
        self._stop = Stop()
        self._reason = "the server is away"
        self._running: asyncio.Task[None] | None = None
        self.under_way = 0  # the number of requests without an answer
        self.elicits = False  # whether the client said in its handshake that it can show forms

    @property
    def identity(self) -> str:
        """The id of the session."""
        return self.gate.session_id

    @property
    def relays(self) -> bool:
        """True if the session has a connection to the server."""
        return self._relay is not None

    @property
    def is_busy(self) -> bool:
        """True if a call waits or is under way, or if a call waits for its client."""
        return bool(self.under_way) or (self._relay is not None and self._relay.is_calling)

    @property
    def has_calls(self) -> bool:
        """True if a call or another request waits or is under way, also if its client has left."""
        return self._relay is not None and self._relay.is_busy

    def use(self, given: Mapping[str, Any]) -> None:
        """Note that the session is used now, and require that its client brings the same
        attributes.

        Raises:
            MissingClaim: an attribute differs from the one at the session's start.
        """
        for name in {*given, *self._given}:
            if repr(given.get(name)) != repr(self._given.get(name)):
                raise MissingClaim(name)
        self.last = self._loop.time()

    async def has_ended(self) -> bool:
        """Return whether the ledger has the end of the session.  The ledger is read at most once a
        second, and not while requests are under way.
        """
        now = self._loop.time()
        if not self.under_way and now - self._looked >= _LOOK:
            self._looked = now
            return await aside(lambda: self.gate.ended, lambda _: None)
        return False

    def take(self, request: ClientCall | PassedRequest) -> None:
        """Give a request to the relay; the first request creates the relay.

        Raises:
            HostFull: a limit is reached.
        """
        self._hosting.check_room_for_call(self)
        if self._relay is None:
            hosting = self._hosting
            persons = hosting.persons(self.gate, self.principal)
            self._relay = Relay(
                seconds=hosting.how.seconds, note=hosting.note, meter=hosting.meter,
                persons=persons, behind=lambda: hosting.is_behind(self.gate),
            )  # fmt: skip
            self._running = asyncio.ensure_future(self._run(self._relay))
        self._relay.take(request)

    def answered(self, answer: wire.Response) -> None:
        """Take a client's answer to a request of the gate."""
        if self._relay is not None:
            self._relay.answered(answer)

    def cancel(self, identity: wire.Id, client: Client | None = None) -> None:
        """Cancel the request with an id; of any client if `client` is None."""
        if self._relay is not None:
            self._relay.cancel(identity, client)

    async def _run(self, relay: Relay) -> None:
        """Relay until the server ends."""
        how, note = self._hosting.how_of(self.gate.artifact), self._hosting.note
        prefix = f"session {self.identity}"
        server = None
        try:
            server = how.server(await how.target.open(self._stop, note))

            async def start() -> tuple[Decisions, Look]:
                started = await how.start(server, self.gate, note)
                return started.decisions, started.look

            await relay.run(server, start)
            note(f"{prefix}: the server ended")
        except errors.ServerDrift as drift:
            for finding in drift.findings:
                note(f"{prefix}: {finding}")
        except errors.ServerError as error:
            note(f"{prefix}: {error}")
        finally:
            if self._relay is relay:
                self._relay = None
            try:
                await relay.end(self._reason)
            finally:
                if server is not None:
                    self._hosting.close_link(server.link, self._stop)

    def hurry(self) -> None:
        """Give calls under way and the server no more time."""
        self._reason = STOPPED
        self._stop.ask()

    async def close(self, *, ends: bool) -> None:
        """Close the session.

        Args:
            ends: whether to end the session, if its plan may end here.  False: it can be reopened.
        """
        if not ends:
            self.hurry()
        elif self._relay is not None:
            self._reason = GONE
            self._relay.leave()
        until = self._loop.time() + _LAST_CALLS
        while self._relay is not None and self._relay.is_busy and self._loop.time() < until:
            if self._stop.since is not None:
                break
            await asyncio.sleep(4 * POLL)
        await self._end_relay()
        if ends and not self.gate.untouched:
            try:
                await finish(self.gate, self._stop)
            except (Refused, errors.LedgerError) as error:
                self._hosting.note(f"session {self.identity} is not ended: {error}")
        await aside(self._let_go, lambda _: None)

    async def leave(self) -> None:
        """Close the ledger of a session without calls, so that it can be opened again
        immediately.
        """
        self.hurry()
        await self._end_relay()
        await aside(self.gate.close, lambda _: None)

    async def _end_relay(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait((self._running,))

    def _let_go(self) -> None:
        if self._hosting.begins_new and self.gate.untouched:
            self.gate.withdraw()
        else:
            self.gate.close()


class Hosting:
    """The sessions of one HTTP server.

    Args:
        store: the store of the sessions.
        how: options for relaying the server.
        probed: the description of the server at the start.
        terms: the rules for the sessions of clients.
        note: called with messages for the owner.
        meter: counts events for monitoring; None: nothing is counted.
        reloading: takes new artifacts; None: the artifact stays the same.
    """

    def __init__(
        self,
        *,
        store: Sessions,
        how: Guarded,
        probed: Probed,
        terms: HostingTerms,
        note: Callable[[str], None],
        meter: Meter | None = None,
        reloading: Reloading | None = None,
    ) -> None:
        self._reloading = reloading
        self._hows = {probed.artifact: how}
        self._looking = asyncio.Lock()  # held while looking for a new artifact
        self._looked = -_LOOK
        self.how, self.note, self.meter = how, note, meter
        self.stopping = False
        self.begins_new = terms.kind == "new"  # a session ends with its connection
        self._most = min(MAX_SESSIONS, descriptors() // 2)
        self._store, self._probed, self._terms = store, probed, terms
        self.desk = Desk(store)
        self._key = blake3(store.key, derive_key_context=_CONTEXT).digest()
        self._live: dict[tuple[str, bytes], Session] = {}
        self._of_principals: dict[bytes, Session] = {}
        # ids of sessions whose connection has ended, the latest ones
        self._over: dict[str, None] = {}
        self._begins = Begins()
        # held while a new session begins; these wait for no ledger
        self._beginning = asyncio.Lock()
        self._by_cookie = asyncio.Lock()
        # One lock for each principal or session id: a session that waits for its ledger blocks no
        # other.
        self._taking: WeakValueDictionary[str | bytes, asyncio.Lock] = WeakValueDictionary()
        self._opening: set[object] = set()
        self._ending: dict[asyncio.Task[None], Session] = {}
        self._closing: dict[asyncio.Task[None], Stop] = {}  # links to servers

    def client(self, link: Link) -> Client:
        """Return the client's side of a link."""
        probed = self._probed
        made = Client(link, instructions=probed.instructions, info=probed.info)
        made.tools = lambda: probed.tools(modern=bool(made.stateless))
        made.passes, made.rounds = probed.passes, probed.rounds
        made.asks = bool(self.how.elicits)
        return made

    def persons(self, gate: Gate, principal: Principal | None) -> Asking:
        """Return the receivers of questions about calls of a session."""
        found = self.how.persons(lambda: gate, "" if principal is None else principal.subject)

        def asked(question: Pending) -> None:
            self.desk.asked(question, gate, principal)
            found.asked(question)

        return replace(found, asked=asked)

    def headers_of(self, tool: str) -> Mapping[str, str]:
        """Return the parameters of a tool that `Mcp-Param` headers repeat, by the header's
        token.
        """
        return self._probed.headers.get(tool, {})

    def how_of(self, artifact: Artifact) -> Guarded:
        """Return the options for relaying the server for sessions of an artifact."""
        found = self._hows.get(artifact.digest)
        if found is None:  # an artifact of a session that began before this gate
            return self.how if self._reloading is None else self._reloading.how
        return found

    async def _reload(self) -> None:
        """Take a new artifact if the file has one; otherwise keep the current one."""
        reloading = self._reloading
        if reloading is None:
            return
        async with self._looking:
            self._looked = asyncio.get_running_loop().time()
            try:
                artifact = await aside(reloading.look, lambda _: None)
                if artifact is None:
                    return
                probed = await probe(artifact, reloading.how)
                await aside(partial(self._store.reload, artifact), lambda _: None)
            except _REFUSED as error:
                self.note(f"the artifact is not taken, and the last one stays: {error}")
                return
            self._probed = probed
            self._hows[probed.artifact] = replace(self.how, locked=probed.locked)
            whose = "all sessions" if self._store.moves else "new sessions"
            self.note(f"{whose} have the artifact {probed.artifact.hex()}")

    def is_behind(self, gate: Gate) -> bool:
        """Return whether a session has to continue under another artifact."""
        return self._store.is_behind(gate.artifact.digest.hex())

    def _moves(self, session: Session) -> bool:
        """Return whether a session continues under another artifact now: it is behind and has no
        calls.

        A client may keep the connection of a cancelled call open.  This does not count as a call.
        """
        return not session.has_calls and self.is_behind(session.gate)

    async def _leave(self, session: Session) -> None:
        """Close a session, which is then opened again under another artifact."""
        principal = self._of(session.principal)
        self._live.pop((session.identity, principal), None)
        self.desk.close(session.gate)
        if self._of_principals.get(principal) is session:
            del self._of_principals[principal]
        await session.leave()

    # Which session.

    async def begin(self, principal: Principal | None) -> Session:
        """Return the session for a handshake, which may begin it.

        Raises:
            HostFull: a limit is reached.
            MissingClaim: the principal lacks an attribute of the session.
        """
        if self._terms.kind == "principal" and principal is not None:
            return await self._of_principal(principal, connects=True)
        given = self._terms.given(principal)
        if self._terms.kind not in ("new", "principal"):
            return await self._reopened(self._terms.kind, principal)
        async with self._beginning:
            self._check_room(principal)
            gate = await self._opened(given, None)
            try:
                self._check_room(principal)
            except HostFull:  # the server stops meanwhile
                gate.withdraw()
                raise
            return self._add(gate, principal, given)

    def is_named(self, cookies: ClientCookies, principal: Principal | None) -> bool:
        """Return whether cookies have a handle or a nonce of this principal.  The session may have
        ended.
        """
        for handle in cookies.sessions:
            with suppress(NotFound):
                self._identity(handle, principal)
                return True
        return bool(self._begins.nonces(cookies, self._of(principal)))

    def begin_cookie(self, principal: Principal | None) -> tuple[str, str]:
        """Return the name and the value of the cookie with which a session may begin."""
        return self._begins.draw(self._of(principal))

    async def without_handshake(
        self, cookies: ClientCookies, principal: Principal | None
    ) -> Session | None:
        """Return the session of a request without a handshake; None: no cookie names one.

        Raises:
            NotFound: the session has ended, or the handle in the cookie was not made for this
                principal.
            HostFull, MissingClaim: see :meth:`begin`.
        """
        if self._terms.kind == "principal" and principal is not None:
            return await self._of_principal(principal)
        if not self.begins_new:
            return await self.find(self.handle(self._terms.kind, principal), principal)
        if cookies.sessions:
            if len(cookies.sessions) > 1:
                raise NotFound
            return await self.find(next(iter(cookies.sessions)), principal)
        nonces = self._begins.nonces(cookies, self._of(principal))
        if not nonces:
            return None
        async with self._by_cookie:
            handle = self._begins.handle(nonces)
            if handle is None:
                handle = (await self.begin(principal)).handle
            self._begins.link(nonces, handle)
        return await self.find(handle, principal)

    async def _of_principal(self, principal: Principal, *, connects: bool = False) -> Session:
        """Return the session of a principal; begin one if it has none.

        Args:
            connects: whether a connection begins, so that an old session may be renewed.
        """
        given, whose = self._terms.given(principal), self._of(principal)
        await self._look()
        async with self._alone(whose):
            known, elicits = self._of_principals.get(whose), False
            if known is not None and self._moves(known):
                elicits = known.elicits
                await self._leave(known)
                known = None
            # A session with a call under way is not renewed: its ledger is locked until then.
            stays = known is not None and (known.is_busy or not connects)
            if known is not None and stays and not await known.has_ended():
                known.use(given)
                return known
            gate = await self._opened(given, (principal.issuer, principal.subject))
            # A handle may have reopened the same session: one ledger has one session object in this
            # process.
            same = self._live.get((gate.session_id, whose))
            if same is not None:
                gate.close()
                same.use(given)
                self._of_principals[whose] = same
                return same
            try:
                if known is not None:
                    await asyncio.wait((self.end(known),))
                self._check_room(principal)
            except HostFull:
                gate.close()
                raise
            session = self._of_principals[whose] = self._add(gate, principal, given)
            session.elicits = elicits
            return session

    async def find(self, handle: str, principal: Principal | None) -> Session:
        """Return the session of a handle.

        Raises:
            NotFound: the handle is invalid, or its session has ended.
            HostFull, MissingClaim: see :meth:`begin`.
        """
        identity, whose = self._identity(handle, principal), self._of(principal)
        await self._look()
        while True:
            known = self._live.get((identity, whose))
            if known is None or self._moves(known):
                if identity in self._over:
                    raise NotFound
                known = await self._reopened(identity, principal)
            # before `has_ended` waits, so that the session is not idle meanwhile
            known.use(self._terms.given(principal))
            if await known.has_ended():
                self.end(known)
                raise NotFound
            if self._live.get((identity, whose)) is known:  # another request may have moved it
                return known

    async def _reopened(self, identity: str, principal: Principal | None) -> Session:
        """Return a session of the store, reopening it if it is not live here."""
        given, whose = self._terms.given(principal), self._of(principal)
        async with self._alone(identity if principal is None else whose):
            known = self._live.get((identity, whose))
            elicits = False
            if known is not None:
                if not self._moves(known):
                    known.use(given)
                    return known
                elicits = known.elicits
                await self._leave(known)
            self._check_room(principal)
            try:
                gate = await self._waits(lambda: self._store.get(identity, given or None))
            except (errors.GivenOtherwise, errors.GivenRefused):
                raise MissingClaim(identity) from None
            except errors.NotCarried as error:
                self.note(f"session {identity} cannot go on under the new artifact: {error}")
                self._forget(identity)
                raise NotFound from None
            except (errors.SettingsError, errors.ResumeError) as error:
                if isinstance(error, errors.SettingsError) and error.field == "account":
                    self.note(f"session {identity} is not opened: {error}")
                raise NotFound from None
            except (Rejected, OSError) as error:
                raise self._not_opened(error) from None
            try:
                # The ledger names the principal that made its calls.
                if gate.principal is not None and gate.principal != whose.hex():
                    raise NotFound
                self._check_room(principal)
            except (HostFull, NotFound):
                gate.close()
                raise
            session = self._add(gate, principal, given)
            session.elicits = elicits
            return session

    async def _look(self) -> None:
        """Look for a new artifact at most once a second, if open sessions have to continue under
        it.

        Other requests do not wait for a look that is under way.
        """
        since = asyncio.get_running_loop().time() - self._looked
        if self._store.moves and since >= _LOOK and not self._looking.locked():
            await self._reload()

    async def _opened(self, given: Mapping[str, Any], name: tuple[str, str] | None) -> Gate:
        """Open a gate on a new session, or on the session of a principal.

        Raises:
            MissingClaim: an attribute is missing or invalid, or the session began with other
                attributes.
            HostFull: the ledger cannot be written, or cannot continue; the owner is notified.
        """
        await self._reload()
        try:
            return await self._waits(lambda: self._store.open(given or None, name))
        except errors.GivenRefused as refused:
            raise MissingClaim(refused.name) from None
        except errors.GivenOtherwise as refused:
            raise MissingClaim(refused.path) from None
        except (Rejected, errors.ResumeError, OSError) as error:
            raise self._not_opened(error) from None

    def _not_opened(self, error: Exception) -> HostFull:
        self.note(f"a session is not to be had: {error}")
        return HostFull(503)

    async def _waits(self, opens: Callable[[], Gate]) -> Gate:
        """Open a gate in a thread, because another process may have to release a ledger first.

        Raises:
            HostFull: too many gates are being opened.
        """
        if len(self._opening) >= MAX_OPENING:
            raise HostFull(503)
        mine = object()
        self._opening.add(mine)

        def counted() -> Gate:
            try:
                return opens()
            finally:
                self._opening.discard(mine)

        return await aside(counted, drop_gate)

    def _alone(self, whose: str | bytes) -> asyncio.Lock:
        """Return the lock under which the session of a principal or of an id is opened."""
        return self._taking.setdefault(whose, asyncio.Lock())

    def _add(self, gate: Gate, principal: Principal | None, given: Mapping[str, Any]) -> Session:
        session = Session(self, gate, principal, given)
        self._live[gate.session_id, self._of(principal)] = session
        return session

    # How many.

    def _check_room(self, principal: Principal | None) -> None:
        if self.stopping or len(self._live) >= self._most:
            raise HostFull(503)
        if principal is not None:
            mine = sum(1 for session in self._live.values() if session.principal == principal)
            if mine >= MAX_OF_PRINCIPAL:
                raise HostFull(429)

    def check_room_for_call(self, session: Session) -> None:
        """Require room for another call.

        Raises:
            HostFull: a limit is reached.
        """
        if self.stopping:
            raise HostFull(503)
        live = self._live.values()
        servers = sum(1 for other in live if other.relays) + len(self._closing)
        if not session.relays and servers >= MAX_SERVERS:
            raise HostFull(503)
        if session.principal is not None:
            mine = [other.under_way for other in live if other.principal == session.principal]
            if sum(mine) >= MAX_STREAMS:
                raise HostFull(429)

    # Ends.

    def end(self, session: Session) -> asyncio.Task[None]:
        """End the connection of a session.  A principal's session itself continues later.

        Returns:
            The task that waits for calls under way and closes the ledger.
        """
        principal = self._of(session.principal)
        self._live.pop((session.identity, principal), None)
        self.desk.close(session.gate)
        if self._of_principals.get(principal) is session:
            del self._of_principals[principal]
        self._forget(session.identity)
        task = asyncio.ensure_future(session.close(ends=self.begins_new))
        self._ending[task] = session
        task.add_done_callback(self._has_ended)
        return task

    def _forget(self, identity: str) -> None:
        """Note that a session has ended with its connection, so that it is no longer found."""
        if self.begins_new:
            self._over[identity] = None
            if len(self._over) > MAX_SESSIONS:
                del self._over[next(iter(self._over))]

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        session = self._ending.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.note(f"session {session.identity} is not closed: {error}")

    def close_link(self, link: Link, stop: Stop) -> None:
        """End a server in a task, so that no session waits for it.

        Args:
            stop: shortens the time that the server gets.
        """
        task = asyncio.ensure_future(link.close())
        self._closing[task] = stop
        task.add_done_callback(self._closing.pop)

    async def tend(self) -> None:
        """End idle connections until the task is cancelled."""
        while True:
            await asyncio.sleep(min(1.0, self._terms.idle / 4))
            now = asyncio.get_running_loop().time()
            for session in tuple(self._live.values()):
                if not session.under_way and now - session.last >= self._terms.idle:
                    self.end(session)

    async def stop(self, seconds: float) -> None:
        """Begin nothing new, give calls under way `seconds`, and close all sessions."""
        self.stopping = True
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until and any(
            one.under_way for one in (*self._live.values(), *self._ending.values())
        ):
            await asyncio.sleep(4 * POLL)
        for session in self._ending.values():
            session.hurry()
        closing = [session.close(ends=False) for session in tuple(self._live.values())]
        await asyncio.gather(*closing, *self._ending, return_exceptions=True)
        for stop in self._closing.values():
            stop.ask()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def metrics(self) -> bytes:
        """Return the metrics as text for a monitoring system; empty without a meter."""
        if self.meter is None:
            return b""
        live = tuple(self._live.values())
        calls = "Calls that wait or are under way."
        servers = "Sessions that have a server started for them."
        return self.meter.text(
            [
                ("tcc_sessions_live", "Sessions that are live here.", len(live)),
                ("tcc_calls_under_way", calls, sum(one.under_way for one in live)),
                ("tcc_server_processes", servers, sum(1 for one in live if one.relays)),
            ]
        )

    # Handles.

    def _of(self, principal: Principal | None) -> bytes:
        """Return 32 bytes that identify a principal."""
        if principal is None:
            return _NOBODY
        return bytes.fromhex(self._store.name_of((principal.issuer, principal.subject)))

    def _mac(self, identity: bytes, principal: Principal | None) -> bytes:
        told = self._of(principal) + identity
        return blake3(told, key=self._key).digest()[:_MAC]

    def handle(self, identity: str, principal: Principal | None) -> str:
        """Return the handle of a session."""
        name = UUID(identity).bytes
        whole = name + self._mac(name, principal)
        return base64.urlsafe_b64encode(whole).decode("ascii").rstrip("=")

    def _identity(self, handle: str, principal: Principal | None) -> str:
        """Return the id of the session that a handle names.

        Raises:
            NotFound: the handle was not made by this store for this principal.
        """
        if len(handle) != 43 or not handle.isascii():
            raise NotFound
        try:
            whole = base64.b64decode(handle + "=", altchars=b"-_", validate=True)
        except ValueError:
            raise NotFound from None
        name = whole[:16]
        if not hmac.compare_digest(whole[16:], self._mac(name, principal)):
            raise NotFound
        return str(UUID(bytes=name))
