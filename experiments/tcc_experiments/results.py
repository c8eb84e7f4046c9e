"""What is published: CSV files, figures, and RESULTS.md with the paper's claims beside ours.

RESULTS.md is made of sections; an experiment that is run again puts its own section in the place of
the old one and leaves the others.  Everything but times is the same from run to run.
"""

from __future__ import annotations

import csv
import io
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path

from tcc_experiments.catalogue import EXPERIMENTS
from tcc_experiments.figures import drawn
from tcc_experiments.model import Cell, Conclusion, Experiment, Finding, Row, Size, Table
from tcc_runtime.ledger.outputs import write_whole

RESULTS = "RESULTS.md"
_SECTION = re.compile(r"<!-- begin (\w+) -->\n(.*?)<!-- end \1 -->\n", re.DOTALL)
_INTRODUCTION = """# Results

What the paper's tables and figures claim, beside what this implementation measures. Written by
`tcc experiments`; not edited by hand. The tables are in `csv/`, the figures in `figures/`, PNG and
SVG. *Surrogate, as printed* is the surrogate race as the paper has it (`--race literal`); it stands
wherever the paper has Surrogate. What the differences are about: docs/errata.md. The text of the
paper that this was written against has captions in the place of its plots, so claims are compared,
not curves.

Each seed is the BLAKE3 digest of the name of its experiment and of its numbers, so every run can be
made again. Intervals are 95 %, limits of rates are exact (Clopper and Pearson).
"""


def csv_text(rows: Sequence[Row]) -> str:
    """A table as CSV, with a header line."""
    out = io.StringIO()
    columns = list(rows[0]) if rows else []
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def publish(
    out: Path, experiment: Experiment, conclusion: Conclusion, size: Size, figures: bool
) -> list[Path]:
    """Writes the tables, figures and section of an experiment; what was written.

    Raises:
        MissingExtra: figures are asked for, and matplotlib is not installed.
        OSError: a file cannot be written.
    """
    files: dict[str, bytes] = {
        f"csv/{table.name}.csv": csv_text(table.rows).encode() for table in conclusion.tables
    }
    for name, draw in experiment.draw.items():
        if figures:
            for end, data in drawn(draw, conclusion).items():
                files[f"figures/{name}{end}"] = data
    path = out / RESULTS
    before = sections(path.read_text(encoding="utf-8")) if path.is_file() else {}
    before[experiment.name] = section(experiment, conclusion, size)
    files[RESULTS] = page(before).encode()
    for name, data in files.items():
        write_whole(out / name, data)
    return [out / name for name in files]


def sections(text: str) -> dict[str, str]:
    """The sections of a RESULTS.md, by experiment."""
    return {found[1]: found[2] for found in _SECTION.finditer(text)}


def page(parts: Mapping[str, str]) -> str:
    """RESULTS.md of these sections, in the order of the catalogue."""
    names = [name for name in EXPERIMENTS if name in parts]
    body = "\n".join(f"<!-- begin {name} -->\n{parts[name]}<!-- end {name} -->\n" for name in names)
    contents = "".join(
        f"- [{EXPERIMENTS[n].title}](#{_anchor(EXPERIMENTS[n].title)})\n" for n in names
    )
    return f"{_INTRODUCTION}\n{contents}\n{body}"


def section(experiment: Experiment, conclusion: Conclusion, size: Size) -> str:
    """The section of one experiment."""
    lines = [
        f"## {experiment.title}",
        "",
        f"`tcc experiments {experiment.name}`; {_made(size)}.",
        "",
    ]
    lines += ["| the paper | here | verdict |", "| --- | --- | --- |"]
    lines += [_finding(finding) for finding in conclusion.findings]
    for name in experiment.draw:
        lines += ["", f"![{experiment.title}](figures/{name}.svg)"]
    for table in conclusion.tables:
        if table.shown:
            lines += ["", table.caption, "", *_table(table)]
    return "\n".join(lines) + "\n\n"


def _finding(finding: Finding) -> str:
    verdict = f"**{finding.verdict}**"
    if finding.because:
        joint = " " if finding.verdict.endswith("because") else ": "
        verdict += f"{joint}{finding.because}"
    return f"| {_cell(finding.claim)} | {_cell(finding.found)} | {_cell(verdict)} |"


def _table(table: Table) -> list[str]:
    columns = list(table.rows[0]) if table.rows else []
    head = [
        " | ".join(column.replace("_", " ") for column in columns),
        " | ".join(["---"] * len(columns)),
    ]
    body = [" | ".join(_cell(row[column]) for column in columns) for row in table.rows]
    return [f"| {line} |" for line in (*head, *body)]


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1 else f"{value:.6g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def _made(size: Size) -> str:
    """What the figures were made with."""
    parts = [f"size {size}", f"{platform.system()} {platform.machine()}"]
    parts.append(f"Python {platform.python_version()}")
    for name in ("tcc", "gmpy2", "matplotlib"):
        try:
            parts.append(f"{name} {version_of(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(parts)


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
