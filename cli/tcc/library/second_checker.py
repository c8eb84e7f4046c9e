"""Runs the second checker, which is extracted from proofs: ``tcc-proved`` on the path, or node.

proofs/checker/README.md says what it shows and what it does not look at.  It checks C1 to C9 and
residuals, but not the schema of a core; so its verdict is added to the kernel's, and never replaces
it.  Cost: a process, and about the time that the kernel takes for the file.
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
from tcc_certs.report import DECLINED, VALID, CheckReport, RuleFinding

PROGRAM = "tcc-proved"
SECONDS = 600
# Reads a path a line; what it throws (a number past BigInt's, a full stack) decides nothing.
_UNDER_NODE = """
const fs = require("fs");
(0, eval)(fs.readFileSync(process.argv[1], "utf8"));
const say = (judged) => {
  let line;
  try { line = judged(); } catch (error) { line = "DECLINED: too large"; }
  console.log(line.replace(/[\\r\\n]/g, " "));
};
const paths = process.argv.slice(2);
if (paths[0] === "--session") {
  const data = fs.readFileSync(paths[1]);
  say(() => globalThis.tccCheck(data));
  for (const path of paths.slice(2)) say(() => globalThis.tccSession(data, fs.readFileSync(path)));
} else {
  for (const path of paths) say(() => globalThis.tccCheck(fs.readFileSync(path)));
}
"""
HOW = (
    f"no {PROGRAM} and no node on the path: install node, or build {PROGRAM} in a checkout with "
    "scripts/proofs --checker and put proofs/checker/build on the path"
)


class NoChecker(RuntimeError):
    """There is no program to run, or it gave no verdict."""


def program_text() -> str:
    """The checker as JavaScript: it sets ``globalThis.tccCheck``, from bytes to a line."""
    return resources.files("tcc.pages").joinpath("proved.js").read_text(encoding="utf-8")


def verdicts(files: Sequence[bytes], command: Sequence[str] | None = None) -> list[str]:
    """The line of the extracted checker about each file.

    Args:
        files: whole files, from anywhere.
        command: the command that runs it; by default `command_line`.

    Raises:
        NoChecker: there is no program, or it ended without a line for each file.
    """
    return _lines(files, command, ())


def session_verdicts(
    artifact: bytes, ledgers: Sequence[bytes], command: Sequence[str] | None = None
) -> list[str]:
    """The lines of the extracted checker about the ledgers of sessions over one artifact.

    Raises:
        NoChecker: as :func:`verdicts`, or the artifact is not VALID for it.
    """
    first, *lines = _lines([artifact, *ledgers], command, ("--session",), short=True)
    if not first.startswith("VALID: "):
        raise NoChecker(f"of the artifact it says {clip(first)}")
    return lines


def _lines(
    files: Sequence[bytes],
    command: Sequence[str] | None,
    options: Sequence[str],
    *,
    short: bool = False,
) -> list[str]:
    """A line for each file; `short`: the first alone, where it is not VALID."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "proved.js")
        script.write_text(program_text(), encoding="utf-8")
        paths = [Path(folder, str(number)) for number in range(len(files))]
        for path, data in zip(paths, files, strict=True):
            path.write_bytes(data)
        program = command_line(script) if command is None else command
        run = [*program, *options, *map(str, paths)]
        said = Path(folder, "lines")
        try:
            with said.open("wb") as out:
                subprocess.run(
                    run, stdout=out, stderr=subprocess.DEVNULL, check=False, timeout=SECONDS
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoChecker(f"{run[0]} gave no verdict: {clip(error)}") from None
        lines = said.read_text("utf-8", "replace").splitlines()
    refused = short and len(lines) == 1 and not lines[0].startswith("VALID: ")
    if len(lines) != len(files) and not refused:
        raise NoChecker(f"{run[0]} gave {len(lines)} lines about {len(files)} files")
    return lines


def command_line(script: Path) -> list[str]:
    """The command that runs the checker: the program on the path, else node with `script`.

    Raises:
        NoChecker: neither is installed.
    """
    if (program := shutil.which(PROGRAM)) is not None:
        return [program]
    return under_node(script)


def under_node(script: Path) -> list[str]:
    """The command for the checker's JavaScript under node.

    Raises:
        NoChecker: node is not installed.
    """
    node = shutil.which("node")
    if node is None:
        raise NoChecker(HOW)
    return [node, "--stack-size=3900", "-e", _UNDER_NODE, str(script)]


def with_proved(report: CheckReport, data: bytes) -> CheckReport:
    """The report of the kernel, VALID only if the extracted checker says VALID of the same file.

    A line that is not VALID, or that is about another digest, makes it DECLINED: the two disagree,
    or no theorem covers a feature.

    Raises:
        NoChecker: there is no verdict.
    """
    if report.verdict != VALID:
        return report
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
