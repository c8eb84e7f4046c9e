"""Runs fast tests of the packages that changed since a commit, and of packages that use them.

    scripts/test --quick [COMMIT] [arguments of pytest]

The tests run on the sources.  A test file belongs to a package if it imports the package.  Tests of
more than 0.2 s are `slow` (tests/durations.json, which `scripts/durations.py` writes) and are left
out.  The longest files are left out too if all files would exceed the time limit.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DURATIONS = ROOT / "tests" / "durations.json"
# A folder of sources: its package, and the packages that depend on it.
PACKAGES = {
    "certs": ("tcc_certs", "tcc_compiler", "tcc_runtime", "tcc_experiments", "tcc"),
    "compiler": ("tcc_compiler", "tcc_experiments", "tcc"),
    "runtime": ("tcc_runtime", "tcc_experiments", "tcc"),
    "experiments": ("tcc_experiments", "tcc"),
    "cli": ("tcc",),
}
SECONDS = 28.0  # on two cores, for collecting and running tests; starting takes half a minute more
_COLLECTING = 0.15  # seconds that both workers need to collect a file without compiled code
_UNKNOWN = 1.0  # seconds assumed for a file that has not been timed


def touched(commit: str) -> list[str]:
    """Return the files that differ from a commit, and untracked files."""
    told: list[str] = []
    for command in (
        ("git", "diff", "--name-only", "-z", commit),
        ("git", "ls-files", "--others", "--exclude-standard", "-z"),
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr.strip())
        told += [name for name in done.stdout.split("\0") if name]
    return sorted(set(told))


def concerned(names: Iterable[str]) -> set[str]:
    """Return the packages that contain these files, and the packages that depend on them."""
    found = {name.split("/")[0] for name in names}
    return {package for folder in found & set(PACKAGES) for package in PACKAGES[folder]}


@cache
def imported(path: Path) -> set[str]:
    """Return the top-level packages that a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def chosen(names: Iterable[str], seconds: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """Return the test files to run, and the test files left out for lack of time.

    Args:
        names: the files that changed.
        seconds: for each test file, the seconds of its tests that are not slow.
    """
    known, packages = set(names), concerned(names)
    found: list[tuple[bool, float, str]] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name in known or imported(path) & packages:
            found.append((name not in known, seconds.get(name, _UNKNOWN), name))
    left = SECONDS * 2
    run: list[str] = []
    late: list[str] = []
    for _, took, name in sorted(found):
        left -= took + _COLLECTING
        (run if left >= 0 else late).append(name)
    return run, late


def main(arguments: list[str]) -> int:
    """Choose the tests and run them; return pytest's exit code."""
    given = bool(arguments) and not arguments[0].startswith("-")
    commit = arguments.pop(0) if given else "HEAD~1"
    run, late = chosen(touched(commit), json.loads(DURATIONS.read_text())["files"])
    for name in late:
        sys.stderr.write(f"left out for lack of time: {name}\n")
    if not run:
        sys.stderr.write(f"no test is concerned by what changed since {commit}\n")
        return 0
    paths = [str(ROOT / folder) for folder in PACKAGES]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    # Bytecode is kept for the processes that tests start and for the next time.  All cores compile
    # the sources first, because each worker would otherwise do it separately.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    build = [sys.executable, "-m", "compileall", "-qq", "-j", "0", *paths]
    subprocess.run(build, cwd=ROOT, env=environment, check=False)
    wanted = "not campaign and not browser and not slow"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", wanted, *arguments, *run]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
