"""Rows of parts added up, and the numbers of a table as they are published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcc_experiments.intervals import half_width, lower_limit, upper_limit
from tcc_experiments.model import Row


def merged(rows: Sequence[Row], keys: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each value of `keys`, in the order of their first appearance; the rest summed."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        name = tuple(row[key] for key in keys)
        into = found.setdefault(name, {key: row[key] for key in keys})
        for column, value in row.items():
            if column not in keys:
                into[column] = into.get(column, 0) + value
    return list(found.values())


def mean(row: dict[str, Any], column: str) -> float:
    """The mean of a summed column over `runs`."""
    return float(row[column]) / int(row["runs"])


def spread(row: dict[str, Any], column: str) -> float:
    """Half of the 95 % interval of the mean; the squares stand in `<column>2`."""
    return half_width(int(row["runs"]), float(row[column]), float(row[f"{column}2"]))


def rate(events: int, runs: int) -> str:
    """A rate in per cent with its exact two-sided 95 % limits."""
    low, high = lower_limit(events, runs, 0.025), upper_limit(events, runs, 0.025)
    return f"{percent(events / runs)} ({percent(low)} to {percent(high)})"


def percent(value: float) -> str:
    """Three significant digits."""
    return f"{100 * value:.3g} %"
