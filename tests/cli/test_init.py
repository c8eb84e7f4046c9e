"""`tcc init`: what it writes holds by all that the workflow runs, and nothing there is replaced."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from tests.cli.conftest import Tcc
from tests.forking import launcher
from tests.runtime.test_outputs import NOT_FILES, put


def steps_of(workflow: Path) -> list[str]:
    """The commands of a workflow, without the one that installs tcc."""
    lines = re.findall(r"^        run: (.*)$", workflow.read_text("utf-8"), re.MULTILINE)
    assert lines[0].startswith("pip install ")
    return lines[1:]


def test_the_steps_of_the_workflow_pass_as_they_stand(tcc: Tcc, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "my-desk"
    ended = tcc("init", folder)
    assert ended.code == 0
    workflow = folder / ".github/workflows/tcc.yml"
    assert sorted(p for p in folder.rglob("*") if p.is_file()) == [workflow, folder / "my_desk.tcg"]
    steps = steps_of(workflow)
    assert [step.split()[:2] for step in steps] == [
        ["tcc", "fmt"], ["tcc", "test"], ["tcc", "compile"], ["tcc", "check"]
    ]  # fmt: skip
    shell = f'tcc() {{ {shlex.join(launcher("tcc"))} "$@"; }}\n'
    ran = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", shell + "\n".join(steps)],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


def test_the_workflow_installs_nothing_that_was_not_named(tcc: Tcc, tmp_path: Path) -> None:
    assert tcc("init", tmp_path, "--name", "g").code == 0
    text = (tmp_path / ".github/workflows/tcc.yml").read_text("utf-8")
    command = re.findall(r"run: (pip install .*)", text)[0]
    ran = subprocess.run(
        ["bash", "-c", command], env={"TCC": ""}, capture_output=True, text=True, check=False
    )
    assert ran.returncode != 0 and "TCC_SOURCE" in ran.stderr
    assert "TCC: ${{ vars.TCC_SOURCE }}" in text


def test_the_grammar_has_examples_of_both_kinds_and_its_comments(tmp_path: Path, tcc: Tcc) -> None:
    assert tcc("init", tmp_path, "--name", "desk", "--no-ci").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["desk.tcg"]
    text = (tmp_path / "desk.tcg").read_text("utf-8")
    for word in ("grammar desk ", "accept ", "reject ", "expect ", "limit ", "before ", "rule "):
        assert re.search(f"^{word}", text, re.MULTILINE)
    assert text.count("#") > 10


def test_each_statement_of_the_grammar_does_something() -> None:
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import compile_text

    text = files("tcc").joinpath("templates", "agent.tcg").read_text("utf-8")
    whole = compile_text(re.sub("(?m)^expect.*$", "", text), Options())
    assert whole.artifact is not None
    for statement in re.findall("(?m)^(?:limit|before) .*(?:\n  .*)*$", text):
        less = re.sub("(?m)^(?:expect|accept|reject).*$", "", text.replace(statement, ""))
        assert compile_text(less, Options()).artifact not in (None, whole.artifact) or (
            "depth" in statement
        ), statement


def test_no_file_that_is_there_is_replaced(tcc: Tcc, tmp_path: Path) -> None:
    workflow = tmp_path / ".github/workflows/tcc.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("mine")
    ended = tcc("init", tmp_path, "--name", "g")
    assert ended.code == 2 and f"{workflow} would be replaced" in ended.err
    assert workflow.read_text() == "mine"
    assert not (tmp_path / "g.tcg").exists()  # all or nothing
    assert tcc("init", tmp_path, "--name", "g", "--no-ci").code == 0
    assert tcc("init", tmp_path, "--name", "g", "--force").code == 0
    assert workflow.read_text() != "mine"


@pytest.mark.parametrize("kind", NOT_FILES)
def test_what_is_no_regular_file_is_never_replaced(kind: str, tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    put(kind, path)
    before = path.lstat()
    for force in ([], ["--force"]):
        assert tcc("init", tmp_path, "--name", "g", "--no-ci", *force).code == 2
        assert path.lstat()[:2] == before[:2]


@pytest.mark.parametrize(
    ("folder", "name"),
    [("my desk", "my_desk"), ("2nd", "_2nd"), ("plan", "plan"), ("---", "agent"), ("a.b", "a_b")],
)
def test_the_name_is_that_of_the_folder(folder: str, name: str, tcc: Tcc, tmp_path: Path) -> None:
    found = tcc("init", tmp_path / folder, "--json").json
    assert found["grammar"] == name
    assert found["written"][0] == str(tmp_path / folder / f"{name}.tcg")
    assert tcc("test", found["written"][0]).code == 0


@pytest.mark.parametrize("name", ["", "a-b", "../x", "1a", "a" * 129])
def test_what_is_no_name_is_refused(name: str, tcc: Tcc, tmp_path: Path) -> None:
    assert tcc("init", tmp_path, "--name", name).code == 2
    assert list(tmp_path.iterdir()) == []


def test_it_says_what_to_do_next(tcc: Tcc, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    said = tcc("init", tmp_path / "in", "--name", "g").out
    for command in ("tcc test", "tcc compile", "tcc check", "TCC_SOURCE"):
        assert command in said
    assert f"move {tmp_path / 'in/.github/workflows/tcc.yml'} to {tmp_path}" in said
    assert "move" not in tcc("init", tmp_path, "--name", "g").out


@pytest.mark.parametrize("force", [False, True])
def test_a_file_that_cannot_be_written_whole_leaves_what_was_there(
    force: bool, tmp_path: Path
) -> None:
    """A disk that is full: here no file may be longer than 512 bytes."""
    old = tmp_path / "g.tcg"
    if force:
        old.write_text("mine")
    told = [sys.executable, "-m", "tcc", "init", str(tmp_path), "--name", "g", "--no-ci"]
    line = f"ulimit -f 1; exec {shlex.join(told)} {'--force' if force else ''}"
    path = os.pathsep.join(str(Path(at).resolve()) for at in sys.path)
    ran = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert ran.returncode == 2 and f"cannot write {old}" in ran.stderr, ran.stderr
    assert [p.name for p in tmp_path.iterdir()] == (["g.tcg"] if force else [])
    assert not force or old.read_text() == "mine"
