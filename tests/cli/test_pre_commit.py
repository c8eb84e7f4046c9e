"""The hooks of `.pre-commit-hooks.yaml`, run by pre-commit as their users run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tcc.main import COMMANDS, cli
from tests.cli.test_action import OLD, commit, git

ROOT = Path(__file__).parents[2]
HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
}


def test_the_hooks_are_commands_that_take_files() -> None:
    assert list(HOOKS) == ["tcc-fmt", "tcc-lint", "tcc-test", "tcc-check", "tcc-locked"]
    for name, hook in HOOKS.items():
        program, command, *more = hook["entry"].split()
        assert program == "tcc" and hook["language"] == "python"
        if name == "tcc-locked":  # whatever changed, all pins are looked at: one file uses another
            assert [command, *more] == ["check", "--locked"] and hook["pass_filenames"] is False
            continue
        assert (f"tcc-{command}", more) == (name, [])
        if command in COMMANDS:
            found = cli.get_command(click.Context(cli), command)
            assert found is not None
            assert any(p.nargs == -1 for p in found.params if isinstance(p, click.Argument))


@pytest.mark.campaign
def test_pre_commit_takes_the_manifest() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-manifest"]
    subprocess.run([*command, str(ROOT / ".pre-commit-hooks.yaml")], check=True, timeout=60)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps what it has installed."""
    return tmp_path_factory.mktemp("pre-commit")


def try_hook(home: Path, folder: Path, hook: str, *files: str) -> tuple[int, str]:
    rooms = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "GIT_DIR")}
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "try-repo", str(ROOT), hook, "--verbose",
         "--files", *files],
        cwd=folder, env={**rooms, "PRE_COMMIT_HOME": str(home)}, capture_output=True, text=True,
        timeout=900, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


GOOD = """grammar g version "1"

tool a { cost 1 }

plan = a{1,2}

accept a
"""
BAD = {
    "tcc-test": GOOD + "reject a\n",
    "tcc-fmt": GOOD.replace("plan = a", "plan   =   a"),
    "tcc-lint": GOOD.replace("tool a", "tool unused { cost 1 }\ntool a"),
}


@pytest.mark.campaign
@pytest.mark.parametrize("hook", BAD)
def test_a_hook_passes_a_good_grammar_and_fails_a_bad_one(
    home: Path, tmp_path: Path, hook: str
) -> None:
    if hook.removeprefix("tcc-") not in COMMANDS:
        pytest.skip(f"there is no command for {hook} yet")
    git(tmp_path, "init", "-q")
    (tmp_path / "good.tcg").write_text(GOOD)
    (tmp_path / "bad.tcg").write_text(BAD[hook])
    (tmp_path / "other.txt").write_text("no grammar")
    commit(tmp_path)
    code, said = try_hook(home, tmp_path, hook, "good.tcg", "other.txt")
    assert code == 0 and "Passed" in said, said
    code, said = try_hook(home, tmp_path, hook, "good.tcg", "bad.tcg")
    assert code == 1 and "Failed" in said, said


@pytest.mark.campaign
def test_the_hook_of_artifacts_passes_a_good_one_and_fails_a_bad_one(
    home: Path, tmp_path: Path
) -> None:
    import tcc as library

    git(tmp_path, "init", "-q")
    library.save(library.compile_text(OLD), tmp_path / "good.tcca")
    (tmp_path / "bad.tcca").write_bytes((tmp_path / "good.tcca").read_bytes()[:-1])
    commit(tmp_path)
    code, said = try_hook(home, tmp_path, "tcc-check", "good.tcca")
    assert code == 0 and "Passed" in said, said
    code, said = try_hook(home, tmp_path, "tcc-check", "good.tcca", "bad.tcca")
    assert code == 1 and "B205" in said, said
