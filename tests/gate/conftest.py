"""Every ledger that a test of the gate leaves is held against the definition of sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.session import SessionValidation, validate
from tcc_runtime.artifact.load import Artifact
from tests.gate.grammars import bytes_of, known


@pytest.fixture(autouse=True)
def _ledgers_conform(tmp_path: Path) -> Iterator[None]:
    """Files named ``*.ledger`` are sessions; a test that breaks one calls it something else."""
    yield
    for path in sorted(tmp_path.rglob("*.ledger")):
        found = validated(path)
        assert found.word in ("VALID", "INCOMPLETE"), (path, found.findings)


def validated(path: Path) -> SessionValidation:
    """What the definition says of a ledger, with the key beside it where there is one."""
    data = path.read_bytes()
    key = path.with_name(f"{path.name}.key")
    header = json.loads(data.partition(b"\n")[0])
    artifact = known()[header["artifact"]]
    given = bytes.fromhex(key.read_text().strip()) if key.exists() else None
    return validate(data, _checked(artifact), key=given)


@cache
def _checked(artifact: Artifact) -> CheckedArtifact:
    return check(bytes_of(artifact))
