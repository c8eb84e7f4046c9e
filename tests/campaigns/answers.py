"""Answers and pointers for the fuzzer: what a field is, read from JSON that somebody else wrote.

An input is a line with a pointer, a line with the number of a type, and an answer.  The reader says
what stands there, or that nothing does; where the answer is small the slow reading of
`tests/oracle_values` has to say the same.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from tcc_certs.errors import Code, Rejected
from tcc_certs.values.fields import steps_of
from tcc_certs.values.places import NONE, UNKNOWN, answered
from tests.campaigns.mutate import TOKENS, mutate_bytes, mutate_json
from tests.oracle_values import language as l, values as slow
from tests.oracle_values.fields import POOL, field_of

SMALL = 4096  # bytes of an answer that is read slowly, too
_LISTED = l.Field(name="x", values=("a", "b", 1, True), answer=True)
FIELDS = [
    *(l.Field(name="x", type=kind, answer=True) for _, kind in POOL),
    *(l.Field(name="x", type=kind, answer=True, optional=True, null=True) for _, kind in POOL),
    _LISTED,
    replace(_LISTED, rest=True),
    replace(_LISTED, optional=True),
    l.Field(name="x", type=l.Type(kind="date"), answer=True),
    l.Field(name="x", type=l.Type(kind="time", zone="+14:00"), answer=True),
    l.Field(
        name="x",
        type=l.Type(kind="list", of=l.Type(kind="list", of=l.Type(kind="json"))),
        answer=True,
    ),
]
POINTERS = (
    "", "/x", "/a/0", "/a/-1", "/a/-1/id", "/a/*", "/a/*/id", "/*", "/*/*", "/a/*/b/*", "/a~1b",
    "/~01", "/00", "/a/01", "/a/1e0", "/-1", "/" + "/".join("a" * 64), "/" + "*/" * 40 + "*",
)  # fmt: skip
ANSWERS: tuple[Any, ...] = (
    {"x": "a", "a": [{"id": "a"}, {"id": "b"}]},
    {"x": 2.5, "a": {"p": {"id": "a"}, "q": {"id": 1}}},
    {"x": "2024-05-15T10:00:00.123456Z", "a": []},
    {"x": "2024-02-30", "-1": True, "a/b": None},
    {"x": [{"number": "a", "cost": {"total": 2}}], "~1": "b"},
    {"x": ["a", "a", 1], "a": [["a"], [[]]]},
    [[1, 2], {"id": "a"}],
    "a",
    None,
    {"x": True, "a": [{"b": ["a", "b"]}, {"b": {"c": "c d"}}]},
    {"x": {"a": 1e300, "b": [None, -0.0]}},
)


class Differs(Exception):
    """The fast reading and the slow one say different things."""


def seeds() -> list[bytes]:
    """Well-formed inputs."""
    return [
        joined(pointer, number, answer)
        for number in range(len(FIELDS))
        for pointer, answer in zip(POINTERS, (*ANSWERS, *ANSWERS), strict=False)
    ]


def joined(pointer: str, number: int, answer: Any) -> bytes:
    """An input."""
    text = json.dumps(answer, ensure_ascii=False)
    return f"{pointer}\n{number}\n{text}".encode("utf-8", "surrogatepass")


def mutate(rng: Random, data: bytes, known: list[bytes]) -> bytes:
    """Bytes edited, or one of the three parts exchanged."""
    if rng.random() < 0.4:
        return mutate_bytes(rng, data, known, TOKENS)
    pointer, number, text = data.decode("utf-8", "surrogateescape").split("\n", 2)
    match rng.randrange(4):
        case 0:
            pointer = rng.choice(POINTERS)
        case 1:
            number = str(rng.randrange(len(FIELDS)))
        case 2:
            pointer += rng.choice(("/*", "/-1", "/0", "/id", "~", "~2", "/", "/\ud800"))
        case _:
            text = json.dumps(mutate_json(rng, json.loads(text), list(ANSWERS)))
    return f"{pointer}\n{number}\n{text}".encode("utf-8", "surrogatepass")


def large(rng: Random) -> bytes:
    """Many elements, long texts, deep nesting, stars upon stars."""
    size = rng.choice((1_000, 1_001, 30_000, 100_000))
    number = rng.randrange(len(FIELDS))
    match rng.randrange(6):
        case 0:
            return joined("/a/*/id", number, {"a": [{"id": "a"}] * size})
        case 1:
            return joined("/x", number, {"x": ["a"] * size})
        case 2:
            depth = min(size, 900)
            text = '{"x":' * depth + "1" + "}" * depth
            return f"{'/x' * rng.choice((1, 60, 500))}\n{number}\n{text}".encode()
        case 3:
            return joined("/x", number, {"x": "a" * size})
        case 4:
            return joined("/" + "*/" * 6 + "*", number, _wide(7))
        case _:
            return joined("/a/*/*", number, {"a": {f"m{i}": ["a"] for i in range(size // 10)}})


def _wide(depth: int) -> Any:
    return "a" if depth == 0 else [_wide(depth - 1)] * 4


def read(data: bytes) -> str:
    """The kind of what stands there, ``none``, ``unknown``, or a code."""
    parts = data.decode("utf-8", "surrogateescape").split("\n", 2)
    if len(parts) < 3 or not parts[1].isascii() or not parts[1].isdigit() or len(parts[1]) > 3:
        return "no input"
    pointer, number, text = parts
    try:
        answer = json.loads(text)
        steps = steps_of(pointer, "at", Code.CORE_SCHEMA)
    except Rejected as refusal:
        return refusal.code.value
    except (ValueError, RecursionError):
        return "no JSON"
    field = FIELDS[int(number) % len(FIELDS)]
    found = answered(answer, replace(field_of(field), steps=steps))
    if len(text) <= SMALL and len(steps) <= 8:
        due = slow.read(answer, replace(field, place=pointer))
        due = slow.UNKNOWN if due is slow.MISSING or due is slow.WRONG else due
        if due[0] == "*":
            due = ("*", frozenset(due[1]))
        if plain(found) != due:
            raise Differs(f"{pointer!r} {field} {text}: {found}, slowly {due}")
    return str(found[0])


def plain(state: Any) -> Any:
    """A state as the slow reading writes it."""
    if state in (NONE, UNKNOWN):
        return state[0]
    kind, value = state
    match kind:
        case "n":
            return kind, Fraction(value)
        case "j":
            return kind, value.decode() if isinstance(value, bytes) else value
        case "l":
            return kind, tuple(plain(one) for one in value)
        case "r":
            return kind, tuple((name, plain(one)) for name, one in value)
    return state
