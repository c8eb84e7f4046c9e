"""`tcc fmt`: in place, on standard output, as a difference; what it leaves, and how it ends."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import tcc as library
from tcc.commands.fmt_command import unified
from tests.cli.conftest import GRAMMARS, Tcc
from tests.runtime.test_outputs import NOT_FILES, put
from tests.scaling.measure import MOST, growth

ROUGH = 'grammar  g version "1" # mine\r\ntool a\nplan=a|a a # end'
SMOOTH = """grammar g version "1"  # mine

tool a

plan = a | a a  # end
"""
BROKEN = 'grammar g version "1"\ntool (\nlimit <= 3\n'


@pytest.fixture
def rough(tmp_path: Path) -> Path:
    path = tmp_path / "rough.tcg"
    path.write_bytes(ROUGH.encode())
    path.chmod(0o640)
    return path


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch):
    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


def test_a_file_is_written_in_place_with_its_permissions(tcc: Tcc, rough: Path) -> None:
    ended = tcc("fmt", rough)
    assert (ended.code, ended.out) == (0, f"reformatted {rough}\n")
    assert rough.read_bytes() == SMOOTH.encode()
    assert stat.S_IMODE(rough.stat().st_mode) == 0o640
    number = rough.stat().st_ino
    again = tcc("fmt", rough)
    assert (again.code, again.out) == (0, "")
    assert rough.stat().st_ino == number  # a file that is as it should be is not written


def test_a_link_stays_and_its_file_is_written(tcc: Tcc, rough: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.tcg"
    link.symlink_to(rough)
    assert tcc("fmt", link).code == 0
    assert link.is_symlink() and rough.read_text() == SMOOTH


@pytest.mark.parametrize("kind", [kind for kind in NOT_FILES if kind != "folder"])
def test_what_is_no_regular_file_is_left_alone(kind: str, tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "x.tcg"
    put(kind, path)
    before = path.lstat()
    ended = tcc("fmt", path)
    assert ended.code == 2 and "TCC110" in ended.err
    assert path.lstat()[:2] == before[:2]


def test_check_and_diff_write_nothing_and_end_with_1(tcc: Tcc, rough: Path) -> None:
    for options in (["--check"], ["--diff"], ["--check", "--diff"], ["--check", "--json"]):
        assert tcc("fmt", rough, *options).code == 1
        assert rough.read_bytes() == ROUGH.encode()
    assert tcc("fmt", rough, "--check").out == f"would reformat {rough}\n"
    assert tcc("fmt", "--check", GRAMMARS).code == 0
    ended = tcc("fmt", "--diff", GRAMMARS)
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_a_folder_stands_for_the_grammars_below_it(tcc: Tcc, tmp_path: Path) -> None:
    for name in ("b.tcg", "in/a.tcg", "in/er/c.tcg", ".hidden/d.tcg", "in/e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("tool  a")
    (tmp_path / "in" / "round").symlink_to(tmp_path)
    ended = tcc("fmt", tmp_path, tmp_path / "b.tcg")
    assert ended.code == 0
    done = ["b.tcg", "in/a.tcg", "in/er/c.tcg"]
    assert ended.out.splitlines() == [f"reformatted {tmp_path / name}" for name in done]
    assert (tmp_path / ".hidden/d.tcg").read_text() == "tool  a"
    (tmp_path / "none").mkdir()
    assert tcc("fmt", tmp_path / "none").code == 2


def test_standard_input_comes_out_on_standard_output(tcc: Tcc, stdin) -> None:
    stdin(ROUGH.encode())
    ended = tcc("fmt", "-")
    assert (ended.code, ended.out, ended.err) == (0, SMOOTH, "")
    stdin(ROUGH.encode())
    ended = tcc("fmt", "-", "--check")
    assert (ended.code, ended.out) == (1, "would reformat <stdin>\n")
    stdin(ROUGH.encode())
    assert tcc("fmt", "-", "--json").json["files"][0]["text"] == SMOOTH


def test_an_error_of_syntax_is_told_with_its_place_and_nothing_is_written(
    tcc: Tcc, rough: Path, tmp_path: Path, stdin
) -> None:
    broken = tmp_path / "broken.tcg"
    broken.write_text(BROKEN)
    ended = tcc("fmt", broken, rough)
    assert ended.code == 1
    assert f"{broken}:2:6: error[TCC101]" in ended.err
    assert f"{broken}:3:7: error[TCC101]" in ended.err
    assert broken.read_text() == BROKEN
    assert rough.read_text() == SMOOTH  # the others are laid out
    stdin(BROKEN.encode())
    ended = tcc("fmt", "-")
    assert (ended.code, ended.out) == (1, "")
    assert "<stdin>:2:6: error[TCC101]" in ended.err
    found = tcc("fmt", "--json", broken).json["files"]
    assert [d["code"] for d in found[0]["diagnostics"]] == ["TCC101", "TCC101"]
    assert found[0]["changed"] is False


def test_the_document_says_of_each_file_whether_it_changed(tcc: Tcc, rough: Path) -> None:
    fine = GRAMMARS / "research.tcg"
    found = tcc("fmt", rough, fine, "--diff", "--json").json
    assert (found["format"], found["format_version"]) == ("tcc.fmt", "1.0")
    assert [file["changed"] for file in found["files"]] == [True, False]
    assert found["changed"] == 1
    assert found["files"][0]["diff"] == unified(ROUGH, SMOOTH, str(rough))
    assert found["files"][1] == {
        "file": str(fine), "changed": False, "diagnostics": [], "diff": ""
    }  # fmt: skip


def test_a_graph_and_a_missing_file_are_refused(tcc: Tcc, tmp_path: Path) -> None:
    assert tcc("fmt", tmp_path / "x.json").code == 2
    ended = tcc("fmt", tmp_path / "none.tcg")
    assert ended.code == 2 and "TCC110" in ended.err


def test_a_full_disk_is_said_and_the_others_are_written(
    tcc: Tcc, rough: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "z.tcg"
    other.write_bytes(ROUGH.encode())

    def write(path: Path, data: bytes) -> None:
        if path == rough:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        path.write_bytes(data)

    monkeypatch.setattr("tcc.commands.fmt_command.write_whole", write)
    ended = tcc("fmt", rough, other)
    assert ended.code == 2 and f"cannot write {rough}: No space left" in ended.err
    assert other.read_text() == SMOOTH


def test_hostile_bytes_come_out_as_they_are(tcc: Tcc, stdin) -> None:
    text = 'tool a { doc "\u202e\x7f" }  # \x1b[31m \u200b\n'
    stdin(text.encode())
    assert tcc("fmt", "-").out == text


CHANGES = {
    "nothing": ("a\nb\n", "a\nb\n"),
    "a line": ("a\n b\nc\n", "a\nb\nc\n"),
    "joined": ("a\nb\nc d\ne\n", "a b c\nd\ne\n"),
    "no line at the end": ("a\nb", "a\nb\n"),
    "nothing before": ("\n\n", ""),
    "blank lines": ("a\n\n\nb\n \nc\n", "\na\nb\n\nc\n"),
    "far apart": ("".join(f"{i} \n" if i % 9 == 0 else f"{i}\n" for i in range(60)),
                  "".join(f"{i}\n" for i in range(60))),
    "at seven": ("x \n1\n2\n3\n4\n5\n6\ny \n", "x\n1\n2\n3\n4\n5\n6\ny\n"),
    "at eight": ("x \n1\n2\n3\n4\n5\n6\n7\ny \n", "x\n1\n2\n3\n4\n5\n6\n7\ny\n"),
}  # fmt: skip


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch of the system")
@pytest.mark.parametrize("name", CHANGES)
def test_patch_makes_the_new_text_of_a_difference(name: str, tmp_path: Path) -> None:
    old, new = CHANGES[name]
    path = tmp_path / "x"
    path.write_text(old)
    change = unified(old, new, "x")
    assert bool(change) == (old != new)
    if change:
        subprocess.run(["patch", "-s", "-E", str(path)], input=change, text=True, check=True)
    assert (path.read_text() if path.exists() else "") == new


@pytest.mark.skipif(shutil.which("diff") is None, reason="compares with diff of the system")
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "blank lines"])
def test_the_difference_is_that_of_diff(name: str, tmp_path: Path) -> None:
    old, new = CHANGES[name]
    (tmp_path / "x").write_text(old)
    (tmp_path / "y").write_text(new)
    ran = subprocess.run(
        ["diff", "-u", "--label", "x", "--label", "x", "x", "y"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    one = ",1 "  # diff leaves out that a part has one line
    told = ran.stdout.replace("@@ -1 +", f"@@ -1{one}+").replace(" +1 @@", f" +1{one}@@")
    assert unified(old, new, "x") == told


def test_a_difference_takes_time_as_its_texts_do() -> None:
    def work(n: int):
        old = "".join(f"{'x' * (i % 7 + 1)} \n\n" for i in range(n))
        return lambda: unified(old, old.replace(" ", "").replace("\n\n", "\n"), "x")

    assert growth(work, 60) < MOST


def test_the_library_lays_out_a_text() -> None:
    assert library.format_text(ROUGH) == SMOOTH
    with pytest.raises(library.CompileError) as refused:
        library.format_text(BROKEN, name="mine")
    assert {d.span.file for d in refused.value.diagnostics if d.span} == {"mine"}
    with pytest.raises(library.CompileError):
        library.format_text("tool a # \ud800")
