"""Columns in every encoding, against the encoders of Python themselves."""

from __future__ import annotations

import pytest
from lsprotocol.types import Position

from tcc.editor import Places

TEXT = "a😀b\r\né𝒳\rx\n\n\u2028y"
UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


@pytest.mark.parametrize("encoding", UNITS)
def test_every_place_of_a_text_comes_back_and_counts_code_units(encoding: str) -> None:
    places = Places(TEXT, encoding)
    codec, size = UNITS[encoding]
    start = 0
    for number, line in enumerate(["a😀b", "é𝒳", "x", "", "\u2028y"]):
        for at in range(len(line) + 1):
            due = Position(line=number, character=len(line[:at].encode(codec)) // size)
            assert places.position(start + at) == due
            assert places.offset(due) == start + at
        start += len(line) + (2 if number == 0 else 1)


def test_a_place_inside_a_character_is_its_beginning_and_one_past_a_line_its_end() -> None:
    places = Places(TEXT)
    assert places.offset(Position(line=0, character=2)) == 1
    assert places.offset(Position(line=0, character=99)) == 3
    assert places.offset(Position(line=99, character=0)) == len(TEXT)
