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


@pytest.fixture
def parted(tmp_path: Path) -> tuple[Path, Path]:
    """A grammar, and the file whose tools it uses."""
    main, used = tmp_path / "main.tcg", tmp_path / "out" / "00000001.ledger"
    used.parent.mkdir()
    used.write_text("tool a { cost 1 }\ntool b { cost 2 }\n")
    main.write_text(f'grammar g version "1"\nuse "out/{used.name}"\nplan = a | b a\n')
    return main, used


def test_no_ledger_replaces_a_file_that_the_grammar_uses(
    tcc: Tcc, parted: tuple[Path, Path], requests: Path
) -> None:
    main, used = parted
    before = used.read_bytes()
    for command, option in (
        (("run", main, "--seed", SEED, "--ledger", used, "--overwrite"), "--ledger"),
        (("batch", main, "--requests", requests, "--out", used.parent, "--overwrite"), "--out"),
    ):
        ended = tcc(*command)
        assert ended.code == 2, command
        assert f"Invalid value for {option}: {str(used)!r} is what is run" in ended.err
        assert used.read_bytes() == before
    assert sorted(path.name for path in used.parent.iterdir()) == [used.name]


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("what", ["the artifact", "the requests"])
def test_no_ledger_of_a_batch_replaces_what_the_batch_is_made_from(
    what: str, linked: bool, tcc: Tcc, artifact: Path, requests: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    named = folder / "00000001.ledger"
    source = artifact if what == "the artifact" else requests
    if linked:
        named.symlink_to(source)
    else:
        source.rename(named)
        artifact, requests = (named if path == source else path for path in (artifact, requests))
    before = named.read_bytes()
    made = ("batch", artifact, "--requests", requests, "--out", folder, "--overwrite")
    ended = tcc(*made)
    assert ended.code == 2 and f"{str(named)!r} is what is run" in ended.err
    assert named.read_bytes() == before
    assert tcc(*made, "--no-ledgers").code == 0  # then nothing is written by that name
    assert named.read_bytes() == before


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
