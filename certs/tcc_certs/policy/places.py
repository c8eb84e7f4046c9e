"""The part of each statement that holds in plans, and the place of the statement.

A statement is held by the automaton, by the gate, or by both.  Its part in plans is a table over
classes of calls (:mod:`tcc_certs.policy.tables`) or a sum of amounts.  The place follows from the
core alone.  Normative text: docs/spec/artifact.md, section "Statements as tables".
Cost: linear in the calls of the tools whose listed fields a statement mentions, and in its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, Literal, TypeAlias

from tcc_certs.policy import forms
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import NANO, policy_of
from tcc_certs.policy.nodes import statement_text
from tcc_certs.policy.plans import Call
from tcc_certs.policy.tables import Letter, Table, amounts_of, tabulate
from tcc_certs.values.places import exact_number, listed_states

Place: TypeAlias = Literal["automaton", "gate", "both"]

MAX_CLASSES = 1 << 10  # of the calls that a table tells apart


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSum:
    """A sum over the calls of a plan: no call may bring it above `bound`.

    Attributes:
        amounts: for each call of the core; only a cost may be negative.
    """

    amounts: Sequence[int]
    bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPart:
    """What plans hold of a statement.

    A user steps with `class_of[call]` from `start`.  Calls of one class behave alike.

    Attributes:
        number: of the statement in the core.
        text: its canonical text.
        place: what holds the statement: the automaton, the gate, or both.
        holds: of ``both`` the text with ``_`` in place of what the automaton does not hold.
        class_of: for each call of the core its class.
        classes: how many classes there are.
        table: over classes, where the part is a table.
        total: where the part is a sum; a state is the sum so far.
        weights: of a sum, for each class its amount.
    """

    number: int
    text: str
    place: Place
    holds: str | None = None
    class_of: Sequence[int]
    classes: int = 1
    table: Table | None = None
    total: WeightedSum | None = None
    weights: Sequence[int] = ()

    @property
    def is_idle(self) -> bool:
        """Whether every plan satisfies it, as far as plans go."""
        return self.table is None and self.total is None

    @property
    def start(self) -> int:
        """The state of the empty plan."""
        return 0

    def step(self, state: int, call_class: int) -> int | None:
        """Return the state after a call of a class; None: the statement forbids the call."""
        if self.table is not None:
            after = self.table.moves[state][call_class]
            return None if after < 0 else after
        if self.total is not None:
            after = state + self.weights[call_class]
            return None if after > self.total.bound else after
        return state

    def accepts(self, state: int) -> bool:
        """Whether a plan may end in a state."""
        return self.table is None or self.table.accepts[state]


def parts_of(core: Core) -> tuple[StatementPart, ...]:
    """Return what plans hold of each statement, in order; computed once for a core.

    Raises:
        Fault: a statement is wrong.
    """
    found: tuple[StatementPart, ...] | None = core.__dict__.get("_parts")
    if found is None:
        found = core.__dict__["_parts"] = _parts_of(core)
    return found


def _parts_of(core: Core) -> tuple[StatementPart, ...]:
    calls = _Calls(core)
    return tuple([_part_of(core, calls, at, rule) for at, rule in enumerate(policy_of(core).rules)])


def _part_of(core: Core, calls: _Calls, number: int, rule: Rule) -> StatementPart:
    text = statement_text(core.statements[number])
    gate = StatementPart(number=number, text=text, place="gate", class_of=calls.alike)
    if rule.kind == "ask":
        return gate
    if rule.kind == "total":
        amounts, bound = _total(core, rule)
        return _sum(number, text, "automaton", amounts, bound)
    classes = calls.classes(rule)
    if classes is None:
        return gate
    class_of, letters = classes
    if rule.kind == "limit" and rule.within is None and not rule.per:
        found = amounts_of(rule, letters)
        if found is not None:
            by_class, most, exact = found
            if not exact and not any(by_class):
                return gate
            unit = lcm(*[amount.denominator for amount in by_class])
            amounts = [int(by_class[one] * unit) for one in class_of]
            place: Place = "automaton" if exact and not rule.across else "both"
            holds = _holds(core, number) if place == "both" else None
            return _sum(number, text, place, amounts, int(most * unit // 1), holds)
    table = tabulate(rule, letters)
    if table is None or (table.is_idle and not table.exact):
        return gate
    asks_more = rule.across or rule.within is not None
    place = "automaton" if table.exact and not asks_more else "both"
    return StatementPart(
        number=number, text=text, place=place, class_of=class_of, classes=len(letters),
        table=table, holds=_holds(core, number) if place == "both" else None,
    )  # fmt: skip


def _sum(
    number: int, text: str, place: Place, amounts: Sequence[int], bound: int,
    holds: str | None = None,
) -> StatementPart:  # fmt: skip
    known: dict[int, int] = {}
    class_of = [known.setdefault(amount, len(known)) for amount in amounts]
    return StatementPart(
        number=number, text=text, place=place, holds=holds, class_of=class_of,
        classes=len(known), total=WeightedSum(amounts=amounts, bound=bound), weights=tuple(known),
    )  # fmt: skip


def _holds(core: Core, number: int) -> str:
    return statement_text(core.statements[number])


def _total(core: Core, rule: Rule) -> tuple[Sequence[int], int]:
    most = Fraction(exact_number(rule.total))
    match rule.what:
        case "depth":
            return [1] * len(core.calls), int(most // 1)
        case "price":
            return [call.price for call in core.calls], int(most // 1)
        case "latency":
            return [call.latency for call in core.calls], int(most // 1)
        case "epsilon":
            return [call.epsilon for call in core.calls], int(most * NANO // 1)
    return [call.cost_high for call in core.calls], int(most * NANO // 1)


class _Calls:
    """The calls of a core, in classes for each statement."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._states = [[listed_states(one) for one in tool.listed] for tool in core.tools]
        self._names = [[one.name for one in tool.listed] for tool in core.tools]
        self.alike: Sequence[int] = (0,) * len(core.calls)

    def classes(self, rule: Rule) -> tuple[Sequence[int], tuple[Letter, ...]] | None:
        """For each call its class, and a call of each; None where there are too many classes."""
        sets, names = _mentions(rule)
        of_tool = []
        for at, tool in enumerate(self._core.tools):
            inside = tuple([tool.name in one for one in sets])
            places = [place for place, name in enumerate(self._names[at]) if name in names]
            of_tool.append((inside, places if any(inside) else []))
        known: dict[Any, int] = {}
        letters: list[Letter] = []
        class_of = []
        for call in self._core.calls:
            inside, places = of_tool[call.tool]
            states = self._states[call.tool]
            own = {self._names[call.tool][at]: states[at][call.values[at]] for at in places}
            key = (inside, tuple(own.items()))
            number = known.get(key)
            if number is None:
                if len(letters) == MAX_CLASSES:
                    return None
                number = known[key] = len(letters)
                letters.append(self._letter(call))
            class_of.append(number)
        return class_of, tuple(letters)

    def _letter(self, call: Call) -> Letter:
        values = zip(self._names[call.tool], self._states[call.tool], call.values, strict=True)
        states = {name: states[at] for name, states, at in values}
        return Letter(self._core.tools[call.tool].name, states)


def _mentions(rule: Rule) -> tuple[list[forms.Tools], set[str]]:
    """The sets of tools and the names of fields that a rule mentions."""
    sets: list[forms.Tools] = [rule.pays]
    names = set() if rule.field is None else {rule.field}
    if rule.tools is not None:
        sets.append(rule.tools)
    for form in walk(rule):
        match form:
            case forms.Calls(tools) | forms.IsOf(_, tools):
                sets.append(tools)
            case forms.Get(_, name):
                names.add(name)
    return sets, names
