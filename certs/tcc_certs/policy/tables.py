"""Statements as finite tables over the calls of plans.

In a plan, calls have listed values and all of them are done.  A condition may also use open fields,
attributes or times, which plans do not have.  Its truth in a plan is *either*: true or false by
choice.  A plan is allowed if some choice allows it, so a table allows every plan that the
definition allows.  :class:`_Reader` computes whether some choice makes a condition true, or false.

The state of a table has a small memory for each use of a source.  The memory says whether an
element was in the source, counts up to the bound that matters, or has the values of the last
element.  A `since` resets it.  Normative text: docs/spec/artifact.md, section 9.
Cost: counted in steps (:class:`Work`).  A statement that takes more than `MAX_WORK` steps, or has
more than `MAX_STATES` states, has no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.policy import forms
from tcc_certs.policy.forms import Condition, Rule, Source, Term
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import (
    MISSING,
    arithmetic,
    clock,
    compare,
    is_null,
    matches,
    same,
    under,
)
from tcc_certs.values.places import NONE, State

MAX_WORK = 1 << 20  # steps for one statement: visits of conditions and terms, and moves
MAX_STATES = 1 << 12
MAX_SLOTS = 1 << 10
MAX_VALUES = 1 << 8  # most combinations of values in one comparison
MAX_COUNT = 1 << 12


@dataclass(frozen=True, slots=True)
class Letter:
    """A call of a plan: a tool, and the states of its listed fields."""

    tool: str
    states: Mapping[str, State] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Table:
    """The automaton of a statement.  States are numbers, and 0 is the first state.

    Attributes:
        moves: by state and letter the next state; -1: the statement forbids the letter.
        accepts: by state, whether a plan may end there.
        exact: True if the table allows exactly the plans of the definition, because no truth was
            left open.
    """

    moves: tuple[tuple[int, ...], ...]
    accepts: tuple[bool, ...]
    exact: bool

    @property
    def is_idle(self) -> bool:
        """True if the table allows every plan."""
        return all(self.accepts) and all(min(row, default=0) >= 0 for row in self.moves)


class Work:
    """The steps that a computation may still take.

    Raises:
        TooMany: from `spend`, if no steps are left.
    """

    __slots__ = ("left",)

    def __init__(self, most: int = MAX_WORK) -> None:
        self.left = most

    def spend(self, steps: int = 1) -> None:
        """Count steps as taken."""
        self.left -= steps
        if self.left < 0:
            raise TooMany


class TooMany(Exception):
    """A statement takes too many steps, or its table would have too many states or memories."""


def tabulate(
    rule: Rule,
    letters: Sequence[Letter],
    work: Work | None = None,
    either: set[int] | None = None,
) -> Table | None:
    """Return the table of a statement; None if it would be too large.

    Args:
        work: the steps that the computation may take; by default `MAX_WORK`.
        either: receives the ids of the conditions that the table treats as either true or false.
    """
    reader = _Reader(letters, Work() if work is None else work, either)
    try:
        machine = _machine(rule, reader)
        reader.is_complete = True
        states = {machine.start: 0}
        order = [machine.start]
        moves: list[tuple[int, ...]] = []
        for memory in order:
            reader.work.spend(len(letters))
            row = []
            for at in range(len(letters)):
                after = machine.step(memory, at)
                if after is not None and after not in states:
                    if len(order) == MAX_STATES:
                        return None
                    states[after] = len(order)
                    order.append(after)
                row.append(-1 if after is None else states[after])
            moves.append(tuple(row))
        accepts = tuple([machine.accepts(memory) for memory in order])
    except TooMany:
        return None
    return Table(tuple(moves), accepts, reader.exact)


def reduced(table: Table) -> tuple[Table, tuple[int, ...]]:
    """Return the smallest equivalent table, over classes of letters with equal moves.

    Returns:
        the table, and the class of each letter; letter 0 has class 0.
    """
    block = blocks_of(table.moves, table.accepts)
    firsts: dict[int, int] = {}  # by block its first state
    for state, number in enumerate(block):
        firsts.setdefault(number, state)
    number_of = {number: at for at, number in enumerate(firsts)}
    rows = [
        tuple([-1 if to < 0 else number_of[block[to]] for to in table.moves[state]])
        for state in firsts.values()
    ]
    columns = list(zip(*rows, strict=True))
    known: dict[tuple[int, ...], int] = {}
    classes = tuple([known.setdefault(column, len(known)) for column in columns])
    moves = tuple(zip(*known, strict=True))
    accepts = tuple([table.accepts[state] for state in firsts.values()])
    return Table(moves, accepts, table.exact), classes


def blocks_of(moves: Sequence[Sequence[int]], accepts: Sequence[bool]) -> list[int]:
    """Return, for each state, a number that exactly its equivalent states share.

    Equivalent states refuse the same letters, lead to equivalent states, and accept both or
    neither.  Source: Hopcroft, An n log n algorithm for minimizing states in a finite automaton,
    1971.
    """
    sink = len(moves)  # the target of all forbidden letters
    letters = range(len(moves[0]))
    before: list[list[list[int]]] = [[[] for _ in range(sink + 1)] for _ in letters]
    for state, row in enumerate(moves):
        for letter, to in enumerate(row):
            before[letter][to].append(state)
    kinds = (
        {sink},
        {q for q in range(sink) if accepts[q]},
        {q for q in range(sink) if not accepts[q]},
    )
    blocks = [kind for kind in kinds if kind]
    block = [0] * (sink + 1)
    for number, members in enumerate(blocks):
        for state in members:
            block[state] = number
    todo = {(number, letter) for number in range(len(blocks)) for letter in letters}
    while todo:
        splitter, letter = todo.pop()
        touched: dict[int, set[int]] = {}
        for to in blocks[splitter]:
            for state in before[letter][to]:
                touched.setdefault(block[state], set()).add(state)
        for number, part in touched.items():
            rest = blocks[number]
            if len(part) == len(rest):
                continue
            rest -= part
            new = len(blocks)
            blocks.append(part)
            for state in part:
                block[state] = new
            is_smaller = len(part) <= len(rest)
            for other in letters:
                todo.add((new if is_smaller or (number, other) in todo else number, other))
    return block[:sink]


def amounts_of(
    rule: Rule, letters: Sequence[Letter], work: Work, either: set[int] | None = None
) -> tuple[list[Fraction], Fraction, bool] | None:
    """Return the amount of each letter under a `limit` without keys, window and varying bound.

    Returns:
        the amounts, the bound, and whether the amounts are exact.  A letter whose amount is open
        adds 0.  The result is None if the bound is not a constant number.

    Raises:
        TooMany: the computation takes too many steps.
    """
    if not isinstance(rule.most, forms.Constant) or rule.most.state[0] != "n":
        return None
    reader = _Reader(letters, work, either)
    found = []
    for at, letter in enumerate(letters):
        counts = letter.tool in (rule.tools or ())
        if counts and rule.where:
            counts = not reader.can(rule.where, False, at, ())
        amount: State | None = ("n", 1 if counts else 0)
        if counts and rule.field is not None:
            amount = letter.states.get(rule.field)
        if amount is None:
            reader.exact = False
        found.append(Fraction(amount[1]) if amount else Fraction(0))
    return found, Fraction(rule.most.state[1]), reader.exact


Memory: TypeAlias = "tuple[Any, ...]"

# The effect of an element on a memory. Some choice may put it into the source, and some choice may
# keep it out. Every choice, or some choice, makes it a mark. It may have a value.


class _Effect(NamedTuple):
    can_be_in: bool
    can_be_out: bool
    must_mark: bool
    may_mark: bool
    value: Any


class _Use(NamedTuple):
    """A source in the way that a condition uses it.

    Attributes:
        what: ``some``, ``count``, ``sum`` or ``last``.
        extra: more conditions on the element, each with a flag: True negates the condition.
        term: for ``sum`` and ``last``, the term over the element.
        cap: for ``count`` and ``sum``, the greatest amount that the memory distinguishes.
    """

    what: str
    source: Source
    extra: tuple[tuple[Condition, bool], ...] = ()
    term: Term | None = None
    cap: int = 0


class _Reader:
    """Evaluates conditions over letters and memories.

    Attributes:
        exact: False once a condition was treated as either true or false.
        reads: the slots that conditions have read since a caller last cleared the set.
        is_complete: whether all slots are known.  From then on a use without a slot is *either*.
    """

    def __init__(
        self, letters: Sequence[Letter], work: Work, either: set[int] | None = None
    ) -> None:
        self.letters = letters
        self.work = work
        self.exact = True
        self.is_complete = False
        self.slots: list[tuple[str, int, tuple[_Effect | None, ...]]] = []
        self.reads: set[int] = set()
        self._open = set() if either is None else either
        self._is_open = False  # whether the current condition is either true or false
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._slot_of: dict[tuple[Any, ...], int | None] = {}
        self._names: dict[int, tuple[str, ...]] = {}
        self._kept: list[Source] = []  # keeps the sources alive, so that their ids stay unique
        self._changes: list[list[tuple[int, str, int, Any]]] = []  # by letter
        self._elements: dict[int, tuple[Letter, State | None]] = {}
        self._memory: Memory = ()
        self._decided: int | None = None
        self._depth = 0

    def known(self, term: Term) -> State | None:
        """Return the state of a term over the decided letter; None: several states are possible."""
        self._depth += 1  # sources have no memory here
        found = self._values(term)
        self._depth -= 1
        if found is None or len(found) != 1:
            self.exact = False
            return None
        return next(iter(found))

    def pays(self, conditions: Sequence[Condition], letter: Letter) -> bool:
        """Return whether some choice lets `letter` pay the debt of the decided letter."""
        self._elements[1] = (letter, None)
        return self._all(conditions, True)

    # Deciding.

    def can(
        self, conditions: Sequence[Condition], want: bool, decided: int | None, memory: Memory
    ) -> bool:
        """Return whether some choice makes all conditions true, or makes any of them false.

        Args:
            want: True asks for all true, False for any false.
            decided: the index of the letter being decided; None: the plan ends.
        """
        self._memory, self._decided = memory, decided
        self._elements = {} if decided is None else {0: (self.letters[decided], None)}
        return self._all(conditions, want)

    def _all(self, conditions: Sequence[Condition], want: bool) -> bool:
        # Conditions next to an `IsOf` use fields of its tools, which other calls may lack.
        if not all(self._is_of(part) for part in conditions if isinstance(part, forms.IsOf)):
            return not want
        found = [self._can(condition, want) for condition in conditions]
        return all(found) if want else any(found)

    def _can(self, condition: Condition, want: bool) -> bool:
        self.work.spend()
        outer, self._is_open = self._is_open, False
        found = self._asked(condition, want)
        if self._is_open:
            self._open.add(id(condition))
        self._is_open = outer
        return found

    def _asked(self, condition: Condition, want: bool) -> bool:
        match condition:
            case forms.Not(of):
                return self._can(of, not want)
            case forms.All(parts):
                return self._all(parts, want)
            case forms.AnyOf(parts):
                found = [self._can(part, want) for part in parts]
                return any(found) if want else all(found)
            case forms.IsOf():
                return self._is_of(condition) is want
            case forms.Some(of):
                return self._some(_Use("some", of), want)
            case forms.Every(of, conditions):
                # An element of the source that makes a condition false refutes the `every`.
                return self._some(_Use("some", of, ((forms.All(conditions), True),)), not want)
            case forms.Among(of, source):
                equal = forms.Compare("=", forms.Element(source.level), (of,))
                if not isinstance(source.base, forms.Rows):
                    return self._either()
                return self._some(_Use("some", source, ((equal, False),)), want)
            case forms.Compare(operator, left, options):
                return self._compare(operator, left, options, want)
            case forms.Same(left, right):
                return self._judge([left, right], lambda one, other: same(one, other), want)
            case forms.Between(of, low, high):
                return self._between(of, low, high, want)
            case forms.Matches(of, pattern):
                return self._judge([of], lambda state: matches(state, pattern), want)
            case forms.Under(of, scope):
                return self._judge([of, scope], under, want)
        raise TypeError(condition)

    def _is_of(self, condition: forms.IsOf) -> bool:
        return self._elements[condition.level][0].tool in condition.tools

    def _either(self) -> bool:
        self.exact, self._is_open = False, True
        return True

    def _compare(self, operator: str, left: Term, options: Sequence[Term], want: bool) -> bool:
        if len(options) == 1:
            for one, other, sign in (
                (left, options[0], operator),
                (options[0], left, _FLIP[operator]),
            ):
                if isinstance(one, forms.Count | forms.Sum):
                    return self._amount(one, sign, other, want)
        null = ("z", None)

        def judge(one: State, *others: State) -> bool | None:
            truths = []
            for other, option in zip(others, options, strict=True):
                if option == forms.Constant(null) and operator == "=":
                    truths.append(is_null(one))
                else:
                    truths.append(compare(operator, one, other))
            return True if True in truths else None if None in truths else False

        return self._judge([left, *options], judge, want)

    def _between(self, of: Term, low: Term, high: Term, want: bool) -> bool:
        if isinstance(of, forms.Count | forms.Sum):
            above = self._amount(of, ">=", low, want)
            below = self._amount(of, "<=", high, want)
            if not want:
                return above or below
            return above and below

        def judge(value: State, least: State, most: State) -> bool | None:
            ends = (compare(">=", value, least), compare("<=", value, most))
            return False if False in ends else None if None in ends else True

        return self._judge([of, low, high], judge, want)

    def _judge(self, terms: Sequence[Term], judge: Any, want: bool) -> bool:
        """Return whether some choice of values of the terms gives the truth `want`."""
        values = [self._values(term) for term in terms]
        combinations: list[tuple[State, ...]] = [()]
        for states in values:
            if states is None:
                return self._either()
            combinations = [(*one, state) for one in combinations for state in states]
            if len(combinations) > MAX_VALUES:
                return self._either()
            self.work.spend(len(combinations))
        return any(judge(*one) is want for one in combinations)

    def _amount(self, amount: forms.Count | forms.Sum, sign: str, other: Term, want: bool) -> bool:
        """Return whether a count or sum can satisfy (or violate) a comparison with a number."""
        known = self._values(other)
        if known is None:
            return self._either()
        if len(known) != 1 or next(iter(known))[0] != "n":
            return self._either() if len(known) != 1 else False
        if any(isinstance(form, Source) for form in walk(other)):
            return self._either()
        number = next(iter(known))[1]
        cap = self._cap(other)
        if cap is None or (isinstance(amount, forms.Count) and amount.distinct):
            return self._either()
        term = amount.term if isinstance(amount, forms.Sum) else None
        use = _Use("count" if term is None else "sum", amount.of, (), term, cap)
        slot = self._slot(use)
        if slot is None:
            return self._either()
        low, high = self._memory[slot] if self._memory else (0, 0)
        if not want:
            sign = _NEGATED[sign]
        if sign in ("<", "<="):
            return bool(low < number if sign == "<" else low <= number)
        if sign in (">", ">="):
            return bool(high > number if sign == ">" else high >= number)
        if sign == "!=":
            return bool(low < number or high > number)
        return bool(low <= number <= high)

    def _cap(self, other: Term) -> int | None:
        """Return an amount above all numbers that a term has for any decided letter.

        None: too large.
        """
        kept = self._elements
        most = 0
        for letter in self.letters:
            self._elements = {0: (letter, None)}
            try:
                values = self._values(other)
            except KeyError:  # calls of other tools lack the field
                continue
            if values is None:
                continue
            for state in values:
                if state[0] == "n":
                    most = max(most, int(state[1]) + 2)
        self._elements = kept
        return most if most <= MAX_COUNT else None

    # Values.

    def _values(self, term: Term) -> frozenset[State] | None:
        """Return the states that a term can have; None: any state."""
        self.work.spend()
        match term:
            case forms.Constant(state):
                return frozenset((state,))
            case forms.Element(level):
                value = self._elements[level][1]
                return None if value is None else frozenset((value,))
            case forms.Get(forms.Element(level), name) | forms.Get(
                forms.CallOf(forms.Element(level)), name
            ):
                listed = self._elements[level][0].states.get(name)
                return None if listed is None else frozenset((listed,))
            case forms.Get(forms.Last(of), name):
                element: Term = forms.Element(of.level)
                if isinstance(of.base, forms.Rows):
                    return None
                return self._last(of, forms.Get(element, name))
            case forms.Get(forms.CallOf(forms.Last(of)), name):
                return self._last(of, forms.Get(forms.CallOf(forms.Element(of.level)), name))
            case forms.Last(of):
                return self._last(of, forms.Element(of.level))
            case forms.Arithmetic(operator, left, right):
                one, other = self._values(left), self._values(right)
                if one is None or other is None or len(one) * len(other) > MAX_VALUES:
                    return None
                return frozenset([arithmetic(operator, a, b) for a in one for b in other])
            case forms.Clock(function, of, zone):
                found = self._values(of)
                return (
                    None if found is None else frozenset([clock(function, s, zone) for s in found])
                )
            case forms.Choose():
                return self._choose(term)
        return None

    def _choose(self, term: forms.Choose) -> frozenset[State] | None:
        of = self._values(term.of)
        # All arms are evaluated in any case, so that the first evaluation of a letter finds all
        # slots.
        otherwise = None if term.otherwise is None else self._values(term.otherwise)
        arms = [(_constants(tests), self._values(value)) for tests, value in term.arms]
        if of is None:
            return None
        found: set[State] = set()
        for state in of:
            if state[0] in ("none", "missing", "unknown"):
                found.add(state)
                continue
            values = otherwise
            for tests, value in arms:
                if any(compare("=", state, test.state) is not False for test in tests):
                    values = value
                    break
            if values is None:
                return None
            found |= values
        return frozenset(found)

    def _last(self, of: Source, term: Term) -> frozenset[State] | None:
        slot = self._slot(_Use("last", of, (), term))
        if slot is None:
            return None
        values: frozenset[State] = self._memory[slot] if self._memory else frozenset((MISSING,))
        return values

    # Memories.

    def _some(self, use: _Use, want: bool) -> bool:
        slot = self._slot(use)
        if slot is None:
            return self._either()
        can, must = self._memory[slot] if self._memory else (False, False)
        return bool(can) if want else not must

    def _slot(self, use: _Use) -> int | None:
        """Return the number of the memory of a use for the decided letter.

        None: there is no memory.
        """
        if self._depth:
            return None  # the source is inside a filter
        key = (id(use.source), use.what, use.extra, use.term, use.cap, self._decided_key(use))
        if key not in self._slot_of:
            self._slot_of[key] = None if self.is_complete else self._new_slot(use)
            self._kept.append(use.source)
        number = self._slot_of[key]
        if number is not None:
            self.reads.add(number)
        return number

    def _decided_key(self, use: _Use) -> Any:
        """Return the states of the decided letter that the use of a source depends on."""
        if self._decided is None:
            return None
        names = self._names.get(id(use.source))
        if names is None:
            named = {form.name for form in walk(use.source) if isinstance(form, forms.Get)}
            names = self._names[id(use.source)] = tuple(named)
        also = [form.name for form in walk((use.extra, use.term)) if isinstance(form, forms.Get)]
        states = self.letters[self._decided].states
        return tuple([states.get(name) for name in (*names, *also)])

    def _new_slot(self, use: _Use) -> int | None:
        effects = []
        kept, outer = self._elements, self._is_open
        self._depth += 1
        try:
            for at in range(len(self.letters)):
                self.work.spend()
                effects.append(self._effect(use, at))
        except _Unheld:
            return None
        finally:
            self._depth -= 1
            self._elements, self._is_open = kept, outer
        key = (use.what, use.cap, tuple(effects))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.slots)
            self.slots.append(key)
            if number >= MAX_SLOTS:
                raise TooMany
        return number

    def _effect(self, use: _Use, at: int) -> _Effect | None:
        """Return the effect of a letter on the memory of a use; None: no effect."""
        letter, source = self.letters[at], use.source
        must = may = False
        for mark in source.marks:
            can_be_in, can_be_out = self._is_in(mark, letter, ())
            must, may = must or not can_be_out, may or can_be_in
        can_be_in, can_be_out = self._is_in(source, letter, use.extra)
        value: Any = None
        if use.what == "last" and not can_be_in and not can_be_out:
            # if it is unsure whether the element is in the source, all candidates have to agree
            raise _Unheld
        if (can_be_in or not can_be_out) and use.term is not None:
            found = self._values(use.term)
            if use.what == "sum":
                if found is None or len(found) != 1 or next(iter(found))[0] != "n":
                    raise _Unheld
                value = next(iter(found))[1]
                if value < 0 or value != int(value):
                    raise _Unheld
            else:
                value = found
                if found is None:
                    raise _Unheld
        if can_be_out and not (can_be_in or must or may):
            return None
        return _Effect(can_be_in, can_be_out, must, may, value)

    def _is_in(
        self, source: Source, letter: Letter, extra: Sequence[tuple[Condition, bool]]
    ) -> tuple[bool, bool]:
        """Return whether a letter can be in a source, and whether it can be out of it."""
        base = source.base
        level = source.level
        can_be_in, can_be_out = True, False
        value: State | None = None
        if isinstance(base, forms.Rows):
            inner = base.of
            if base.most is not None or not isinstance(inner.base, forms.Calls) or inner.marks:
                raise _Unheld
            can_be_in, can_be_out = self._is_in(inner, letter, ())
            if not can_be_in:
                return False, True
            self._elements = {**self._elements, level: (letter, None)}
            states = self._values(base.get)
            if states is None:
                raise _Unheld
            (value,) = states
            if value == NONE:
                return False, True
        elif isinstance(base, forms.Calls):
            if letter.tool not in base.tools:
                return False, True
        else:
            raise _Unheld
        if source.within is not None:
            self.exact = False  # a call may be older than the window
            can_be_out = True
        self._elements = {**self._elements, level: (letter, value)}
        for condition in source.conditions:
            can_be_in = can_be_in and self._can(condition, True)
            can_be_out = can_be_out or self._can(condition, False)
        for condition, negated in extra:
            can_be_in = can_be_in and self._can(condition, not negated)
            can_be_out = can_be_out or self._can(condition, negated)
        return can_be_in, can_be_out

    def start(self) -> Memory:
        """Return the memory of the empty plan."""
        first: dict[str, Any] = {
            "some": (False, False), "count": (0, 0), "sum": (0, 0), "last": frozenset((MISSING,)),
        }  # fmt: skip
        return tuple([first[what] for what, _, _ in self.slots])

    def after(self, memory: Memory, at: int) -> Memory:
        """Return the memory after a letter."""
        if len(self._changes) != len(self.letters):
            self._changes = [
                [(n, what, cap, effects[i]) for n, (what, cap, effects) in enumerate(self.slots)
                 if effects[i] is not None]
                for i in range(len(self.letters))
            ]  # fmt: skip
        changes = self._changes[at]
        if not changes:
            return memory
        found = list(memory)
        self.work.spend(len(changes))
        for number, what, cap, effect in changes:
            found[number] = _updated(what, cap, found[number], effect)
        return tuple(found)


class _Unheld(Exception):
    """Raised if a source has no finite memory over the letters."""


def _constants(tests: Iterable[Term]) -> list[forms.Constant]:
    return [test for test in tests if isinstance(test, forms.Constant)]


def _updated(what: str, cap: int, one: Any, effect: _Effect | None) -> Any:
    if effect is None:
        return one
    if what == "last":
        values: frozenset[State] = one
        if effect.can_be_in:
            values = effect.value | values if effect.can_be_out else effect.value
        if effect.may_mark:
            values = values | {MISSING}
        return frozenset((MISSING,)) if effect.must_mark else values
    # The low end counts elements that are surely in it since the last possible mark. The high end
    # counts all elements that can be in it.
    if what == "some":
        can, must = one
        can, must = can or effect.can_be_in, must or not effect.can_be_out
        return can and not effect.must_mark, must and not effect.may_mark
    low, high = one
    step = 1 if what == "count" else effect.value or 0
    high = min(cap, high + step) if effect.can_be_in else high
    low = low if effect.can_be_out else min(cap, low + step)
    return 0 if effect.may_mark else low, 0 if effect.must_mark else high


_FLIP = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


# Machines: the effect of letters on each kind of statement.


class _Machine:
    """A statement as an automaton over memories."""

    start: Memory

    def step(self, memory: Memory, at: int) -> Memory | None:
        """Return the memory after a letter; None: the statement forbids the letter."""
        raise NotImplementedError

    def accepts(self, memory: Memory) -> bool:
        """Return whether a plan may end."""
        return True


def _machine(rule: Rule, reader: _Reader) -> _Machine:
    if rule.kind == "owe":
        return _Owe(rule, reader)
    if rule.kind == "limit":
        return _Limit(rule, reader)
    return _Require(rule, reader)


class _Require(_Machine):
    """``require``, ``forbid`` and ``finally``."""

    def __init__(self, rule: Rule, reader: _Reader) -> None:
        self._rule, self._reader = rule, reader
        self._then = () if rule.then is None else (rule.then,)
        tools = rule.tools or frozenset()
        # The first evaluation of each letter, without a memory, finds the slots that decide it.
        self._reads: list[tuple[int, ...] | None] = []
        for at, letter in enumerate(reader.letters):
            reader.reads.clear()
            if letter.tool in tools:
                self._allows(at, ())
            self._reads.append(tuple(reader.reads) if letter.tool in tools else None)
        if rule.tools is None:
            reader.can(self._then, True, None, ())
        self._known: dict[Any, bool] = {}
        self.start = reader.start()

    def _allows(self, at: int, memory: Memory) -> bool:
        # Both are evaluated in any case, so that the first evaluation of a letter finds all slots.
        excluded = self._reader.can(self._rule.where, False, at, memory)
        holds = self._reader.can(self._then, True, at, memory)
        return excluded or (bool(self._then) and holds)

    def step(self, memory: Memory, at: int) -> Memory | None:
        reads = self._reads[at]
        if reads is not None:
            key = (at, *[memory[slot] for slot in reads])
            if key not in self._known:
                self._known[key] = self._allows(at, memory)
            if not self._known[key]:
                return None
        return self._reader.after(memory, at)

    def accepts(self, memory: Memory) -> bool:
        if self._rule.tools is not None:
            return True
        return self._reader.can(self._then, True, None, memory)


class _Owe(_Machine):
    """``owe``: one bit for each class of letters that open a debt which the same letters pay."""

    def __init__(self, rule: Rule, reader: _Reader) -> None:
        self._opens: list[int | None] = []
        self._pays: list[int] = [0] * len(reader.letters)
        classes: dict[tuple[bool, ...], int] = {}
        for at, letter in enumerate(reader.letters):
            opens = letter.tool in (rule.tools or ())
            if not opens or (rule.where and reader.can(rule.where, False, at, ())):
                self._opens.append(None)
                continue
            pays = []
            for other in reader.letters:
                reader.can((), True, at, ())
                paid = other.tool in rule.pays
                pays.append(paid and reader.pays(rule.paying, other))
            self._opens.append(classes.setdefault(tuple(pays), len(classes)))
        for pays_of, bit in classes.items():
            for at, paid in enumerate(pays_of):
                self._pays[at] |= paid << bit
        if len(classes) > MAX_SLOTS:
            raise TooMany
        if rule.within is not None:
            reader.exact = False
        self.start = (0,)

    def step(self, memory: Memory, at: int) -> Memory | None:
        bits = memory[0] & ~self._pays[at]
        opened = self._opens[at]
        return (bits if opened is None else bits | 1 << opened,)

    def accepts(self, memory: Memory) -> bool:
        return bool(memory[0] == 0)


class _Limit(_Machine):
    """``limit``: an amount for each key."""

    def __init__(self, rule: Rule, reader: _Reader) -> None:
        self._keys: dict[Any, int] = {}
        self._effects: list[tuple[int, Any, Any] | None] = []
        bounds: dict[int, int] = {}
        for at, letter in enumerate(reader.letters):
            self._effects.append(None)
            if letter.tool not in (rule.tools or ()):
                continue
            if rule.where and reader.can(rule.where, False, at, ()):
                continue
            reader.can((), True, at, ())
            key = tuple([reader.known(term) for term in rule.per])
            amount: Any = ("n", 1)
            if rule.field is not None:
                amount = letter.states.get(rule.field)
            most = reader.known(rule.most) if rule.most is not None else None
            if None in key or amount is None or rule.within is not None:
                reader.exact = False
                continue
            if most is None or most[0] != "n":
                reader.exact = reader.exact and most is not None
                # A bound that is no number allows nothing.
                most = ("n", MAX_COUNT if most is None else -1)
            number = self._keys.setdefault(key, len(self._keys))
            step = amount[1]
            if step != int(step) or most[1] > MAX_COUNT:
                raise TooMany
            bounds[number] = max(bounds.get(number, 0), int(most[1] // 1))
            self._effects[at] = (number, int(step), most[1] if most[1] < MAX_COUNT else None)
        self._caps = [bounds[number] + 1 for number in range(len(self._keys))]
        self.start = (0,) * len(self._keys)

    def step(self, memory: Memory, at: int) -> Memory | None:
        effect = self._effects[at]
        if effect is None:
            return memory
        number, step, most = effect
        total = memory[number] + step
        if most is not None and total > most:
            return None
        total = min(total, self._caps[number])
        return (*memory[:number], total, *memory[number + 1 :])
