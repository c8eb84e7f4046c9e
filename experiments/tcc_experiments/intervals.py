"""Exact binomial limits, chi-square tail areas, intervals of means, and sums of rows.

Written out here so that the tables need no numerical package. Cost: some hundred terms each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, fsum, inf, lgamma, log, log1p, sqrt
from typing import Any

from tcc_experiments.model import Row


def at_most(events: int, runs: int, rate: float) -> float:
    """The chance of at most that many events in so many runs, each of chance `rate` in (0, 1)."""
    ways = (lgamma(runs + 1) - lgamma(k + 1) - lgamma(runs - k + 1) for k in range(events + 1))
    return fsum(exp(way + k * log(rate) + (runs - k) * log1p(-rate)) for k, way in enumerate(ways))


def upper_limit(events: int, runs: int, risk: float = 0.05) -> float:
    """The one-sided Clopper-Pearson upper limit: the rate at which so few events have that risk."""
    if events >= runs:
        return 1.0
    return _root(lambda rate: at_most(events, runs, rate) > risk, events / runs, 1.0)


def lower_limit(events: int, runs: int, risk: float = 0.05) -> float:
    """The one-sided Clopper-Pearson lower limit."""
    if events <= 0:
        return 0.0
    return _root(lambda rate: 1 - at_most(events - 1, runs, rate) < risk, 0.0, events / runs)


def _root(below: Callable[[float], bool], low: float, high: float) -> float:
    """Where `below` turns from true to false between `low` and `high`."""
    for _ in range(100):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


def chi_square(found: Sequence[int], expected: Sequence[float]) -> tuple[float, int]:
    """Pearson's statistic and its degrees of freedom; cells expecting under 5 are put together."""
    pairs = sorted(zip(expected, found, strict=True), reverse=True)
    kept = [[e, float(f)] for e, f in pairs if e >= 5]
    rest = [sum(e for e, _ in pairs if e < 5), float(sum(f for e, f in pairs if e < 5))]
    if rest[0] > 0 and (rest[0] >= 5 or not kept):
        kept.append(rest)
    elif rest[0] > 0:
        kept[-1] = [kept[-1][0] + rest[0], kept[-1][1] + rest[1]]
    return sum((f - e) ** 2 / e for e, f in kept), len(kept) - 1


def chi_square_tail(statistic: float, freedom: int) -> float:
    """The chance of a greater chi-square: Q(freedom/2, statistic/2), the upper gamma integral.

    Source: Abramowitz and Stegun, 6.5.29 (series) and 6.5.31 (continued fraction).
    """
    if freedom <= 0:
        return 1.0
    a, x = freedom / 2, statistic / 2
    if x <= 0:
        return 1.0
    front = exp(a * log(x) - x - lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        k = a
        while term > total * 1e-16:
            k += 1
            term *= x / k
            total += term
        return 1 - front * total
    return front * _fraction(a, x)


def _fraction(a: float, x: float) -> float:
    """1/(x+1-a- 1(1-a)/(x+3-a- ...)), by Lentz's method."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    value = d
    for k in range(1, 10_000):
        numerator = -k * (k - a)
        b += 2
        d = 1 / (_not_zero(numerator * d + b, tiny))
        c = _not_zero(b + numerator / c, tiny)
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _not_zero(value: float, tiny: float) -> float:
    return tiny if abs(value) < tiny else value


def half_width(runs: int, total: float, squares: float) -> float:
    """Half of the 95 % interval of a mean, from the sums of the values and of their squares."""
    if runs < 2:
        return inf
    mean = total / runs
    variance = max(0.0, (squares - runs * mean * mean) / (runs - 1))
    return 1.959964 * sqrt(variance / runs)


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
