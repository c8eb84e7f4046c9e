"""What nobody should do to a command line, and somebody will: coded ends, nothing lost."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import GRAMMARS, Tcc

GRAMMAR = """grammar g version "1"

tool a { cost 1 }

plan = a{1,3}
"""


# The interpreter buffers its output, as it does for most users.
BUFFERED = {name: one for name, one in os.environ.items() if name != "PYTHONUNBUFFERED"}


def tcc_process(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tcc", *(str(argument) for argument in arguments)]
    return subprocess.Popen(command, **options)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "g.tcg"
    path.write_text(GRAMMAR)
    return path


def test_a_grammar_is_never_replaced_by_its_artifact(tcc: Tcc, source: Path) -> None:
    link = source.with_name("link.tcg")
    link.symlink_to(source)
    for output in (source, link):
        assert tcc("compile", source, "-o", output).code == 2
    assert source.read_text() == GRAMMAR and link.is_symlink()


def test_a_used_file_is_never_replaced(tcc: Tcc, tmp_path: Path) -> None:
    tools, main = tmp_path / "tools.tcg", tmp_path / "main.tcg"
    tools.write_text("tool a")
    main.write_text('grammar g version "1"\nuse "tools.tcg"\nplan = a')
    assert tcc("compile", main, "-o", tools).code == 2
    assert tools.read_text() == "tool a"


def test_an_output_that_is_no_file_is_left_alone(tcc: Tcc, source: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ended = tcc("compile", source, "-o", pipe)
    assert ended.code == 2 and "TCC801: a named pipe is there" in ended.err and pipe.is_fifo()
    assert tcc("compile", source, "-o", source / "below" / "a.tcca").code == 2


def test_a_linked_output_is_written_where_the_link_leads(
    tcc: Tcc, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "real.tcca").write_bytes(b"old")
    (tmp_path / "link.tcca").symlink_to(tmp_path / "real.tcca")
    assert tcc("compile", source, "-o", tmp_path / "link.tcca").code == 0
    assert (tmp_path / "link.tcca").is_symlink()
    assert (tmp_path / "real.tcca").read_bytes() != b"old"


def test_a_ledger_never_replaces_the_artifact(tcc: Tcc, artifact: Path) -> None:
    before = artifact.read_bytes()
    assert tcc("run", artifact, "--ledger", artifact, "--overwrite").code == 2
    assert artifact.read_bytes() == before


@pytest.mark.parametrize("command", ["check", "inspect", "run", "count", "enumerate", "validate"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_no_command_waits_on_a_pipe_or_reads_a_device(
    tcc: Tcc, artifact: Path, tmp_path: Path, command: str, kind: str
) -> None:
    path = {"pipe": tmp_path / "pipe", "device": Path("/dev/zero"), "folder": tmp_path}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    more = ("--artifact", artifact) if command == "validate" else ()
    assert tcc(command, path, *more).code == 2
    if command == "validate":
        assert tcc(command, artifact, "--artifact", path).code == 2


@pytest.mark.parametrize("command", ["compile", "test", "run", "check"])
@pytest.mark.parametrize("data", [b"", b"\0\xff\xfe" * 50, b"{" * 100_000, b'{"a":1e999}'])
@pytest.mark.parametrize("ending", [".tcg", ".json", ".graphml", ".tcca"])
def test_rubbish_in_any_form_ends_in_a_message(
    tcc: Tcc, tmp_path: Path, command: str, data: bytes, ending: str
) -> None:
    path = tmp_path / f"rubbish{ending}"
    path.write_bytes(data)
    ended = tcc(command, path)
    assert ended.code in (1, 2) and "internal error" not in ended.err
    assert ended.err or ended.out


def test_a_name_that_is_no_text_is_fine(tcc: Tcc, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.tcg"))
    path.write_text('grammar g version "1"\ntool a\nplan = b')
    for output_format in ("text", "json", "sarif", "github"):
        ended = tcc("compile", path, "--output-format", output_format)
        assert ended.code == 1, ended.err


def test_a_reader_that_goes_away_is_no_finding(source: Path) -> None:
    source.write_text("""grammar g version "1"

tool a
tool b

plan = (a | b){16}
""")
    with tcc_process(
        "enumerate", source, "--limit", 60_000, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(60) == 0
    assert b"error" not in error.lower()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_output_is_not_called_a_bug(source: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = tcc_process("inspect", source, stdout=full, stderr=subprocess.PIPE, env=BUFFERED)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 2 and b"bug in tcc" not in error


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_output_is_no_verdict_of_the_kernel_and_no_bug(
    artifact: Path, more: list[str]
) -> None:
    command = [sys.executable, "-m", "tcc_certs", "check", str(artifact), *more]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False, env=BUFFERED
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"tcc-certs: DECLINED: ") and ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("seconds", ["nan", "-1", "inf"])
def test_a_timeout_is_a_number_of_seconds(tcc: Tcc, source: Path, seconds: str) -> None:
    assert tcc("compile", source, f"--timeout={seconds}").code == 2


def test_an_option_that_would_do_nothing_is_refused(tcc: Tcc, artifact: Path) -> None:
    ended = tcc("run", artifact, "--beta", "2")
    assert ended.code == 2 and "--beta is for compiling" in ended.err


@pytest.mark.parametrize("command", ["inspect", "run", "count", "enumerate", "check"])
def test_json_is_asked_for_and_given_when_things_go_wrong(
    tcc: Tcc, tmp_path: Path, command: str
) -> None:
    assert json.loads(tcc(command, tmp_path / "missing", "--json").out)["format"] == "tcc.error"
    bad = tmp_path / "bad.tcca"
    bad.write_bytes(b"\0" * 100)
    assert json.loads(tcc(command, bad, "--json").out)["findings"][0]["code"] == "B201"


def test_explain_knows_the_codes_of_the_kernel(tcc: Tcc) -> None:
    assert tcc("explain", "C401").out.startswith("C401: race count")
    assert tcc("explain", "TCC201", "--json").json["code"] == "TCC201"
    assert "TCC" not in tcc("explain", "C499").err


def test_a_run_on_a_terminal_shows_incumbent_bound_and_gap(tmp_path: Path) -> None:
    source = GRAMMARS / "coding_agent.tcg"
    artifact = tmp_path / "a.tcca"
    assert tcc_process("compile", source, "-o", artifact, stdout=subprocess.DEVNULL).wait(120) == 0
    outer, inner = pty.openpty()
    process = tcc_process(
        "run", artifact, "--top", 200, "--seed", "00" * 32, stdout=subprocess.DEVNULL, stderr=inner
    )
    os.close(inner)
    shown = b""
    while True:
        try:
            block = os.read(outer, 4096)
        except OSError:  # the other end is closed
            break
        shown += block
    os.close(outer)
    assert process.wait(120) == 0
    assert all(word in shown for word in (b"incumbent", b"bound", b"gap", b"expansions"))
