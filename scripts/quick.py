"""The fast lane: tests that take little, of the packages touched since a commit and those above.

    scripts/test --quick [COMMIT] [arguments of pytest]

They run on the sources.  A file of tests is one of a package's where it imports the package.
What takes more than 0.2 s is `slow` (tests/durations.json, which `scripts/durations.py` writes) and
is left out, and so are the last files where all would take more than the time there is.
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
# A folder of sources, its package, and the packages that stand on it.
PACKAGES = {
    "certs": ("tcc_certs", "tcc_compiler", "tcc_runtime", "tcc_experiments", "tcc"),
    "compiler": ("tcc_compiler", "tcc_experiments", "tcc"),
    "runtime": ("tcc_runtime", "tcc_experiments", "tcc"),
    "experiments": ("tcc_experiments", "tcc"),
    "cli": ("tcc",),
}
SECONDS = 28.0  # on two cores, of collecting and of the tests; starting takes the rest of a minute
_COLLECTING = 0.15  # seconds of both workers a file, where nothing of it was compiled before
_UNKNOWN = 1.0  # seconds of a file that has not been timed


def touched(commit: str) -> list[str]:
    """The files that differ from a commit, and those that git does not know yet."""
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
    """The packages that files are of, and those above."""
    found = {name.split("/")[0] for name in names}
    return {package for folder in found & set(PACKAGES) for package in PACKAGES[folder]}


@cache
def imported(path: Path) -> set[str]:
    """The packages whose modules a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def chosen(names: Iterable[str], seconds: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """The files of tests that are run, and those that there is no time for.

    Args:
        names: the files that were touched.
        seconds: what the tests of a file take that are not slow.
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
    """Chooses the tests and runs them."""
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
    # What is compiled is kept, for each process that the tests start and for the next time; the
    # sources on all cores before the tests are collected, which each worker does for itself.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    build = [sys.executable, "-m", "compileall", "-qq", "-j", "0", *paths]
    subprocess.run(build, cwd=ROOT, env=environment, check=False)
    wanted = "not campaign and not browser and not slow"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", wanted, *arguments, *run]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
