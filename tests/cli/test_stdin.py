"""`-` is a grammar on standard input, wherever a command reads one."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tcc_compiler.language.source import MAX_SOURCE_BYTES
from tests.cli.conftest import GRAMMARS, Ended, Tcc

TEXT = 'grammar g version "1"\nuse "tools/t.tcg"\nplan = a b?\naccept a\n'
PLAN = {"why": ("-", "a"), "cheapest": ("-",), "sample": ("-",), "enumerate": ("-",),
        "inspect": ("-",), "count": ("-",)}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "t.tcg").write_text("tool a { cost 1 }\ntool b\n")
    return tmp_path


@pytest.fixture
def piped(tcc: Tcc, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """`tcc` in a folder, with `data` on its standard input."""

    def run(data: str | bytes, folder: Path, *arguments: object) -> Ended:
        text = data.encode() if isinstance(data, str) else data
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        monkeypatch.chdir(folder)
        return tcc(*arguments)

    return run


def process(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of bash in which `tcc` is a real process."""
    path = os.pathsep.join(str(Path(at).resolve()) for at in sys.path)
    return subprocess.run(
        ["bash", "-c", f'tcc() {{ {shlex.quote(sys.executable)} -m tcc "$@"; }}; {command}'],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip


def test_a_real_pipe_is_read(folder: Path) -> None:
    (folder / "g.tcg").write_text(TEXT)
    ran = process(
        "cat g.tcg | tcc compile - -o x.tcca && tcc check x.tcca --source - < g.tcg", folder
    )
    assert ran.returncode == 0, ran.stderr
    assert "its core is that of the source" in ran.stdout


@pytest.mark.parametrize(
    ("line", "code"),
    [("tcc --version", 0), ("tcc epsilon a.json --json", 0), ("tcc epsilon none.json", 2),
     (f"{shlex.quote(sys.executable)} -m tcc_certs check none.tcca", 2),
     (f"{shlex.quote(sys.executable)} -m tcc_certs check a.json", 1)],
)  # fmt: skip
def test_with_closed_outputs_the_exit_code_still_tells(line: str, code: int, folder: Path) -> None:
    (folder / "a.json").write_text("[]")
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        assert process(f"{line} {closed}", folder).returncode == code


@pytest.mark.parametrize("command", ["test", "epsilon"])
def test_a_closed_standard_input_is_said(command: str, folder: Path) -> None:
    ran = process(f"tcc {command} - <&-", folder)
    assert ran.returncode == 2 and "standard input is closed" in ran.stderr


def test_compile_takes_a_grammar_from_a_pipe_and_check_its_source(
    piped: Callable[..., Ended], folder: Path, tcc: Tcc
) -> None:
    ran = piped(TEXT, folder, "compile", "-", "-o", "x.tcca")
    assert ran.code == 0 and ran.out.startswith("compiled <stdin> to x.tcca")
    (folder / "same.tcg").write_text(TEXT)
    assert tcc("compile", folder / "same.tcg", "-o", folder / "same.tcca").code == 0
    assert (folder / "x.tcca").read_bytes() == (folder / "same.tcca").read_bytes()
    assert piped(TEXT, folder, "check", "x.tcca", "--core", "--source", "-").code == 0
    other = TEXT.replace("a b?", "a b")
    assert piped(other, folder, "check", "x.tcca", "--source", "-").code == 1


def test_compile_needs_a_name_for_what_it_writes(piped: Callable[..., Ended], folder: Path) -> None:
    ran = piped(TEXT, folder, "compile", "-")
    assert ran.code == 2 and "say where to, by -o" in ran.err
    assert not list(folder.glob("*.tcca")) and not list(folder.glob("*stdin*"))


@pytest.mark.parametrize("command", PLAN)
def test_questions_are_asked_of_a_grammar_from_a_pipe(
    piped: Callable[..., Ended], command: str, folder: Path
) -> None:
    ran = piped(TEXT, folder, command, *PLAN[command], "--json")
    assert ran.code == 0
    assert ran.json["format"] == f"tcc.{command}"


def test_one_side_of_a_difference_is_from_a_pipe(piped: Callable[..., Ended], folder: Path) -> None:
    (folder / "old.tcg").write_text(TEXT.replace("b?", ""))
    assert piped(TEXT, folder, "diff", "old.tcg", "-").code == 1
    assert piped(TEXT, folder, "diff", "-", "old.tcg").code == 0
    ran = piped(TEXT, folder, "diff", "-", "-")
    assert ran.code == 2 and "standard input is read once" in ran.err


def test_diagnostics_name_it_stdin_and_used_files_are_in_the_working_directory(
    piped: Callable[..., Ended], folder: Path, tmp_path: Path
) -> None:
    assert piped(TEXT, folder, "test", "-").out == "<stdin>: 1 example and 0 expectations hold\n"
    ran = piped(TEXT.replace("plan = a", "plan = c"), folder, "test", "-")
    assert ran.code == 1 and "<stdin>:3:8: error[TCC202]" in ran.err
    (folder / "tools" / "t.tcg").write_text("tool a {")
    ran = piped(TEXT, folder, "test", "-")
    assert ran.code == 1 and "tools/t.tcg:1:8: error[TCC114]" in ran.err
    ran = piped(TEXT, folder / "tools", "test", "-")
    assert ran.code == 1 and "<stdin>:2:5: error[TCC221]" in ran.err
    above = TEXT.replace("tools/t.tcg", "../x.tcg")
    ran = piped(above, folder / "tools", "test", "-")
    assert ran.code == 1 and "<stdin>:2:5: error[TCC222]" in ran.err


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"\xff\xfe", "TCC109"), (b"\x80", "TCC108"), (b"", "TCC213"),
     (b"#" * (2 * MAX_SOURCE_BYTES), "TCC107")],
)  # fmt: skip
def test_what_is_no_grammar_has_a_code(
    piped: Callable[..., Ended], data: bytes, code: str, folder: Path
) -> None:
    ran = piped(data, folder, "test", "-")
    assert ran.code == 1 and f"[{code}]" in ran.err


def test_a_file_called_stdin_is_a_file(tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "<stdin>"
    path.write_text("no grammar")
    assert tcc("inspect", path).code == 1


@pytest.mark.parametrize("command", [["gate", "--ledger", "s"], ["serve", "mcp"]])
def test_what_serves_takes_its_grammar_from_a_file(command: list[str], tcc: Tcc) -> None:
    ended = tcc(command[0], *command[1:], "-", *(["--", "true"] if command[0] == "gate" else []))
    assert ended.code == 2 and "'-' does not exist" in ended.err


def test_check_wants_an_artifact(tcc: Tcc) -> None:
    ended = tcc("check", "-")
    assert ended.code == 2 and "tcc compile - -o A.tcca" in ended.err


def test_a_grammar_of_the_house_is_the_same_from_a_pipe(
    piped: Callable[..., Ended], tcc: Tcc, tmp_path: Path
) -> None:
    text = (GRAMMARS / "incident_response.tcg").read_text("utf-8")
    ran = piped(text, GRAMMARS, "compile", "-", "-o", tmp_path / "x.tcca", "--json")
    assert ran.code == 0
    grammar = GRAMMARS / "incident_response.tcg"
    assert ran.json == tcc("compile", grammar, "-o", tmp_path / "y.tcca", "--json").json
