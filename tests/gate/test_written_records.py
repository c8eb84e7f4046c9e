"""The bytes of records that a gate writes are those of the canonical writer, whatever they hold."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from tcc_certs.formats.codec import decode, encode
from tcc_certs.limits import MAX_SAFE_INTEGER
from tcc_runtime.gate.session import _canonical

CHARACTERS = [*range(0x300), 0x2028, 0x2029, 0xD7FF, 0xE000, 0xFEFF, 0xFFFF, 0x10000, 0x10FFFF]


def value(draw: random.Random, depth: int = 3) -> Any:
    kind = draw.randrange(6 if depth else 4)
    if kind == 0:
        return draw.choice([0, -1, 7, MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER, draw.getrandbits(40)])
    if kind == 1:
        return draw.random() < 0.5
    if kind in (2, 3):
        return text(draw)
    if kind == 4:
        return [value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {text(draw): value(draw, depth - 1) for _ in range(draw.randrange(4))}


def text(draw: random.Random) -> str:
    return "".join(map(chr, draw.choices(CHARACTERS, k=draw.randrange(5))))


@pytest.mark.parametrize("character", CHARACTERS)
def test_every_character_is_written_as_the_definition_writes_it(character: int) -> None:
    record = {"kind": "refusal", chr(character): chr(character) * 2, f"a{chr(character)}b": True}
    assert _canonical(record) == encode(record)


def test_records_are_written_as_the_definition_writes_them() -> None:
    draw = random.Random(8)
    for _ in range(2_000):
        record: Mapping[str, Any] = {text(draw): value(draw) for _ in range(6)}
        assert _canonical(record) == encode(record)
        assert decode(_canonical(record), "line 1", ascii_keys=False) == record


class Name(str):
    """A text of a caller's own type."""


class Size(int):
    """A number of a caller's own type."""


def test_what_is_derived_from_texts_and_numbers_is_written_as_such() -> None:
    for value in (Name('a"é'), Size(7), [Name("b"), {"c": Size(-1)}]):
        assert _canonical({"kind": "resolve", "a": value}) == encode(
            {"kind": "resolve", "a": value}
        )


def test_half_of_a_surrogate_pair_is_written_by_neither() -> None:
    for write in (_canonical, encode):
        with pytest.raises(UnicodeEncodeError):
            write({"a": "\ud800"})
