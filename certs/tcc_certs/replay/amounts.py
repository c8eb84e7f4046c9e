"""What asking may spend and has spent, the rule by which it does, and what records say of them.

Normative text: docs/spec/race.md, section 19; docs/spec/ledger.md, section 11.  Every run has caps,
if only none; what is chosen by them is for :mod:`tcc_certs.replay.asking.controller`.
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
    """Cents, milliseconds and nano-epsilon: what an ask costs, or all of them so far.

    Attributes:
        atom: what one ask takes beside its epsilon.
        taken: of a sum, the account of epsilons and atoms; None where a run keeps none.
    """

    price: int = 0
    latency: int = 0
    epsilon: int = 0
    atom: Atom | None = None
    taken: Taken | None = None

    def plus(self, other: SpentAmounts) -> SpentAmounts:
        """The sum, and one ask more."""
        taken = self.taken
        return SpentAmounts(
            price=self.price + other.price,
            latency=self.latency + other.latency,
            epsilon=self.epsilon + other.epsilon,
            taken=None if taken is None else taken.plus(other.epsilon, other.atom),
        )

    @property
    def epsilon_used(self) -> int:
        """The epsilon of a sum: that of its account, else the sum of the epsilons."""
        return self.epsilon if self.taken is None else self.taken.nano


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingCaps:
    """The most that a run may spend; None is no cap."""

    price: int | None = None
    latency: int | None = None
    epsilon: int | None = None

    def hold(self, spent: SpentAmounts) -> bool:
        """Whether `spent` is within all three."""
        pairs = ((spent.price, self.price), (spent.latency, self.latency))
        fits = all(cap is None or found <= cap for found, cap in pairs)
        return fits and (self.epsilon is None or spent.epsilon_used <= self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRule:
    """What a run's header says of asking.

    Attributes:
        ask: ``never``, ``leaf`` or ``node``.
        price_weight, latency_weight, epsilon_weight: a, b > 0 and c >= 0, exact decimals.
        caps: of the run.
        taken: the account that it begins with; None: it keeps none.
        margin: Q, an exact decimal; None: a gain is expected as it is predicted.
    """

    ask: str
    price_weight: Decimal
    latency_weight: Decimal
    epsilon_weight: Decimal
    caps: SpendingCaps
    taken: Taken | None = None
    margin: Decimal | None = None


# ---- What records say of them.


def spent_fields(spent: SpentAmounts) -> Mapping[str, Json]:
    """The three sums of what asks have taken, and what is stated of their atoms."""
    return {
        "price_spent": str(spent.price),
        "latency_ms": str(spent.latency),
        "epsilon_used": format_decimal(spent.epsilon_used, 9),
        **({} if spent.taken is None else spent.taken.fields()),
    }


def cap_fields(caps: SpendingCaps) -> Mapping[str, Json]:
    """The caps on asking that there are."""
    fields: dict[str, Json] = {}
    if caps.price is not None:
        fields["price_cap"] = caps.price
    if caps.latency is not None:
        fields["sla_ms"] = caps.latency
    if caps.epsilon is not None:
        fields["epsilon_cap"] = format_decimal(caps.epsilon, 9)
    return fields
