"""Every command that writes a file: only regular files are replaced, and it says so with a code."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import tcc as library
from tests.cli.conftest import Tcc
from tests.runtime.test_outputs import NOT_FILES, put

SEED = "11" * 32


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    path = tmp_path / "requests.ndjson"
    path.write_text(json.dumps({"seed": SEED}) + "\n")
    return path


def shape(path: Path) -> tuple[int, int]:
    seen = path.lstat()
    return seen.st_mode, seen.st_ino


@pytest.mark.parametrize("kind", NOT_FILES)
def test_no_command_replaces_what_is_no_regular_file(
    kind: str, tcc: Tcc, artifact: Path, grammar: Path, requests: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "runs.ndjson"
    put(kind, path)
    before = shape(path)
    ledger = ("run", artifact, "--seed", SEED, "--ledger", path)
    batch = ("batch", artifact, "--requests", requests, "--out", folder)
    for command in (
        ("compile", grammar, "-o", path),
        ledger,
        (*ledger, "--overwrite"),
        (*ledger, "--resume"),
        batch,
        (*batch, "--overwrite"),
    ):
        ended = tcc(*command)
        assert ended.code == 2, command
        said = "TCC801" in ended.err or (kind == "folder" and "is a directory" in ended.err)
        if "--resume" in command and kind == "dangling":
            said = said or "No such file" in ended.err
        assert said, (command, ended.err)
        assert shape(path) == before
    with pytest.raises(OSError, match="TCC801"):
        library.save(library.load(artifact), path)
    assert shape(path) == before
    assert sorted(p.name for p in folder.iterdir()) in (
        ["runs.ndjson"],
        ["runs.ndjson", "the pipe"],
    )


@pytest.mark.parametrize("kind", NOT_FILES)
def test_a_batch_leaves_a_ledger_s_name_alone_where_that_is_no_file(
    kind: str, tcc: Tcc, artifact: Path, requests: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "00000001.ledger"
    put(kind, path)
    before = shape(path)
    ended = tcc("batch", artifact, "--requests", requests, "--out", folder, "--overwrite")
    assert ended.code == 2 and "TCC801" in ended.err
    assert shape(path) == before


def test_a_batch_never_replaces_its_requests(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    requests = tmp_path / "runs.ndjson"
    requests.write_text(json.dumps({"seed": SEED}) + "\n")
    before = requests.read_bytes()
    ended = tcc("batch", artifact, "--requests", requests, "--out", tmp_path, "--overwrite")
    assert ended.code == 2 and "is what is run" in ended.err
    assert requests.read_bytes() == before


def test_quotes_are_no_pipe(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ended = tcc("run", artifact, "--quotes", tmp_path / "pipe")
    assert ended.code == 2 and "is not a regular file" in ended.err


def test_a_folder_that_takes_nothing_ends_in_a_message(
    tcc: Tcc, artifact: Path, grammar: Path, requests: Path
) -> None:
    nowhere = Path("/proc/self/fdinfo")
    for command in (
        ("compile", grammar, "-o", nowhere / "x.tcca"),
        ("run", artifact, "--seed", SEED, "--ledger", nowhere / "x.ledger", "--overwrite"),
        ("batch", artifact, "--requests", requests, "--out", nowhere, "--overwrite"),
    ):
        ended = tcc(*command)
        assert ended.code == 2 and ended.err and "internal error" not in ended.err, command


def test_the_code_is_explained(tcc: Tcc) -> None:
    assert tcc("explain", "TCC801").out.startswith("TCC801: output that is no regular file")
