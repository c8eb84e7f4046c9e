"""The controller: which model to ask next, and what asking has spent.

Text: docs/spec/race.md, section 19.  Integers and exact fractions alone, made of what the ledger
has; so a validator makes each choice again.  Reserve first, reconcile after: an ask is made only
where the caps hold all that it is expected to take.
Cost: a few fractions for each model of a tool.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from tcc_certs.core.atoms import Atom
from tcc_certs.core.model import Model
from tcc_certs.privacy.spending import Taken
from tcc_runtime.settings.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Cents, milliseconds and nano-epsilon, of one ask or of all so far.

    Attributes:
        atom: what one ask takes beside its epsilon.
        taken: of all so far, the account of epsilons and atoms; None where a run keeps none.
    """

    price: int = 0
    latency: int = 0
    epsilon: int = 0
    atom: Atom | None = None
    taken: Taken | None = None

    def __add__(self, other: Spending) -> Spending:
        """One ask more."""
        return Spending(
            price=self.price + other.price,
            latency=self.latency + other.latency,
            epsilon=self.epsilon + other.epsilon,
            taken=None if self.taken is None else self.taken.plus(other.epsilon, other.atom),
        )

    @property
    def epsilon_used(self) -> int:
        """Nano-units: the epsilon at the run's delta, else the sum of the epsilons."""
        return self.epsilon if self.taken is None else self.taken.nano


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A model to be asked.

    Attributes:
        place: its index among the tool's models.
        expected: what asking is expected to take.
        gain: by how much the low cost is predicted to rise, nano-units.
        raised: the same with its margin.
        useful: what of that may bring the run nearer to its stop: what it is chosen by.
        slack: of the item that is asked for, Q64.64; None where it is not known.
    """

    place: int
    model: Model
    expected: Spending
    gain: Fraction
    raised: Fraction
    useful: Fraction
    slack: int | None = None


@dataclass(slots=True)
class _Record:
    """What a model has answered: latencies and residuals in order; sums of widths and gains."""

    latencies: list[int] = field(default_factory=list)
    width: int = 0
    gained: int = 0
    residuals: list[Fraction] = field(default_factory=list)


class Controller:
    """Chooses among the models of a tool, and keeps account.

    Args:
        settings: weights and caps.
        taken: the account of privacy that the run begins with.

    Attributes:
        spent: what asking has taken.
    """

    def __init__(self, settings: Settings, taken: Taken | None = None) -> None:
        self._caps = (settings.price_cap, settings.sla_ms)
        self._epsilon_cap = settings.nano_epsilon_cap
        self._weights = (
            Fraction(settings.price_weight),
            Fraction(settings.latency_weight),
            Fraction(settings.epsilon_weight) / 10**9,
        )
        self._records: dict[tuple[int, int], _Record] = {}
        self._taken = taken
        self._margin = None if settings.margin is None else Fraction(settings.margin)
        self.spent = Spending(taken=taken)

    @property
    def overspent(self) -> bool:
        """Whether asking took more than it was expected to, and more than a cap allows."""
        return not self._fits(self.spent)

    def choose(
        self,
        tool: int,
        models: Sequence[Model],
        asked: Collection[int],
        width: int,
        most: Fraction | None = None,
    ) -> Choice | None:
        """The model of the greatest gain for its burden; None where no model is left that fits.

        Args:
            asked: places of the models that were asked about this edge already.
            width: of the edge's interval, nano-units.
            most: beyond this no gain is of use; None: nothing is known of that.
        """
        offers = [
            self._offer(tool, place, model, width, most)
            for place, model in enumerate(models)
            if place not in asked
        ]
        fitting = [offer for offer in offers if self._fits(self.spent + offer.expected)]
        if len(fitting) == 1:
            return fitting[0]
        return max(fitting, key=self._merit, default=None)

    def settle(self, tool: int, choice: Choice, took: Spending, width: int, gained: int) -> None:
        """Takes note of what an ask took, and of what came of it."""
        self.spent = self.spent + took
        record = self._records.setdefault((tool, choice.place), _Record())
        insort(record.latencies, took.latency)
        record.width += width
        record.gained += gained
        if self._margin is not None:
            insort(record.residuals, gained - choice.gain)

    def _offer(
        self, tool: int, place: int, model: Model, width: int, most: Fraction | None
    ) -> Choice:
        record = self._records.get((tool, place), _Record())
        latency = percentile(record.latencies) if record.latencies else model.latency
        # The share of the widths so far that was gained, this one counted as its quality.
        digits, places = model.quality
        first: Fraction = Fraction(digits * width, 10**places)
        gain = width * (first + record.gained) / (width + record.width)
        expected = Spending(
            price=model.price,
            latency=(12 * latency + 9) // 10,
            epsilon=model.epsilon,
            atom=model.atom,
        )
        raised = gain if self._margin is None else self._raised(gain, width, record.residuals)
        return Choice(
            place=place,
            model=model,
            expected=expected,
            gain=gain,
            raised=raised,
            useful=raised if most is None else min(raised, most),
        )

    def _raised(self, gain: Fraction, width: int, residuals: Sequence[Fraction]) -> Fraction:
        """With the split-conformal upper quantile of past residuals, within 0 .. width."""
        rank = ceil((len(residuals) + 1) * (self._margin or 0))
        if rank > len(residuals):
            return Fraction(width)
        return min(max(gain + residuals[rank - 1], Fraction(0)), Fraction(width))

    def _merit(self, offer: Choice) -> tuple[int, Fraction, Fraction, Fraction, int]:
        """Greater is better: what is free first, then by ratio, gain, burden, order."""
        expected = offer.expected
        alone = expected.epsilon
        if self._taken is not None:
            alone = self._taken.alone(alone, expected.atom)
        amounts = (expected.price, expected.latency, alone)
        burden = sum((w * n for w, n in zip(self._weights, amounts, strict=True)), Fraction(0))
        ratio = offer.useful / burden if burden else Fraction(0)
        return int(not burden), ratio, offer.useful, -burden, -offer.place

    def _fits(self, spent: Spending) -> bool:
        amounts = (spent.price, spent.latency)
        fits = all(
            cap is None or amount <= cap for amount, cap in zip(amounts, self._caps, strict=True)
        )
        return fits and (self._epsilon_cap is None or spent.epsilon_used <= self._epsilon_cap)


def percentile(latencies: Sequence[int]) -> int:
    """P95 of latencies in order, by nearest rank."""
    return latencies[(95 * len(latencies) + 99) // 100 - 1]
