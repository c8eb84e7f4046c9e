"""Canonical JSON, and a reader that takes nothing else.

One value has one byte string: keys sorted by code point, no spaces, UTF-8 unescaped, no floats, no
null, integers within 2^53 (RFC 8785 for these types and keys of ASCII).  The reader parses, writes
again and requires the same bytes, so a duplicate key, an escape, white space or a float cannot get
through.
Cost: linear in the bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.limits import MAX_JSON_DEPTH, MAX_SAFE_INTEGER

Json: TypeAlias = "str | int | bool | Sequence[Json] | Mapping[str, Json]"

# A string, or a bracket.  A string that does not end reaches to the end of the bytes, and nothing
# that was taken is given back: so no byte is looked at twice, whatever the bytes are.
_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\[\s\S])*+"?|[\[\]{}]')
_encoder = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False
)


def encode(value: Json) -> bytes:
    """The canonical bytes of `value`.

    The writer trusts its caller: only `str`, `int`, `bool`, lists, tuples and string-keyed
    mappings may be handed in.  :func:`decode` is the side that is strict.
    """
    return _encoder.encode(value).encode("utf-8")


def decode(data: bytes, path: str, *, ascii_keys: bool = True) -> Json:
    """The value that `data` is the canonical text of.

    Args:
        data: the bytes to read, from anywhere.
        path: how an error names the place.
        ascii_keys: whether keys are names of this format's own, and so of ASCII.

    Raises:
        Rejected: B101 not JSON, B102 not canonical, B103 a value that is not allowed, D201 nested
            too deeply.
    """
    _check_depth(data, path)
    try:
        value: Json = _decoder.decode(data.decode("utf-8"))
    except Rejected as refusal:
        raise Rejected(refusal.code, path, refusal.expected, refusal.found) from None
    except RecursionError:
        raise Rejected(Code.LIMIT, path, "nesting that the stack holds", "deeper") from None
    except ValueError as error:
        raise Rejected(Code.JSON_SYNTAX, path, "JSON in UTF-8", error) from None
    _check_values(value, path, ascii_keys)
    try:
        again = encode(value)
    except UnicodeEncodeError:
        raise Rejected(Code.JSON_VALUE, path, "no lone surrogate", "a lone surrogate") from None
    except RecursionError:
        raise Rejected(Code.LIMIT, path, "nesting that the stack holds", "deeper") from None
    if again != data:
        pairs = enumerate(zip(again, data, strict=False))
        # Where one is the beginning of the other, the place is the end of the shorter.
        at = next((i for i, (x, y) in pairs if x != y), min(len(again), len(data)))
        raise Rejected(
            Code.JSON_NOT_CANONICAL, f"{path} byte {at}", again[at : at + 24], data[at : at + 24]
        )
    return value


def large(value: int) -> int | str:
    """`value` as canonical JSON holds it: an integer within 2^53, beyond that a decimal string."""
    return value if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else str(value)


def read_large(value: Json, path: str, code: Code, bits: int = 64) -> int:
    """The integer that :func:`large` wrote; both forms are held to the one canonical choice.

    Raises:
        Rejected: `code` where `value` is no such integer, or takes more than `bits` bits.
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
    if len(text) <= 15:  # nearly every number; so many digits are within 2^53 whatever they are
        return int(text)
    ensure(len(text) <= 17, Code.JSON_VALUE, "", "an integer within 2^53", text[:24])
    number = int(text)
    ensure(abs(number) <= MAX_SAFE_INTEGER, Code.JSON_VALUE, "", "an integer within 2^53", text)
    return number


def _no_float(text: str) -> NoReturn:
    raise Rejected(Code.JSON_VALUE, "", "no floating-point number", text[:24])


_decoder = json.JSONDecoder(parse_float=_no_float, parse_constant=_no_float, parse_int=_integer)


def _check_depth(data: bytes, path: str) -> None:
    """Refuse `data` that is nested too deeply for a parser that recurses; linear in any bytes."""
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
