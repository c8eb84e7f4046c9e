"""Artifacts, ledgers and epsilons have the digests that they have on every platform.

``scripts/platforms`` compares the same digests with another C library, on a big-endian processor
and on one of 32 bits.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXPECTED = ROOT / "tests" / "golden" / "digests.txt"
PROGRAM = ROOT / "scripts" / "digests.py"


def compared(expected: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), "--with", str(expected)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_they_are_those_that_are_on_record() -> None:
    ended = compared(EXPECTED)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"54 digests are those of {EXPECTED}\n"


def test_another_digest_is_named(tmp_path: Path) -> None:
    lines = EXPECTED.read_text("utf-8").splitlines()
    (tmp_path / "expected").write_text("\n".join(["x.tcca 00", *lines[1:]]) + "\n", "utf-8")
    ended = compared(tmp_path / "expected")
    assert ended.returncode == 1
    assert ended.stdout.splitlines() == sorted(["x.tcca 00", lines[0]])
