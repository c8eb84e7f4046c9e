"""Every field of every record of a session, changed, left out and added, the chain sealed again.

What is refused is refused with the code of its field.  What is not refused makes another session
that might have been, and is listed here field by field: it is for whoever wrote the ledger to
answer for, and with the key of the digests there is less of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

import pytest

from tcc_certs.session import SessionValidation, validate
from tests.forgery.mutants import changes
from tests.oracle_session.desk import desk
from tests.oracle_session.shapes import NAMES, shape
from tests.oracle_session.writer import KEY, named, sealed

Records = list[dict[str, Any]]

# Fields of which another value is another session that might have been.
ASSERTED = {
    ("call", "call"), ("call", "ref"), ("call", "open.digest"),
    ("call", "open.optional"), ("outcome", "outcome"), ("outcome", "ms"), ("outcome", "result"),
    ("outcome", "observed"), ("refusal", "tool"), ("refusal", "code"),
    ("resolve", "outcome"), ("resolve", "observed"), ("end", "abandoned"),
}  # fmt: skip
# Those which the key holds to: without it they are asserted as well.
KEYED = {
    ("session", "schema"), ("session", "started_ms"), ("session", "nonce"),
    ("session", "arguments"),
    ("session", "key_commitment"),
    ("call", "key"), ("call", "open.value"),
}  # fmt: skip
CODES = {
    ("session", "kind"): {"L104", "L103"}, ("session", "schema"): {"D102", "S207", "L103"},
    ("session", "session_id"): {"S102", "L103"}, ("session", "started_ms"): {"S207", "L103"},
    ("session", "nonce"): {"S207", "L103"},
    ("session", "artifact"): {"L202", "L103"}, ("session", "grammar"): {"S101", "L103"},
    ("session", "grammar_version"): {"S101", "L103"}, ("session", "root_state"): {"S101", "L103"},
    ("session", "monitors"): {"S103", "L103"},
    ("session", "arguments"): {"S101", "S203", "S207", "L103"},
    ("session", "key_commitment"): {"S104", "L103"},
    ("call", "seq"): {"S201", "L103"},
    ("call", "call"): {"S202", "S203", "S206", "S209", "S210", "S301", "S302", "S305", "L103"},
    ("call", "open"): {"S203", "S302", "L103"},
    ("call", "open.optional"): {"S203"},  # it has to be shown
    ("call", "open.digest"): {"S205", "S302", "L103"},
    ("call", "open.type"): {"S203", "S204", "L103"},
    ("call", "open.value"): {"S203", "S204", "S205", "S302", "L103"},
    ("call", "states"): {"S206", "L103"},
    ("call", "key"): {"S207", "S208", "L103"}, ("call", "ref"): {"S208", "L103"},
    ("outcome", "seq"): {"S201", "L103"},
    ("outcome", "outcome"): {"S206", "S209", "S210", "S212", "S301", "S302", "S305", "L103"},
    ("outcome", "ms"): {"L103"}, ("outcome", "result"): {"S209", "L103"},
    ("outcome", "observed"): {"S206", "S209", "S210", "S301", "L103"},
    ("outcome", "unforeseen"): {"S209", "S210", "S301", "S305", "L103"},
    ("refusal", "tool"): {"S211", "L103"}, ("refusal", "code"): {"S211", "L103"},
    ("resolve", "seq"): {"S212", "L103"},
    ("resolve", "outcome"): {"S206", "S210", "S301", "S302", "S305", "L103"},
    ("resolve", "observed"): {"S206", "S210", "L103"},
    ("end", "abandoned"): {"S305", "L103"},
}  # fmt: skip


OPTIONAL = {"refund": {"note"}, '"send-mail"': {"corps é", "urgent"}}


def mutants(records: Records) -> Iterator[tuple[int, str, str, Records]]:
    """Record, field, how, and the records: one change each."""
    for at, record in enumerate(records):
        for name, value in record.items():
            for field, how, changed in _field_changes(record, name, value):
                if type(changed) is not type(value) or changed != value:
                    yield at, field, how, _put(records, at, {**record, name: changed})
            rest = {key: item for key, item in record.items() if key != name}
            yield at, name, "removed", _put(records, at, rest)
        yield at, "zzz", "added", _put(records, at, {**record, "zzz": 1})
        for other in records:
            for name, value in other.items():
                if name not in record:
                    yield (
                        at,
                        name,
                        f"added from {other['kind']}",
                        _put(records, at, {**record, name: value}),
                    )
        if "unforeseen" not in record:
            yield at, "unforeseen", "added", _put(records, at, {**record, "unforeseen": True})


def _field_changes(record: dict[str, Any], name: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    if name == "open":
        yield from (("open.zzz", "of another form", other) for other in ([], "x", 0, {"id": {}}))
        yield from _open_changes(value, OPTIONAL.get(record["call"].partition("(")[0], ()))
        return
    for how, changed in changes(value):
        yield name, how, changed
    others = {
        "call": ["close", "run", "find(kind=order)", "find(kind=person)", "refund",
                 "refund(part=full)",
                 "refund(part=half)", '"send-mail"', "run(result=pass)", "refund()"],
        "outcome": ["done", "failed", "unknown"],
        "tool": ["close", "find", "unknown tool"],
        "code": ["R101", "R201", "R302", "R204", "R303", "R306", "S301", "D201"],
        "key": ["ab" * 16],
        "nonce": ["ab" * 16],
        "schema": ["tcc.session/1.0", "tcc.session/1.2", "tcc.ledger/1.0"],
    }  # fmt: skip
    for other in others.get(name, ()):
        if record["kind"] != "session" or name in ("schema", "nonce"):
            yield name, other, other
    if name == "states":
        yield from (("states", "-1", [-1, *value]), ("states", "more", [*value, value[-1] + 1]))
    if name == "observed":
        yield name, "other", {"result": "pass" if value.get("result") == "fail" else "fail"}
        yield name, "foreign", {"result": "maybe"}
        yield name, "two", {**value, "suite": "unit"}


def _open_changes(
    value: dict[str, Any], optional: Collection[str]
) -> Iterator[tuple[str, str, Any]]:
    """Each member of each argument, and arguments more and less."""
    for argument, item in value.items():
        for member, text in item.items():
            texts = [other for how, other in changes(text)]
            texts += ["7", "600", "o-9", "true", "false", "s", "n", "ab" * 32]
            for changed in texts:
                yield f"open.{member}", f"{argument} {changed}", {
                    **value, argument: {**item, member: changed},
                }  # fmt: skip
            rest = {key: other for key, other in item.items() if key != member}
            yield f"open.{member}", f"{argument} removed", {**value, argument: rest}
        for told in ({"type": "s"}, {"value": "x"}, {"type": "s", "value": "x"}):
            if not told.keys() & item.keys():
                yield "open.value", f"{argument} shown", {**value, argument: {**item, **told}}
        place = "open.optional" if argument in optional else "open"
        yield place, f"{argument} dropped", {k: v for k, v in value.items() if k != argument}
    for argument in ("note", "urgent", "zzz", "amount", ""):
        if argument not in value:
            place = "open.optional" if argument in optional else "open"
            yield place, f"{argument} more", {**value, argument: {"digest": "00" * 32}}


def _put(records: Records, at: int, record: dict[str, Any]) -> Records:
    return [*records[:at], record, *records[at + 1 :]]


def judged(records: Records, at: int, field: str, key: bytes | None) -> SessionValidation:
    """The verdict; a header that was changed has the identity that follows from it."""
    head = records[0]
    started = head.get("started_ms")
    in_form = isinstance(started, int) and 0 <= started < 1 << 48
    if at == 0 and field != "session_id" and in_form:
        records = [named(head), *records[1:]]
    return validate(sealed(records), desk(), key=key)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", [None, KEY], ids=["without", "with"])
def test_the_session_is_valid(name: str, key: bytes | None) -> None:
    found = validate(sealed(shape(name)), desk(), key=key)
    claims = {
        "unforeseen": "ConformantPrefix",
        "abandoned": "ConformantPrefix",
        "given-up": "ConformantPrefix",
        "left": "ConformantPrefix",
    }
    assert (found.verdict, found.claim_type) == (0, claims.get(name.split()[0], "Conformant"))


@cache
def survivors(name: str, key: bytes | None) -> frozenset[tuple[str, str]]:
    """The fields that have a change which is not refused; of what is refused the code is right."""
    records = list(shape(name))
    found = set()
    for at, field, how, forged in mutants(records):
        place = records[at]["kind"], field
        told = judged(forged, at, field, key)
        if not told.findings:
            found.add(place)
            continue
        first = told.findings[0]
        codes = CODES.get(place, {"L103"}) if field != "kind" else {"L103", "L104"}
        assert first.code.value in codes, (place, how, first)
        assert told.verdict == (2 if first.code == "D102" else 1)
        assert told.claim_type == "NoClaim" and not told.claim_upheld
        assert first.line >= at + 1 or at == 0, (place, how, first)
    return frozenset(found)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", [None, KEY], ids=["without", "with"])
def test_a_change_is_refused_or_is_one_of_those_that_are_asserted(
    name: str, key: bytes | None
) -> None:
    assert survivors(name, key) <= ASSERTED | (KEYED if key is None else set())


def test_what_is_asserted_is_no_more_than_that() -> None:
    """Each field that is listed has a change that nobody could refuse: the list has no slack."""
    without = frozenset().union(*(survivors(name, None) for name in NAMES))
    assert without == ASSERTED | KEYED
    assert frozenset().union(*(survivors(name, KEY) for name in NAMES)) == ASSERTED


@pytest.mark.parametrize("name", NAMES)
def test_records_left_out_repeated_and_moved(name: str) -> None:
    """Either it is refused, or what is left is a session, and no claim is more than it was."""
    records = list(shape(name))
    honest = validate(sealed(records), desk())
    strength = ["NoClaim", "ConformantPrefix", "Conformant"]
    for at in range(len(records)):
        twice = [*records[: at + 1], *records[at:]]
        swapped = [*records[:at], *records[at : at + 2][::-1], *records[at + 2 :]]
        left_out = [*records[:at], *records[at + 1 :]]
        for forged in (twice, swapped, left_out):
            if forged == records:
                continue
            found = validate(sealed(forged), desk())
            kinds = {record["kind"] for record in records[at : at + 2]}
            if not found.findings:
                # What was left out of the end, or is of no consequence, is not seen.
                last = kinds == {"call", "end"} and records[-1]["abandoned"]
                assert last or kinds & {"refusal", "resolve", "outcome"}, (at, kinds)
                weaker = strength.index(found.claim_type) <= strength.index(honest.claim_type)
                assert weaker or "unforeseen" in records[at], (at, kinds)
    calls = [at for at, record in enumerate(records) if record["kind"] == "call"]
    for at in calls:
        if records[at + 1]["kind"] != "end":
            assert validate(sealed([*records[:at], *records[at + 1 :]]), desk()).findings


@pytest.mark.parametrize("name", NAMES[:4])
def test_a_cut_at_any_byte_is_incomplete(name: str) -> None:
    data = sealed(shape(name))
    for end in range(len(data)):
        found = validate(data[:end], desk())
        assert found.word == "INCOMPLETE", end
        assert [item.code for item in found.findings] == ["D301"]
        assert not found.claim_upheld
    for more in (b"\n", b"x", data[-60:]):
        assert validate(data + more, desk()).findings[0].code.value in ("L104", "L101", "L102")


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_flipped_byte_is_refused(name: str) -> None:
    data = sealed(shape(name))
    for at in range(len(data)):
        forged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        found = validate(forged, desk())
        if at == len(data) - 1:  # the last LF
            assert found.word == "INCOMPLETE"
        else:
            assert found.verdict == 1 or found.findings[0].code in ("D102", "D301"), at
            assert not found.claim_upheld


def test_another_key_is_refused() -> None:
    for name in NAMES:
        found = validate(sealed(shape(name)), desk(), key=bytes(32))
        assert [item.code.value for item in found.findings] == ["S104"]


def test_another_artifact_and_another_pin_are_refused() -> None:
    data = sealed(shape(NAMES[0]))
    assert validate(data, desk(2)).findings[0].code == "L202"
    assert validate(data, desk(), pin="0" * 64).findings[0].code == "P101"
    assert validate(data, b"nothing").verdict == 1
    pin = desk().file.digest.hex()
    assert validate(data, desk(), pin=pin).verdict == 0


def test_no_two_calls_have_one_key_or_one_reference() -> None:
    records = list(shape("unknown hidden"))
    calls = [at for at, record in enumerate(records) if record["kind"] == "call"]
    for field in ("key", "ref"):
        stolen = {**records[calls[1]], field: records[calls[0]][field]}
        found = validate(sealed([*records[: calls[1]], stolen]), desk())
        first = found.findings[0]
        assert (first.code, first.line, first.field) == ("S208", calls[1] + 1, field)


def test_two_values_have_two_digests_and_one_value_one() -> None:
    """Without the key: what is shown contradicts itself."""
    records = list(shape("unknown shown"))
    calls = [at for at, record in enumerate(records) if record["kind"] == "call"]
    one, other = records[calls[0]]["open"]["id"], records[calls[1]]["open"]["id"]
    assert one["value"] != other["value"]
    for told in ({**other, "digest": one["digest"]}, {**one, "digest": other["digest"]}):
        forged = {**records[calls[1]], "open": {"id": told}}
        found = validate(sealed([*records[: calls[1]], forged]), desk())
        first = found.findings[0]
        assert (first.code, first.line, first.field) == ("S205", calls[1] + 1, "open: find.id")


def test_what_is_shown_is_listed_once_and_in_order() -> None:
    records = list(shape("plain shown"))
    names = records[0]["arguments"]["show"]
    for show in (names[::-1], [*names, names[-1]], [*names, "zzz.zzz"], ["find", *names]):
        head = named({**records[0], "arguments": {"show": show}})
        first = validate(sealed([head, *records[1:]]), desk()).findings[0]
        assert (first.code, first.line, first.field) == ("S101", 1, "arguments")


def test_only_what_was_done_has_a_result() -> None:
    for name, outcome in (("unknown hidden", "failed"), ("unknown hidden", "unknown")):
        records = list(shape(name))
        at = next(i for i, record in enumerate(records) if record.get("outcome") == outcome)
        forged = {**records[at], "result": "00" * 32}
        first = validate(sealed([*records[:at], forged]), desk()).findings[0]
        assert (first.code, first.line, first.field) == ("S209", at + 1, "result")
