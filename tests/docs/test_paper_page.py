"""docs/paper.md: each numbered row has one command, and the command runs as written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forking import launcher

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \| (.*) \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "paper.md").read_text("utf-8"))
COMMANDS = [row[4].strip("`") for row in ROWS]
PYTEST = "python -m pytest -q "
EXPERIMENT = "tcc experiments "
# What the suite runs elsewhere is left out: tests, experiments, digests and checksums.
SLOW = (PYTEST, EXPERIMENT, "python scripts/", "python -m tcc_experiments")
QUICK = sorted({c for c in COMMANDS if not c.startswith(SLOW) or " arithmetic " in c})


def checkout(folder: Path) -> Path:
    """A folder in which each file of the checkout has its place, and outputs have none of it."""
    for entry in ROOT.iterdir():
        if entry.name not in ("tcc-experiments", ".git"):
            (folder / entry.name).symlink_to(entry)
    return folder


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    here = [entry for entry in sys.path if Path(entry).is_relative_to(ROOT)]
    words = shlex.split(command)
    python = {
        "python": [sys.executable],
        "tcc": launcher("tcc"),
        "tcc-certs": launcher("tcc", "-m", "tcc_certs"),
    }[words[0]]
    return subprocess.run(
        [*python, *words[1:]],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(here), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=1200,
    )


def test_each_row_has_one_command_and_a_number_in_order() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, len(ROWS) + 1)) and len(ROWS) >= 104
    for number, _, state, _, command in ROWS:
        assert re.fullmatch(r"`[^`]+`", command), number
        assert state.split(",")[0].split(":")[0].split(" (")[0].split(";")[0].split()[0] in (
            "whole", "otherwise", "diagnostic", "part",
        ), (number, state)  # fmt: skip


def test_the_tests_that_are_named_are_there() -> None:
    named = [c.removeprefix(PYTEST).partition("::") for c in COMMANDS if c.startswith(PYTEST)]
    assert len(named) > 60
    for file, _, name in named:
        assert not name or f"\ndef {name}(" in (ROOT / file).read_text("utf-8"), (file, name)


@pytest.mark.parametrize("command", QUICK)
def test_a_quick_command_runs_as_written(command: str, tmp_path: Path) -> None:
    ended = run(command, checkout(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout


@pytest.mark.campaign
@pytest.mark.parametrize("command", sorted(set(COMMANDS) - set(QUICK)))
def test_every_other_command_runs_as_written(command: str, tmp_path: Path) -> None:
    """Those of pytest in the checkout itself, so that its configuration is read."""
    ended = run(command, ROOT if command.startswith(PYTEST) else checkout(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
