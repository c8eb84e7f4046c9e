"""The commands of the README and of three pages print what the pages show.

Each `sh` block of a page runs in turn, in one folder, by bash, with real servers and environments.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.forking import launcher

ROOT = Path(__file__).parents[2]
# Each page, and how many blocks with output it has at least.
PAGES = {"README.md": 1, "docs/tutorial.md": 4, "docs/auditing.md": 4, "docs/planning.md": 4}
BLOCK = re.compile(
    r"^```sh\n(?P<text>.*?)^```\n\n"
    r"(?:It prints[^\n]*:\n\n(?P<shown>(?:(?:    [^\n]*)?\n)+))?",
    re.MULTILINE | re.DOTALL,
)


def environment() -> dict[str, str]:
    """That of the test: `python` is its interpreter, also for what the examples start."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # What is installed beside the interpreter is found by it alone, not by that of the auditor.
    here = [Path(entry) for entry in sys.path if Path(entry).is_relative_to(ROOT)]
    ours = [str(entry) for entry in here if not entry.is_relative_to(sys.prefix)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(ours), "PATH": path, "NO_COLOR": "1"}


def same_every_time(text: str) -> str:
    """Without the digests that the clock or a new key go into."""
    return re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)


def run(text: str, folder: Path) -> str:
    """What a block prints; it has to end well."""
    shell = (
        f'tcc() {{ {shlex.join(launcher("tcc"))} "$@"; }}\n'
        f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\n'
        'tcc-certs() { python -m tcc_certs "$@"; }\n'
    )
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", shell + text],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_shows_is_what_its_commands_print(name: str, tmp_path: Path) -> None:
    (tmp_path / "certs").symlink_to(ROOT / "certs")
    blocks = list(BLOCK.finditer((ROOT / name).read_text("utf-8")))
    assert sum(1 for block in blocks if block["shown"]) >= PAGES[name]
    for block in blocks:
        printed = run(block["text"], tmp_path)
        if block["shown"]:
            due = re.sub("^    ", "", block["shown"], flags=re.MULTILINE).strip("\n")
            assert same_every_time(printed.strip("\n")) == same_every_time(due)


def test_the_auditor_runs_what_is_in_the_environment_and_nothing_else() -> None:
    """The page says that blake3 is all there is; `python` would find what is elsewhere."""
    page = (ROOT / "docs" / "auditing.md").read_text("utf-8")
    lines = [line.strip() for line in page.splitlines()]
    commands = [line for line in lines if re.match(r"(\S+/)?tcc-certs ", line)]
    assert len(commands) >= 4
    assert all(line.startswith("audit/bin/tcc-certs ") for line in commands)


def test_the_two_distributions_are_of_one_version_and_need_what_the_kernel_imports() -> None:
    whole, checker = (
        tomllib.loads(path.read_text("utf-8"))["project"]
        for path in (ROOT / "pyproject.toml", ROOT / "certs" / "pyproject.toml")
    )
    assert checker["version"] == whole["version"]
    assert checker["requires-python"] == whole["requires-python"]
    assert checker["dependencies"] == [one for one in whole["dependencies"] if "blake3" in one]
    assert checker["scripts"]["tcc-certs"] == whole["scripts"]["tcc-certs"]
