"""tcc's privacy accountant compared with dp-accounting 0.6.0, in a separate environment.

    python3.11 -m venv OWN && OWN/bin/pip install dp-accounting==0.6.0 blake3
    PYTHONPATH=certs:. OWN/bin/python -m benchmarks.dp_accounting \\
        --write benchmarks/dp_accounting.md

Each row has tcc's epsilon, and the epsilon of the peer's Renyi accountant at its own orders and at
tcc's.  It also has the bounds of the true epsilon by the peer's privacy loss distributions: the
optimistic estimate is the lower bound, the pessimistic one the upper bound.  The exit code is 1 if
tcc's epsilon is below the truth, or more than three hundredths above it.

Notes on 0.6.0: it ignores `count` of an event for randomised response, so a loop composes it.
Neighbours are REPLACE_ONE, as in tcc.  Its `noise_parameter` is the probability that the answer is
drawn uniformly from all choices.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tcc_certs.errors import Code
from tcc_certs.policy.atoms import Atom, Codes, Exact, read_atom
from tcc_certs.privacy.accountant import stated, total_of
from tcc_certs.privacy.curves import ORDERS

_CODES = Codes(Code.ATOMS, Code.ATOM_VALUE)
_DELTAS = (Exact(1, 3), Exact(1, 6))
_SHARE = 1.03
_HEAD = (
    "| mechanism | delta | tcc | order | its Renyi accountant | at our orders | truth, from | to |"
)
_EVEN = 1e-9  # tolerance for the peer's floating point


class Row(NamedTuple):
    """One composition of mechanisms at one delta."""

    name: str
    delta: str
    ours: float
    alpha: str
    default_orders: float
    same_orders: float
    true_low: float
    true_high: float


def main() -> int:
    """Print or write the table; return 0 if every row is within the bounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    path = parser.parse_args().write
    rows = list(_rows())
    text = _table(rows)
    if path is None:
        print(text)
    else:
        path.write_text(text, encoding="utf-8")
    wrong = [row for row in rows if not _holds(row)]
    for row in wrong:
        print("does not hold:", row)
    return int(bool(wrong))


def _holds(row: Row) -> bool:
    above = row.ours >= row.true_low * (1 - _EVEN) - _EVEN
    return above and row.ours <= row.true_high * _SHARE + _EVEN


def _rows() -> Iterator[Row]:
    for p, k, times in ((0.6, 2, 1), (0.6, 2, 50), (0.75, 2, 10), (0.9, 4, 5), (0.51, 2, 1000)):
        name = f"randomized response, p = {p}, {k} choices, {times} times"
        yield from _compared(name, ("randomized_response", p, k), times)
    for scale, times in ((1, 1), (10, 1), (10, 100), (0.5, 3), (100, 10000)):
        yield from _compared(f"Laplace, scale {scale}, {times} times", ("laplace", scale), times)
    for sigma, times in ((1, 1), (4, 16), (0.3, 1), (50, 100), (1000, 1)):
        yield from _compared(f"Gaussian, sigma {sigma}, {times} times", ("gaussian", sigma), times)


def _compared(name: str, what: tuple[Any, ...], times: int) -> Iterator[Row]:
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.privacy_accountant import NeighboringRelation as Relation
    from dp_accounting.rdp import RdpAccountant

    atom, event = _atom(what, times), _event(what)
    known = [float(order.text) for order in ORDERS]
    by_default = RdpAccountant(neighboring_relation=Relation.REPLACE_ONE)
    the_same = RdpAccountant(known, neighboring_relation=Relation.REPLACE_ONE)
    for accountant in (by_default, the_same):
        for _ in range(times):
            accountant.compose(event)
    losses = []
    for pessimistic in (False, True):
        options = {
            "pessimistic_estimate": pessimistic,
            "value_discretization_interval": 1e-4 if times > 100 else 1e-5,
        }
        if what[0] == "randomized_response":
            noise = (1 - what[1]) * what[2] / (what[2] - 1)
            once = pld.from_randomized_response(noise, what[2], **options)
        elif what[0] == "laplace":
            once = pld.from_laplace_mechanism(what[1], **options)
        else:
            once = pld.from_gaussian_mechanism(what[1], **options)
        losses.append(once.self_compose(times) if times > 1 else once)
    for delta in _DELTAS:
        found = stated(total_of([atom]), delta)
        value = float(delta.text)
        yield Row(
            name,
            delta.text,
            found.epsilon / 1e10,
            found.alpha,
            by_default.get_epsilon(value),
            the_same.get_epsilon(value),
            losses[0].get_epsilon_for_delta(value),
            losses[1].get_epsilon_for_delta(value),
        )


def _atom(what: tuple[Any, ...], times: int) -> Atom:
    number = str(what[1])
    if what[0] == "randomized_response":
        members: dict[str, Any] = {"probability": number, "choices": what[2]}
    elif what[0] == "laplace":
        members = {"scale": number, "sensitivity": "1"}
    else:
        members = {"sigma": number, "sensitivity": "1"}
    return read_atom({"mechanism": what[0], **members, "times": times}, "atom", _CODES)


def _event(what: tuple[Any, ...]) -> Any:
    from dp_accounting import dp_event

    if what[0] == "randomized_response":
        return dp_event.RandomizedResponseDpEvent((1 - what[1]) * what[2] / (what[2] - 1), what[2])
    if what[0] == "laplace":
        return dp_event.LaplaceDpEvent(what[1])
    return dp_event.GaussianDpEvent(what[1])


def _table(rows: list[Row]) -> str:
    lines = [
        "# The accountant beside dp-accounting 0.6.0",
        "",
        "Made by `benchmarks/dp_accounting.py`, whose first lines say how. Epsilons at a delta;",
        "the truth lies between the two estimates of its privacy loss distributions.",
        "",
        _HEAD,
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        numbers = (row.default_orders, row.same_orders, row.true_low, row.true_high)
        cells = [row.name, row.delta, f"{row.ours:.6f}", row.alpha]
        cells += [f"{number:.6f}" for number in numbers]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
