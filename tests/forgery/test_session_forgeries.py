"""Every member of every record of a session: changed, left out and added, the chain sealed again.

A change is refused, or it makes another session that might have been.  These members are listed
here: the ledger asserts them, and with the key there are fewer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

import pytest

from tcc_certs.session import SessionValidation, validate
from tests.forgery.mutants import changes
from tests.oracle_session.shapes import NAMES, artifact_for, shape
from tests.oracle_session.writer import KEY, named, sealed

STRIDE = 9  # every ninth change by default, all of them in a campaign

Records = list[dict[str, Any]]
_ENTRIES = ("open", "answers", "given")

OTHERS: dict[str, list[Any]] = {
    "call": ["close", "look", "pay", "pay(kind=eco)", "pay(kind=biz)", "find", "pay()"],
    "outcome": ["done", "failed", "unknown"],
    "tool": ["close", "look", "pay", "find", "unknown tool"],
    "code": ["R101", "R105", "R201", "R202", "R203", "R204", "R205", "R208", "R209", "R211",
             "R302", "R303", "R306", "S301", "D201"],
    "statement": [0, 1, 2, 3, 4, 5, 6, 7],
    "schema": ["tcc.session/1.1", "tcc.session/3", "tcc.ledger/2"],
    "verdict": ["approved", "denied", "maybe"],
    "like": ["0", "1", "-", "00"],
    "type": ["s", "n", "b", "t", "j", "z"],
    "value": ["", "7", "600", "a9", "true", "big", "small", "*", "[]", '["a1"]'],
    "digest": ["ab" * 32, "ab" * 16],
    "size": [0, 1, 2],
    "states": [[-1], [0], [-1, 0]],
    "observed": [{}, {"state": "shut"}, {"state": "open"}, {"state": "none"}, {"state": ""}],
    "expires_ms": [0],
    "at_ms": [0, 1_700_000_000_000, 1_700_000_000_001, 1_800_000_000_000],
}  # fmt: skip


def changed(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Other values of a member, each with the path of what was changed."""
    if isinstance(value, dict):
        yield name, []
        for key, item in value.items():
            inner = name if name in _ENTRIES else f"{name}.{key}"
            for path, other in changed(item, inner if isinstance(item, dict) else f"{name}.{key}"):
                yield path, {**value, key: other}
            rest = {one: item for one, item in value.items() if one != key}
            yield (f"{name}.*" if name in _ENTRIES else f"{name}.{key}"), rest
        yield f"{name}.zzz", {**value, "zzz": {"digest": "00" * 32}}
        for more in ({"type": "s"}, {"value": "x"}, {"like": "1"}, {"size": 1}, {"of": []}):
            if name in _ENTRIES or more.keys() <= value.keys():
                continue
            yield f"{name}.{next(iter(more))}", {**value, **more}
        if name not in _ENTRIES:
            yield f"{name}.unknown", {"unknown": True}
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield name, {}
        for at, item in enumerate(value):
            for path, other in changed(item, f"{name}.each"):
                yield path, [*value[:at], other, *value[at + 1 :]]
            yield name, value[:at] + value[at + 1 :]
        yield name, [*value, value[0]]
    else:
        for _, other in changes(value):
            yield name, other
    for other in OTHERS.get(name.rpartition(".")[2], ()):
        yield name, other


def mutants(records: Records) -> Iterator[tuple[int, str, Records]]:
    """The record, the path of the member, and the records with one change."""
    members: dict[str, list[Any]] = {}
    for record in records:
        for name, value in record.items():
            members.setdefault(name, []).append(value)
    for at, record in enumerate(records):
        for name, value in record.items():
            for path, other in changed(value, name):
                if type(other) is not type(value) or other != value:
                    yield at, path, _put(records, at, {**record, name: other})
            yield at, name, _put(records, at, {k: v for k, v in record.items() if k != name})
        yield at, "zzz", _put(records, at, {**record, "zzz": 1})
        for name, values in members.items():
            if name not in record:
                yield at, f"+{name}", _put(records, at, {**record, name: values[0]})
        for name in ("unforeseen", "answered", "made", "shadow"):
            if name not in record:
                yield at, f"+{name}", _put(records, at, {**record, name: True})


def _put(records: Records, at: int, record: dict[str, Any]) -> Records:
    return [*records[:at], record, *records[at + 1 :]]


def judged(name: str, records: Records, at: int, path: str, key: bytes | None) -> SessionValidation:
    """The verdict; a header that was changed gets the id that follows from it."""
    head = records[0]
    started = head.get("started_ms")
    in_form = isinstance(started, int) and 0 <= started < 1 << 48
    if at == 0 and not path.startswith("session_id") and in_form:
        records = [named(head), *records[1:]]
    return validate(sealed(records), artifact_for(name), key=key)


@cache
def survivors(name: str, key: bytes | None, stride: int = 1) -> frozenset[tuple[str, str]]:
    """The members that have a change which is not refused; of every so many changes."""
    records = shape(name)
    honest = validate(sealed(records), artifact_for(name), key=key)
    found = set()
    for at, path, forged in islice(mutants(records), 0, None, stride):
        told = judged(name, forged, at, path, key)
        if not told.findings:
            found.add((str(records[at]["kind"]), path))
            continue
        first = told.findings[0]
        assert told.verdict == (2 if first.code.declines else 1), (path, first)
        assert told.claim_type == "NoClaim" and not told.claim_upheld
        assert first.line >= at + 1 or at == 0, (records[at], path, first)
        assert honest.verdict == 0
    return frozenset(found)


# With the key: what the world and persons did, hidden values, times, and members of no consequence.
ASSERTED = {
    ("approval", "verdict"), ("approval", "who"),
    ("call", "at_ms"), ("call", "call"), ("call", "open.*"), ("call", "open.digest"),
    ("call", "open.of"), ("call", "open.of.each.digest"),
    ("call", "ref"),
    ("end", "abandoned"), ("end", "at_ms"),
    ("outcome", "+result"), ("outcome", "answered"), ("resolve", "answered"),
    ("outcome", "answers.*"),
    ("outcome", "answers.digest"), ("outcome", "answers.of"),
    ("outcome", "answers.of.each.of.cost"), ("outcome", "answers.of.each.of.kind.value"),
    ("outcome", "answers.of.each.of.sku.digest"), ("outcome", "at_ms"), ("outcome", "ms"),
    ("outcome", "observed"), ("outcome", "result"),
    ("refusal", "code"), ("refusal", "made"), ("refusal", "statement"), ("refusal", "tool"),
    ("resolve", "+who"), ("resolve", "answers.*"), ("resolve", "answers.digest"),
    ("resolve", "observed"), ("resolve", "who"),
}  # fmt: skip
# Without the key: values and their digests, and members of the header that nothing follows from.
KEYED = {
    ("ask", "open.digest"), ("ask", "open.value"),
    ("call", "open.value"),
    ("outcome", "answers.of.each.of.cost.digest"), ("outcome", "answers.of.each.of.cost.value"),
    ("outcome", "answers.value"),
    ("session", "+shadow"), ("session", "constants"), ("session", "given.*"),
    ("session", "given.digest"), ("session", "given.of"), ("session", "given.of.each.digest"),
    ("session", "key_commitment"), ("session", "parent"), ("session", "principal"),
    ("session", "started_ms"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", [None, KEY], ids=["without", "with"])
def test_a_change_is_refused_or_is_asserted(name: str, key: bytes | None) -> None:
    assert survivors(name, key, STRIDE) <= ASSERTED | (KEYED if key is None else set())


@pytest.mark.campaign
def test_what_is_asserted_has_a_change_that_is_not_refused() -> None:
    """The lists have no slack."""
    assert frozenset().union(*[survivors(name, KEY) for name in NAMES]) == ASSERTED
    assert frozenset().union(*[survivors(name, None) for name in NAMES]) == ASSERTED | KEYED


@pytest.mark.campaign
def test_what_is_shown_is_not_asserted_with_the_key() -> None:
    assert ("call", "open.of.each.like") not in survivors("shown", KEY)
    assert ("call", "open.of.each.digest") not in survivors("shown", KEY)
    assert ("outcome", "answers.of") not in survivors("shown", KEY)


@pytest.mark.parametrize("name", NAMES)
def test_records_left_out_repeated_and_moved(name: str) -> None:
    """It is refused, or the rest is a session, and no claim is more than it was."""
    records = shape(name)
    strength = ["NoClaim", "ConformantPrefix", "Conformant"]
    honest = validate(sealed(records), artifact_for(name))
    for at in range(len(records)):
        twice = [*records[: at + 1], *records[at:]]
        swapped = [*records[:at], *records[at : at + 2][::-1], *records[at + 2 :]]
        left_out = [*records[:at], *records[at + 1 :]]
        for forged in (twice, swapped, left_out):
            found = validate(sealed(forged), artifact_for(name))
            if forged == records or found.findings:
                continue
            kinds = {record["kind"] for record in records[at : at + 2]}
            assert kinds & {"refusal", "resolve", "outcome", "ask", "approval"}, (at, kinds)
            assert strength.index(found.claim_type) <= strength.index(honest.claim_type)


@pytest.mark.parametrize("name", NAMES)
def test_the_key_sees_a_record_that_was_left_out_moved_or_repeated(name: str) -> None:
    """Each MAC is over the hash of the record before it."""
    records = with_macs(shape(name))
    for at in range(1, len(records) - 1):
        for forged in (
            [*records[: at + 1], *records[at:]],
            [*records[:at], records[at + 1], records[at], *records[at + 2 :]],
            [*records[:at], *records[at + 1 :]],
        ):
            found = validate(sealed(forged), artifact_for(name), key=KEY)
            assert found.findings[-1].code == "S205" or found.findings[-1].line <= at + 2


def with_macs(records: Records) -> Records:
    """The records with the MACs that the ledger gives them."""
    lines = sealed(records).splitlines()
    return [{name: one for name, one in json.loads(line).items() if name != "~"} for line in lines]


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_cut_at_any_byte_is_incomplete(name: str) -> None:
    data = sealed(shape(name))
    for end in range(0, len(data), 31):
        found = validate(data[:end], artifact_for(name))
        assert found.word == "INCOMPLETE", end
        assert [item.code for item in found.findings] == ["D301"]
        assert not found.claim_upheld
    for more in (b"\n", b"x", data[-60:]):
        code = validate(data + more, artifact_for(name)).findings[0].code.value
        assert code in ("L104", "L101", "L102")


@pytest.mark.parametrize("name", NAMES[:1])
def test_a_flipped_byte_is_refused(name: str) -> None:
    data = sealed(shape(name))
    for at in [*range(0, len(data), 23), len(data) - 1]:
        forged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        found = validate(forged, artifact_for(name))
        if at == len(data) - 1:  # the last LF
            assert found.word == "INCOMPLETE"
        else:
            assert found.verdict == 1 or found.findings[0].code in ("D102", "D301"), at
            assert not found.claim_upheld


def test_another_artifact_and_another_pin_are_refused() -> None:
    data = sealed(shape("hidden"))
    assert validate(data, artifact_for("asked")).findings[0].code == "L202"
    assert validate(data, artifact_for("hidden"), pin="0" * 64).findings[0].code == "P101"
    assert validate(data, b"nothing").verdict == 1
    pin = artifact_for("hidden").file.digest.hex()
    assert validate(data, artifact_for("hidden"), pin=pin).verdict == 0
