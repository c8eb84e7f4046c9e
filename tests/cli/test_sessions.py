"""Ledgers of sessions on the command line and in the library: one verb for both kinds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tcc as library
from tcc_certs.session import SessionValidation
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.errors import SettingsError
from tests.cli.conftest import Tcc
from tests.oracle_session.shapes import SHOP, shape
from tests.oracle_session.writer import KEY, sealed

ROOT = Path(__file__).parents[2]


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    path = tmp_path / "shop.tcca"
    made = compile_text(SHOP, Options(purpose="gate")).artifact
    assert made is not None
    path.write_bytes(made)
    return path


def written(folder: Path, name: str, drop: int = 0) -> Path:
    path = folder / "s.ledger"
    records = shape(name)
    path.write_bytes(sealed(records[: len(records) - drop]))
    return path


def certs(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tcc_certs", *map(str, arguments)],
        env={"PYTHONPATH": str(ROOT / "certs")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "drop", "word", "claim", "exit_code"),
    [
        ("shown", 0, "VALID", "Conformant", 0),
        ("open", 0, "VALID", "ConformantPrefix", 0),
        ("shadow", 0, "VALID", "NoClaim", 0),
        ("hidden", 1, "INCOMPLETE", "ConformantPrefix", 2),
    ],
)
def test_both_commands_say_the_same(
    artifact: Path, tmp_path: Path, tcc: Tcc, name: str, drop: int, word: str, claim: str,
    exit_code: int,
) -> None:  # fmt: skip
    ledger = written(tmp_path, name, drop)
    arguments = ("validate", ledger, "--artifact", artifact, "--key", KEY.hex(), "--json")
    ended = tcc(*arguments)
    assert ended.code == exit_code
    document = ended.json
    assert (document["format"], document["format_version"]) == ("tcc.validate", "1.0")
    assert (document["verdict"], document["claim_type"]) == (word, claim)
    told = certs(*arguments)
    assert told.returncode == exit_code
    assert json.loads(told.stdout) == document
    found = library.validate(ledger, artifact, key=KEY)
    assert isinstance(found, SessionValidation)
    assert library.to_json(found) == document
    assert library.validate(ledger.read_bytes(), artifact.read_bytes(), key=KEY) == found


def test_people_are_told_what_is_asserted(artifact: Path, tmp_path: Path, tcc: Tcc) -> None:
    ledger = written(tmp_path, "hidden")
    ended = tcc("validate", ledger, "--artifact", artifact)
    assert ended.code == 0
    for due in ("Conformant", "asserted", "6 calls"):
        assert due in ended.out
    told = certs("validate", ledger, "--artifact", artifact)
    assert "asserted: every call was recorded" in told.stdout
    forged = tmp_path / "forged.ledger"
    records = [dict(record) for record in shape("hidden")]
    records[1]["call"] = "look\x1b[2J"
    forged.write_bytes(sealed(records))
    ended = tcc("validate", forged, "--artifact", artifact)
    assert ended.code == 1 and "S202" in ended.out and "\x1b" not in ended.out
    told = certs("validate", forged, "--artifact", artifact)
    assert told.returncode == 1 and "S202 line 2 call" in told.stdout and "\x1b" not in told.stdout


def test_what_is_of_runs_is_refused(artifact: Path, tmp_path: Path, tcc: Tcc) -> None:
    ledger = written(tmp_path, "hidden")
    ended = tcc("validate", ledger, "--artifact", artifact, "--seed", "00" * 32)
    assert ended.code == 2 and "a session" in ended.err
    told = certs("validate", ledger, "--artifact", artifact, "--seed", "00" * 32)
    assert told.returncode == 2 and "--seed cannot be used" in told.stdout
    with pytest.raises(SettingsError):
        library.validate(ledger, artifact, seed=bytes(32))
    run = tmp_path / "run.ledger"
    run.write_bytes(b"{}\n")
    ended = tcc("validate", run, "--artifact", artifact, "--key", "00" * 32)
    assert ended.code == 2 and "a run" in ended.err
    told = certs("validate", run, "--artifact", artifact, "--key", "00" * 32)
    assert told.returncode == 2 and "--key cannot be used" in told.stdout


def test_another_key_or_none_that_is_a_key(artifact: Path, tmp_path: Path, tcc: Tcc) -> None:
    ledger = written(tmp_path, "shown")
    ended = tcc("validate", ledger, "--artifact", artifact, "--key", "00" * 32)
    assert ended.code == 1 and "S104" in ended.out
    assert tcc("validate", ledger, "--artifact", artifact, "--key", "00").code == 2


@pytest.mark.parametrize(
    ("code", "says"), [("S301", "no plan continues"), ("R202", "The call is refused")]
)
def test_codes_are_explained(tcc: Tcc, code: str, says: str) -> None:
    ended = tcc("explain", code)
    assert ended.code == 0 and says in ended.out and "docs/spec/session.md" in ended.out
