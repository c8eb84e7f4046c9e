"""Section 19 of docs/spec/race.md told in fractions: which model is asked, and what may be spent.

Stands beside `tcc_certs.replay.asking.controller`, which runs and validators share.  It keeps every
ask in a list, and computes each choice from the whole list.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from tcc_certs.policy.plans import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Weights of a cent, a millisecond and one epsilon; caps; the margin."""

    weights: tuple[Fraction, Fraction, Fraction]
    caps: tuple[int | None, int | None, int | None]
    margin: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """An ask that was answered; `predicted` is its gain without margin."""

    tool: int
    number: int
    price: int
    latency: int
    epsilon: int
    width: int
    gained: int
    predicted: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model that may be asked: cents, milliseconds, nano-epsilon; what it may gain."""

    number: int
    takes: tuple[int, int, int]
    gain: Fraction
    raised: Fraction
    useful: Fraction


def chosen(
    rule: Rule,
    asks: Sequence[Ask],
    tool: int,
    models: Sequence[Model],
    tried: Collection[int],
    width: int,
    most: Fraction | None,
) -> Offer | None:
    """The model of the greatest useful gain for its burden; None where none fits the caps."""
    spent = [
        sum(amount) for amount in zip(*[(a.price, a.latency, a.epsilon) for a in asks], strict=True)
    ] or [0, 0, 0]
    offers = [
        offer(rule, [ask for ask in asks if (ask.tool, ask.number) == (tool, number)], number,
              model, width, most)
        for number, model in enumerate(models)
        if number not in tried
    ]  # fmt: skip
    fitting = [
        one
        for one in offers
        if all(
            cap is None or so_far + more <= cap
            for cap, so_far, more in zip(rule.caps, spent, one.takes, strict=True)
        )
    ]
    return max(fitting, key=lambda one: merit(rule, one), default=None)


def offer(
    rule: Rule, past: Sequence[Ask], number: int, model: Model, width: int, most: Fraction | None
) -> Offer:
    """What a model is expected to take and to gain, from its past asks."""
    latency = model.latency
    if past:
        latencies = sorted(ask.latency for ask in past)
        latency = latencies[ceil(Fraction(95 * len(latencies), 100)) - 1]
    quality = Fraction(model.quality[0], 10 ** model.quality[1])
    share = (quality * width + sum(ask.gained for ask in past)) / (
        width + sum(ask.width for ask in past)
    )
    gain = raised = width * share
    if rule.margin is not None:
        residuals = sorted(ask.gained - ask.predicted for ask in past)
        rank = ceil((len(residuals) + 1) * rule.margin)
        raised = Fraction(width)
        if rank <= len(residuals):
            raised = min(max(gain + residuals[rank - 1], Fraction(0)), raised)
    return Offer(
        number=number,
        takes=(model.price, ceil(Fraction(12 * latency, 10)), model.epsilon),
        gain=gain,
        raised=raised,
        useful=raised if most is None else min(raised, most),
    )


def merit(rule: Rule, one: Offer) -> tuple[bool, Fraction, Fraction, Fraction, int]:
    """Greater is better: what is free first, then by ratio, gain, burden, order."""
    amounts = (Fraction(one.takes[0]), Fraction(one.takes[1]), Fraction(one.takes[2], 10**9))
    burden = sum((w * n for w, n in zip(rule.weights, amounts, strict=True)), Fraction(0))
    ratio = one.useful / burden if burden else Fraction(0)
    return not burden, ratio, one.useful, -burden, -one.number
