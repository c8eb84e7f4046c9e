"""What a run has taken of privacy so far, and what its ledger says of it.

Normative text: docs/spec/privacy.md, section 7.  A run keeps this account exactly where its header
has a delta.  Asks add what they took: a plain epsilon, an atom, or both.
Cost: a sum and a minimum over the orders, an ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tcc_certs.formats.codec import Json
from tcc_certs.policy.atoms import Atom, Exact
from tcc_certs.privacy.accountant import PLD, Composed, EpsilonBound, epsilon_text, stated, total_of
from tcc_certs.privacy.curves import curve_of, pure_curve

_NANO = 10  # in units of 10^-10


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """An account.

    Attributes:
        delta: that of every conversion.
        says: whether the run states anything: not one that depends on raw input.
        rule: by which all is added up, ``pld`` or ``renyi``.
        total: all that was taken.
    """

    delta: Exact
    says: bool = True
    rule: str = PLD
    total: Composed = field(default_factory=Composed)

    def plus(self, epsilon: int, atom: Atom | None) -> Taken:
        """With one ask more: `epsilon` in nano-units, and an atom where it took one.

        Raises:
            Rejected: E103, E104 it does not go together with the rest.
        """
        total = self.total
        if epsilon:
            total = total.plus(pure_curve(epsilon))
        if atom is not None:
            total = total.plus(curve_of(atom), atom.times)
        return self if total is self.total else replace(self, total=total)

    def alone(self, epsilon: int, atom: Atom | None) -> int:
        """What an ask by itself comes to at this delta, nano-units, rounded up."""
        return _alone(self.delta, self.rule, epsilon, atom)

    @property
    def statement(self) -> EpsilonBound:
        """The least epsilon at the delta."""
        return stated(self.total, self.delta, self.rule)

    @property
    def nano(self) -> int:
        """The same in nano-units, rounded up: what a cap on epsilon is held against."""
        return -(-self.statement.epsilon // _NANO)

    def fields(self) -> Mapping[str, Json]:
        """What a ledger says of it; nothing where no atom was taken."""
        if not self.says or not self.total.atoms:
            return {}
        found = self.statement
        return {
            "router_rdp_eps": epsilon_text(found.rdp),
            "alpha_selected": found.alpha,
            "eps_delta": {"delta": self.delta.text, "eps": epsilon_text(found.epsilon)},
        }


@lru_cache(maxsize=1 << 10)
def _alone(delta: Exact, rule: str, epsilon: int, atom: Atom | None) -> int:
    return Taken(delta=delta, rule=rule).plus(epsilon, atom).nano


def account(delta: Exact, atoms: Iterable[Atom], says: bool, rule: str = PLD) -> Taken:
    """The account that a run begins with: the atoms that were handed in before it.

    Raises:
        Rejected: E103, E104 they do not go together.
    """
    return Taken(delta=delta, says=says, rule=rule, total=total_of(atoms))


def exact_delta(text: str) -> Exact:
    """A canonical decimal of at least 0, as the accountant takes it."""
    whole, _, part = text.partition(".")
    return Exact(int(whole + part), len(part))
