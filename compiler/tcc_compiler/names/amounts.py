"""The amounts of a tool's calls: cost, price, latency and epsilon, by arithmetic and `when`.

Normative text: docs/spec/language.md, section 5. Numbers are exact rationals. An amount is computed
once for each combination of the fields that it depends on.
Cost: at most MAX_STEPS steps for a grammar. The steps of each tool are counted before its amounts
are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Literal, NamedTuple, TypeAlias

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import NANO, decimal_text, scaled
from tcc_compiler.names.listed import Listed

KINDS = ("cost", "price", "latency", "epsilon")
MAX_STEPS = 1 << 21
MAX_BITS = 4096
UNITS = {"cost": NANO, "price": 1, "latency": 1, "epsilon": NANO}
UNIT_NAMES = {
    "cost": "nano-units (9 fractional digits)",
    "price": "cents",
    "latency": "milliseconds",
    "epsilon": "nano-units (9 fractional digits)",
}
_SMALLER = {
    "price": "count prices in a smaller unit everywhere, a tenth of a cent say, and tell readers: "
    'currency "EUR/1000"',
    "latency": "round it to whole milliseconds",
}


class Amounts(NamedTuple):
    """The amounts of one call: nano-units, nano-units, cents, milliseconds, nano-units."""

    cost_low: int
    cost_high: int
    price: int
    latency: int
    epsilon: int


@dataclass(slots=True, kw_only=True)
class Steps:
    """How many steps are left for the amounts of all tools of a grammar together."""

    left: int = MAX_STEPS


class FieldOf(NamedTuple):
    """A listed field in arithmetic; `place` is its number among the listed fields of the tool."""

    place: int


@frozen
class Arithmetic:
    """An arithmetic expression in postfix order; durations are in milliseconds.

    Attributes:
        code: numbers and fields are pushed. ``+``, ``-`` and ``*`` take two operands; ``~`` negates
            one.
    """

    code: tuple[Fraction | FieldOf | Operator, ...]
    region: Region


Operator: TypeAlias = Literal["+", "-", "*", "~"]


@frozen
class Amount:
    """An amount of a tool.

    Attributes:
        kind: ``cost``, ``price``, ``latency`` or ``epsilon``.
        low: the amount, or the lower end of a cost interval.
        high: the upper end of a cost interval; else None.
        when: the place of a listed field, and the places of its values for which the amount holds.
            None if it always holds.
    """

    kind: str
    low: Arithmetic
    high: Arithmetic | None
    when: tuple[int, frozenset[int]] | None
    region: Region

    @property
    def uses(self) -> list[int]:
        """The places of the fields that its arithmetic names, increasing."""
        ends = [end for end in (self.low, self.high) if end is not None]
        return sorted({one.place for end in ends for one in end.code if isinstance(one, FieldOf)})


def amounts_of(
    name: str,
    at: Region,
    fields: Sequence[Listed],
    amounts: Sequence[Amount],
    steps: Steps,
    report: Report,
) -> list[Amounts] | None:
    """Return the amounts of every call of a tool; None after a mistake.

    The calls are ordered by the places of their values; the last field varies fastest.

    Args:
        at: where the tool is named.
        steps: the steps that are left; the steps of this tool are subtracted.
    """
    clauses = {kind: _clauses(kind, amounts, report) for kind in KINDS}
    if not _affordable(name, at, fields, amounts, steps, report):
        return None
    columns = [_column(fields, clauses[kind], report) for kind in KINDS]
    cost, price, latency, epsilon = columns
    if cost is None or price is None or latency is None or epsilon is None:
        return None
    rows = zip(cost, price, latency, epsilon, strict=True)
    return [Amounts(c[0], c[1], p[0], t[0], e[0]) for c, p, t, e in rows]


def _affordable(
    name: str,
    at: Region,
    fields: Sequence[Listed],
    amounts: Sequence[Amount],
    steps: Steps,
    report: Report,
) -> bool:
    calls = prod(len(field.values) for field in fields)
    needed = 0
    for amount in amounts:
        terms = len(amount.low.code) + (len(amount.high.code) if amount.high else 0)
        needed += calls + terms * prod(len(fields[place].values) for place in amount.uses)
    if needed > steps.left:
        message = (
            f"the amounts of {quote(name)} take {needed} steps, and {steps.left} are left of"
            f" the {MAX_STEPS} of a grammar"
        )
        report.error("TCC314", at, message, "use fewer values or shorter arithmetic")
        return False
    steps.left -= needed
    return True


def _clauses(kind: str, amounts: Sequence[Amount], report: Report) -> list[Amount]:
    """Return the amounts of one kind: first with `when`, in order, then without."""
    chosen = [amount for amount in amounts if amount.kind == kind]
    bare = [amount for amount in chosen if amount.when is None]
    for other in bare[1:]:
        report.error(
            "TCC310", other.region, f"a second '{kind}' without 'when'",
            "take one of them away, or say when it holds: when k = 1",
            notes=[("the first is here", bare[0].region)],
        )  # fmt: skip
    return sorted(chosen, key=lambda amount: amount.when is None)


def _column(
    fields: Sequence[Listed], amounts: Sequence[Amount], report: Report
) -> list[tuple[int, int]] | None:
    """Return both ends of one kind of amount for every call; None after a mistake."""
    if not amounts:
        return [(0, 0)] * prod(len(field.values) for field in fields)
    known: dict[tuple[int, ...], tuple[int, int] | None] = {}
    column: list[tuple[int, int]] = []
    failed: set[int] = set()
    first, others = _chosen(amounts, fields)
    uses = [amount.uses for amount in amounts]
    for places in combinations(fields):
        report.tick()
        number = min([first, *(by_value[places[p]] for p, by_value in others)])
        if number == len(amounts):
            column.append((0, 0))
            continue
        key = (number, *[places[p] for p in uses[number]])
        if key not in known and number not in failed:
            known[key] = _ends(amounts[number], fields, places, report)
        ends = known.get(key)
        if ends is None:
            failed.add(number)
        else:
            column.append(ends)
    return None if failed else column


def _chosen(
    amounts: Sequence[Amount], fields: Sequence[Listed]
) -> tuple[int, list[tuple[int, list[int]]]]:
    """Return tables for finding, by a minimum, the first amount that holds for a call.

    Returns:
        the number of the first amount that holds for every call; and for each field with
        conditions, the first amount that holds for each of its values. The number of amounts stands
        for "no amount". The amount of a call is the least of these numbers.
    """
    first = none = len(amounts)
    by_value: dict[int, list[int]] = {}
    for number, amount in enumerate(amounts):
        if amount.when is None or len(fields[amount.when[0]].values) == 1:
            first = min(first, number)
            continue
        place, values = amount.when
        firsts = by_value.setdefault(place, [none] * len(fields[place].values))
        for value in values:
            firsts[value] = min(firsts[value], number)
    return first, list(by_value.items())


def _ends(
    amount: Amount, fields: Sequence[Listed], places: Sequence[int], report: Report
) -> tuple[int, int] | None:
    """Return the two ends of an amount for one call, in its unit; None after a mistake."""
    case = ", ".join([f"{fields[p].name}={fields[p].values[places[p]]}" for p in amount.uses])
    case = f" where {case}" if case else ""
    ends = []
    for arithmetic in (amount.low, amount.high):
        if arithmetic is not None:
            report.tick(len(arithmetic.code))
            value = _evaluate(arithmetic, fields, places)
            end = _whole(amount, arithmetic.region, value, case, report)
            if end is None:
                return None
            ends.append(end)
    if ends[0] > ends[-1]:
        message = f"the low end of this interval is above its high end{case}"
        report.error("TCC309", amount.region, message, "write the lower end first")
        return None
    return ends[0], ends[-1]


def _whole(
    amount: Amount, region: Region, value: Fraction | None, case: str, report: Report
) -> int | None:
    """Return an amount in its unit; None after a mistake."""
    if value is None:
        report.error(
            "TCC307", region, f"this arithmetic leaves {MAX_BITS} bits{case}", "simplify it"
        )
        return None
    return in_unit(amount.kind, value, region, report, case)


def in_unit(
    kind: str, value: Fraction, region: Region, report: Report, case: str = ""
) -> int | None:
    """Return `value` as a whole number of the kind's unit in 64 bits; None after a mistake."""
    number = scaled(value, UNITS[kind])
    if number is None:
        message = f"this {kind} is not whole in {UNIT_NAMES[kind]}{case}"
        cents = value * 100
        if kind == "price" and cents.denominator == 1:
            hint = f"a price is in cents: write {cents.numerator} for {decimal_text(value)}"
            hint += f"; or {_SMALLER[kind]}"
        else:
            hint = _SMALLER.get(kind, "round it to 9 fractional digits")
        report.error("TCC306", region, message, hint)
        return None
    if number < 0 and kind != "cost":
        hint = "only a cost may be negative: write 0 or more"
        report.error("TCC308", region, f"this {kind} is negative{case}", hint)
        return None
    low, high = (-(1 << 63), (1 << 63) - 1) if kind == "cost" else (0, (1 << 64) - 1)
    if not low <= number <= high:
        hint = "write a smaller number, or all of them in a larger unit"
        report.error("TCC307", region, f"this {kind} does not fit into 64 bits{case}", hint)
        return None
    return number


def _evaluate(
    arithmetic: Arithmetic, fields: Sequence[Listed], places: Sequence[int]
) -> Fraction | None:
    """Return the value of an expression for one call; None if it exceeds MAX_BITS bits."""
    stack: list[Fraction] = []
    for item in arithmetic.code:
        match item:
            case Fraction():
                stack.append(item)
            case FieldOf(place):
                stack.append(fields[place].numbers[places[place]] or Fraction(0))
            case "~":
                stack.append(-stack.pop())
            case _:
                right, left = stack.pop(), stack.pop()
                result = _apply(item, left, right)
                if max(result.numerator.bit_length(), result.denominator.bit_length()) > MAX_BITS:
                    return None
                stack.append(result)
    return stack[0]


def _apply(operator: str, left: Fraction, right: Fraction) -> Fraction:
    if operator == "*":
        return left * right
    return left + right if operator == "+" else left - right


def combinations(fields: Sequence[Listed]) -> Iterator[tuple[int, ...]]:
    """Yield the places of the values of every call; the last field varies fastest."""
    return product(*(range(len(field.values)) for field in fields))
