"""The epsilon that a run has used so far, and the fields of its ledger about it.

Normative text: docs/spec/privacy.md, section 7.  A run has this account if and only if its header
has a delta.  An ask adds a plain epsilon, an atom, or both.  Cost: a sum and a minimum over the
orders for each ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tcc_certs.formats.codec import Json
from tcc_certs.policy.atoms import Atom, Exact
from tcc_certs.privacy.accountant import Composed, EpsilonBound, epsilon_text, stated, total_of
from tcc_certs.privacy.curves import curve_of, pure_curve

_NANO = 10  # one nano-unit in units of 10^-10


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The account of a run: everything that used privacy so far.

    Attributes:
        delta: the delta of every conversion.
        says: whether the ledger states anything; False for a run that depends on raw input.
        total: the sum of everything so far.
    """

    delta: Exact
    says: bool = True
    total: Composed = field(default_factory=Composed)

    def plus(self, epsilon: int, atom: Atom | None) -> Taken:
        """The account after one more ask.

        Args:
            epsilon: the plain epsilon that the ask used, in nano-units.
            atom: the atom that the ask used, if any.

        Raises:
            Rejected: E103, E104 the ask cannot be added to the rest.
        """
        total = self.total
        if epsilon:
            total = total.plus(pure_curve(epsilon))
        if atom is not None:
            total = total.plus(curve_of(atom), atom.times)
        return self if total is self.total else replace(self, total=total)

    def alone(self, epsilon: int, atom: Atom | None) -> int:
        """The epsilon of one ask without the rest of the account, in nano-units, rounded up."""
        return _alone(self.delta, epsilon, atom)

    @property
    def statement(self) -> EpsilonBound:
        """The least epsilon of the account at its delta."""
        return stated(self.total, self.delta)

    @property
    def nano(self) -> int:
        """The same epsilon in nano-units, rounded up; a cap on epsilon is compared with it."""
        return -(-self.statement.epsilon // _NANO)

    def fields(self) -> Mapping[str, Json]:
        """The fields of the ledger about the account; none if it has no atom or `says` is False."""
        if not self.says or not self.total.atoms:
            return {}
        found = self.statement
        return {
            "router_rdp_eps": epsilon_text(found.rdp),
            "alpha_selected": found.alpha,
            "eps_delta": {"delta": self.delta.text, "eps": epsilon_text(found.epsilon)},
        }


@lru_cache(maxsize=1 << 10)
def _alone(delta: Exact, epsilon: int, atom: Atom | None) -> int:
    return Taken(delta=delta).plus(epsilon, atom).nano


def account(delta: Exact, atoms: Iterable[Atom], says: bool) -> Taken:
    """The account that a run begins with.

    Args:
        atoms: the atoms that were used before the run.

    Raises:
        Rejected: E103, E104 they cannot be added up.
    """
    return Taken(delta=delta, says=says, total=total_of(atoms))


def exact_delta(text: str) -> Exact:
    """A canonical decimal of at least 0 as an exact number."""
    whole, _, part = text.partition(".")
    return Exact(int(whole + part), len(part))
