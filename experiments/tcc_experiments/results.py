"""What is published: CSV files, figures, and RESULTS.md with the paper's claims beside ours.

RESULTS.md is made of sections; an experiment that is run again puts its own section in the place of
the old one and leaves the others.  Everything but times is the same from run to run, and can be
held against what was published before.
"""

from __future__ import annotations

import csv
import io
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version as version_of
from pathlib import Path

from tcc_experiments.figures import drawn
from tcc_experiments.latex import latex_table
from tcc_experiments.model import Cell, ClaimFinding, Conclusion, Experiment, ResultTable, Row, Size
from tcc_experiments.runner import EXPERIMENTS
from tcc_runtime.ledger.outputs import write_whole

RESULTS = "RESULTS.md"
_SECTION = re.compile(r"<!-- begin (\w+) -->\n(.*?)<!-- end \1 -->\n", re.DOTALL)
_INTRODUCTION = """# Results

What the paper's tables and figures claim, beside what this implementation measures. `tcc
experiments` writes this file; do not edit it. The tables are also in `csv/`, the figures in
`figures/` as PNG and SVG. *Surrogate, as printed* is the paper's surrogate race (`--race literal`);
it is measured wherever the paper has Surrogate. docs/errata.md explains the differences. A tree of
the paper has its leaves at its last depth (`trees` paper); in an artifact each leaf is below one
more node (`stop`).

Each seed is the BLAKE3 digest of the name of its experiment and of its numbers, so every run can be
repeated. Intervals are 95 %, limits of rates are exact (Clopper and Pearson). `tcc experiments
--against experiments` measures again and names each column that differs. `checksums.txt`
has the checksums of the data that the experiments read: `python -m
tcc_experiments.pipeline.checksums --with experiments/checksums.txt` compares them.

Not reproduced, because the paper does not say enough, or because it is impossible:

- the curves of its figures: the paper's text has only captions, so claims are compared;
- its pipeline of 20 queries: neither queries nor tools nor bounds are published. The table below is
  about 70 questions made for tcc; the paper's 6.20, 11.60 and 16.60 expansions per query are
  quoted, and divided again from the printed totals;
- its bounds in Surrogate mode, and with them its means of kappa, -0.549 and -0.257: here bounds are
  multiples of the counts;
- its adapters and their training: LoRA-A, B and C are only names here, with synthetic weights; one
  more adapter is trained from scratch (`request`);
- its graphs and seeds: suites of the same description are drawn here;
- its ten ledgers, which are not published: for their sizes and times the table has the printed
  figures;
- times on its machine: the times below are those of the machine that measured, and differ from run
  to run;
- the noisy categories of the pipeline: a generator without a seed drew them once, and they are on
  record since.

Running an experiment replaces its own section; the other sections stay as they were, and each says
which versions it was made with.
"""
_MOST_BYTES = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """A cell that was published otherwise.

    Attributes:
        table: its name.
        row: its number, from 1; 0 where the whole column, or table, is missing on one side.
        column: its name; empty where the whole row, or table, is.
        here, there: the cells, as CSV has them; empty where there is none.
    """

    table: str
    row: int
    column: str
    here: str
    there: str


def csv_text(rows: Sequence[Row]) -> str:
    """A table as CSV, with a header line."""
    out = io.StringIO()
    columns = list(rows[0]) if rows else []
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def publish(
    out: Path,
    experiment: Experiment,
    conclusion: Conclusion,
    size: Size,
    figures: bool,
    latex: bool = False,
) -> list[Path]:
    """Write the tables, figures and section of an experiment; return the files.

    Args:
        figures: draw the figures and show them in the section.
        latex: write each table as LaTeX, too.

    Raises:
        MissingExtra: figures are asked for, and matplotlib is not installed.
        OSError: a file cannot be written.
    """
    files: dict[str, bytes] = {
        f"csv/{table.name}.csv": csv_text(table.rows).encode() for table in conclusion.tables
    }
    if latex:
        files |= {
            f"latex/{table.name}.tex": latex_table(table, experiment).encode()
            for table in conclusion.tables
        }
    if figures:
        for name, draw in experiment.draw.items():
            for end, data in drawn(draw, conclusion).items():
                files[f"figures/{name}{end}"] = data
    path = out / RESULTS
    before = sections(path.read_text(encoding="utf-8")) if path.is_file() else {}
    before[experiment.name] = section(experiment, conclusion, size, figures)
    files[RESULTS] = page(before).encode()
    for name, data in files.items():
        write_whole(out / name, data)
    return [out / name for name in files]


def differing(folder: Path, conclusion: Conclusion) -> list[Differing]:
    """What the tables of a folder, or of its `csv/`, have otherwise; times are left out.

    A mean with an interval has to be within the other one's, and the intervals within a factor of
    two; all else has to be equal.
    """
    return [found for table in conclusion.tables for found in _differing(folder, table)]


def _differing(folder: Path, table: ResultTable) -> Iterator[Differing]:
    here = list(csv.reader(io.StringIO(csv_text(table.rows))))
    there = _published(folder, f"{table.name}.csv")
    if not there:
        yield Differing(table=table.name, row=0, column="", here=f"{table.name}.csv", there="")
        return
    columns = [*here[0], *(name for name in there[0] if name not in here[0])]
    for name in columns:
        if (name in here[0]) != (name in there[0]):
            kept = {True: name, False: ""}
            yield Differing(
                table=table.name, row=0, column=name,
                here=kept[name in here[0]], there=kept[name in there[0]],
            )  # fmt: skip
    shared = [name for name in here[0] if name in there[0] and name not in table.times]
    for row in range(1, max(len(here), len(there))):
        if row >= min(len(here), len(there)):
            cells = [",".join(of[row]) if row < len(of) else "" for of in (here, there)]
            yield Differing(table=table.name, row=row, column="", here=cells[0], there=cells[1])
            continue
        ours, theirs = (_named_cells(of[0], of[row]) for of in (here, there))
        for name in shared:
            at = here[0].index(name)
            spread = here[0][at + 1] if here[0][at + 1 :] else ""
            if not _agree(name, spread, ours, theirs):
                yield Differing(
                    table=table.name, row=row, column=name, here=ours[name], there=theirs[name]
                )


def _named_cells(columns: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """The cells of a row by column; those that a short row lacks are empty."""
    return {name: cells[at] if at < len(cells) else "" for at, name in enumerate(columns)}


def _published(folder: Path, name: str) -> list[list[str]]:
    """The lines of a table; none where there is no such table, or it cannot be read."""
    for path in (folder / "csv" / name, folder / name):
        try:
            if path.is_file() and path.stat().st_size <= _MOST_BYTES:
                return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        except (OSError, ValueError, csv.Error):
            return []
    return []


def _agree(name: str, spread: str, here: Mapping[str, str], there: Mapping[str, str]) -> bool:
    """Whether two cells of a column say the same."""
    if here[name] == there[name]:
        return True
    try:
        if name.endswith("+-"):
            low, high = sorted((Decimal(here[name]), Decimal(there[name])))
            return 0 < low <= high <= 2 * low
        if spread.endswith("+-") and spread in there:
            apart = abs(Decimal(here[name]) - Decimal(there[name]))
            return apart <= min(Decimal(here[spread]), Decimal(there[spread]))
    except ArithmeticError:  # no number
        return False
    return False


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


def section(experiment: Experiment, conclusion: Conclusion, size: Size, figures: bool) -> str:
    """The section of one experiment; it shows the figures only if they were drawn."""
    lines = [
        f"## {experiment.title}",
        "",
        f"`tcc experiments {experiment.name}`; {labels_of(experiment)}; {_made(size)}.",
        "",
    ]
    lines += ["| the paper | here | verdict |", "| --- | --- | --- |"]
    lines += [_finding(finding) for finding in conclusion.findings]
    for name in experiment.draw if figures else ():
        lines += ["", f"![{experiment.title}](figures/{name}.svg)"]
    for table in conclusion.tables:
        if table.shown:
            lines += ["", table.caption, "", *_table(table)]
    return "\n".join(lines) + "\n\n"


def labels_of(experiment: Experiment) -> str:
    """The paper's labels of what the experiment measures, or that there are none."""
    return ", ".join(f"`{label}`" for label in experiment.paper) or "no label of the paper"


def _finding(finding: ClaimFinding) -> str:
    verdict = f"**{finding.verdict}**"
    if finding.because:
        joint = " " if finding.verdict.endswith("because") else ": "
        verdict += f"{joint}{finding.because}"
    return f"| {_cell(finding.claim)} | {_cell(finding.found)} | {_cell(verdict)} |"


def _table(table: ResultTable) -> list[str]:
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
