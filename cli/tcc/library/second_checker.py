"""Runs the second checker, which is extracted from proofs: ``tcc-proved`` on the path, or node.

proofs/checker/README.md explains what its VALID means.  It reads neither statements nor the schema
of a core, so its verdict can only add to the kernel's verdict.  Cost: a process, and about the
kernel's time for the file.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from tcc_certs.errors import Code, clip
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.report import DECLINED, VALID, CheckReport, RuleFinding

PROGRAM = "tcc-proved"
SECONDS = 600
# Prints one line for each path.  An exception (a size beyond BigInt, a full stack) is DECLINED.
_UNDER_NODE = """
const fs = require("fs");
(0, eval)(fs.readFileSync(process.argv[1], "utf8"));
for (const path of process.argv.slice(2)) {
  let line;
  try { line = globalThis.tccCheck(fs.readFileSync(path)); }
  catch (error) { line = "DECLINED: too large"; }
  console.log(line.replace(/[\\r\\n]/g, " "));
}
"""
HOW = (
    f"no {PROGRAM} and no node on the path: install node, or build {PROGRAM} in a checkout with "
    "scripts/proofs --checker and put proofs/checker/build on the path"
)


class NoChecker(RuntimeError):
    """The checker cannot be run, or it gave no verdict."""


def program_text() -> str:
    """Return the checker as JavaScript, which sets ``globalThis.tccCheck``: bytes to one line."""
    return resources.files("tcc.pages").joinpath("proved.js").read_text(encoding="utf-8")


def verdicts(files: Sequence[bytes], command: Sequence[str] | None = None) -> list[str]:
    """Return the line that the extracted checker prints about each file.

    Args:
        files: the contents of the files.
        command: the command that runs the checker; None uses `command_line`.

    Raises:
        NoChecker: the command cannot be run, or does not print one line for each file.
    """
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "proved.js")
        script.write_text(program_text(), encoding="utf-8")
        paths = [Path(folder, str(number)) for number in range(len(files))]
        for path, data in zip(paths, files, strict=True):
            path.write_bytes(data)
        program = command_line(script) if command is None else command
        run = [*program, *map(str, paths)]
        output = Path(folder, "lines")
        try:
            with output.open("wb") as out:
                subprocess.run(
                    run, stdout=out, stderr=subprocess.DEVNULL, check=False, timeout=SECONDS
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoChecker(f"{run[0]} gave no verdict: {clip(error)}") from None
        lines = output.read_text("utf-8", "replace").splitlines()
    if len(lines) != len(files):
        raise NoChecker(f"{run[0]} gave {len(lines)} lines about {len(files)} files")
    return lines


def command_line(script: Path) -> list[str]:
    """Return the command that runs the checker: the program on the path, else node with `script`.

    Raises:
        NoChecker: neither is installed.
    """
    if (program := shutil.which(PROGRAM)) is not None:
        return [program]
    return under_node(script)


def under_node(script: Path) -> list[str]:
    """Return the command that runs the checker's JavaScript in node.

    Raises:
        NoChecker: node is not installed.
    """
    node = shutil.which("node")
    if node is None:
        raise NoChecker(HOW)
    return [node, "--stack-size=3900", "-e", _UNDER_NODE, str(script)]


def with_proved(report: CheckReport, data: bytes) -> CheckReport:
    """Return the kernel's report, but DECLINED unless the extracted checker says VALID too.

    The checker declines a feature that no theorem covers, such as cycles in an automaton.  A VALID
    about another digest, or any other line, counts as disagreement.

    Raises:
        NoChecker: the checker gives no verdict.
    """
    if report.verdict != VALID:
        return report
    if read_artifact(data, digests=False).manifest.cyclic:
        line = "DECLINED: a feature: cyclic, an automaton with cycles"
    else:
        [line] = verdicts([data])
    if line.startswith("VALID: ") and line.endswith(f"; digest {report.digest}"):
        shown = line.removeprefix("VALID: ").partition("; digest")[0]
        return replace(report, lines=(*report.lines, f"a proved program says so too: {shown}"))
    feature = line.startswith("DECLINED: a feature")
    found = RuleFinding(
        code=Code.UNKNOWN_FEATURE if feature else Code.LIMIT,
        path="the proved checker",
        expected="the verdict of the kernel, on this file",
        found=clip(line.removeprefix("VALID: ")),
    )
    words = f"DECLINED: {found.code.value} at {found.path}: {found.found}"
    return CheckReport(verdict=DECLINED, findings=(found,), lines=(words,))
