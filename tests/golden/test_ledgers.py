"""Ledgers of the schema tcc.ledger/2 and their artifact: valid for ever, to the byte.

The files were written once and are never written again.  A change that makes one of these tests
fail breaks the ledgers and artifacts that people keep; it needs another schema.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc_certs.formats.codec import blake
from tcc_certs.kernel import check
from tcc_certs.replay import validate

FOLDER = Path(__file__).parent / "ledgers"
ARTIFACT, LEDGER = FOLDER / "exact-2.tcca", FOLDER / "exact-2.ndjson"
REST = FOLDER / "rest-2.ndjson"


@pytest.mark.parametrize(
    ("file", "digest"),
    [
        (ARTIFACT, "74d4f14dc5abe835bdb4e748982f5cab87096ed17f982ca0fa6b49ec32fe0dcf"),
        (LEDGER, "e5a6a544801a949bbe56f237436903de6f827cce8a4ebc2d33497da82e1dd200"),
        (REST, "7c16c130e107cd4f0c2ce213ab23a6e1b4895771e52f3cbfee9ff8b41eefe76f"),
    ],
    ids=["artifact", "ledger", "rest"],
)
def test_the_files_are_those_that_were_written(file, digest):
    assert blake(file.read_bytes()).hex() == digest


def test_the_artifact_is_valid():
    checked = check(ARTIFACT.read_bytes())
    assert checked.file.digest.hex() == (
        "80421a51399f2e5910123d9b4c6529df9945176f2549b8f478d9e080d9536e4e"
    )
    assert (checked.file.manifest.counts, checked.automaton.states) == ("exact", 5)


def test_the_ledger_is_valid():
    found = validate(LEDGER.read_bytes(), ARTIFACT.read_bytes())
    assert (found.verdict, found.findings) == (0, ())
    assert (found.claim_type, found.claim_upheld) == ("RunWiseExact", True)
    assert found.head == "beb862e74295dfbd5582d9c13d54551e1f8ab94e3178a6a409501bc2085c9999"
    assert found.checked == {"records": 21, "nodes": 13, "expansions": 4, "leaves": 2}
    assert found.summary == (
        "claim upheld: no plan but these 2 could have scored above "
        "V = 1.33088547845451270153 in this run"
    )


def test_the_ledger_of_the_rest_race_is_valid():
    found = validate(REST.read_bytes(), ARTIFACT.read_bytes())
    assert (found.verdict, found.findings) == (0, ())
    assert (found.claim_type, found.claim_upheld) == ("RunWiseExact", True)
    assert found.head == "6269eefedba54aa6c00706df09d1c35f699da3aa60cc8dd22d21c4340827d182"
    assert found.checked == {"records": 20, "nodes": 6, "expansions": 4, "leaves": 2}
    assert found.summary == (
        "claim upheld: no plan but these 2 could have scored above "
        "V = 0.72549399621775226624 in this run"
    )
