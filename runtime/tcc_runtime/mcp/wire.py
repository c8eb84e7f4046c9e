"""Strict reading, and writing, of MCP messages (JSON-RPC 2.0), in both forms of the protocol.

Until 2025-11-25 a connection begins with `initialize`.  Since 2026-07-28 every request has its
version and its client's capabilities in `_meta`, and connections have no handshake.

The types of the MCP SDK are not used, because the gate must decide on exactly the values that the
server gets.  So texts are rejected that two readers may understand differently: duplicate members,
NaN and infinities, batches, bytes that are not UTF-8.  Numbers are exact (int or Decimal).  The
text of each member of a result is kept, so the client gets it as the server wrote it.  In contrast,
the SDK uses the last of duplicate members, rounds numbers to floats, and re-encodes results.
Cost: linear in the message.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, TypeAlias, TypeGuard

from tcc_runtime.gate.arguments.json_reader import DEEPEST, is_deeper as is_deeper, once

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022
BUSY = -32000

Id: TypeAlias = "str | int"

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"

# The parameter of a request that its `Mcp-Name` header repeats.
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_LISTED_FOR_MS = 300_000

_log = logging.getLogger("tcc.gate")
# by code: the time of the last line, and the number of messages left out since
_logged: dict[int, tuple[float, int]] = {}
_MAX_DIGITS = 400
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SPACE = re.compile(r"[ \t\r\n]*")


class MalformedMessage(Exception):
    """Bytes that are not a message.

    Args:
        code: a code of JSON-RPC.
        message: the fault.
        identity: the id of the request, if it could be read.
        data: further members for programs.
    """

    def __init__(
        self, code: int, message: str, identity: Id | None = None, data: Any = None
    ) -> None:
        self.code = code
        self.message = message
        self.identity = identity
        self.data = data
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of an object: its value, and its JSON text as it was read."""

    value: Any
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, or a notification if `identity` is None; `size` is the size of its text in
    bytes.
    """

    identity: Id | None
    method: str
    params: Mapping[str, Any]
    size: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer.

    Attributes:
        result: the members of the result; members that were read are of class Member.  None with an
            error, or if the result is no object.
        error: code and message.
        data: the data of the error.
        busy: whether the gate did not carry out the request, so that the client may repeat it.
        unsent: whether the request did not reach the server.  Only links set it, never a server's
            message.
    """

    identity: Id | None
    result: Mapping[str, Any] | None = None
    error: tuple[int, str] | None = None
    data: Any = None
    busy: bool = False
    unsent: bool = False


Message: TypeAlias = Request | Response


def read_line(line: bytes) -> Message:
    """Return the message in a line.

    Raises:
        MalformedMessage: the line has no message.
    """
    text = _text(line)
    members: Mapping[str, Member] = {}
    values = _at_once(text)
    if values is None:
        members = _members_of(text)
        values = {name: member.value for name, member in members.items() if name != "result"}
    identity = values.get("id")
    if "id" in values and not is_id(identity) and not (identity is None and "error" in values):
        raise MalformedMessage(INVALID_REQUEST, "an id is a text or a whole number")
    if values.get("jsonrpc") != "2.0":
        raise MalformedMessage(INVALID_REQUEST, 'no member "jsonrpc" that is "2.0"', identity)
    if "method" in values:
        return _request(identity, values, members, len(line))
    return _answer(identity, values, members.get("result"))


def read_json(data: bytes) -> Any:
    """Return the value of a JSON text, read by the rules of messages.

    Raises:
        MalformedMessage: the text is not JSON.
    """
    text = _text(data)
    try:
        value, end = _decoder.raw_decode(text, _skip(text, 0))
    except (ValueError, RecursionError) as error:
        raise _unreadable(error) from None
    _ensure_shallow(text, value)
    if _skip(text, end) != len(text):
        raise MalformedMessage(PARSE_ERROR, "something follows the JSON value")
    return value


def write(message: Message) -> bytes:
    """Return the line of a message.  Members of class Member keep their text."""
    if isinstance(message, Request):
        named = {} if message.identity is None else {"id": message.identity}
        told = {"jsonrpc": "2.0", **named, "method": message.method, "params": message.params}
        return f"{dumps(told)}\n".encode("ascii")
    head = f'{{"jsonrpc":"2.0","id":{dumps(message.identity)},'
    if message.error is not None:
        error: dict[str, Any] = {"code": message.error[0], "message": message.error[1]}
        if message.data is not None:
            error["data"] = message.data
        return f'{head}"error":{dumps(error)}}}\n'.encode("ascii")
    if message.result is None:
        return f'{head}"result":0}}\n'.encode("ascii")
    parts = [f"{dumps(name)}:{_written(value)}" for name, value in message.result.items()]
    return f'{head}"result":{{{",".join(parts)}}}}}\n'.encode()


def _written(value: Any) -> str:
    if not isinstance(value, Member):
        return _encoder.encode(value)
    # Line breaks occur only between tokens, because texts have them escaped. Some readers would end
    # a line at a carriage return.
    return value.text.replace("\r", " ").replace("\n", " ")


def error(identity: Id | None, code: int, message: str, data: Any = None) -> Response:
    """Return an answer that is an error."""
    # JSON-RPC requires the id null if no id could be read.
    if identity is None and code not in (PARSE_ERROR, INVALID_REQUEST):
        code = INVALID_REQUEST
    return Response(identity=identity, error=(code, message), data=data)


def busy(identity: Id, message: str) -> Response:
    """Return an answer to a request that the gate does not carry out now."""
    return Response(identity=identity, error=(BUSY, message), busy=True)


def headers_of(tool: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a tool that `Mcp-Param` headers repeat, by the header's token."""
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    found = {}
    for name, told in properties.items() if isinstance(properties, dict) else ():
        token = told.get("x-mcp-header") if isinstance(told, dict) else None
        if isinstance(token, str) and HEADER_NAME.fullmatch(token):
            found[token] = name
    return found


def log(what: str, code: int) -> None:
    """Log that a peer sent a bad message.  For each code at most one line is logged per second.

    Args:
        what: a text without anything that the peer sent.
        code: a code of JSON-RPC, or an HTTP status.
    """
    now, (last, left_out) = time.monotonic(), _logged.get(code, (0.0, 0))
    if code in _logged and now - last < 1.0:
        _logged[code] = (last, left_out + 1)
        return
    more = f", {left_out} more before" if left_out else ""
    _log.warning("%s (code %d%s)", what, code, more)
    _logged[code] = (now, 0)


def dumps(value: object) -> str:
    """Return JSON on one line, in ASCII."""
    return _encoder.encode(value)


def envelope(version: str) -> dict[str, Any]:
    """Return `_meta` for requests of the gate since 2026-07-28.  It has no capabilities, so servers
    may not ask.
    """
    return {
        VERSION_KEY: STATELESS,
        CAPABILITIES_KEY: {},
        CLIENT_KEY: {"name": "tcc", "version": version},
    }


def stamped(result: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """Return `result` with the further members that answers have since 2026-07-28."""
    return {**result, "resultType": "complete", "_meta": {SERVER_KEY: dict(server)}}


def cacheable(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return `result` with the hint that this client may cache it for five minutes."""
    return {**result, "ttlMs": _LISTED_FOR_MS, "cacheScope": "private"}


def _request(
    identity: Id | None, values: Mapping[str, Any], members: Mapping[str, Any], size: int
) -> Request:
    method, params = values["method"], values.get("params", {})
    if not isinstance(method, str) or "result" in members or "error" in values:
        raise MalformedMessage(INVALID_REQUEST, "neither a request nor an answer", identity)
    if not isinstance(params, dict):
        raise MalformedMessage(INVALID_REQUEST, "params is no object", identity)
    return Request(identity=identity, method=method, params=params, size=size)


def _answer(identity: Id | None, values: Mapping[str, Any], result: Member | None) -> Response:
    if (result is None) == ("error" not in values) or "id" not in values:
        raise MalformedMessage(INVALID_REQUEST, "neither a request nor an answer", identity)
    if result is not None:
        opened = isinstance(result.value, dict)
        return Response(identity=identity, result=result.value if opened else None)
    return Response(identity=identity, error=_error(values["error"]))


def _error(error: object) -> tuple[int, str]:
    """Return code and message of an error; a value of a wrong type becomes the default."""
    said = error if isinstance(error, dict) else {}
    code, message = said.get("code"), said.get("message")
    known = isinstance(code, int) and not isinstance(code, bool) and abs(code) < 1 << 31
    shown = int(code) if known and code is not None else INTERNAL_ERROR
    return shown, message[:2000] if isinstance(message, str) else ""


def is_id(value: object) -> TypeGuard[Id]:
    """Return whether a value is an id: a text of at most 1,024 characters, or an int below 2^63."""
    if isinstance(value, str):
        return len(value) <= 1024
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def is_input_required(result: Mapping[str, Member]) -> bool:
    """Return whether a result asks the client for input."""
    return "resultType" in result and result["resultType"].value == "input_required"


def _at_once(text: str) -> Mapping[str, Any] | None:
    """Return the members of a message without a result; None for any other text.

    This is faster than :func:`_walk`, which keeps texts and finds the fault of a wrong message.
    """
    if '"result"' in text:
        return None
    try:
        values, end = _decoder.raw_decode(text, _skip(text, 0))
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or "result" in values or _skip(text, end) != len(text):
        return None
    _ensure_shallow(text, list(values.values()))
    return values


def _members_of(text: str) -> Mapping[str, Member]:
    start = _skip(text, 0)
    if text[start : start + 1] == "[":
        raise MalformedMessage(PARSE_ERROR, "a batch: one message a line is taken")
    if text[start : start + 1] != "{":
        raise MalformedMessage(PARSE_ERROR, "a message is a JSON object")
    try:
        members, end = _walk(text, start, "result")
    except (ValueError, RecursionError) as error:
        raise _unreadable(error) from None
    if _skip(text, end) != len(text):
        raise MalformedMessage(PARSE_ERROR, "something follows the message")
    _ensure_shallow(text, [member.value for member in members.values()])
    return members


def _walk(text: str, at: int, opened: str | None = None) -> tuple[dict[str, Member], int]:
    """Return the members of the object at position `at`, and the position after it.

    Args:
        opened: the name of a member that is read in the same way if it is an object.
    """
    found: dict[str, Member] = {}
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        name, at = _decoder.raw_decode(text, at)
        at = _skip(text, at)
        if not isinstance(name, str) or text[at : at + 1] != ":":
            raise ValueError("an object is written wrongly")
        if name in found:
            raise ValueError("a member stands twice")
        start = _skip(text, at + 1)
        if name == opened and text[start : start + 1] == "{":
            value, at = _walk(text, start)
        else:
            value, at = _decoder.raw_decode(text, start)
        found[name] = Member(value=value, text=text[start:at])
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return found, at + 1
        if text[at : at + 1] != ",":
            raise ValueError("an object is written wrongly")
        at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedMessage(PARSE_ERROR, "bytes that are no UTF-8") from None


def _ensure_shallow(text: str, value: Any) -> None:
    # Counting brackets is cheap, and enough for nearly every message.
    if text.count("[") + text.count("{") > DEEPEST and is_deeper(value, DEEPEST):
        raise MalformedMessage(PARSE_ERROR, "nested too deeply")


def _unreadable(error: Exception) -> MalformedMessage:
    if isinstance(error, RecursionError):
        return MalformedMessage(PARSE_ERROR, "nested too deeply")
    own = error.args and not isinstance(error, json.JSONDecodeError)
    return MalformedMessage(PARSE_ERROR, str(error)[:200] if own else "no JSON")


def _whole(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError("a number with too many digits")
    return int(text)


def _exact(text: str) -> Decimal:
    if len(text) > _MAX_DIGITS:
        raise ValueError("a number with too many digits")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError("a number beyond all ranges") from None


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


_decoder = json.JSONDecoder(
    object_pairs_hook=once, parse_int=_whole, parse_float=_exact, parse_constant=_no_constant
)
_encoder = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)
