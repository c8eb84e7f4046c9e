"""Asking what a call costs: the question, the answer, and who is asked.

Text: docs/spec/race.md, section 19.  A question says which call and which model, what is known, and
a number that tells one occurrence from another.  It says nothing of the race: no key, gap, arrival
or place in the frontier, so that an answer cannot depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tcc_certs.core.atoms import Atom
from tcc_certs.core.model import Model, Tool
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.decimals import parse_decimal
from tcc_runtime.errors import AnswerError

NANO_PLACES = 9
UNNAMED = Model(name="quote", price=0, latency=0, epsilon=0)  # of a tool without models


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a quoter is told.

    Attributes:
        call: canonical text.
        model: name of the model; ``quote`` where the tool has none.
        low, high: what is known of the cost, nano-units, low < high.
        occurrence: counts the occurrences of calls that were asked about, from 0; questions about
            one occurrence have one number.
    """

    call: str
    model: str
    low: int
    high: int
    occurrence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a quoter says; without `low` and `high` it knows no more than before.

    Attributes:
        low, high: the cost lies between them, nano-units, signed 64 bits; one number is a point.
        latency_ms: how long it took; None is measured by the run.
        price: cents that it took, `epsilon` nano; None is what the model declares.
        atom: the mechanism that it privatised with; None is what the model declares. Only a run
            with a delta counts atoms.

    Raises:
        AnswerError: half an interval, or a number out of its range.
    """

    low: int | None = None
    high: int | None = None
    latency_ms: int | None = None
    price: int | None = None
    epsilon: int | None = None
    atom: Atom | None = None

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise AnswerError("low, high", "both or neither", "one of them")
        for name in ("low", "high"):
            _hold(name, getattr(self, name), -(1 << 63), 1 << 63)
        for name in ("latency_ms", "price", "epsilon"):
            _hold(name, getattr(self, name), 0, 1 << 64)

    @property
    def interval(self) -> tuple[int, int] | None:
        """Both ends; None where there is no answer."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class Quoter(Protocol):
    """Any callable that answers questions; what it raises ends the run, which can be resumed."""

    def __call__(self, question: Question, /) -> Answer | None:
        """The answer; None: no more is known than before."""


def models_of(tool: Tool) -> tuple[Model, ...]:
    """The models of a tool; one that takes nothing where it names none."""
    return tool.models or (UNNAMED,)


def nano(text: str, field: str = "cost") -> int:
    """An exact decimal of at most nine places, as an integer of nano-units.

    Raises:
        AnswerError: it is none.
    """
    try:
        number, places = parse_decimal(text, field, Code.QUOTES)
    except Rejected:
        raise AnswerError(field, "an exact decimal, such as 0.25", text) from None
    if places > NANO_PLACES:
        raise AnswerError(field, "at most 9 decimal places", text)
    scale: int = 10 ** (NANO_PLACES - places)
    return number * scale


def point(cost: str) -> Answer:
    """The answer that a call costs exactly that, a decimal.

    Raises:
        AnswerError: `cost` is no exact decimal.
    """
    return between(cost, cost)


def between(low: str, high: str) -> Answer:
    """The answer that a call costs no less than `low` and no more than `high`, decimals.

    Raises:
        AnswerError: one of them is no exact decimal.
    """
    return Answer(low=nano(low, "low"), high=nano(high, "high"))


def _hold(name: str, value: object, least: int, most: int) -> None:
    if value is not None and (type(value) is not int or not least <= value < most):
        raise AnswerError(name, f"an integer from {least} to {most - 1}", value)
