"""Canonical bytes and texts: JSON, names, exact decimals, and digests of an artifact's parts.

Each JSON value has exactly one byte string: keys sorted by code point, no spaces, unescaped UTF-8,
no floats, no null, integers within 2^53 (RFC 8785 for these types and ASCII keys).  The reader
parses, encodes again and requires the same bytes.  So it refuses duplicate keys, needless escapes,
white space and floats.  An identifier is written bare.  Every other name is written as a canonical
JSON string, so no two names have the same text.  Normative text: docs/spec/artifact.md, section 6;
layouts of digests: docs/spec/artifact.md, section 4; J: docs/spec/race.md.  Cost: linear in the
bytes; one BLAKE3 call for each digest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn, TypeAlias

from blake3 import blake3

from tcc_certs.errors import Code, Rejected, ensure, is_plain
from tcc_certs.limits import MAX_JSON_DEPTH, MAX_SAFE_INTEGER

# JSON.

Json: TypeAlias = "str | int | bool | Sequence[Json] | Mapping[str, Json]"

# A string, or a bracket.  An unterminated string extends to the end of the bytes, and the pattern
# never backtracks.  So no byte is read twice, for any input.
_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\[\s\S])*+"?|[\[\]{}]')
_encoder = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False
)
# An encoder makes a new C writer for each value; this is that writer, made only once.
_writer = getattr(json.encoder, "c_make_encoder", None)
_pieces: Callable[[Json, int], Iterable[str]] | None = _writer and _writer(
    None, None, json.encoder.encode_basestring, None, ":", ",", True, False, False
)


def encode(value: Json) -> bytes:
    """Return the canonical bytes of `value`.

    The caller must pass only `str`, `int`, `bool`, lists, tuples and string-keyed mappings.  Only
    :func:`decode` is strict.
    """
    if _pieces is None or isinstance(value, str):
        return _encoder.encode(value).encode("utf-8")
    return "".join(_pieces(value, 0)).encode("utf-8")


def decode(data: bytes, path: str, *, ascii_keys: bool = True) -> Json:
    """Return the value whose canonical text is `data`.

    Args:
        data: untrusted bytes.
        path: the place that errors name.
        ascii_keys: whether all keys must be ASCII, as in formats with fixed keys.

    Raises:
        Rejected: B101 not JSON.  B102 not canonical.  B103 a value is not allowed.  D201 nested too
            deeply.
    """
    _check_depth(data, path)
    try:
        reader = _decoder if _DIGITS.search(data) else _short
        value: Json = reader.decode(data.decode("utf-8"))
    except Rejected as refusal:
        raise Rejected(refusal.code, path, refusal.expected, refusal.found) from None
    except RecursionError:
        raise Rejected(Code.LIMIT, path, "nesting that the stack holds", "deeper") from None
    except ValueError as error:
        raise Rejected(Code.JSON_SYNTAX, path, "JSON in UTF-8", error) from None
    if b"null" in data or (ascii_keys and b"{" in data):
        _check_values(value, path, ascii_keys)
    try:
        again = encode(value)
    except UnicodeEncodeError:
        raise Rejected(Code.JSON_VALUE, path, "no lone surrogate", "a lone surrogate") from None
    except RecursionError:
        raise Rejected(Code.LIMIT, path, "nesting that the stack holds", "deeper") from None
    if again != data:
        pairs = enumerate(zip(again, data, strict=False))
        # If one is a prefix of the other, the place is the end of the shorter.
        at = next((i for i, (x, y) in pairs if x != y), min(len(again), len(data)))
        raise Rejected(
            Code.JSON_NOT_CANONICAL, f"{path} byte {at}", again[at : at + 24], data[at : at + 24]
        )
    return value


def large(value: int) -> int | str:
    """Return `value` in canonical JSON: an integer within 2^53, otherwise a decimal string."""
    return value if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else str(value)


def read_large(value: Json, path: str, code: Code, bits: int = 64) -> int:
    """Return the integer that :func:`large` wrote, in exactly this form.

    Raises:
        Rejected: `code`: `value` is no such integer, or has more than `bits` bits.
    """
    if isinstance(value, str) and re.fullmatch(r"-?[1-9][0-9]{15,1299}", value):
        number = int(value)
        ensure(abs(number) > MAX_SAFE_INTEGER, code, path, "a JSON integer", value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        raise Rejected(code, path, "an integer", value)
    ensure(number.bit_length() <= bits, code, path, f"at most {bits} bits", value)
    return number


def _integer(text: str) -> int:
    if len(text) <= 15:  # nearly every number; 15 digits are always within 2^53
        return int(text)
    ensure(len(text) <= 17, Code.JSON_VALUE, "", "an integer within 2^53", text[:24])
    number = int(text)
    ensure(abs(number) <= MAX_SAFE_INTEGER, Code.JSON_VALUE, "", "an integer within 2^53", text)
    return number


def _no_float(text: str) -> NoReturn:
    raise Rejected(Code.JSON_VALUE, "", "no floating-point number", text[:24])


_decoder = json.JSONDecoder(parse_float=_no_float, parse_constant=_no_float, parse_int=_integer)
# For bytes without long numbers: it parses integers itself.
_short = json.JSONDecoder(parse_float=_no_float, parse_constant=_no_float)
_DIGITS = re.compile(rb"[0-9]{16}")


def _check_depth(data: bytes, path: str) -> None:
    """Refuse `data` that is nested too deeply for a recursive parser; linear for any bytes."""
    if data.count(b"[") + data.count(b"{") <= MAX_JSON_DEPTH:
        return
    depth = 0
    for token in _STRUCTURE.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            if depth > MAX_JSON_DEPTH:
                raise Rejected(Code.LIMIT, path, f"nesting of at most {MAX_JSON_DEPTH}", "deeper")
        elif first in b"]}":
            depth -= 1


def _check_values(value: Json, path: str, ascii_keys: bool) -> None:
    todo: list[list[Json]] = [[value]]
    while todo:
        items = todo.pop()
        kinds = set(map(type, items))
        if type(None) in kinds:
            raise Rejected(Code.JSON_VALUE, path, "no null", "null")
        if kinds.isdisjoint((list, dict)):
            continue
        for item in items:
            if isinstance(item, list):
                todo.append(item)
            elif isinstance(item, dict):
                if ascii_keys and not all(map(str.isascii, item)):
                    raise Rejected(Code.JSON_VALUE, path, "ASCII keys", sorted(item))
                todo.append(list(item.values()))


# Names, exact decimals, nano-units, and division to the nearest integer.

MAX_NAME = 128  # code points

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(text: str) -> bool:
    """Return whether `text` is an ASCII letter or ``_``, followed by letters, digits and ``_``."""
    return _IDENTIFIER.fullmatch(text) is not None


def written(name: str) -> str:
    """Return a name in canonical texts: an identifier is bare, any other name is quoted."""
    return name if is_identifier(name) else encode(name).decode()


def read_name(value: Json, path: str, code: Code, *_: object) -> str:
    """Return the name of a tool or of a parameter.

    Raises:
        Rejected: `code` at `path`: it is no text, is empty or too long, or has hidden characters.
    """
    if not isinstance(value, str):
        raise Rejected(code, path, "a text", value)
    size = len(value)
    ensure(1 <= size <= MAX_NAME, code, path, f"a name of 1 to {MAX_NAME} characters", size)
    ensure(is_plain(value), code, path, "no control or hidden characters", value)
    return value


_EXACT = re.compile(r"-?(0|[1-9][0-9]{0,39})(\.[0-9]{0,39}[1-9])?")


def divide_nearest(numerator: int, denominator: int) -> int:
    """Return `numerator / denominator` rounded to nearest, ties to even; `denominator` > 0."""
    quotient, rest = divmod(2 * numerator + denominator, 2 * denominator)
    return quotient - 1 if rest == 0 and quotient & 1 else quotient


def parse_decimal(text: str, path: str, code: Code) -> tuple[int, int]:
    """Return an exact decimal as ``(numerator, places)`` for ``numerator / 10**places``.

    Only canonical text is accepted: no sign for zero, no leading or trailing zeros.

    Raises:
        Rejected: `code`: `text` is not canonical.
    """
    if _EXACT.fullmatch(text) is None or text == "-0":
        raise Rejected(code, path, "an exact decimal in canonical text", text)
    whole, _, part = text.partition(".")
    return int(whole + part), len(part)


def format_decimal(numerator: int, places: int) -> str:
    """Return the canonical text of ``numerator / 10**places``, the inverse of `parse_decimal`."""
    digits = str(abs(numerator)).zfill(places + 1)
    point = len(digits) - places
    part = digits[point:].rstrip("0")
    sign = "-" if numerator < 0 else ""
    return f"{sign}{digits[:point]}.{part}" if part else f"{sign}{digits[:point]}"


# Digests of calls, and the document of the root context.


def blake(data: bytes | memoryview) -> bytes:
    """Return BLAKE3-256 of `data`."""
    return blake3(data).digest()


def call_digest(text: bytes, cost_low: int, cost_high: int) -> bytes:
    """Return A(a), the digest of a call with its declared cost interval in nano-units."""
    return blake(
        b"\x11"
        + len(text).to_bytes(4, "little")
        + text
        + cost_low.to_bytes(8, "little", signed=True)
        + cost_high.to_bytes(8, "little", signed=True)
    )


def root_document(name: str, version: str, limits: Iterable[str]) -> Mapping[str, Json]:
    """Return J, the root context document: all that the race depends on, except the calls."""
    return {"grammar": name, "limits": sorted(set(limits), key=str.encode), "version": version}
