"""Sessions behind an HTTP server: who has which, and how many there may be.

A session has a name that only this gate can make, its handle: the id of the session and a keyed
hash of the artifact, the principal and the id.  A made-up handle, another principal's and an ended
one get the same answer.  Where principals are known, a handle is a name and no credential: a token
authorises each request.  Where they are not, a client has the session whose handle it sends.
Clients of versions with a handshake send it in a header, the others in a cookie
(:mod:`tcc_runtime.mcp.hosting.cookies`).
Each session that calls has a server process and a relay of its own, 64 at most
(:mod:`tcc_runtime.mcp.hosting.hosted`); any other is an entry of a table.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol
from uuid import UUID
from weakref import WeakValueDictionary

from blake3 import blake3

from tcc_certs.errors import Rejected
from tcc_runtime import errors
from tcc_runtime.gate.gate import Gate
from tcc_runtime.mcp import door
from tcc_runtime.mcp.guarding import Guarded, Probed
from tcc_runtime.mcp.hosting.cookies import Begins, ClientCookies
from tcc_runtime.mcp.hosting.hosted import Hosted
from tcc_runtime.mcp.metrics import Meter
from tcc_runtime.mcp.tokens import MissingClaim, Principal

MOST_SESSIONS: Final = 10_000
MOST_OF_PRINCIPAL: Final = 16
MOST_PROCESSES: Final = 64
MOST_STREAMS: Final = 64
MOST_OPENING: Final = 256
_DESCRIPTORS: Final = 1 << 15  # for as many sessions and connections as there may be
_CONTEXT: Final = "tcc.store/1.0 handle"
_MAC: Final = 16
_NOBODY: Final = bytes(32)


def descriptors() -> int:
    """How many files and connections may be open here; the system is asked for all of use.

    Each connection and each session that is live has one: whoever takes the last one keeps
    everybody from connecting, so there are never as many of both as there are descriptors.
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
    """A limit is reached, for now.

    Args:
        status: of HTTP, 429 or 503.
    """

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(str(status))


class SessionStore(Protocol):
    """What hosting needs of a store of sessions."""

    key: bytes

    def open(
        self,
        given: Mapping[str, Any] | None = None,
        principal: tuple[str, str] | str | None = None,
    ) -> Gate:
        """A new session, or that of a principal."""

    def get(self, id: str, given: Mapping[str, Any] | None = None) -> Gate:
        """The session of an id, that was given this."""

    def name_of(self, principal: tuple[str, str] | str) -> str:
        """What a principal is called in the store, hex."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostingTerms:
    """How sessions are had.

    Attributes:
        kind: `new`, a session for each handshake; `principal`, one for each principal; else the id
            of the one that all connections go on with.
        idle: seconds without a request after which a connection is over.
        given: makes what a session is given of a principal.
    """

    kind: str
    idle: float
    given: Callable[[Principal | None], Mapping[str, Any]] = lambda _: {}


class Hosting:
    """The sessions of one gate over HTTP.

    Args:
        store: where sessions are.
        how: how the server is relayed.
        probed: what the server is, as it was seen at the start.
        terms: how sessions are had.
        note: is told, for people, what went wrong.
        meter: counts what happens, where somebody asks for that.
    """

    def __init__(
        self,
        *,
        store: SessionStore,
        how: Guarded,
        probed: Probed,
        terms: HostingTerms,
        note: Callable[[str], None],
        meter: Meter | None = None,
    ) -> None:
        self.meter = meter
        self._most = min(MOST_SESSIONS, descriptors() // 2)
        self._store = store
        self.how = how
        self._probed = probed
        self._terms = terms
        self.note = note
        self._key = blake3(store.key, derive_key_context=_CONTEXT).digest()
        self._live: dict[tuple[str, bytes], Hosted] = {}
        self._of_principals: dict[bytes, Hosted] = {}
        self._over: dict[str, None] = {}  # connections that are over, the latest of them
        self._beginning = asyncio.Lock()  # of new sessions: it waits for no ledger
        self._begins = Begins()
        self._by_cookie = asyncio.Lock()  # of sessions that begin with a cookie: as above
        # A principal's session waits for its ledger, and nobody else does.
        self._taking: WeakValueDictionary[str | bytes, asyncio.Lock] = WeakValueDictionary()
        # Each in a thread of its own: of a pool those that wait would leave none to the others.
        self._opening: set[Future[Gate]] = set()
        self.stopping = False
        self.knows_principals = terms.kind == "principal"
        self.begins_new = terms.kind == "new"

    def connection(self) -> door.ClientConnection:
        """How a client is answered what is no call."""
        probed = self._probed
        made = door.ClientConnection(instructions=probed.instructions, info=probed.info)
        made.tools = lambda: probed.tools(modern=bool(made.stateless))
        made.passes, made.rounds = probed.passes, probed.rounds
        return made

    def headers_of(self, tool: str) -> Mapping[str, str]:
        """The parameter that each `Mcp-Param` header of a tool stands for, by its token."""
        return self._probed.headers.get(tool, {})

    async def begin(self, principal: Principal | None) -> Hosted:
        """The session of a handshake.

        Raises:
            HostFull: there are as many as there may be.
            MissingClaim: the principal lacks what a session is given.
        """
        if self._terms.kind == "principal" and principal is not None:
            return await self.of_principal(principal, connects=True)
        given = self._terms.given(principal)
        if self._terms.kind not in ("new", "principal"):
            return await self._reopened(self._terms.kind, principal)
        async with self._beginning:
            self._check_room(principal)
            gate = await self._opened(given, None)
            try:
                self._check_room(principal)
            except HostFull:  # it stops
                gate.withdraw()
                raise
            return self._host(gate, principal, given)

    @property
    def uses_cookies(self) -> bool:
        """Whether a request without a handshake needs a cookie to name its session."""
        return self.begins_new

    def is_named(self, cookies: ClientCookies, principal: Principal | None) -> bool:
        """Whether cookies name a session or a nonce of this principal; it may be over."""
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
    ) -> Hosted | None:
        """Return the session of a request without a handshake; None: no cookie names one.

        Raises:
            NotFound: the session is over, or the handle in the cookie was not made here for this
                principal.
            HostFull, MissingClaim: as of :meth:`begin`.
        """
        if self.knows_principals and principal is not None:
            return await self.of_principal(principal)
        if not self.uses_cookies:
            return await self.find(self._handle(self._terms.kind, principal), principal)
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

    async def of_principal(self, principal: Principal, *, connects: bool = False) -> Hosted:
        """The session of a principal, begun where there is none.

        Args:
            connects: whether a connection comes, at which an old session is renewed.

        Raises:
            HostFull, MissingClaim: as of :meth:`begin`.
        """
        given = self._terms.given(principal)
        async with self._alone(self._of(principal)):
            known = self._of_principals.get(self._of(principal))
            # One with a call under way is not renewed; its ledger is locked until that call ends.
            stays = known is not None and (known.is_busy or not connects)
            if known is not None and stays and not await known.has_ended():
                known.check_given(given)
                known.used()
                return known
            name = (principal.issuer, principal.subject)
            gate = await self._opened(given, name)
            # One that a handle had reopened is live, too: one ledger has one host.
            same = self._live.get((gate.session_id, self._of(principal)))
            if same is not None:
                gate.close()
                same.check_given(given)
                same.used()
                self._of_principals[self._of(principal)] = same
                return same
            try:
                if known is not None:
                    await self.end(known)
                self._check_room(principal)
            except HostFull:
                gate.close()
                raise
            hosted = self._host(gate, principal, given)
            self._of_principals[self._of(principal)] = hosted
            return hosted

    async def _opened(self, given: Mapping[str, Any], name: tuple[str, str] | None) -> Gate:
        """A gate on a new session, or on that of a principal.

        Raises:
            MissingClaim: the grammar asks for something else than what it is given, or the session
                of the principal was given something else.
            HostFull: its ledger cannot be written, or not gone on with; the owner is told.
        """
        try:
            gate = await self._waits(lambda: self._store.open(given or None, name))
        except errors.GivenRefused as refused:
            raise MissingClaim(refused.name) from None
        except errors.GivenOtherwise as refused:
            raise MissingClaim(refused.path) from None
        except (Rejected, errors.ResumeError, OSError) as error:
            raise self._not_opened(error) from None
        return gate

    def _not_opened(self, error: Exception) -> HostFull:
        self.note(f"a session is not to be had: {error}")
        return HostFull(503)

    async def _waits(self, opens: Callable[[], Gate]) -> Gate:
        """A gate, for which another process may have to let go of a ledger first.

        Raises:
            HostFull: so many wait for theirs that this one would wait for another's.
        """
        if len(self._opening) >= MOST_OPENING:
            raise HostFull(503)
        opening: Future[Gate] = Future()
        opening.set_running_or_notify_cancel()

        def work() -> None:
            try:
                opening.set_result(opens())
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                opening.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            return await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_opened)
            raise

    async def find(self, handle: str, principal: Principal | None) -> Hosted:
        """The session of a handle.

        Raises:
            NotFound: there is none.
            HostFull, MissingClaim: as of :meth:`begin`.
        """
        identity = self._identity(handle, principal)
        given = self._terms.given(principal)
        known = self._live.get((identity, self._of(principal)))
        if known is None:
            if identity in self._over:
                raise NotFound
            known = await self._reopened(identity, principal)
        known.check_given(given)
        known.used()  # before it is looked at: meanwhile it is not idle
        if await known.has_ended():
            await self.end(known)
            raise NotFound
        return known

    async def _reopened(self, identity: str, principal: Principal | None) -> Hosted:
        """A session of the store that is not live here."""
        given = self._terms.given(principal)
        async with self._alone(identity if principal is None else self._of(principal)):
            known = self._live.get((identity, self._of(principal)))
            if known is not None:
                known.check_given(given)
                return known
            self._check_room(principal)
            try:
                gate = await self._waits(lambda: self._store.get(identity, given or None))
            except (errors.GivenOtherwise, errors.GivenRefused):
                raise MissingClaim(identity) from None
            except (errors.SettingsError, errors.ResumeError):
                raise NotFound from None
            except (Rejected, OSError) as error:
                raise self._not_opened(error) from None
            try:
                self._check_room(principal)
            except HostFull:
                gate.close()
                raise
            return self._host(gate, principal, given)

    def _alone(self, whose: str | bytes) -> asyncio.Lock:
        """The lock under which a principal's session, or that of an id, is reopened once."""
        return self._taking.setdefault(whose, asyncio.Lock())

    def _host(self, gate: Gate, principal: Principal | None, given: Mapping[str, Any]) -> Hosted:
        handle = self._handle(gate.session_id, principal)
        hosted = Hosted(self, gate, principal, handle, given)
        self._live[gate.session_id, self._of(principal)] = hosted
        return hosted

    def _check_room(self, principal: Principal | None) -> None:
        if self.stopping or len(self._live) >= self._most:
            raise HostFull(503)
        if principal is None:
            return
        mine = sum(1 for hosted in self._live.values() if hosted.principal == principal)
        if mine >= MOST_OF_PRINCIPAL:
            raise HostFull(429)

    def check_room_for_call(self, hosted: Hosted) -> None:
        """Whether another call may come.

        Raises:
            HostFull: there are as many as there may be.
        """
        if self.stopping:
            raise HostFull(503)
        running = sum(1 for other in self._live.values() if other.relays)
        if not hosted.relays and running >= MOST_PROCESSES:
            raise HostFull(503)
        if hosted.principal is None:
            return
        open_ = sum(
            other.under_way for other in self._live.values() if other.principal == hosted.principal
        )
        if open_ >= MOST_STREAMS:
            raise HostFull(429)

    async def end(self, hosted: Hosted) -> None:
        """The connection of a session is over; a principal's session itself goes on."""
        ends = self.begins_new
        principal = self._of(hosted.principal)
        self._live.pop((hosted.identity, principal), None)
        if self._of_principals.get(principal) is hosted:
            del self._of_principals[principal]
        if ends:
            self._over[hosted.identity] = None
            if len(self._over) > MOST_SESSIONS:
                del self._over[next(iter(self._over))]
        await asyncio.to_thread(hosted.close, ends=ends)

    async def tend(self) -> None:
        """End what is idle, from time to time; until it is cancelled."""
        while True:
            await asyncio.sleep(min(1.0, self._terms.idle / 4))
            now = time.monotonic()
            for hosted in tuple(self._live.values()):
                if not hosted.under_way and now - hosted.last >= self._terms.idle:
                    await self.end(hosted)

    async def stop(self, seconds: float) -> None:
        """Begin nothing more, give what is under way `seconds`, and let go of everything."""
        self.stopping = True
        until = time.monotonic() + seconds
        while time.monotonic() < until and any(one.under_way for one in self._live.values()):
            await asyncio.sleep(0.02)
        closing = [
            asyncio.to_thread(hosted.close, ends=False) for hosted in tuple(self._live.values())
        ]
        await asyncio.gather(*closing)

    def metrics(self) -> bytes:
        """What a monitoring system reads."""
        if self.meter is None:
            return b""
        live = tuple(self._live.values())
        return self.meter.text(
            [
                ("tcc_sessions_live", "Sessions that are live here.", len(live)),
                (
                    "tcc_calls_under_way",
                    "Calls that wait or are under way.",
                    sum(one.under_way for one in live),
                ),
                (
                    "tcc_server_processes",
                    "Sessions that have a server started for them.",
                    sum(1 for one in live if one.relays),
                ),
            ]
        )

    # Handles.

    def _of(self, principal: Principal | None) -> bytes:
        """32 bytes that stand for a principal."""
        if principal is None:
            return _NOBODY
        return bytes.fromhex(self._store.name_of((principal.issuer, principal.subject)))

    def _mac(self, identity: bytes, principal: Principal | None) -> bytes:
        told = self._probed.artifact + self._of(principal) + identity
        return blake3(told, key=self._key).digest()[:_MAC]

    def _handle(self, identity: str, principal: Principal | None) -> str:
        name = UUID(identity).bytes
        whole = name + self._mac(name, principal)
        return base64.urlsafe_b64encode(whole).decode("ascii").rstrip("=")

    def _identity(self, handle: str, principal: Principal | None) -> str:
        """The id of the session that a handle names.

        Raises:
            NotFound: it was not made here for this principal.
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


def _close_opened(opening: Future[Gate]) -> None:
    """Let go of a gate that nobody waits for any longer; one that began nothing leaves no file."""
    if opening.exception() is not None:
        return
    gate = opening.result()
    if gate.untouched:
        gate.withdraw()
    else:
        gate.close()
