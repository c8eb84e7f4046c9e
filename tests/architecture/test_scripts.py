"""Packages of Debian are installed whatever an installation before left behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Each notes how it was called; the file of its name has the statuses that it fails with first.
_FAKE = """#!/bin/sh
printf '%s\\n' "$(basename "$0") $*" >> "$FAKE/calls"
fails="$FAKE/$(basename "$0").fails"
[ -e "$fails" ] || exit 0
status=$(head -n 1 "$fails")
[ -n "$status" ] || exit 0
sed -i 1d "$fails"
exit "$status"
"""


def _install(folder: Path, **fails: list[int]) -> tuple[int, list[str]]:
    """The status of an installation and what was called, where programs fail first."""
    for name in ("dpkg", "apt-get", "sudo"):
        (folder / name).write_text('#!/bin/sh\nexec "$@"\n' if name == "sudo" else _FAKE)
        (folder / name).chmod(0o755)
    for name, statuses in fails.items():
        text = "".join(f"{status}\n" for status in statuses)
        (folder / f"{name.replace('_', '-')}.fails").write_text(text)
    done = subprocess.run(
        ["bash", "-euc", "source scripts/debian.sh; debian_install graphviz"],
        cwd=ROOT,
        env={"PATH": f"{folder}:{os.environ['PATH']}", "FAKE": str(folder), "DPKG_WAIT": "0"},
        check=False,
    )
    calls = (folder / "calls").read_text().splitlines()
    return done.returncode, [f"{name} {rest[-1]}" for name, *rest in map(str.split, calls)]


@pytest.mark.parametrize(
    ("fails", "calls"),
    [
        ({}, ["dpkg -a", "apt-get update", "apt-get graphviz"]),
        # A package that cannot be configured is for apt-get to tell.
        ({"dpkg": [1]}, ["dpkg -a", "apt-get update", "apt-get graphviz"]),
        # Another dpkg is at work.
        ({"dpkg": [2, 2]}, [*["dpkg -a"] * 3, "apt-get update", "apt-get graphviz"]),
        ({"apt_get": [100]}, ["dpkg -a", *["apt-get update"] * 2, "apt-get graphviz"]),
        (
            {"apt_get": [0, 100]},
            ["dpkg -a", "apt-get update", "apt-get graphviz"] * 2,
        ),
    ],
)
def test_an_installation_gets_over_what_failed_once(
    fails: dict[str, list[int]], calls: list[str], tmp_path: Path
) -> None:
    assert _install(tmp_path, **fails) == (0, calls)


def test_an_installation_that_fails_twice_fails(tmp_path: Path) -> None:
    status, calls = _install(tmp_path, apt_get=[100] * 5)
    assert status == 100 and calls.count("apt-get graphviz") == 2


def test_locks_are_waited_for_and_no_question_is_asked(tmp_path: Path) -> None:
    _install(tmp_path)
    for line in (tmp_path / "calls").read_text().splitlines():
        if line.startswith("apt-get"):
            assert "DPkg::Lock::Timeout=120" in line and "Acquire::Retries=1" in line
    assert "--yes" in line
