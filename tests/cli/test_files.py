"""Commands about a ledger of several files: each reads all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcc as library
from tests.cli.conftest import Tcc

TEXT = """grammar files version "1"

tool read(order: text max 20)

limit depth <= 400
limit count(read) per order <= 3 in session
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an artifact and a ledger of three calls in seven files."""
    artifact = library.compile_text(TEXT)
    library.save(artifact, tmp_path / "g.tcca")
    with library.Gate(
        artifact, ledger=tmp_path / "l", roll_bytes=1, durable=False, show=["read.order"]
    ) as gate:
        for order in "aab":
            with gate.call("read", {"order": order}) as permit:
                permit.done()
        gate.finish()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_validate_reads_all_files(tcc: Tcc, folder: Path) -> None:
    found = tcc("validate", "l", "--artifact", "g.tcca", "--json")
    document = found.json
    assert (found.code, document["verdict"], document["checked"]["calls"]) == (0, "VALID", 3)
    assert document["lines"] == [3, 3, 3, 3, 3, 3, 2]
    named = ["l", *[f"l.{number}" for number in range(1, 7)]]
    assert tcc("validate", *named, "--artifact", "g.tcca").code == 0
    assert tcc("validate", *named[:3], "--artifact", "g.tcca").code == 2


def test_validate_names_the_file_and_its_line(tcc: Tcc, folder: Path) -> None:
    (folder / "l.3").rename(folder / "elsewhere")
    found = tcc("validate", "l", "--artifact", "g.tcca")
    assert found.code == 1
    assert "l.4:1: S217 continues:" in found.out
    assert "the file that file 4 continues is missing" in found.out
    found = tcc("validate", "l", "l.2", "l.1", "--artifact", "g.tcca")
    assert "l.2:1: S217 continues:" in found.out
    assert "file 2 continues file 3" in found.out
    found = tcc("validate", "l.1", "--artifact", "g.tcca")
    assert "l.1:1: S217 continues: expected the first file of the ledger" in found.out


def test_session_show_report_and_replay_read_all_files(tcc: Tcc, folder: Path) -> None:
    found = tcc("session", "show", "l", "--artifact", "g.tcca", "--json")
    document = found.json
    assert [event["seq"] for event in document["events"] if "seq" in event] == [1, 2, 3]
    assert document["ended"]
    found = tcc("report", "l", "--artifact", "g.tcca", "-o", "r.html")
    assert found.code == 0
    found = tcc("replay", "g.tcca", "l", "--json")
    assert found.code == 0, found.err
    assert "l.1" in tcc("replay", "g.tcca", "l.1").err


def test_a_ledger_of_several_files_is_not_signed(tcc: Tcc, folder: Path) -> None:
    assert tcc("sign", "--new-key", "k.pem").code == 0
    found = tcc("sign", "l", "--key", "k.pem")
    assert found.code == 2
    assert "l has several files" in found.err
