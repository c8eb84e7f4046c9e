"""Records of frequent forms: reading their bytes gives what parsing and checking gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import decode, encode
from tcc_certs.session.records import check_record, plain_record
from tcc_certs.values.canonical import reference_digest

DIGEST = reference_digest(bytes(32), "a").hex()
OTHER = reference_digest(bytes(32), "b").hex()
MAC = "00ff" * 8
CALL = {
    "call": "note(kind=mail)", "key": MAC, "kind": "call", "mac": MAC, "open": {}, "seq": 1,
    "states": [4],
}  # fmt: skip
OUTCOME = {"kind": "outcome", "mac": MAC, "ms": 0, "outcome": "done", "seq": 1}
SHOWN = {"digest": OTHER, "type": "s", "value": "ord-1 ~!"}
PLAIN: list[dict[str, Any]] = [
    CALL,
    {**CALL, "states": [-1, 0, 17], "at_ms": 1_795_824_673_678, "ref": DIGEST},
    {**CALL, "open": {"a": {"digest": DIGEST}}, "seq": 10**14},
    {**CALL, "open": {"B_1": SHOWN, "_": {"digest": DIGEST}, "a": SHOWN}},
    {**CALL, "call": "f(a=[{}],b=x y)", "open": {"a": {**SHOWN, "value": "{}},,"}}},
    OUTCOME,
    {**OUTCOME, "ms": 12, "outcome": "unknown"},
    {**OUTCOME, "result": DIGEST, "outcome": "failed"},
    {**OUTCOME, "at_ms": 1_795_824_673_678},
    {**CALL, "open": {"a": {**SHOWN, "type": "t"}, "b": {**SHOWN, "type": "z", "value": ""}}},
]
# Valid records of other forms, and records that are not valid: they are parsed.
OTHERS: list[dict[str, Any]] = [
    {**CALL, "call": 'say("x")'},
    {**CALL, "call": "größe()"},
    {**CALL, "call": "a\x7fb"},
    {**CALL, "open": {"a": {"digest": DIGEST, "of": []}}},
    {**CALL, "open": {"ä": {"digest": DIGEST}}},
    {**CALL, "states": []},
    {**CALL, "states": [3, -1]},
    {**CALL, "seq": 10**15},
    {**CALL, "seq": 0},
    {**CALL, "at_ms": 0},
    {**CALL, "at_ms": 1 << 48},
    {**CALL, "across": {}},
    {**CALL, "approvals": [MAC]},
    {**CALL, "open": {"a": {"digest": DIGEST, "like": "1"}}},
    {**CALL, "mac": "A" * 32},
    {**OUTCOME, "unforeseen": True},
    {**OUTCOME, "observed": {"a": "b"}},
    {**OUTCOME, "outcome": "over"},
    {**OUTCOME, "ms": -1},
    {"kind": "refusal", "mac": MAC, "tool": "note", "code": "R201"},
]
BROKEN = [
    encode({**CALL, "open": {}}).replace(b"{}", b"{,}"),
    encode(PLAIN[2]).replace(b'"}}', b'"},}'),
    encode(PLAIN[3]).replace(b'"B_1"', b'"c"'),  # not in order
    encode(PLAIN[3]).replace(b'"B_1"', b'"a"'),  # twice
    encode(PLAIN[2]).replace(b'"}}', b'"}"b":{"digest":"%s"}}' % DIGEST.encode()),
    encode(CALL).replace(b'"seq":1', b'"seq":01'),
    encode(CALL).replace(b"[4]", b"[4,]"),
    encode(CALL).replace(b"[4]", b"[04]"),
    encode(CALL).replace(b"[4]", b"[-0]"),
    encode(CALL).replace(b"(", b"\x01"),
    encode(CALL) + b"\n",
    b" " + encode(CALL),
    encode(OUTCOME).replace(b":0,", b":00,"),
    encode(OUTCOME) + b"}",
    b"",
    b"{}",
]


def long_way(body: bytes) -> tuple[Any, bytes] | None:
    """The record of the bytes by parsing; None: it is refused."""
    try:
        record = decode(body, "line 1", ascii_keys=False)
        if not isinstance(record, dict):
            return None
        check_record(record, 1)
    except Rejected:
        return None
    return record, encode({name: value for name, value in record.items() if name != "mac"})


@pytest.mark.parametrize("at", range(len(PLAIN)))
def test_frequent_forms_are_read_from_their_bytes(at: int) -> None:
    body = encode(PLAIN[at])
    found = plain_record(body)
    assert found is not None
    assert found == long_way(body)
    assert found[0] == PLAIN[at]
    # Numbers are numbers: equality alone takes True for 1.
    assert encode(found[0]) == body


@pytest.mark.parametrize("at", range(len(OTHERS)))
def test_other_forms_are_parsed(at: int) -> None:
    assert plain_record(encode(OTHERS[at])) is None


@pytest.mark.parametrize("body", BROKEN)
def test_bytes_that_are_no_record_are_parsed(body: bytes) -> None:
    assert plain_record(body) is None
    with pytest.raises(Rejected) as refusal:
        check_record(dict(decode(body, "line 1", ascii_keys=False)), 1)  # type: ignore[call-overload]
    assert refusal.value.code in (
        Code.JSON_SYNTAX, Code.JSON_NOT_CANONICAL, Code.LEDGER_SCHEMA,
    )  # fmt: skip


def mutants(draw: random.Random) -> Iterator[bytes]:
    bodies = [encode(record) for record in (*PLAIN, *OTHERS)]
    parts = [bytes([at]) for at in range(256)] + [b'"', b"\\", b",", b"{}", b"},{", b'":"', b"00"]
    for _ in range(20_000):
        body = draw.choice(bodies)
        for _ in range(draw.randint(1, 2)):
            at = draw.randrange(len(body))
            other = draw.choice(bodies)
            cut = draw.randrange(len(other) + 1)
            ways = (
                body[:at] + b"%d" % draw.randrange(10) + body[at + 1 :],
                body[:at] + b"%d" % draw.randrange(10) + body[at + 1 :],
                body[:at] + draw.choice(parts) + body[at + draw.randint(0, 2) :],
                body[:at] + body[at + draw.randint(1, 6) :],
                body[:at] + other[cut : cut + draw.randint(1, 40)] + body[at:],
                body[:at] + other[cut:],
            )
            body = draw.choice(ways)
        yield body


def test_reading_bytes_and_parsing_agree() -> None:
    found = 0
    for body in mutants(random.Random(28)):
        plain = plain_record(body)
        if plain is not None:
            found += 1
            assert plain == long_way(body), body
            assert encode(plain[0]) == body
    assert found > 500
