"""MACs of records: over a line's bytes without its member, and over the record written again."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcc
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import LedgerReader, Record
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.session.validation import SessionReplay, machine_of
from tcc_certs.values.canonical import RecordMacs, record_key, record_mac

KEY = bytes(range(32))
WRONG = "0123456789abcdef" * 2
# An answer named as the member is, one of whose values has the form of a MAC.
GRAMMAR = f"""grammar macs version "1"
tool look(at: a | b) gives (mac: "{WRONG}" | none)
plan = look{{0,9}}
"""


@pytest.fixture(scope="module")
def session(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[CheckedArtifact, list[tuple[Record, bytes]]]:
    """An artifact, and each record of a session with the head before it."""
    folder: Path = tmp_path_factory.mktemp("macs")
    artifact = tcc.compile_text(GRAMMAR)
    tcc.save(artifact, folder / "macs.tcca")
    with tcc.Gate(artifact, ledger=folder / "ledger", key=KEY, durable=False) as gate:
        for value in (WRONG, "none", WRONG):
            with gate.call("look", {"at": "a"}) as permit:
                permit.done(observed={"mac": value})
        gate.finish()
    reader = LedgerReader(((folder / "ledger").read_bytes(),))
    found, head = [], reader.head
    for line in reader.lines():
        assert line.body == encode(line.record)
        found.append((line.record, head))
        head = reader.head
    assert len(found) == 8
    return check((folder / "macs.tcca").read_bytes()), found


def test_the_kept_hasher_has_the_macs_of_the_definition() -> None:
    macs = RecordMacs(KEY)
    for size in (0, 1, 64, 5000, 3):
        previous, body = bytes([size & 255]) * 32, b"x" * size
        due = record_mac(record_key(KEY), previous, body)
        assert macs.same(previous, body, due)
        assert not macs.same(previous, body, bytes([due[0] ^ 1]) + due[1:])


@pytest.mark.parametrize("by_bytes", [False, True])
def test_records_pass_by_their_bytes_and_without(
    session: tuple[CheckedArtifact, list[tuple[Record, bytes]]], by_bytes: bool
) -> None:
    artifact, records = session
    replay = SessionReplay(artifact, machine_of(artifact), KEY)
    for record, head in records:
        replay.step(record, head, encode(record) if by_bytes else None)
    assert replay.findings.items == [] and replay.session is not None and replay.session.ended


@pytest.mark.parametrize("by_bytes", [False, True])
@pytest.mark.parametrize("at", range(8))
def test_another_mac_is_refused_at_each_record(
    session: tuple[CheckedArtifact, list[tuple[Record, bytes]]], at: int, by_bytes: bool
) -> None:
    """Also where the same bytes stand in the answer (the outcomes of the first and third call)."""
    artifact, records = session
    replay = SessionReplay(artifact, machine_of(artifact), KEY)
    for record, head in records[:at]:
        replay.step(record, head)
    forged = {name: WRONG if name == "mac" else value for name, value in records[at][0].items()}
    with pytest.raises(Rejected) as refusal:
        replay.step(forged, records[at][1], encode(forged) if by_bytes else None)
    assert (refusal.value.code, refusal.value.path) == (Code.SESSION_DIGEST, "mac")
