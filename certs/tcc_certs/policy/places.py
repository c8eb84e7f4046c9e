"""The part of each statement that holds in plans, and the place that enforces the statement.

The *place* is the automaton, the gate, or both.  It depends only on the core.  The part of a
statement in plans is a table over classes of calls (:mod:`tcc_certs.policy.tables`) or a sum of
amounts.  Normative text: docs/spec/artifact.md, sections 9 and 10.
Cost: linear in the calls of the tools whose listed fields a statement mentions, and in its table.
All statements together take at most `MAX_ALL_WORK` steps.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from itertools import repeat
from math import lcm
from typing import Any, Literal, NamedTuple, TypeAlias, overload

from tcc_certs.policy import forms, nodes
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import Condition, Rule
from tcc_certs.policy.kinds import Kinds, walk
from tcc_certs.policy.meaning import NANO, policy_of
from tcc_certs.policy.nodes import (
    Limit,
    Node,
    Owe,
    Pieces,
    Require,
    Statement,
    statement_text,
    with_parts,
)
from tcc_certs.policy.tables import (
    MAX_WORK,
    Letter,
    Table,
    TooMany,
    Work,
    amounts_of,
    reduced,
    tabulate,
)
from tcc_certs.values.places import State, exact_number, listed_states

Place: TypeAlias = Literal["automaton", "gate", "both"]

MAX_CLASSES = 1 << 10  # most classes of calls in a table
MAX_ALL_WORK = 1 << 23  # most steps for all statements together


class Runs(Sequence[int]):
    """A number for each call of a core, stored as runs; 0 for most calls.

    Args:
        size: the number of calls of the core.
        runs: increasing ranges of calls with their number.  All other calls have the number 0.
    """

    __slots__ = ("_lows", "_size", "runs")

    def __init__(self, size: int, runs: Iterable[Run] = ()) -> None:
        self._size = size
        self.runs = _joined(runs)
        self._lows = [run.low for run in self.runs]

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, call: int) -> int: ...
    @overload
    def __getitem__(self, call: slice) -> Sequence[int]: ...
    def __getitem__(self, call: int | slice) -> int | Sequence[int]:
        if isinstance(call, slice):
            return list(self)[call]
        if not 0 <= call < self._size:
            raise IndexError(call)
        at = bisect_right(self._lows, call) - 1
        if at < 0 or call >= self.runs[at].high:
            return 0
        return self.runs[at].number

    def __iter__(self) -> Iterator[int]:
        end = 0
        for low, high, number in self.runs:
            yield from repeat(0, low - end)
            yield from repeat(number, high - low)
            end = high
        yield from repeat(0, self._size - end)


class Run(NamedTuple):
    """The calls ``low .. high - 1`` and their common number."""

    low: int
    high: int
    number: int


def _joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs with a number other than 0; adjacent runs with the same number are joined."""
    found: list[Run] = []
    for low, high, number in runs:
        if number == 0:
            continue
        if found and found[-1].high == low and found[-1].number == number:
            found[-1] = Run(found[-1].low, high, number)
        else:
            found.append(Run(low, high, number))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSum:
    """A sum over the calls of a plan that never exceeds `bound`.

    The bound holds after every call, and not only at the end, because amounts of costs may be
    negative.

    Attributes:
        amounts: the amount of each call of the core.  Only a cost may be negative.
        bound: at least 0.
    """

    amounts: Runs
    bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPart:
    """The part of a statement that holds in plans.

    Use it as an automaton: begin with `start`, and call `step` with `class_of[call]`.  Calls of one
    class have the same effect.

    Attributes:
        number: the number of the statement in the core.
        text: its canonical text.
        place: what enforces the statement: the automaton, the gate, or both.
        blanked: for ``both``, the function that computes the text of :attr:`holds`.
        class_of: the class of each call of the core.
        classes: the number of classes.
        table: moves over classes, if the part is a table.
        total: the sum, if the part is a sum.  Its state is the sum so far.
        weights: for a sum, the amount of each class.
    """

    number: int
    text: str
    place: Place
    blanked: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    class_of: Runs
    classes: int = 1
    table: Table | None = None
    total: WeightedSum | None = None
    weights: Sequence[int] = ()

    @property
    def holds(self) -> str | None:
        """For ``both``: the text with ``_`` for each condition that the automaton leaves out."""
        return None if self.blanked is None else self.blanked()

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
        """Return whether a plan may end in a state."""
        return self.table is None or self.table.accepts[state]


def parts_of(core: Core) -> tuple[StatementPart, ...]:
    """Return the part of each statement that holds in plans, in order; computed once for a core.

    Raises:
        Fault: a statement is wrong.
    """
    found: tuple[StatementPart, ...] | None = core.__dict__.get("_parts")
    if found is None:
        found = core.__dict__["_parts"] = _Parts(core).all()
    return found


def left_out(core: Core) -> tuple[int, ...]:
    """Return the numbers of the statements that an automaton with cycles omits.

    These are totals of depth (`limit depth <= N`), which sessions count and look ahead for.  They
    are also statements that cause no dead end, which only the gate decides.  The result is computed
    once for each core.

    Raises:
        Fault: a statement is wrong.
    """
    found: tuple[int, ...] | None = core.__dict__.get("_left_out")
    if found is None:
        found = core.__dict__["_left_out"] = tuple(
            sorted([*core.depth_totals, *_without_dead_ends(core)])
        )
    return found


def omitted(core: Core, relaxed: Iterable[int], *, cyclic: bool) -> frozenset[int]:
    """Return the numbers of the statements that an automaton omits, although it could enforce them.

    Args:
        relaxed: the numbers of the statements that the artifact relaxed.
        cyclic: whether the automaton has cycles.
    """
    return frozenset([*relaxed, *(left_out(core) if cyclic else ())])


def refused_tools(core: Core, part: StatementPart) -> set[int]:
    """Return the indices of the tools with a call that the statement refuses in some plan."""
    return _tools_of(core, part, list(map(bool, _refusals(part))))


def _without_dead_ends(core: Core) -> set[int]:
    """Return the numbers of the statements that an automaton with cycles need not enforce.

    The automaton enforces a statement in three cases.  The statement is small, or it may decide
    more than the gate does, or it refuses a call of a tool that an enforced statement needs.  The
    result has the other statements, without totals of depth.  With a plan, `start` or `goals` the
    result is empty.  The reasons are in docs/spec/artifact.md, section 10.
    """
    if core.has_plan or core.start is not None or core.goals:
        return set()
    held_parts = [part for part in parts_of(core) if part.place != "gate"]
    parts = [part for part in held_parts if part.number not in core.depth_totals]
    answers = _answers(core)
    held = [part for part in parts if _is_small(part) or _decides_more(core, part, answers)]
    left = {part.number for part in parts} - {part.number for part in held}
    refusing: dict[int, list[StatementPart]] = {}
    for part in parts:
        for tool in refused_tools(core, part) if part.number in left else ():
            refusing.setdefault(tool, []).append(part)
    for part in held:  # the loop appends to this list
        for other in [one for tool in _needed_tools(core, part) for one in refusing.pop(tool, ())]:
            if other.number in left:
                left.remove(other.number)
                held.append(other)
    return left


def _is_small(part: StatementPart) -> bool:
    """Return whether the table has only one state, so that it adds no states to the automaton."""
    return part.table is not None and len(part.table.moves) == 1


def _decides_more(
    core: Core, part: StatementPart, answers: Mapping[int, Sequence[Sequence[int]]]
) -> bool:
    """Return whether an automaton with the statement may refuse calls that the gate allows.

    This is so in three cases.  A plan may not end in some state of the statement, or a sum has an
    amount below 0, or the refusal of a call depends on its listed answers.

    Args:
        answers: by tool, groups of calls that differ only in their listed answers.
    """
    table = part.table
    is_more = min(part.weights) < 0 if table is None else not all(table.accepts)
    refusals, class_of = _refusals(part), part.class_of
    return is_more or any(
        len({refusals[class_of[call]] for call in calls}) > 1
        for tool in refused_tools(core, part)
        for calls in answers.get(tool, ())
    )


def _needed_tools(core: Core, part: StatementPart) -> set[int]:
    """Return the indices of the tools whose calls a plan may need to end under the statement.

    An `owe` needs the tools that pay.  A sum needs the tools with an amount below 0.  Another table
    needs each tool with a call that moves it to another state.  A plan without the calls of all
    other tools is still allowed.
    """
    rule = policy_of(core).rules[part.number]
    if rule.kind == "owe":
        return {at for at, tool in enumerate(core.tools) if tool.name in rule.pays}
    if part.table is None:
        return _tools_of(core, part, [weight < 0 for weight in part.weights])
    columns = zip(*part.table.moves, strict=True)
    is_moved = [any(to not in (-1, q) for q, to in enumerate(column)) for column in columns]
    return _tools_of(core, part, is_moved)


def _refusals(part: StatementPart) -> list[Any]:
    """Return, for each class of calls, when the statement refuses it; 0 means never."""
    if part.table is None:
        return [max(weight, 0) for weight in part.weights]
    columns = zip(*part.table.moves, strict=True)
    refusals = [tuple([to < 0 for to in column]) for column in columns]
    return [refusal if any(refusal) else 0 for refusal in refusals]


def _tools_of(core: Core, part: StatementPart, is_chosen: Sequence[bool]) -> set[int]:
    """Return the tools of the calls of the chosen classes.

    Class 0 is never chosen, because its calls have no effect.
    """
    return {
        core.calls[call].tool
        for low, high, at in part.class_of.runs
        if is_chosen[at]
        for call in range(low, high)
    }


def _answers(core: Core) -> Mapping[int, Sequence[Sequence[int]]]:
    """Return, for each tool with listed answers, the groups of calls that differ only in them."""
    arguments = {
        at: sum([one.type is None for one in tool.arguments])
        for at, tool in enumerate(core.tools)
        if any(one.type is None for one in tool.answers)
    }
    found: dict[int, dict[Any, list[int]]] = {at: {} for at in arguments}
    for at, call in enumerate(core.calls):
        if call.tool in found:
            chosen = call.values[: arguments[call.tool]]
            found[call.tool].setdefault(chosen, []).append(at)
    return {tool: list(groups.values()) for tool, groups in found.items()}


class _Parts:
    """Computes the parts of one core."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._calls = _Calls(core)
        self._left = MAX_ALL_WORK
        self._kinds: Kinds | None = None
        self._totals: dict[str, _Sum] = {}

    def all(self) -> tuple[StatementPart, ...]:
        """Return a part for each statement."""
        rules = policy_of(self._core).rules
        return tuple([self._part(number, rule) for number, rule in enumerate(rules)])

    def _part(self, number: int, rule: Rule) -> StatementPart:
        size = len(self._core.calls)
        text = statement_text(self._core.statements[number])
        part = StatementPart(number=number, text=text, place="gate", class_of=Runs(size))
        if rule.kind == "ask":
            return part
        if rule.kind == "total":
            found = self._totals.get(rule.what)
            if found is None:
                amounts = Runs(size, _amounts(self._core, rule.what))
                found = self._totals[rule.what] = _sum_of(amounts)
            return _with_total(part, found, _bound(rule))
        work = Work(min(MAX_WORK, self._left))
        most = work.left
        try:
            letters, runs = self._calls.classes(rule, work)
            held = _held(rule, letters, work, set())
        except TooMany:
            held = None
        self._left -= most - max(work.left, 0)
        if held is None:
            return part
        if rule.across or not held.exact:
            # computed at need: few callers show it
            blanked = cache(partial(self._holds, number, letters))
            part = replace(part, place="both", blanked=blanked)
        else:
            part = replace(part, place="automaton")
        if held.table is None:
            amounts = Runs(size, [Run(low, high, held.weights[at]) for low, high, at in runs])
            return _with_sum(part, _sum_of(amounts), held.bound)
        table, classes = reduced(held.table)
        class_of = Runs(size, [Run(low, high, classes[at]) for low, high, at in runs])
        count = max(classes) + 1
        return replace(part, class_of=class_of, classes=count, table=table)

    def _holds(self, number: int, letters: Sequence[Letter]) -> str:
        """Return the text of a statement with ``_`` for each condition that plans leave open."""
        if self._kinds is None:
            self._kinds = Kinds(self._core)
        conditions: dict[int, list[Condition]] = {}
        self._kinds.conditions = conditions
        statement = self._core.statements[number]
        either: set[int] = set()
        _held(self._kinds.rule(statement), letters, Work(), either)
        blanking = _Blanking(conditions, either, self._kinds.opened)
        return statement_text(blanking.statement(statement))


class _Sum(NamedTuple):
    """The amount and the class of each call, and the amount of each class."""

    amounts: Runs
    class_of: Runs
    weights: tuple[int, ...]


def _sum_of(amounts: Runs) -> _Sum:
    known = {0: 0}
    runs = [
        Run(low, high, known.setdefault(amount, len(known))) for low, high, amount in amounts.runs
    ]
    return _Sum(amounts, Runs(len(amounts), runs), tuple(known))


def _with_total(part: StatementPart, found: _Sum, bound: int) -> StatementPart:
    """Return the part of a total.

    A bound below 0 forbids every call if no amount is below 0.  Otherwise only the gate enforces
    it.
    """
    if bound >= 0:
        return _with_sum(replace(part, place="automaton"), found, bound)
    if min(found.weights) < 0:
        return part
    size = len(found.amounts)
    table = Table(moves=((0, -1),), accepts=(True,), exact=True)
    class_of = Runs(size, [Run(0, size, 1)])
    return replace(part, place="automaton", class_of=class_of, classes=2, table=table)


def _with_sum(part: StatementPart, found: _Sum, bound: int) -> StatementPart:
    total = WeightedSum(amounts=found.amounts, bound=bound)
    weights = found.weights
    return replace(
        part, class_of=found.class_of, classes=len(weights), total=total, weights=weights
    )


def _amounts(core: Core, what: str) -> Iterator[Run]:
    """Yield the amount that each call adds to a total, as a run."""
    name = {"depth": "", "cost": "cost_high"}.get(what, what)
    for at, call in enumerate(core.calls):
        yield Run(at, at + 1, getattr(call, name) if name else 1)


def _bound(rule: Rule) -> int:
    """Return the bound of a total in the units of the amounts, rounded down."""
    most = Fraction(exact_number(rule.total))
    return int((most * NANO if rule.what in ("cost", "epsilon") else most) // 1)


class _Held(NamedTuple):
    """The part of a rule that holds in plans: a table, or the amounts of letters and their bound.

    Attributes:
        exact: True if the part decides the same as the rule.
    """

    exact: bool
    table: Table | None
    weights: Sequence[int] = ()
    bound: int = 0


def _held(rule: Rule, letters: Sequence[Letter], work: Work, either: set[int]) -> _Held | None:
    """Return the part of a rule that holds in plans; None: it restricts nothing or is too large.

    Args:
        either: receives the ids of the conditions that plans leave open.

    Raises:
        TooMany: the rule takes too many steps.
    """
    if rule.kind == "limit" and rule.within is None and not rule.per:
        found = amounts_of(rule, letters, work, either)
        if found is not None and found[1] >= 0:
            amounts, most, exact = found
            unit = lcm(*[amount.denominator for amount in amounts])
            weights = [int(amount * unit) for amount in amounts]
            idle = not exact and not any(weights)
            return None if idle else _Held(exact, None, weights, int(most * unit // 1))
    table = tabulate(rule, letters, work, either)
    if table is None:
        return None
    exact = table.exact and rule.within is None
    return _Held(exact, table) if exact or not table.is_idle else None


class _Calls:
    """The calls of a core, and their classes for each statement."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._number = {tool.name: at for at, tool in enumerate(core.tools)}
        self._ranges: dict[int, list[tuple[int, int]]] = {}  # by tool, the ranges of its calls
        for at, call in enumerate(core.calls):
            ranges = self._ranges.setdefault(call.tool, [])
            if ranges and ranges[-1][1] == at:
                ranges[-1] = (ranges[-1][0], at + 1)
            else:
                ranges.append((at, at + 1))
        self._states: dict[int, list[tuple[str, tuple[State, ...]]]] = {}

    def classes(self, rule: Rule, work: Work) -> tuple[list[Letter], list[Run]]:
        """Return a sample call of each class, and the classes of calls of the tools in a rule.

        Calls of one class are in the same sets of the rule, and have the same states of the listed
        fields that it mentions.  Class 0 has the calls of all other tools.

        Raises:
            TooMany: the rule takes too many steps, or has more than `MAX_CLASSES` classes.
        """
        sets, names = _mentions(rule)
        inside: dict[str, list[int]] = {}
        for number, tools in enumerate(sets):
            work.spend(len(tools))
            for tool in tools:
                inside.setdefault(tool, []).append(number)
        known: dict[Any, int] = {}
        letters = [Letter("", {})]
        runs: list[Run] = []
        for tool, memberships in inside.items():
            at = self._number[tool]
            fields = self._listed(at)
            places = [place for place, (name, _) in enumerate(fields) if name in names]
            for low, high in self._ranges.get(at, ()):
                ends = [(low, high)] if not places else [(i, i + 1) for i in range(low, high)]
                work.spend(len(ends))
                for first, last in ends:
                    values = self._core.calls[first].values
                    states = [(fields[place][0], fields[place][1][values[place]])
                              for place in places]  # fmt: skip
                    key = (tuple(memberships), tuple(states))
                    number = known.setdefault(key, len(letters))
                    if number == len(letters):
                        if number == MAX_CLASSES:
                            raise TooMany
                        letters.append(Letter(tool, dict(states)))
                    runs.append(Run(first, last, number))
        return letters, sorted(runs)

    def _listed(self, tool: int) -> list[tuple[str, tuple[State, ...]]]:
        found = self._states.get(tool)
        if found is None:
            listed = self._core.tools[tool].listed
            found = self._states[tool] = [(one.name, listed_states(one)) for one in listed]
        return found


def _mentions(rule: Rule) -> tuple[list[forms.Tools], set[str]]:
    """Return the sets of tools and the names of fields that a rule mentions."""
    sets: dict[forms.Tools, None] = {rule.pays: None}
    names = set() if rule.field is None else {rule.field}
    if rule.tools is not None:
        sets[rule.tools] = None
    for form in walk(rule):
        match form:
            case forms.Calls(tools) | forms.IsOf(_, tools):
                sets[tools] = None
            case forms.Get(_, name):
                names.add(name)
    return list(sets), names


# The text of the part that the automaton enforces.


@dataclass(frozen=True, slots=True)
class _Blank(Node):
    """A condition that the automaton leaves out, written ``_``."""

    def pieces(self, out: Pieces) -> None:
        out.append("_")


@dataclass(frozen=True, slots=True)
class _OpenWindow(Node):
    """``within _``: calls in a window whose length the automaton leaves out."""

    of: Node
    SHAPE, LEVEL = "n", nodes.MODIFIED

    def pieces(self, out: Pieces) -> None:
        shown = nodes.Within(self.of, "_", "")
        inner: Pieces = []
        shown.pieces(inner)
        out += [*inner[:-1], " within _"]


class _Blanking:
    """Rewrites statements with ``_`` for each condition that plans leave open.

    A `let` of the file is replaced by its body if the body has such a condition.

    Args:
        conditions: by the id of a node, the conditions that were made from it.
        either: the ids of the conditions that the table treats as either true or false.
        opened: by the id of a word, the `let` that it names.
    """

    def __init__(
        self,
        conditions: Mapping[int, Sequence[Condition]],
        either: set[int],
        opened: Mapping[int, nodes.Definition],
    ) -> None:
        self._conditions, self._either, self._opened = conditions, either, opened
        self._shown: set[int] = set()  # the bodies of the lets of the block

    def statement(self, statement: Statement) -> Statement:
        """Return the part of a statement that the automaton enforces."""
        match statement:
            case Require():
                self._shown = {id(let.body) for let in statement.lets}
                lets = [replace(let, body=self._node(let.body)) for let in statement.lets]
                where, then = self._all(statement.where), self._node(statement.then)
                return replace(statement, where=where, lets=tuple(lets), then=then)
            case Owe():
                where, pays = self._all(statement.where), self._all(statement.pays)
                return replace(statement, where=where, pays=pays, within=None)
            case nodes.Forbid():
                return replace(statement, where=self._all(statement.where))
            case Limit():
                return replace(statement, where=self._all(statement.where), scope=None)
        return statement

    def _all(self, some: Sequence[Node]) -> tuple[Node, ...]:
        return tuple([self._node(node) for node in some])

    def _node(self, node: Node) -> Node:
        made = self._conditions.get(id(node), ())
        if made and all(_is_either(condition, self._either) for condition in made):
            return _Blank()
        word, arguments = node, tuple[Node, ...]()
        if isinstance(node, nodes.Where) and isinstance(node.of, nodes.Word):
            word, arguments = node.of, node.conditions
        let = self._opened.get(id(word))
        is_shown = let is not None and id(let.body) in self._shown
        if let is not None and not is_shown and (word is node or let.parameters):
            body = self._node(let.body)
            if body == let.body:
                return node
            return _with_arguments(
                body, dict(zip(let.parameters, self._all(arguments), strict=True))
            )
        parts = self._all(nodes.parts_of(node))
        return _OpenWindow(*parts) if isinstance(node, nodes.Within) else with_parts(node, parts)


def _with_arguments(body: Node, arguments: Mapping[str, Node]) -> Node:
    """Return the body of a `let` with its arguments in place of its parameters."""
    if isinstance(body, nodes.Word):
        return arguments.get(body.name, body)
    if isinstance(body, _OpenWindow):
        return _OpenWindow(_with_arguments(body.of, arguments))
    if isinstance(body, _Blank):
        return body
    parts = [_with_arguments(part, arguments) for part in nodes.parts_of(body)]
    return with_parts(body, parts)


def _is_either(condition: Condition, either: set[int]) -> bool:
    if id(condition) in either:
        return True
    match condition:
        case forms.Not(of):
            return _is_either(of, either)
        case forms.All(parts) | forms.AnyOf(parts):
            return all(_is_either(part, either) for part in parts)
    return False
