"""The bytes of records that a gate writes are those of the canonical writer, whatever they hold."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tcc_certs.formats.codec import decode, encode
from tcc_certs.limits import MAX_SAFE_INTEGER
from tcc_certs.values.canonical import CallKeys, json_text, json_value, record_key, record_mac
from tcc_runtime.gate.arguments.json_writer import _quick
from tcc_runtime.gate.session.records import Writer, _canonical, outcome_parts
from tcc_runtime.gate.session.values import Answers

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


# Results.


def test_a_result_is_written_as_the_definition_writes_it() -> None:
    """Every character, numbers that are printed without an exponent, and what is left to it."""
    draw = random.Random(9)
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for at in range(0, len(every), 4096):
        value = ["".join(every[at : at + 4096]), dict.fromkeys(every[at : at + 64], "x")]
        assert _quick(value) == json_text(value, most=1 << 24)
    for _ in range(20_000):
        number = draw.choice([
            draw.uniform(1e-4, 1), draw.uniform(1, 1e15), 10 ** draw.uniform(-4, 15),
            draw.getrandbits(60) / (1 << draw.randrange(1, 60)), round(draw.uniform(0, 99), 3),
        ])  # fmt: skip
        found = _quick([number, -number, True, None, (draw.getrandbits(53),)])
        if found is not None:
            value = [number, -number, True, None, [json_value(found.decode())[4][0]]]
            assert found == json_text(value, most=1 << 20)
    for value in ("\ud800", {"\udfff": 1}, [Name("a")], {Name("a"): 1}, [Size(1)], [1e16], [2.0]):
        assert _quick(value) is None


# Records of calls and outcomes, which are put together of their members.


def test_a_call_and_an_outcome_are_written_as_the_definition_writes_them() -> None:
    """Whatever members they have, of any content, and with the MAC that the definition gives."""
    draw, key, previous = random.Random(11), bytes(range(32)), bytes(range(32, 64))
    session_id = "01890a5d-ac96-774b-bcce-b302099a8057"
    writer, some = Writer(key, session_id), Counter[bool]()

    def maybe(value: Any) -> Any:
        there = draw.random() < 0.5
        some[there] += 1
        return value if there else None

    for seq in [*range(1, 400), MAX_SAFE_INTEGER]:
        call = text(draw)
        members: dict[str, Any] = {
            "at_ms": maybe(draw.getrandbits(40)),
            "across": maybe({text(draw): value(draw)}),
            "execute": maybe({text(draw): value(draw)}),
        }
        reference, opened = maybe(f"{draw.getrandbits(128):032x}"), maybe({"a": value(draw)}) or {}
        states = sorted({draw.randrange(-1, 9) for _ in range(draw.randrange(1, 4))})
        call_key = writer.call_key(seq)
        parts = writer.call(seq, call, opened, states, key=call_key, reference=reference, **members)
        record = {
            "kind": "call", "seq": seq, "call": call, "open": opened, "states": states,
            "key": CallKeys(key, session_id).of(seq), "ref": reference, **members,
        }  # fmt: skip
        assert call_key == record["key"]
        outcome: Any = draw.choice(["done", "failed", "unknown"])
        told: dict[str, Any] = {
            "at_ms": maybe(draw.getrandbits(40)),
            "observed": maybe({text(draw): text(draw)}),
            "result": maybe(f"{draw.getrandbits(256):064x}"),
            "took": maybe({text(draw): value(draw)}),
            "answers": maybe({text(draw): value(draw)}),
        }
        flags = {"unforeseen": maybe(True), "answered": maybe(True)}
        ms = draw.getrandbits(30)
        unlisted = ("a",) if flags["unforeseen"] else ()
        known = Answers({}, told["observed"], told["answers"] or {}, unlisted, False)
        answer = outcome_parts(
            seq, outcome, ms, answers=known, at_ms=told["at_ms"], result=told["result"],
            took=told["took"], read=bool(flags["answered"]),
        )  # fmt: skip
        ended = {"kind": "outcome", "seq": seq, "outcome": outcome, "ms": ms, **told, **flags}
        for found, whole in ((parts, record), (answer, ended)):
            due = {name: one for name, one in whole.items() if one is not None}
            assert b"".join(found) == encode(due)
            mac = record_mac(record_key(key), previous, encode(due)).hex()
            assert writer.sealed(found, previous) == encode({**due, "mac": mac})
    assert min(some.values()) > 1000
