"""Ledgers and their artifact of format version 1.0: valid for ever, to the byte.

The files were written once and are never written again.  A change that makes one of these tests
fail breaks the ledgers and artifacts that people keep; it wants another format version.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc_certs.formats.codec import blake
from tcc_certs.kernel import check
from tcc_certs.replay import validate

FOLDER = Path(__file__).parent / "ledgers"
ARTIFACT, LEDGER = FOLDER / "exact-1.0.tcca", FOLDER / "exact-1.0.ndjson"
REST = FOLDER / "rest-1.0.ndjson"


@pytest.mark.parametrize(
    ("file", "digest"),
    [
        (ARTIFACT, "2373345c344cb598032a2d142d6b7d49eea45d4d8b88edf42c3d1e6848cad3d0"),
        (LEDGER, "4a9fb450fef93bcb5d34fa0ba81986b8198501fde26e6c1129ff8f09406ab11b"),
        (REST, "af602fd180b7de725d9c784ced6ad9fce6998f5b7c37cf6d377cb085d9a708b7"),
    ],
    ids=["artifact", "ledger", "rest"],
)
def test_the_files_are_those_that_were_written(file, digest):
    assert blake(file.read_bytes()).hex() == digest


def test_the_artifact_of_version_1_0_is_valid():
    checked = check(ARTIFACT.read_bytes())
    assert checked.file.digest.hex() == (
        "c7a29de8ec30ae06596800a81487efdf848d040ed83093d052d82ca4b5151367"
    )
    assert (checked.file.manifest.counts, checked.automaton.states) == ("exact", 5)


def test_the_ledger_of_version_1_0_is_valid():
    found = validate(LEDGER.read_bytes(), ARTIFACT.read_bytes())
    assert (found.verdict, found.findings) == (0, ())
    assert (found.claim_type, found.claim_upheld) == ("RunWiseExact", True)
    assert found.head == "d75b11e09bf3a109fd7c6f87683d2feb3093023aa98fc63fce124c4dc63e00ff"
    assert found.checked == {"records": 22, "nodes": 13, "expansions": 5, "leaves": 2}
    assert found.summary == (
        "claim upheld: no plan but these 2 could have scored above "
        "V = 0.62334236108854733312 in this run"
    )


def test_the_ledger_of_the_rest_race_of_version_1_0_is_valid():
    found = validate(REST.read_bytes(), ARTIFACT.read_bytes())
    assert (found.verdict, found.findings) == (0, ())
    assert (found.claim_type, found.claim_upheld) == ("RunWiseExact", True)
    assert found.head == "75136e08c9e2de4eccab93170e956eaa30e1c980381347c8d66404a42064b205"
    assert found.checked == {"records": 21, "nodes": 7, "expansions": 5, "leaves": 2}
    assert found.summary == (
        "claim upheld: no plan but these 2 could have scored above "
        "V = 2.41008527667125883073 in this run"
    )
