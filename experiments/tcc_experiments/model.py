"""What an experiment is: parts that are run, tables of their rows, findings, figures, seeds.

A part is a small dictionary that JSON can hold; its rows depend on nothing else (except times), so
a finished part need not be run again, and parts may run in any order and process. All seeds are
derived from names and numbers, so every run can be repeated. Cost: none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from blake3 import blake3

Cell: TypeAlias = "int | float | str | bool | None"
Row: TypeAlias = "dict[str, Cell]"
Part: TypeAlias = "Mapping[str, int | str]"


class Size(StrEnum):
    """How much is run: `quick` shows that all of it works, `full` is for the record."""

    QUICK = "quick"
    FULL = "full"


class ClaimVerdict(StrEnum):
    """How a claim of the paper fares here."""

    HOLDS = "holds"
    FAILS = "does not hold"
    DIFFERS = "differs because"
    EXTRA = "not in the paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFinding:
    """One line of RESULTS.md.

    Attributes:
        claim: what the paper says, in our words, with its place.
        found: our figure.
        verdict: of the two.
        because: why, where that needs saying.
    """

    claim: str
    found: str
    verdict: ClaimVerdict
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """A table as it is published: one CSV file, one table in RESULTS.md.

    Attributes:
        name: of the CSV file.
        caption: what the rows are, with the units of the columns.
        rows: all with the same keys, in the order of the columns.  A column whose name ends in
            `+-` is half of the 95 % interval of the column before it.
        times: columns that the clock has a part in.
        shown: whether RESULTS.md has it too; a figure's points stay in the CSV file.
    """

    name: str
    caption: str
    rows: Sequence[Row]
    times: Sequence[str] = ()
    shown: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What came out of an experiment."""

    tables: Sequence[ResultTable]
    findings: Sequence[ClaimFinding]

    def table(self, name: str) -> Sequence[Row]:
        """The rows of the table of that name."""
        return next(table.rows for table in self.tables if table.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment.

    Attributes:
        name, title: of the section in RESULTS.md; the title is a sentence.
        paper: labels of the paper's tables, figures and theorems that it measures again.
        seconds: about what it takes of one core, by size.
        revision: raised when the same parts would give other rows.
        parts: what is run, for a size.
        work: the rows of one part.
        conclude: tables and findings from the rows of all parts.
        draw: each figure by its file name: a function of the conclusion and of matplotlib's
            pyplot, which gives a figure back.
    """

    name: str
    title: str
    paper: Sequence[str]
    seconds: Mapping[Size, int]
    revision: int
    parts: Callable[[Size], Sequence[Part]]
    work: Callable[[Part], list[Row]]
    conclude: Callable[[Sequence[Row]], Conclusion]
    draw: Mapping[str, Callable[[Conclusion, Any], Any]]


def seed_of(name: str, *numbers: int) -> bytes:
    """The 32 bytes of the run `numbers` of an experiment."""
    return blake3(f"tcc.experiments.v1/{name}/{'/'.join(map(str, numbers))}".encode()).digest()


def random_of(name: str, *numbers: int) -> random.Random:
    """A generator for the shape and the costs of a graph."""
    return random.Random(seed_of(name, *numbers))
