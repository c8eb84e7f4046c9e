"""Tables as LaTeX, for a text about the experiments.

Each file is one `table` environment in the style of the paper: booktabs, numbers to the right.
A document needs ``\\usepackage{booktabs,graphicx}`` and ``\\input{latex/suites.tex}``.
"""

from __future__ import annotations

import re

from tcc_experiments.model import Cell, Experiment, ResultTable

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
} | {character: f"\\{character}" for character in "&%$#_{}"}
_CODE = re.compile(r"`([^`]*)`")


def latex_table(table: ResultTable, experiment: Experiment) -> str:
    """A table as a LaTeX `table` with its caption and a label, ``tab:tcc-NAME``."""
    columns = list(table.rows[0]) if table.rows else []
    shape = "".join("r" if _numeric(table, column) else "l" for column in columns)
    head = " & ".join(
        "$\\pm$" if c.endswith("+-") else escaped(c.replace("_", " ")) for c in columns
    )
    body = [" & ".join(_cell(row[column]) for column in columns) for row in table.rows]
    labels = ", ".join(experiment.paper) or "no label of the paper"
    lines = [
        f"% Written by: tcc experiments {experiment.name} --latex",
        f"% Measures: {labels}",
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{_CODE.sub(_code, escaped(table.caption))}}}",
        rf"\label{{tab:tcc-{table.name.replace('_', '-')}}}",
        r"\resizebox{\linewidth}{!}{%",
        rf"\begin{{tabular}}{{@{{}}{shape}@{{}}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
        *(rf"{line} \\" for line in body),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text in which LaTeX finds no command."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def _code(match: re.Match[str]) -> str:
    return rf"\texttt{{{match[1]}}}"


def _numeric(table: ResultTable, column: str) -> bool:
    cells = [row[column] for row in table.rows if row[column] is not None]
    return all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells)


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1 else f"{value:.6g}"
    return escaped(str(value))
