"""The amounts of a tool's calls: cost, price, latency and epsilon, by arithmetic and `when`.

Normative text: docs/spec/language.md, section 6.  Exact rationals throughout; an amount is
computed once for each combination of the parameters that it depends on.  Cost: at most MAX_STEPS
steps for a grammar, counted for each tool before its amounts are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Final, NamedTuple

from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast import Amount, Arithmetic, Condition, Number, Value, Word
from tcc_compiler.language.diagnostics import Report, quote, some, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.language.syntax.words import AMOUNTS
from tcc_compiler.language.values import NANO, decimal_text, scaled
from tcc_compiler.resolve.parameters import ResolvedParameter

# Values that a `when` or a pattern names, as places in the domain of a parameter.

OPEN: Final = -1  # the place of an open parameter among those that tell calls apart


def condition_of(
    condition: Condition,
    parameters: Sequence[ResolvedParameter],
    names: dict[str, int],
    report: Report,
) -> tuple[int, frozenset[int]] | None:
    """The parameter of a `when` and the values for which it holds."""
    name = condition.name
    place = names.get(name.text)
    if place is None:
        message = f"the tool has no parameter {quote(name.text)}"
        hint = suggest(name.text, list(names))
        if hint is None:
            hint = f"it has {some(list(names))}" if names else "it has none: take `when` away"
        report.error("TCC204", name.region, message, hint)
        return None
    if place == OPEN:
        message = f"{quote(name.text)} is open, and no amount depends on it"
        hint = "list the values that matter before the semicolon, as a parameter of their own"
        report.error("TCC216", name.region, message, hint)
        return None
    places = values_of(condition.values, parameters[place], report)
    return None if places is None else (place, frozenset(places))


def values_of(
    values: Sequence[Value], parameter: ResolvedParameter, report: Report
) -> tuple[int, ...] | None:
    """The places of some values in a domain, increasing; None after an error."""
    places: dict[int, Region] = {}
    sound = True
    for value in values:
        place = parameter.index.get(value.text)
        if place is None:
            message = f"{quote(value.text)} is no value of {quote(parameter.name)}"
            note = [("its values are listed here", parameter.region)] if parameter.region else []
            report.error("TCC205", value.region, message, _other_value(value, parameter), note)
            sound = False
        elif place in places:
            message = f"the value {quote(value.text)} is given twice"
            note = [("first given here", places[place])]
            report.error("TCC211", value.region, message, "take one of them away", note)
            sound = False
        else:
            places[place] = value.region
    return tuple(sorted(places)) if sound else None


def _other_value(value: Value, parameter: ResolvedParameter) -> str:
    """A hint with the value that may be meant, and a few of those that there are."""
    values = list(parameter.index)
    listed = f"{quote(parameter.name)} is {some(values, ' | ')}"
    near = _other_form(value.text, parameter)
    if near is None and value.number is None:
        near = suggest(value.text, values)
    return listed if near is None else f"{near}{'' if near.endswith('?') else ';'} {listed}"


def _other_form(text: str, parameter: ResolvedParameter) -> str | None:
    """A hint where the domain has the value as a string and not bare, or the reverse."""
    other = text[1:-1] if text.startswith('"') else f'"{text}"'
    if other not in parameter.index:
        return None
    form = "a string" if other.startswith('"') else "not a string"
    return f"in the domain it is {form}: write {other}"


MAX_STEPS = 1 << 21
MAX_BITS = 4096
UNITS = {"cost": NANO, "price": 1, "latency": 1, "epsilon": NANO, "sum": NANO}
UNIT_NAMES = {
    "cost": "nano-units (9 fractional digits)",
    "price": "cents",
    "latency": "milliseconds",
    "epsilon": "nano-units (9 fractional digits)",
    "sum": "nano-units (9 fractional digits)",
}
_SMALLER = {
    "price": "count prices in a smaller unit everywhere, a tenth of a cent say, and tell readers: "
    'currency "EUR/1000"',
    "latency": "round it to whole milliseconds",
}
MILLISECONDS = {None: 1, "ms": 1, "s": 1000}


class Amounts(NamedTuple):
    """The amounts of one call: nano-units, nano-units, cents, milliseconds, nano-units."""

    cost_low: int
    cost_high: int
    price: int
    latency: int
    epsilon: int


@dataclass(slots=True, kw_only=True)
class Steps:
    """How many steps the amounts of a grammar's tools may still take, all of them together."""

    left: int = MAX_STEPS


@frozen
class _Clause:
    """An amount with its names resolved.

    Attributes:
        holds: parameter and the values for which it holds, None without `when`.
        uses: the parameters that its arithmetic names.
    """

    amount: Amount
    holds: tuple[int, frozenset[int]] | None
    uses: tuple[int, ...]


def amounts_of(
    name: Word,
    parameters: Sequence[ResolvedParameter],
    opened: Iterable[str],
    amounts: Sequence[Amount],
    steps: Steps,
    report: Report,
) -> list[Amounts] | None:
    """The amounts of every call of a tool, by the places of its values, the last one fastest.

    None after an error.

    Args:
        opened: the names of the open parameters, which no amount depends on.
        steps: the steps that are left; those of this tool are subtracted.
    """
    names = {parameter.name: i for i, parameter in enumerate(parameters)}
    names |= dict.fromkeys(opened, OPEN)
    clauses = {kind: _clauses(kind, parameters, names, amounts, report) for kind in AMOUNTS}
    sound = all(clause is not None for kind in AMOUNTS for clause in clauses[kind])
    if not sound or not _affordable(name, parameters, clauses, steps, report):
        return None
    columns = []
    for kind in AMOUNTS:
        column = _column(parameters, [c for c in clauses[kind] if c is not None], report)
        if column is None:
            sound = False
        else:
            columns.append(column)
    if not sound:
        return None
    cost, price, latency, epsilon = columns
    rows = zip(cost, price, latency, epsilon, strict=True)
    return [Amounts(c[0], c[1], p[0], t[0], e[0]) for c, p, t, e in rows]


def _affordable(
    name: Word,
    parameters: Sequence[ResolvedParameter],
    clauses: dict[str, list[_Clause | None]],
    steps: Steps,
    report: Report,
) -> bool:
    calls = prod(len(parameter.values) for parameter in parameters)
    needed = 0
    for clause in (clause for kind in AMOUNTS for clause in clauses[kind]):
        if clause is not None:
            terms = len(clause.amount.low.code) + (
                len(clause.amount.high.code) if clause.amount.high else 0
            )
            needed += calls + terms * prod(len(parameters[p].values) for p in clause.uses)
    if needed > steps.left:
        message = (
            f"the amounts of {quote(name.text)} take {needed} steps, and {steps.left} are left of"
            f" the {MAX_STEPS} of a grammar"
        )
        report.error("TCC314", name.region, message, "use fewer values or shorter arithmetic")
        return False
    steps.left -= needed
    return True


def _clauses(
    kind: str,
    parameters: Sequence[ResolvedParameter],
    names: dict[str, int],
    amounts: Sequence[Amount],
    report: Report,
) -> list[_Clause | None]:
    """The clauses of one kind: those with `when` in order, then the bare one."""
    chosen = [amount for amount in amounts if amount.kind == kind]
    bare = [amount for amount in chosen if amount.when is None]
    for other in bare[1:]:
        report.error(
            "TCC310", other.region, f"a second '{kind}' without 'when'",
            "take one of them away, or say when it holds: when k = 1",
            notes=[("the first is here", bare[0].region)],
        )  # fmt: skip
    chosen.sort(key=lambda amount: amount.when is None)
    return [_clause(amount, parameters, names, report) for amount in chosen]


def _clause(
    amount: Amount, parameters: Sequence[ResolvedParameter], names: dict[str, int], report: Report
) -> _Clause | None:
    report.tick()
    holds = None
    sound = True
    if amount.when is not None:
        holds = condition_of(amount.when, parameters, names, report)
        sound = holds is not None
    uses = set()
    for arithmetic in (amount.low, amount.high):
        for item in arithmetic.code if arithmetic else ():
            if isinstance(item, Word):
                place = _numeric(item, parameters, names, report)
                sound = sound and place is not None
                uses.add(place)
    if not sound:
        return None
    return _Clause(amount=amount, holds=holds, uses=tuple(sorted(p for p in uses if p is not None)))


def _numeric(
    word: Word, parameters: Sequence[ResolvedParameter], names: dict[str, int], report: Report
) -> int | None:
    place = names.get(word.text)
    if place is None:
        message = f"the tool has no parameter {quote(word.text)}"
        report.error("TCC204", word.region, message, suggest(word.text, list(names)))
        return None
    if place == OPEN:
        message = f"{quote(word.text)} is open, and no amount depends on it"
        hint = "list the values that matter before the semicolon, as a parameter of their own"
        report.error("TCC216", word.region, message, hint)
        return None
    if parameters[place].optional:
        message = f"{quote(word.text)} may be left out, and then there is nothing to reckon with"
        report.error("TCC319", word.region, message, "choose amounts by 'when' instead")
        return None
    if not parameters[place].numeric:
        message = f"the values of {quote(word.text)} are not all numbers"
        report.error("TCC305", word.region, message, "choose amounts by 'when' instead")
        return None
    return place


def _column(
    parameters: Sequence[ResolvedParameter], clauses: Sequence[_Clause], report: Report
) -> list[tuple[int, int]] | None:
    """Low and high of one kind of amount for every call; None after an error."""
    if not clauses:
        return [(0, 0)] * prod(len(parameter.values) for parameter in parameters)
    known: dict[tuple[int, ...], tuple[int, int] | None] = {}
    column: list[tuple[int, int]] = []
    failed: set[int] = set()
    first, others = _chosen(clauses, parameters)
    for places in combinations(parameters):
        report.tick()
        number = min([first, *(by_value[places[p]] for p, by_value in others)])
        if number == len(clauses):
            column.append((0, 0))
            continue
        clause = clauses[number]
        key = (number, *(places[p] for p in clause.uses))
        if key not in known and number not in failed:
            known[key] = _ends(clause, parameters, places, report)
        ends = known.get(key)
        if ends is None:
            failed.add(number)
        else:
            column.append(ends)
    return None if failed else column


def _chosen(
    clauses: Sequence[_Clause], parameters: Sequence[ResolvedParameter]
) -> tuple[int, list[tuple[int, list[int]]]]:
    """Tables by which the first clause that holds for a call is the least of a few numbers.

    Returns:
        The first of those that hold for every call, and for each parameter that decides something
        the first of those that hold for each of its values; where there is none, how many clauses
        there are.  The least of these is the one for a call.
    """
    first = none = len(clauses)
    by_value: dict[int, list[int]] = {}
    for number, clause in enumerate(clauses):
        if clause.holds is None or len(parameters[clause.holds[0]].values) == 1:
            first = min(first, number)
            continue
        place, values = clause.holds
        firsts = by_value.setdefault(place, [none] * len(parameters[place].values))
        for value in values:
            firsts[value] = min(firsts[value], number)
    return first, list(by_value.items())


def _ends(
    clause: _Clause, parameters: Sequence[ResolvedParameter], places: Sequence[int], report: Report
) -> tuple[int, int] | None:
    """The two ends of an amount for one call, in its unit; None after an error."""
    amount = clause.amount
    given = {parameters[p].name: parameters[p].numbers[places[p]] for p in clause.uses}
    case = ", ".join(f"{parameters[p].name}={parameters[p].values[places[p]]}" for p in clause.uses)
    case = f" where {case}" if case else ""
    ends = []
    for arithmetic in (amount.low, amount.high):
        if arithmetic is not None:
            report.tick(len(arithmetic.code))
            value = _evaluate(arithmetic, given)
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
    """An amount in its unit; None after an error."""
    if value is None:
        report.error(
            "TCC307", region, f"this arithmetic leaves {MAX_BITS} bits{case}", "simplify it"
        )
        return None
    return in_unit(amount.kind, value * MILLISECONDS[amount.unit], region, report, case)


def count_of(number: Number, report: Report) -> int | None:
    """A number of calls or of plans; None after an error."""
    if number.value.denominator != 1 or number.value < 0:
        message = "this counts, so it is a whole number, zero or more"
        report.error("TCC312", number.region, message, "write a number such as 0 or 3")
        return None
    return number.value.numerator


def in_unit(
    kind: str, value: Fraction, region: Region, report: Report, case: str = ""
) -> int | None:
    """`value` as whole nano-units, cents or milliseconds within 64 bits; None after an error."""
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


def _evaluate(arithmetic: Arithmetic, given: dict[str, Fraction | None]) -> Fraction | None:
    """The value of an expression in postfix order; None where it grows past MAX_BITS."""
    stack: list[Fraction] = []
    for item in arithmetic.code:
        if isinstance(item, Fraction):
            stack.append(item)
        elif isinstance(item, Word):
            stack.append(given[item.text] or Fraction(0))
        elif item == "~":
            stack.append(-stack.pop())
        else:
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


def combinations(parameters: Sequence[ResolvedParameter]) -> Iterator[tuple[int, ...]]:
    """The places of the values of every call, the last parameter fastest."""
    return product(*(range(len(parameter.values)) for parameter in parameters))
