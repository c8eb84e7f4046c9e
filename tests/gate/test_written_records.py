"""The bytes of records that a gate writes are those of the canonical writer, whatever they hold."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import decode, encode
from tcc_certs.limits import MAX_SAFE_INTEGER
from tcc_certs.session.machine import Offer
from tcc_certs.session.monitors.digested import Digester, Form, members_of
from tcc_certs.values.canonical import (
    CallKeys,
    digest,
    json_text,
    json_value,
    record_key,
    record_mac,
)
from tcc_certs.values.declared import FlagType, NumberType, TextType
from tcc_certs.values.fields import Field, FieldType, ListType, RecordType, TimeType
from tcc_certs.values.places import flat, typed
from tcc_runtime.gate.arguments import _quick
from tcc_runtime.gate.arguments.columns import column_members, columns_of
from tcc_runtime.gate.policy import policy_of
from tcc_runtime.gate.session.records import Writer, _canonical, outcome_parts

# Numbers are digested, too.
DIGESTER = Digester(SimpleNamespace(numbers=False, constants=()), b"k" * 32)  # type: ignore[arg-type]
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


# What came back, and the digests of its elements.


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


KINDS: tuple[FieldType, ...] = (
    TextType(least=0, most=4), TextType(), TextType(least=0, most=9, pattern="[a-z]*"),
    NumberType(whole=True), FlagType(), TimeType(zone=0),
)  # fmt: skip
TEXTS = ("", "a", "ab", "long text", "é", "\0", "a\0sb", "\ud800", "2024-05-15T10:00:00Z")


def drawn_type(draw: random.Random) -> ListType:
    of: FieldType = draw.choice(KINDS)
    if draw.random() < 0.7:
        names = draw.sample("abc", draw.randrange(4))
        of = RecordType(
            fields=tuple(
                Field(
                    name=name,
                    steps=draw.choice([(name,), (name,), (name,), ("x", name), ("*", name)]),
                    type=draw.choice(KINDS[:1] * 4 + KINDS),
                    optional=draw.random() < 0.2,
                    null=draw.random() < 0.1,
                )
                for name in names
            )
        )
    return ListType(of=of, least=draw.choice([0, 0, 3]), most=draw.choice([4, 9]),
                    distinct=draw.random() < 0.1)  # fmt: skip


def drawn_value(draw: random.Random, kind: ListType) -> Any:
    few = draw.choice([TEXTS[1:3], TEXTS[1:3], TEXTS[5:7], TEXTS])

    def element(of: FieldType) -> Any:
        if not isinstance(of, RecordType):
            odd = draw.random() < 0.02
            return draw.choice([None, 1, True, Name("a"), {}]) if odd else draw.choice(few)
        found: dict[str, Any] = {}
        for one in of.fields:
            if draw.random() < 0.99 and one.type is not None:
                put = found if len(one.steps) == 1 else found.setdefault("x", {})
                put[one.name] = None if draw.random() < 0.02 else element(one.type)
        return draw.choice([[], "a"]) if draw.random() < 0.01 else found

    made = [element(kind.of) for _ in range(draw.randrange(6))]
    return tuple(made) if draw.random() < 0.05 else made


def test_columns_of_an_answer_are_what_its_elements_are() -> None:
    """One walk over a list of texts, or of records of them, beside the type's reader."""
    draw, taken = random.Random(10), Counter[bool]()
    for _ in range(6_000):
        kind = drawn_type(draw)
        value = drawn_value(draw, kind)
        columns = columns_of(value, kind)
        taken[columns is not None] += 1
        if columns is None:
            continue
        state = typed(value, kind)
        some: FieldType = kind.of
        if isinstance(some, RecordType):
            some = RecordType(fields=tuple(f for f in some.fields if draw.random() < 0.7))
        form = Form(name="f", type=replace(flat(kind), of=flat(some)), is_list=True,
                    patterns=("a.*", "[^b]*") if draw.random() < 0.5 else ())  # fmt: skip
        due = members_of(form, state, DIGESTER)
        assert column_members(form, columns, DIGESTER.leaves()) == due
        if isinstance(kind.of, TextType):
            each = [digest(b"k" * 32, b"s", one.encode()).hex()[:32] for one in value]
            assert due["of"] == each
    assert min(taken.values()) > 300


def test_columns_of_more_values_than_a_record_has_are_refused() -> None:
    fields = tuple(Field(name=f"f{at}", steps=(f"f{at}",), type=TextType()) for at in range(20))
    kind = ListType(of=RecordType(fields=fields))
    form = Form(name="f", type=flat(kind), is_list=True)
    row = {one.name: "a" for one in fields}
    for count, is_too_much in ((780, False), (781, True)):
        value = [dict(row) for _ in range(count)]
        columns = columns_of(value, kind)
        assert columns is not None
        state, found = typed(value, kind), list[Any]()
        with suppress(Rejected):
            found.append(column_members(form, columns, DIGESTER.leaves()))
        with suppress(Rejected):
            found.append(members_of(form, state, DIGESTER))
        assert len(found) == (0 if is_too_much else 2)


def test_long_texts_are_digested_one_by_one() -> None:
    kind = ListType(of=TextType())
    form = Form(name="f", type=kind, is_list=True)
    value = ["a" * 60_000, "\0" * 60_000, "é" * 60_000] * 100
    assert columns_of(value, kind) is None
    assert columns_of(["a" * 4096, "\0"], kind) is not None
    tracemalloc.start()
    found = members_of(form, typed(value, kind), DIGESTER)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found["of"] == [digest(b"k" * 32, b"s", one.encode()).hex()[:32] for one in value]
    assert most < 1 << 20


# Records of calls and outcomes, which are put together of their members.


def test_a_call_and_an_outcome_are_written_as_the_definition_writes_them() -> None:
    """Whatever members they have, of any content, and with the MAC that the definition gives."""
    draw, key, previous = random.Random(11), bytes(range(32)), bytes(range(32, 64))
    session_id = "01890a5d-ac96-774b-bcce-b302099a8057"
    policy = policy_of(
        tcc.compile_text("""grammar g version "1"

tool a

plan = a?
""")
    )
    writer, some = Writer(policy, key, (), session_id), Counter[bool]()

    def maybe(value: Any) -> Any:
        there = draw.random() < 0.5
        some[there] += 1
        return value if there else None

    for seq in [*range(1, 400), MAX_SAFE_INTEGER]:
        made = Offer(tool=0, text=text(draw), values=(), observed=(), calls={}, answers=1)
        members: dict[str, Any] = {
            "at_ms": maybe(draw.getrandbits(40)),
            "across": maybe({text(draw): value(draw)}),
            "execute": maybe({text(draw): value(draw)}),
        }
        reference, opened = maybe(f"{draw.getrandbits(128):032x}"), maybe({"a": value(draw)}) or {}
        states = sorted({draw.randrange(-1, 9) for _ in range(draw.randrange(1, 4))})
        parts, call_key = writer.call(seq, made, opened, states, reference=reference, **members)
        record = {
            "kind": "call", "seq": seq, "call": made.text, "open": opened, "states": states,
            "key": CallKeys(key, session_id).of(seq), "ref": reference, **members,
        }  # fmt: skip
        assert call_key == record["key"]
        outcome: Any = draw.choice(["done", "failed", "unknown"])
        told: dict[str, Any] = {
            "observed": maybe({text(draw): text(draw)}),
            "result": maybe(f"{draw.getrandbits(256):064x}"),
            "took": maybe({text(draw): value(draw)}),
            "answers": maybe({text(draw): value(draw)}),
        }
        flags = {"unforeseen": maybe(True), "answered": maybe(True)}
        ms = draw.getrandbits(30)
        answer = outcome_parts(
            seq, outcome, ms, observed=told["observed"], result=told["result"], took=told["took"],
            answers=told["answers"] or {}, unforeseen=bool(flags["unforeseen"]),
            read=bool(flags["answered"]),
        )  # fmt: skip
        ended = {"kind": "outcome", "seq": seq, "outcome": outcome, "ms": ms, **told, **flags}
        for found, whole in ((parts, record), (answer, ended)):
            due = {name: one for name, one in whole.items() if one is not None}
            assert b"".join(found) == encode(due)
            mac = record_mac(record_key(key), previous, encode(due)).hex()
            assert writer.sealed(found, previous) == encode({**due, "mac": mac})
    assert min(some.values()) > 1000
