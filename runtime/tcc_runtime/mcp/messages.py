"""What is said at the door: calls as a client writes them, and the lines of answers to it.

Cost: linear in the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tcc_runtime.mcp.versions import CAPABILITIES_KEY, STATELESS, VERSION_KEY
from tcc_runtime.mcp.wire import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Id,
    Unreadable,
    write_line,
)

_CALL_MEMBERS = frozenset(("name", "arguments", "_meta"))
_FAR = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that a client asks for.

    Attributes:
        token: for progress, where the client wants to hear of it.
    """

    identity: Id
    tool: str
    arguments: Mapping[str, Any]
    token: Id | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """A client that no longer waits for an answer."""

    identity: Id


def read_call(identity: Id, params: Mapping[str, Any]) -> Call:
    """The call that a request's parameters are.

    Raises:
        Unreadable: they are none, or more than one.
    """
    name, arguments = params.get("name"), params.get("arguments", {})
    for member in sorted(params):
        if member not in _CALL_MEMBERS:
            raise Unreadable(INVALID_PARAMS, "a call with more than name and arguments", identity)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise Unreadable(INVALID_PARAMS, "a call has a name and arguments", identity)
    meta = params.get("_meta", {})
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    known = isinstance(token, str | int) and not isinstance(token, bool)
    return Call(identity=identity, tool=name, arguments=arguments, token=token if known else None)


def check_envelope(meta: Mapping[str, Any], identity: Id | None) -> None:
    """Hold the envelope of a stateless request to its form.

    Raises:
        Unreadable: it lacks something, or is of another version.
    """
    if not isinstance(meta[VERSION_KEY], str) or not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise Unreadable(INVALID_PARAMS, "_meta without version and capabilities", identity)
    if meta[VERSION_KEY] != STATELESS:
        raise unsupported(meta[VERSION_KEY], identity)


def unsupported(wanted: object, identity: Id | None) -> Unreadable:
    """What is wrong with a request of another version."""
    data = {"supported": [STATELESS], "requested": wanted if isinstance(wanted, str) else ""}
    return Unreadable(UNSUPPORTED_VERSION, f"{STATELESS} is spoken here", identity, data)


def is_older(name: str, value: object) -> bool:
    """Whether clients of the handshake know such a member: structured content was an object."""
    return name != "structuredContent" or isinstance(value, dict)


def shown_number(value: object) -> object:
    """A number as one of Python's own, None where it is far from all that is ever shown."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return value
    return float(value) if -_FAR < value < _FAR else None


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    """The line of a notification."""
    return write_line({"jsonrpc": "2.0", "method": method, "params": params})


def error_line(identity: Id | None, code: int, message: str, data: Any = None) -> bytes:
    """The line of an answer that is an error."""
    # JSON-RPC asks for an id of null where none could be read.
    if identity is None and code not in (PARSE_ERROR, INVALID_REQUEST):
        code = INVALID_REQUEST
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return write_line({"jsonrpc": "2.0", "id": identity, "error": error})
