"""Cookies that name the session of a client whose protocol version has no handshake.

Since 2026-07-28 no request begins a session, and no request carries a session id.  A cookie is the
only value that such a client sends back with every later request.  The two kinds are:

- `tcc-session` has the handle of a session, like `Mcp-Session-Id` in the older versions.
- `tcc-begin-..` has a nonce that this process drew.  A client gets it in answer to a first call,
  which is not made.  When the client repeats the call with the nonce, its session begins.

A client may make several first calls at the same time, and get a nonce for each.  So each nonce has
its own cookie name, and none replaces another.  Of two repeated calls, the later one carries the
nonces of both.  The first one that the gate reads begins the session, and then all nonces of the
request name this session.  So a client cannot get two sessions by making two calls at the same
time.
Cost: one keyed hash for each nonce of a request; a table of at most 65,536 entries.
"""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

SESSION: Final = "tcc-session"
_BEGIN: Final = "tcc-begin-"
_BYTES: Final = 16  # of a nonce, and of its MAC
_MOST_BEGUN: Final = 1 << 16
_CONTEXT: Final = "tcc.store/1.0 begin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCookies:
    """The cookies of a request that this module defines.

    Attributes:
        sessions: the values of `tcc-session`.  Several values name no session.
        begins: names and values of the cookies with nonces.
    """

    sessions: frozenset[str] = frozenset()
    begins: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sessions or self.begins)


NO_COOKIES: Final = ClientCookies()


def read_cookies(headers: Iterable[str]) -> ClientCookies:
    """Read our cookies from the values of the `Cookie` headers of a request."""
    sessions: set[str] = set()
    begins: list[tuple[str, str]] = []
    for header in headers:
        for part in header.split(";"):
            name, _, value = part.strip().partition("=")
            if name == SESSION:
                sessions.add(value)
            elif name.startswith(_BEGIN):
                begins.append((name, value))
    return ClientCookies(sessions=frozenset(sessions), begins=tuple(begins))


def set_cookie(name: str, value: str, *, secure: bool) -> tuple[str, str]:
    """Return the header that sets a cookie; an empty value deletes it.

    Args:
        secure: whether the client may send it back over TLS only.
    """
    parts = [f"{name}={value}", "Path=/mcp", "HttpOnly", "SameSite=Strict"]
    parts += ["Max-Age=0"] if not value else []
    parts += ["Secure"] if secure else []
    return "set-cookie", "; ".join(parts)


class Begins:
    """The nonces of one process, and the sessions that began with them.

    A nonce is 128 random bits with a MAC over them and the principal.  The key is random for each
    process: after a restart old nonces are invalid.
    """

    def __init__(self) -> None:
        self._key = blake3(os.urandom(32), derive_key_context=_CONTEXT).digest()
        self._handles: dict[bytes, str] = {}

    def draw(self, principal: bytes) -> tuple[str, str]:
        """Return the name and the value of a new cookie for a client of this principal."""
        nonce = os.urandom(_BYTES)
        whole = nonce + self._mac(nonce, principal)
        value = base64.urlsafe_b64encode(whole).decode("ascii").rstrip("=")
        return _BEGIN + nonce[:8].hex(), value

    def nonces(self, cookies: ClientCookies, principal: bytes) -> list[bytes]:
        """Return the nonces that this process drew for this principal; others are ignored."""
        read = [self._nonce(value, principal) for _, value in cookies.begins]
        return [nonce for nonce in read if nonce is not None]

    def handle(self, nonces: Iterable[bytes]) -> str | None:
        """Return the handle of the session that began with one of the nonces, or None."""
        return next((self._handles[one] for one in nonces if one in self._handles), None)

    def link(self, nonces: Iterable[bytes], handle: str) -> None:
        """Make all of the nonces name one session."""
        for nonce in nonces:
            self._handles[nonce] = handle
        while len(self._handles) > _MOST_BEGUN:
            del self._handles[next(iter(self._handles))]

    def _nonce(self, value: str, principal: bytes) -> bytes | None:
        if len(value) != 43 or not value.isascii():
            return None
        try:
            whole = base64.b64decode(value + "=", altchars=b"-_", validate=True)
        except ValueError:
            return None
        nonce, mac = whole[:_BYTES], whole[_BYTES:]
        return nonce if hmac.compare_digest(mac, self._mac(nonce, principal)) else None

    def _mac(self, nonce: bytes, principal: bytes) -> bytes:
        return blake3(principal + nonce, key=self._key).digest()[:_BYTES]
