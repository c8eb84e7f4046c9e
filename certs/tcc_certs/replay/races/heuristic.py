"""The races that certify nothing: literal (the race as first printed) and fallback.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md.  Only runs that start with one of
these races, or downgrade to fallback, import this module.  Cost: in the literal race two logarithms
for each node and one exponential for each leaf; in fallback four logarithms for each leaf.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_certs.formats.codec import Json, divide_nearest
from tcc_certs.formats.ledger import format_q64
from tcc_certs.race.arrivals import BASE_BITS, WORD, Arrival, Fraction, clamp, neg_log, publish
from tcc_certs.race.digest import PER_LEAF, RESIDUAL
from tcc_certs.race.enclosures import Enclosure, decide, enclose_fraction, score
from tcc_certs.replay.language import Language
from tcc_certs.replay.races import coupled
from tcc_certs.replay.tree import Node

# ---- Literal.


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralReplay:
    """The literal race."""

    language: Language
    recipe: str
    draws_winner: bool = False
    one_by_one: bool = False
    law: str = "none"
    counts_leaves: bool = False
    uses_counts: bool = True

    def push(self, node: Node, word: coupled.Word) -> coupled.Pushed:
        """See :class:`tcc_certs.replay.races.coupled.RacePolicy`."""
        before = None if node.parent is None else node.parent.arrival
        if before is None:
            return coupled.push_first(self.language, self.recipe, node, word)
        return coupled.push_anchored(self.language, self.recipe, before, node)

    def again(self, node: Node) -> coupled.Pushed:
        """See :class:`tcc_certs.replay.races.coupled.RacePolicy`."""
        return coupled.again_anchored(self.language, self.recipe, node)

    def pop(self, node: Node, word: coupled.Word) -> coupled.Popped:
        """See :class:`tcc_certs.replay.races.coupled.RacePolicy`."""
        states = node.states
        if node.arrival is not None:  # the root
            return coupled.Popped(arrival=node.arrival, value=0, fields={}, clamped=False)
        x = word(PER_LEAF if states is None else RESIDUAL, node.digest, "U")
        count, unit = (1, 0) if states is None else self.language.rate(states)
        arrival = Arrival(parent=None, weight=1, fraction_bits=0, x=x, count=count, unit=unit)
        published = publish(arrival, self.language.bound(self.recipe, states, node.cost_low))
        fields: dict[str, Json] = {"U": str(x), "neg_log_t": format_q64(published.neg_log_t)}
        if states is not None:
            return coupled.Popped(
                arrival=arrival, value=0, fields=fields, clamped=published.neg_log_t_clamped
            )
        fields |= {"V": format_q64(published.key), "U_P": str(x)}
        return coupled.Popped(
            arrival=arrival, value=published.key, fields=fields, clamped=published.clamped
        )


# ---- Fallback.


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackReplay:
    """The heuristic search of fallback.

    Attributes:
        tau: above 0, exact decimal (numerator, places).
        recipe: the recipe by which the key of a node bounds the scores below it.
    """

    language: Language
    tau: tuple[int, int]
    recipe: str
    draws_winner: bool = False
    one_by_one: bool = False
    law: str = "none"
    counts_leaves: bool = True
    uses_counts: bool = False

    def push(self, node: Node, word: coupled.Word) -> coupled.Pushed:
        """See :class:`tcc_certs.replay.races.coupled.RacePolicy`."""
        if node.states is not None:
            return self._keyed(node, None)
        x = word(PER_LEAF, node.digest, "U")
        pushed = self._keyed(node, x)
        return pushed._replace(fields={"U": str(x), **pushed.fields})

    def again(self, node: Node) -> coupled.Pushed:
        """See :class:`tcc_certs.replay.races.coupled.RacePolicy`."""
        return self._keyed(node, node.word)

    def _keyed(self, node: Node, x: int | None) -> coupled.Pushed:
        """Return the numbers of an item: the key is the bound of a node, or the value of a leaf.

        Args:
            x: the uniform of a leaf; None for a node.
        """
        if x is None:
            ahead = 0
            if node.states is not None:
                ahead = self.language.least_cost(self.recipe, node.states)
            exact = heuristic_key(score(self.language.beta, node.cost_low + ahead))
        else:
            exact = heuristic_value(x, score(self.language.beta, node.cost_low), self.tau)
        key = clamp(exact)
        return coupled.Pushed(
            key=key,
            arrival=None,
            fields={"key_raw": format_q64(key)},
            clamped=key != exact,
            word=x,
        )

    def pop(self, node: Node, word: coupled.Word) -> coupled.Popped:
        """See :class:`tcc_certs.replay.races.coupled.RacePolicy`."""
        if node.states is not None:
            return coupled.Popped(arrival=None, value=0, fields={}, clamped=False)
        # The leaf's `node` record has the uniform; if it was pushed before a downgrade, this record
        # has it.
        fields: dict[str, Json] = {
            "V": format_q64(node.key),
            "U_P": str(word(PER_LEAF, node.digest, "U_P")),
        }
        return coupled.Popped(arrival=None, value=node.key, fields=fields, clamped=False)


# ---- The numbers of fallback, which do not depend on race counts.
#
# With x = x(4, L), U = (x + 1/2) / 2^64, E = -ln(1 - U) and G = -ln(-ln U), a leaf has the value
# G/tau - beta*C - ln E, and a node the key -beta*(C + h).  Both are rounded once to Q64.64.  With
# recipe r1, h is d * min(0, the least cost of a call).


def exponential(x: int) -> Arrival:
    """Return E(x) = -ln(1 - (x + 1/2) / 2^64) as an arrival of rate 1."""
    return Arrival(parent=None, weight=1, fraction_bits=0, x=x, count=1, unit=0)


def heuristic_value(x: int, score: Fraction, tau: tuple[int, int]) -> int:
    """Return G/tau + score - ln E as Q64.64, not clamped.

    Args:
        x: the leaf's uniform.
        score: -beta*C, numerator and positive denominator.
        tau: above 0, exact decimal (numerator, places).

    Raises:
        Rejected: D202: 4096 bits do not decide the rounding.
    """
    # -ln U(x) = E(2^64 - 1 - x), as 1 - U(x) = U(2^64 - 1 - x).
    gumbel, late = exponential((1 << WORD) - 1 - x), exponential(x)
    numerator, places = tau

    def enclose(bits: int) -> Enclosure:
        low, high = neg_log(gumbel, bits)
        low, high = low * 10**places // numerator, -(-high * 10**places // numerator)
        late_low, late_high = neg_log(late, bits)
        score_low, score_high = enclose_fraction(*score, bits)
        unit = 1 << bits - WORD
        return (
            divide_nearest(low + late_low + score_low, unit),
            divide_nearest(high + late_high + score_high, unit),
        )

    return decide(enclose, "V", BASE_BITS)


def heuristic_key(score: Fraction) -> int:
    """Return `score` = -beta*(C + h) as Q64.64, not clamped."""
    numerator, denominator = score
    return divide_nearest(numerator << WORD, denominator)
