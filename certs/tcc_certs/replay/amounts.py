"""The caps and amounts of questions about costs, the rule for them, and their fields in records.

Normative text: docs/spec/race.md, section 19; docs/spec/ledger.md, section 11.  Every run has caps,
possibly empty.  :mod:`tcc_certs.replay.asking.controller` chooses by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tcc_certs.formats.codec import Json, format_decimal

if TYPE_CHECKING:
    from tcc_certs.policy.atoms import Atom
    from tcc_certs.privacy.spending import Taken

Decimal: TypeAlias = "tuple[int, int]"  # numerator, places


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentAmounts:
    """Cents, milliseconds and nano-epsilon of one question, or of all questions so far.

    Attributes:
        atom: for one question, its privacy atom, if it has one.
        taken: for a sum, the privacy spending of epsilons and atoms; None if the run counts no
            atoms.
    """

    price: int = 0
    latency: int = 0
    epsilon: int = 0
    atom: Atom | None = None
    taken: Taken | None = None

    def plus(self, other: SpentAmounts) -> SpentAmounts:
        """Return this sum with one more question."""
        taken = self.taken
        return SpentAmounts(
            price=self.price + other.price,
            latency=self.latency + other.latency,
            epsilon=self.epsilon + other.epsilon,
            taken=None if taken is None else taken.plus(other.epsilon, other.atom),
        )

    @property
    def epsilon_used(self) -> int:
        """The epsilon of a sum: composed with atoms if the run counts atoms, else the plain sum."""
        return self.epsilon if self.taken is None else self.taken.nano


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingCaps:
    """The most that a run may spend; None: no cap."""

    price: int | None = None
    latency: int | None = None
    epsilon: int | None = None

    def hold(self, spent: SpentAmounts) -> bool:
        """Return whether `spent` is within all three caps."""
        pairs = ((spent.price, self.price), (spent.latency, self.latency))
        fits = all(cap is None or found <= cap for found, cap in pairs)
        return fits and (self.epsilon is None or spent.epsilon_used <= self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRule:
    """The settings of a run's header for questions.

    Attributes:
        ask: ``never``, ``leaf`` or ``node``.
        price_weight, latency_weight, epsilon_weight: a, b > 0 and c >= 0, exact decimals.
        caps: the caps of the run.
        taken: the privacy spending at the start; None: the run counts no atoms.
        margin: q, an exact decimal; None: predicted gains are not raised.
    """

    ask: str
    price_weight: Decimal
    latency_weight: Decimal
    epsilon_weight: Decimal
    caps: SpendingCaps
    taken: Taken | None = None
    margin: Decimal | None = None


# ---- Fields of records.


def spent_fields(spent: SpentAmounts) -> Mapping[str, Json]:
    """Return the three sums of all questions, and the statement about their atoms."""
    return {
        "price_spent": str(spent.price),
        "latency_ms": str(spent.latency),
        "epsilon_used": format_decimal(spent.epsilon_used, 9),
        **({} if spent.taken is None else spent.taken.fields()),
    }


def cap_fields(caps: SpendingCaps) -> Mapping[str, Json]:
    """Return the caps on questions that are set."""
    fields: dict[str, Json] = {}
    if caps.price is not None:
        fields["price_cap"] = caps.price
    if caps.latency is not None:
        fields["sla_ms"] = caps.latency
    if caps.epsilon is not None:
        fields["epsilon_cap"] = format_decimal(caps.epsilon, 9)
    return fields
