"""Reads and writes a line of the protocol, strictly: JSON-RPC 2.0 as MCP narrows it, both versions.

Until 2025-11-25 a connection begins with `initialize`; since 2026-07-28 every request carries its
version and its client's capabilities in `_meta`, and there is no handshake.

Why not the MCP SDK: a gate decides on exactly what the server gets, so a text that two readers may
take for two different values is rejected here: duplicate members, NaN and infinities, batches,
bytes that are not UTF-8.  Numbers are exact (int or Decimal), and the text of each member of an
answer's result is kept, so that it goes on to the client as the server wrote it.  The SDK parses
into models: it takes the last of duplicate members, rounds numbers to floats, and writes anew; and
the relay is the process that has to start and answer fast.
Cost: linear in the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
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

# The parameter of a request that its `Mcp-Name` header says, too.
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_LISTED_FOR_MS = 300_000

_MAX_DIGITS = 400
_SPACE = re.compile(r"[ \t\r\n]*")


class MalformedMessage(Exception):
    """A line that is no message.

    Args:
        code: of JSON-RPC.
        message: what is wrong with it, in words of our own.
        identity: of the request, where it could be read.
        data: more of it, for programs.
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
    """A member of an object: its value, and the text that it was written as."""

    value: Any
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request; `identity` None for a notification."""

    identity: Id | None
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer: the members of its result, or its error as (code, message).

    Attributes:
        result: None with an error, or where the result is no object.
    """

    identity: Id | None
    result: Mapping[str, Member] | None = None
    error: tuple[int, str] | None = None


def read_line(line: bytes) -> Request | Response:
    """The message that a line holds.

    Raises:
        Unreadable: it holds none.
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
        return _request(identity, values, members)
    return _answer(identity, values, members.get("result"))


def read_json(data: bytes) -> Any:
    """A whole JSON text, read as strictly as a line.

    Raises:
        Unreadable: it is none.
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


def write_line(message: Mapping[str, Any], result: str | None = None) -> bytes:
    """The line of a message; `result` is the JSON text of one that is written already."""
    if result is None:
        return dumps(message).encode("ascii") + b"\n"
    # A carriage return stands between tokens alone, and ends a line for some that read it.
    result = result.replace("\r", " ")
    return f'{dumps(message)[:-1]},"result":{result}}}\n'.encode()


def dumps(value: object) -> str:
    """JSON on one line, in ASCII."""
    return _encoder.encode(value)


def envelope(version: str) -> dict[str, Any]:
    """The `_meta` of a stateless request of ours: no capabilities, so no server may ask back."""
    return {
        VERSION_KEY: STATELESS,
        CAPABILITIES_KEY: {},
        CLIENT_KEY: {"name": "tcc", "version": version},
    }


def stamped(result: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """`result` with what a stateless answer carries beside it."""
    return {**result, "resultType": "complete", "_meta": {SERVER_KEY: dict(server)}}


def cacheable(result: Mapping[str, Any]) -> dict[str, Any]:
    """`result` with the hint that it holds for as long as the process does."""
    return {**result, "ttlMs": _LISTED_FOR_MS, "cacheScope": "private"}


def _request(identity: Id | None, values: Mapping[str, Any], members: Mapping[str, Any]) -> Request:
    method, params = values["method"], values.get("params", {})
    if not isinstance(method, str) or "result" in members or "error" in values:
        raise MalformedMessage(INVALID_REQUEST, "neither a request nor an answer", identity)
    if not isinstance(params, dict):
        raise MalformedMessage(INVALID_REQUEST, "params is no object", identity)
    return Request(identity=identity, method=method, params=params)


def _answer(identity: Id | None, values: Mapping[str, Any], result: Member | None) -> Response:
    if (result is None) == ("error" not in values) or "id" not in values:
        raise MalformedMessage(INVALID_REQUEST, "neither a request nor an answer", identity)
    if result is not None:
        opened = isinstance(result.value, dict)
        return Response(identity=identity, result=result.value if opened else None)
    return Response(identity=identity, error=_error(values["error"]))


def _error(error: object) -> tuple[int, str]:
    """The code and the message of an error, as far as they are what they should be."""
    said = error if isinstance(error, dict) else {}
    code, message = said.get("code"), said.get("message")
    known = isinstance(code, int) and not isinstance(code, bool) and abs(code) < 1 << 31
    shown = int(code) if known and code is not None else INTERNAL_ERROR
    return shown, message[:2000] if isinstance(message, str) else ""


def is_id(value: object) -> TypeGuard[Id]:
    """Whether it names a request: a text of at most 1,024 characters, or 64 bits."""
    if isinstance(value, str):
        return len(value) <= 1024
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def is_input_required(result: Mapping[str, Member]) -> bool:
    """Whether a result asks for more before there is one."""
    return "resultType" in result and result["resultType"].value == "input_required"


def _at_once(text: str) -> Mapping[str, Any] | None:
    """The members of a message without a result, whose texts nobody asks for, in one reading.

    None for any other, and for what is wrong: that is told by who reads it member by member.
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
    """The members of the object that begins at `at`, and where it ends.

    Args:
        opened: the member whose own members keep their texts, too, where it is an object.
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
    # Brackets are counted first: that is what nearly every line costs.
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
