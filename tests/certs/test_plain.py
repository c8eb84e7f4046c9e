"""Hidden characters: which they are, how they are written, and where they are refused."""

from __future__ import annotations

import json
import unicodedata

import pytest

from tcc_certs.errors import Code, Rejected, clip, escaped, escaped_json, hidden_in, is_plain

STEERS = [
    *map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u061c", "\u200e", "\u200f", "\u2028",
    "\u2029", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\ud800",
    "\udfff", "\ufeff", "\u200b",
]  # fmt: skip
SEEN = ["a", " ", "~", "é", "\u00a0", "日", "\U0001f600", "\u0301", "\u2010", "\ufffd", "\\", "["]


@pytest.mark.parametrize("char", STEERS, ids=lambda char: f"U+{ord(char):04X}")
def test_what_steers_is_escaped_on_one_line_of_seen_characters(char: str) -> None:
    assert not is_plain(f"a{char}b")
    assert hidden_in(f"a{char}b") == char
    shown = escaped(f"a{char}b")
    assert shown.isascii() and shown.isprintable()
    assert shown.startswith("a\\") and shown.endswith("b")


@pytest.mark.parametrize("char", SEEN)
def test_what_is_seen_stays(char: str) -> None:
    assert is_plain(char)
    assert escaped(char) == escaped_json(char) == char


def test_nothing_that_is_hidden_is_printable() -> None:
    """So a text that is printable needs no look at its characters."""
    hidden = [chr(number) for number in range(0x110000) if not is_plain(chr(number))]
    assert len(hidden) > 2000
    assert not any(map(str.isprintable, hidden))


def test_no_control_and_no_separator_of_unicode_is_missing() -> None:
    for number in range(0x110000):
        category = unicodedata.category(chr(number))
        if category in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(chr(number)) in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
        ):  # fmt: skip
            assert not is_plain(chr(number)), hex(number)


def test_an_escaped_text_is_the_same_when_it_is_escaped_again() -> None:
    text = "".join(STEERS)
    assert escaped(escaped(text)) == escaped(text)


def test_json_says_the_same_when_it_is_escaped() -> None:
    value = {"a": ["-".join(STEERS), "\U000e0041", "".join(SEEN)], "b": [1, True]}
    for indent in (None, 2):
        document = json.dumps(value, indent=indent, ensure_ascii=False)
        shown = escaped_json(document)
        assert json.loads(shown) == value
        assert is_plain(shown.replace("\n", ""))


def test_a_refusal_is_one_line_whatever_it_is_about() -> None:
    text = "x\nVALID\x1b[2J\u202e"
    refusal = Rejected(Code.LEDGER_SCHEMA, text, text, [text])
    for part in (refusal.path, refusal.expected, refusal.found, str(refusal), clip(text)):
        assert is_plain(part)
    assert is_plain(clip(text * 1000)) and len(clip(text * 1000)) <= 200
