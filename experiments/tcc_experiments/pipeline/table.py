"""The table by mode: the paper's columns, and what its table lacks.

Cost: none.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_experiments.intervals import half_width
from tcc_experiments.model import Row
from tcc_experiments.pipeline.baseline import NAME as LOOP
from tcc_experiments.sums import rate


def by_mode(rows: Sequence[Row]) -> list[Row]:
    """One row for each mode, in the order of their first appearance."""
    names = list(dict.fromkeys(str(row["mode"]) for row in rows))
    return [_of_mode(name, [row for row in rows if row["mode"] == name]) for name in names]


def _of_mode(name: str, rows: Sequence[Row]) -> Row:
    right = sum(bool(row["right"]) for row in rows)
    first: Row = {"mode": name, "queries": len(rows)}
    accuracy: Row = {
        "calls": _mean(rows, "calls"),
        "answered": sum(row["value"] is not None for row in rows),
        "right": right,
        "accuracy": rate(right, len(rows)),
    }
    if name == LOOP:
        return first | dict.fromkeys(_SEARCHED) | accuracy
    tightened = sum(_number(row, "kappa_tightened") for row in rows)
    nodes = sum(_number(row, "kappa_nodes") for row in rows)
    weighed = sum(_number(row, "kappa_nodes") * _number(row, "kappa_mean") for row in rows)
    kappa = f"{tightened:.0f} of {nodes:.0f}, mean {weighed / max(nodes, 1):.3f}"
    searched: Row = {
        "expansions": int(sum(_number(row, "expansions") for row in rows)),
        "wall_s": round(sum(_number(row, "wall_ms") for row in rows) / 1000, 3),
        "expansions_q": _mean(rows, "expansions"),
        "expansions_q_+-": _half(rows, "expansions"),
        "wall_q_ms": _mean(rows, "wall_ms"),
        "wall_q_ms_+-": _half(rows, "wall_ms"),
        "stop_slack": max(_number(row, "slack") for row in rows),
        "replay": _of(rows, "replay"),
        "sessions": _of(rows, "session"),
        "kappa": kappa if tightened else "n/a",
        "searches": _mean(rows, "searches"),
    }  # fmt: skip
    return first | searched | accuracy


_SEARCHED = (
    "expansions",
    "wall_s",
    "expansions_q",
    "expansions_q_+-",
    "wall_q_ms",
    "wall_q_ms_+-",
    "stop_slack",
    "replay",
    "sessions",
    "kappa",
    "searches",
)


def _number(row: Row, column: str) -> float:
    return float(row[column] or 0)


def _mean(rows: Sequence[Row], column: str) -> float:
    return round(sum(_number(row, column) for row in rows) / len(rows), 2)


def _half(rows: Sequence[Row], column: str) -> float | None:
    values = [_number(row, column) for row in rows]
    if len(values) < 2:
        return None
    return round(half_width(len(values), sum(values), sum(v * v for v in values)), 2)


def _of(rows: Sequence[Row], column: str) -> str:
    good = sum(bool(row[column]) for row in rows)
    return f"{good} of {len(rows)} VALID"
