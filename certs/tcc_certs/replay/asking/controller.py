"""The controller, which chooses the model of the next question.

Normative text: docs/spec/race.md, section 19.  Every choice compares exact rationals that follow
from earlier records.  A run makes the choice, and a validator derives it again.  A margin may raise
a predicted gain by the size of past errors of the model.  Fractions are pairs of integers.
`tests/oracle_ledger/controller.py` is a second implementation of this section.  Cost: a few
products of integers for each model of a tool, and sorting the models.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key
from math import gcd
from typing import TYPE_CHECKING, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, divide_nearest, parse_decimal
from tcc_certs.formats.ledger import Q32_MAX, Q32_MIN, format_q32
from tcc_certs.formats.ledger_schema import text
from tcc_certs.policy.plans import Model
from tcc_certs.race.enclosures import NANO, Beta
from tcc_certs.replay.amounts import AskRule, Decimal, SpendingCaps, SpentAmounts

if TYPE_CHECKING:
    from tcc_certs.privacy.spending import Taken

Fraction: TypeAlias = "tuple[int, int]"  # numerator, denominator above 0


def raised(
    gain: Fraction, width: int, residuals: Sequence[Fraction], margin: Decimal | None
) -> Fraction:
    """Return a predicted gain, raised by the split-conformal upper quantile of past residuals.

    For n residuals this is the ceil((n + 1) q)-th smallest.  If there are fewer, no residual bounds
    the gain, and the result is the width.  The result is always within 0 .. width.

    Args:
        width: the width of the edge's interval, nano-units.
        residuals: sorted, the least first.
        margin: q; None: return `gain` itself.
    """
    if margin is None:
        return gain
    numerator, places = margin
    rank = -(-(len(residuals) + 1) * numerator // 10**places)
    if rank > len(residuals):
        return width, 1
    high = minus(gain, (-residuals[rank - 1][0], residuals[rank - 1][1]))
    if high[0] <= 0:
        return 0, 1
    return high if high[0] <= width * high[1] else (width, 1)


def minus(one: Fraction, other: Fraction) -> Fraction:
    """Return the difference of two fractions."""
    return one[0] * other[1] - other[0] * one[1], one[1] * other[1]


def most_useful(beta: Beta, slack: int | None) -> Fraction | None:
    """Return slack / beta in nano-units; raising a cost by more does not help the stop rule.

    None: the slack is not known, or beta is 0.
    """
    if slack is None or beta[0] == 0:
        return None
    return slack * NANO * 10 ** beta[1], beta[0] << 64


def slack(beta: Beta, gain: Fraction) -> tuple[int, bool]:
    """Return beta * gain as Q32.32, and whether it had to be clamped.

    Args:
        gain: a fraction of nano-units.
    """
    numerator, denominator = gain
    unit = NANO * 10 ** beta[1] * denominator
    exact = divide_nearest(beta[0] * numerator << 32, unit)
    held = min(max(exact, Q32_MIN), Q32_MAX)
    return held, held != exact


def lowest(decimal: Decimal) -> Fraction:
    """Return an exact decimal as a fraction in lowest terms, which keeps numbers short."""
    scale: int = 10 ** decimal[1]
    shared = gcd(decimal[0], scale)
    return decimal[0] // shared, scale // shared


def at_places(weight: Decimal, places: int) -> int:
    """Return an exact decimal as an integer with this number of decimal places."""
    scale: int = 10 ** (places - weight[1])
    return weight[0] * scale


def _compared(one: Fraction, other: Fraction) -> int:
    return minus(one, other)[0]


IN_ORDER = cmp_to_key(_compared)


UNNAMED = Model(name="quote", price=0, latency=0, epsilon=0)  # the model of a tool without models


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A model that may be asked next.

    Attributes:
        number: its index among the tool's models.
        reserved: the amounts that it is expected to spend.
        gain: the predicted rise of the low cost, nano-units.
        raised: the prediction with its margin.
        useful: the part of it that may bring the stop nearer; the choice is by this number.
        slack: the slack of the item that needs the question, Q64.64; None: not known.
    """

    number: int
    model: Model
    reserved: SpentAmounts
    gain: Fraction
    raised: Fraction
    useful: Fraction
    slack: int | None = None

    @property
    def margin(self) -> Fraction:
        """The amount by which the prediction was raised."""
        return minus(self.raised, self.gain)


@dataclass(slots=True)
class _Seen:
    """The answers of one model.

    Attributes:
        latencies: observed latencies, the least first.
        width, gained: the sums of the widths that it was asked about, and of its gains.
        residuals: each gain minus its prediction, the least first.
    """

    latencies: list[int]
    width: int = 0
    gained: int = 0
    residuals: list[Fraction] = field(default_factory=list)


class Controller:
    """Chooses models, and sums up their amounts.

    Attributes:
        spent: the amounts of all settled questions.
    """

    def __init__(self, rule: AskRule) -> None:
        self._rule = rule
        self._seen: dict[tuple[int, int], _Seen] = {}
        self.spent = SpentAmounts(taken=rule.taken)

    @property
    def overspent(self) -> bool:
        """True if the settled questions exceed a cap."""
        return not self._rule.caps.hold(self.spent)

    def choose(
        self,
        tool: int,
        models: Sequence[Model],
        tried: Collection[int],
        width: int,
        most: Fraction | None = None,
    ) -> Choice | None:
        """Return the best model that was not tried and fits the caps; None: no such model.

        Args:
            tried: the numbers of the models that were asked about the edge.
            width: the width of the edge's interval, above 0, nano-units.
            most: the greatest useful gain; None: not known.
        """
        ranked = self.ranked(tool, models, width, most)
        return next((choice for choice in ranked if choice.number not in tried), None)

    def ranked(
        self, tool: int, models: Sequence[Model], width: int, most: Fraction | None = None
    ) -> list[Choice]:
        """Return the models that fit the caps, the best first.

        :meth:`choose` has the same arguments.
        """
        offers = [
            self._offer(tool, number, model, width, most) for number, model in enumerate(models)
        ]
        held = self._rule.caps.hold
        fitting = [offer for offer in offers if held(self.spent.plus(offer.reserved))]
        return sorted(fitting, key=cmp_to_key(self._order))

    def _order(self, one: Choice, other: Choice) -> int:
        """Return a negative number if `one` comes first.

        Equal models keep their order in the grammar.
        """
        if self._rank(one, other):
            return -1
        return 1 if self._rank(other, one) else one.number - other.number

    def settle(
        self, tool: int, choice: Choice, took: SpentAmounts, width: int, gained: int
    ) -> None:
        """Record the amounts of a question, and its gain on an interval of this width."""
        self.spent = self.spent.plus(took)
        seen = self._seen.setdefault((tool, choice.number), _Seen([]))
        insort(seen.latencies, took.latency)
        if self._rule.margin is not None:
            insort(seen.residuals, minus((gained, 1), choice.gain), key=IN_ORDER)
        seen.width += width
        seen.gained += gained

    def _offer(
        self, tool: int, number: int, model: Model, width: int, most: Fraction | None
    ) -> Choice:
        seen = self._seen.get((tool, number), _Seen([]))
        latency = model.latency
        if seen.latencies:
            # The 95th percentile by nearest rank.
            latency = seen.latencies[-(-95 * len(seen.latencies) // 100) - 1]
        share, unit = lowest(model.quality)
        gain = (width * (share * width + unit * seen.gained), unit * (width + seen.width))
        expected = raised(gain, width, seen.residuals, self._rule.margin)
        return Choice(
            number=number,
            model=model,
            reserved=SpentAmounts(
                price=model.price,
                latency=-(-12 * latency // 10),
                epsilon=model.epsilon,
                atom=model.atom,
            ),
            gain=gain,
            raised=expected,
            useful=expected if most is None or minus(expected, most)[0] <= 0 else most,
        )

    def _rank(self, one: Choice, other: Choice) -> bool:
        """Return whether `one` is better than `other`."""
        burden, others = self._burden(one.reserved), self._burden(other.reserved)
        (gain, unit), (gained, others_unit) = one.useful, other.useful
        if 0 in (burden, others) and burden != others:
            return burden == 0
        score, others_score = gain * others_unit * others, gained * unit * burden
        if score != others_score:
            return score > others_score
        if gain * others_unit != gained * unit:
            return gain * others_unit > gained * unit
        return burden < others

    def _burden(self, amounts: SpentAmounts) -> int:
        """Return a * price + b * latency + c * epsilon, in units that all offers of a run share."""
        rule = self._rule
        weights = (rule.price_weight, rule.latency_weight, rule.epsilon_weight)
        places = max([weight[1] for weight in weights])
        price, latency, epsilon = [at_places(weight, places) for weight in weights]
        whole = price * amounts.price + latency * amounts.latency
        taken = rule.taken
        alone = amounts.epsilon if taken is None else taken.alone(amounts.epsilon, amounts.atom)
        return whole * NANO + epsilon * alone


# ---- Records of the rule and of a margin (ledger.md, section 11).


def rule_of(ask: str, controller: Json, caps: SpendingCaps, taken: Taken | None) -> AskRule:
    """Return the rule from a controller's weights and optional margin.

    Raises:
        Rejected: L103: a decimal is not canonical.
    """
    if not isinstance(controller, dict):
        raise Rejected(Code.LEDGER_SCHEMA, "controller", "an object of weights", controller)
    price, latency, epsilon = (
        parse_decimal(text(controller, name), f"controller.{name}", Code.LEDGER_SCHEMA)
        for name in ("price_weight", "latency_weight", "epsilon_weight")
    )
    margin = None
    if "margin" in controller:
        margin = parse_decimal(text(controller, "margin"), "margin", Code.LEDGER_SCHEMA)
    return AskRule(
        ask=ask,
        price_weight=price,
        latency_weight=latency,
        epsilon_weight=epsilon,
        caps=caps,
        taken=taken,
        margin=margin,
    )


def margin_fields(
    rule: AskRule | None, beta: Beta, choice: Choice
) -> tuple[Mapping[str, Json], bool]:
    """Return the field of the margin, if the run has one, and whether it was clamped."""
    if rule is None or rule.margin is None:
        return {}, False
    margin, clamped = slack(beta, choice.margin)
    return {"dkey_margin": format_q32(margin)}, clamped
