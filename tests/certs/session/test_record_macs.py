"""MACs of records: over the bytes of a line, and over a record that is encoded again."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import LedgerReader, Record
from tcc_certs.session.validation import SessionReplay, machine_of
from tcc_certs.values.canonical import RecordMacs, record_key, record_mac
from tests.oracle_session.writer import KEY, SessionWriter, artifact_of

WRONG = "0123456789abcdef" * 2
# An answer with the name of the member; one of its values has the form of a MAC.
GRAMMAR = f"""grammar macs version "1"
tool look(at: a | b) gives (mac: "{WRONG}" | none)
plan = look{{0,9}}
"""


def session() -> tuple[SessionWriter, list[tuple[Record, bytes]]]:
    """A session, and each record with the hash before it."""
    writer = SessionWriter(artifact_of(GRAMMAR))
    for value in (WRONG, "none", WRONG):
        writer.made("look", {"mac": value}, at="a")
    writer.end()
    reader = LedgerReader((writer.ledger(),))
    found = []
    head = reader.head
    for line in reader.lines():
        assert line.body == encode(line.record)
        found.append((line.record, head))
        head = reader.head
    assert len(found) == 8
    return writer, found


def replay(writer: SessionWriter) -> SessionReplay:
    return SessionReplay(writer.artifact, machine_of(writer.artifact), KEY)


def test_the_kept_hasher_has_the_macs_of_the_definition() -> None:
    macs = RecordMacs(KEY)
    for size in (0, 1, 64, 5000, 3):
        previous, body = bytes([size & 255]) * 32, b"x" * size
        expected = record_mac(record_key(KEY), previous, body)
        assert macs.same(previous, body, expected)
        assert not macs.same(previous, body, bytes([expected[0] ^ 1]) + expected[1:])


@pytest.mark.parametrize("by_bytes", [False, True])
def test_records_pass_by_their_bytes_and_without(by_bytes: bool) -> None:
    writer, records = session()
    found = replay(writer)
    for record, head in records:
        found.step(record, head, encode(record) if by_bytes else None)
    assert found.findings.items == [] and found.session is not None and found.session.ended


@pytest.mark.parametrize("by_bytes", [False, True])
@pytest.mark.parametrize("at", range(8))
def test_another_mac_is_refused_at_each_record(at: int, by_bytes: bool) -> None:
    """Also if an answer has the same bytes (the outcomes of the first and the third call)."""
    writer, records = session()
    found = replay(writer)
    for record, head in records[:at]:
        found.step(record, head)
    forged: dict[str, Any] = {**records[at][0], "mac": WRONG}
    with pytest.raises(Rejected) as refusal:
        found.step(forged, records[at][1], encode(forged) if by_bytes else None)
    assert (refusal.value.code, refusal.value.path) == (Code.SESSION_DIGEST, "mac")
