"""The guards of a run that the replay has to see fire where they fire, and nowhere else.

Normative text: docs/spec/ledger.md, section 5.  Cost: a few comparisons an expansion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcc_certs.formats.codec import Json
from tcc_certs.formats.decimals import divide_nearest
from tcc_certs.formats.fixed import Q32_MAX, Q32_MIN, format_q32
from tcc_certs.race.weights import NANO
from tcc_certs.replay.header import Header
from tcc_certs.replay.tree import Node

ACYCLICITY, BUDGET, CAP, CLAMP, COUNT, RANGE, TIMEOUT = (
    "AcyclicityFail", "BudgetFail", "CapExceeded", "NumClamp", "CountFail", "RangeFail", "Timeout",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Potential:
    """Phi at an expansion.

    Attributes:
        fields: ``phi_before``, ``phi_after``, ``delta_phi`` where the record has them.
        fails: whether `AcyclicityFail` fires.
        clamped: whether one of the fields had to be clamped.
    """

    fields: Mapping[str, Json]
    fails: bool
    clamped: bool


_NO_POTENTIAL = Potential(fields={}, fails=False, clamped=False)


def potential(header: Header, root_rank: int, node: Node) -> Potential:
    """Phi of a node and of its parent, where a guard looks at it.

    Phi = (L - depth) + alpha * cost_high, here over the common denominator 10^places * 10^9.
    """
    numerator, places = header.alpha
    parent = node.parent
    if numerator <= 0 or parent is None:
        return _NO_POTENTIAL  # Phi falls by 1 at each step, and eta is at most 1
    unit = NANO * 10**places
    before = (root_rank - parent.depth) * unit + numerator * parent.cost_high
    after = (root_rank - node.depth) * unit + numerator * node.cost_high
    eta, eta_places = header.eta
    exact = {"phi_before": before, "phi_after": after, "delta_phi": after - before}
    rounded = {name: divide_nearest(value << 32, unit) for name, value in exact.items()}
    held = {name: min(max(value, Q32_MIN), Q32_MAX) for name, value in rounded.items()}
    return Potential(
        fields={name: format_q32(value) for name, value in held.items()},
        fails=(after - before) * 10**eta_places > -eta * unit,
        clamped=held != rounded,
    )


def capped(header: Header, expansions: int) -> bool:
    """Whether the cap on expansions forbids another one."""
    return expansions == header.max_expansions
