"""Completion in a real bash: commands and options, by what `tcc completion bash` prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tcc.main import COMMANDS
from tests.cli.conftest import Tcc


def completed(folder: Path, *words: str) -> set[str]:
    """What bash would offer for the last of some words."""
    bash = shutil.which("bash")
    assert bash is not None
    program = folder / "tcc"
    if not program.exists():
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tcc "$@"\n', "utf-8")
        program.chmod(0o755)
    script = (
        "source <(tcc completion bash)\n"
        f"COMP_WORDS=({' '.join(words)} )\nCOMP_CWORD={len(words) - 1}\n"
        "function=$(complete -p tcc | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
        '$function tcc\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [bash, "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return set(ended.stdout.split())


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    due = {name for name in COMMANDS if name.startswith("co")}
    assert completed(tmp_path, "tcc", "co") == due
    assert completed(tmp_path, "tcc", "compile", "--ti") == {"--tilt", "--timeout"}
    assert completed(tmp_path, "tcc", "lint", "--output-format", "sa") == {"sarif"}


@pytest.mark.parametrize(
    ("shell", "mark"), [("zsh", "#compdef tcc"), ("fish", "complete --no-files")]
)
def test_other_shells_have_theirs(tcc: Tcc, shell: str, mark: str) -> None:
    ended = tcc("completion", shell)
    assert ended.code == 0
    assert ended.out.startswith(mark) or mark in ended.out
    assert "_TCC_COMPLETE" in ended.out


def test_a_shell_without_completion_is_bad_usage(tcc: Tcc) -> None:
    assert tcc("completion", "tcsh").code == 2
