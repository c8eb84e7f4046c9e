"""Hostile JSON of a given size: brackets mixed with quotes, escapes, long texts and numbers.

None of it need be well-formed.  A reader has to find out in a time that grows with the size alone.
"""

from __future__ import annotations

from random import Random

ESCAPES = (
    '\\"', '\\"', "\\\\", "\\\\", "\\u0041", "\\ud800", "\\", '"', "\\n",
    "é", "x", "\x00", "\U0001f600",
)  # fmt: skip
_OPEN, _CLOSE = ("[", '{"a":', "[[", '[{"":'), ("]", "}", "],[", "]]")


def escaped(rng: Random, size: int) -> str:
    """A run of one or two kinds of characters and escapes, without quotes around it."""
    piece = "".join(rng.choice(ESCAPES) for _ in range(rng.choice((1, 1, 2, 5))))
    return piece * (size // len(piece) + 1)


def quoted(rng: Random, size: int) -> str:
    """A long JSON string; one in three is not closed, or closed too early."""
    text = '"' + escaped(rng, size)
    return text if rng.random() < 0.35 else text + '"'


def nested(rng: Random, size: int) -> str:
    """Brackets that open, and close or do not."""
    start = rng.choice(_OPEN)
    depth = min(size // (len(start) + 1), rng.choice((10, 890, 900, 1000, 100_000)))
    close = rng.choice(("", "]" * depth, "}" * depth, "]" * (depth // 2)))
    return start * depth + rng.choice(("", "0", '"a"', quoted(rng, 9))) + close


def between(rng: Random, size: int) -> str:
    """Brackets, then a long string or many of them: what tells them apart looks at each byte."""
    depth = rng.choice((1, 100, 880, 900))
    start = rng.choice(("[" * depth, "[" + "[]," * depth, '[""' + ',""' * depth, '{"a":' * depth))
    strings = rng.choice((1, 1, 30, 1000))
    return start + ",".join(quoted(rng, size // strings) for _ in range(strings))


def listed(rng: Random, size: int) -> str:
    """A list, or an object, of very many members."""
    piece = rng.choice(
        ("0", '""', "[]", "{}", "-1", "9007199254740993", "1e9", '"\\u0000"', "[[]]")
    )
    number = size // (len(piece) + 1) + 1
    if rng.random() < 0.5:
        return "[" + ",".join([piece] * number) + "]"
    number = size // (len(piece) + 9) + 1
    return "{" + ",".join(f'"{at:05}":{piece}' for at in range(number)) + "}"


def digits(rng: Random, size: int) -> str:
    """A number of very many digits."""
    return rng.choice(("", "-", "0.", "1e")) + rng.choice("0123456789") * size


SHAPES = (quoted, nested, between, listed, digits)


def hostile(rng: Random, size: int) -> bytes:
    """Some `size` bytes that look like JSON."""
    text = rng.choice(SHAPES)(rng, size)
    if rng.random() < 0.2:
        text = '{"kind":' + text + "}"
    return text.encode("utf-8", "surrogatepass")
