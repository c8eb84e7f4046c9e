"""Print how many files and lines of certs a reader has to trust for each verdict.

    python scripts/trusted_size.py

A row counts the module that decides, and every module of certs that it may import, also inside
functions.  Imports of an `__init__.py` do not count: they only offer names to other packages.
`code` leaves out blank lines, comments and docstrings.
"""

from __future__ import annotations

import sys
import tokenize
from modulefinder import ModuleFinder
from pathlib import Path
from types import CodeType
from typing import Any

CERTS = Path(__file__).resolve().parents[1] / "certs"
DECIDES = {
    "check": "kernel",
    "check --core": "corecheck.check",
    "validate, of a run": "replay.validation",
    "validate, of a session": "session.validation",
}
_SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
           tokenize.ENCODING, tokenize.ENDMARKER}  # fmt: skip


class _Finder(ModuleFinder):
    """Finds the modules that modules import, but does not follow the imports of packages."""

    def scan_code(self, co: CodeType, m: Any) -> None:
        if m.__path__ is None:
            super().scan_code(co, m)


def files(module: str) -> list[Path]:
    """Return the files of certs that a module may load, including its own file."""
    finder = _Finder(path=[str(CERTS)])
    finder.import_hook(f"tcc_certs.{module}", fromlist=["*"])
    return [Path(found.__file__) for found in finder.modules.values() if found.__file__]


def code_lines(path: Path) -> int:
    """Count the lines that are not blank, comment or docstring."""
    lines: set[int] = set()
    before = tokenize.ENCODING
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            docstring = token.type == tokenize.STRING and before in _SILENT - {tokenize.NL}
            if token.type not in _SILENT and not docstring:
                lines.update(range(token.start[0], token.end[0] + 1))
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                before = token.type
    return len(lines)


def main() -> None:
    """Print the table."""
    sys.stdout.write(f"{'what decides':<24}{'files':>6}{'lines':>8}{'code':>8}\n")
    for what, module in DECIDES.items():
        found = files(module)
        lines = sum(len(path.read_text("utf-8").splitlines()) for path in found)
        code = sum(map(code_lines, found))
        sys.stdout.write(f"{what:<24}{len(found):>6}{lines:>8,}{code:>8,}\n")


if __name__ == "__main__":
    main()
