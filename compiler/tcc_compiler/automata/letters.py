"""Letters: the coarsest classes of calls that no statement of the core distinguishes.

Two calls have the same letter if they belong to the same used patterns, have the same signature,
and have the same class in each statement. For calls of a strict tool the answers must have the same
letters, too; then both calls stay or both go. Automata are over letters. The artifact is over
calls: `CallEdges` turns edges over letters into edges over calls, a portion of the states at a
time, since there may be very many.
Specification: docs/spec/core.md, section 5; docs/spec/artifact.md.
Cost: linear in the calls, for each statement. Linear in the expressions, in the members of the
patterns, and in the edges over calls.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tcc_certs.limits import MAX_CALLS
from tcc_certs.policy import plans
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.expressions import fold, walk, with_parts
from tcc_certs.policy.places import StatementPart
from tcc_compiler.automata.table import Ints, Numbers, Table, spread, starts
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import Guard


@frozen(eq=False)
class Letters:
    """The letters of a core, numbered by their first call.

    Attributes:
        calls: [letters], the calls of each letter, increasing.
        letter: [calls], the letter of each call.
        patterns: [patterns of the core], the letters of each pattern, increasing. For an unused
            pattern, the letters with at least one call of it.
        statements: the statements that automata over these letters have to enforce.
    """

    calls: tuple[tuple[int, ...], ...]
    letter: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]
    statements: tuple[StatementPart, ...] = ()

    def classes_in(self, part: StatementPart) -> list[int]:
        """Return [letters], the class of each letter in a statement."""
        first = [group[0] for group in self.calls]
        found: list[int] = classes_in(part).take(first).tolist()
        return found


def partition(core: Core, statements: Sequence[StatementPart]) -> Letters:
    """Return the letters of the plans of `core` that `statements` restrict."""
    classes = [0] * len(core.calls)
    for calls in _used_sets(core):
        _split(classes, ((call, True) for call in plans.members(calls)))
    if core.start is not None:
        ends = [(core.tools[call.tool].takes, core.tools[call.tool].gives) for call in core.calls]
        _split(classes, enumerate(ends))
    classes = _split_statements(classes, statements)
    _split_answers(core, classes)
    return _number(core, classes, tuple(statements))


def _used_sets(core: Core) -> Iterable[plans.CallSet]:
    """Return the patterns that the plan and its rules use."""
    used = {
        part.pattern
        for expr in (core.plan, *core.rules.values())
        for part in walk(expr)
        if isinstance(part, plans.OneCall)
    }
    return (core.patterns[pattern] for pattern in sorted(used))


def _split(classes: list[int], marks: Iterable[tuple[int, Hashable]]) -> None:
    """Give the marked calls new classes, one for each pair of old class and mark."""
    fresh: dict[tuple[int, Hashable], int] = {}
    first = len(classes) + max(classes, default=0)
    for call, mark in marks:
        classes[call] = fresh.setdefault((classes[call], mark), first + len(fresh))


def _split_statements(classes: list[int], statements: Sequence[StatementPart]) -> list[int]:
    """Return the classes, split further by the classes that each statement puts the calls in."""
    found = np.array(classes, dtype=np.int64)
    for part in statements:
        if part.classes > 1:
            found = _renumbered(found * part.classes + classes_in(part))
    numbers: list[int] = found.tolist()
    return numbers


def classes_in(part: StatementPart) -> Ints:
    """Return [calls], the class of each call in a statement."""
    found = np.zeros(len(part.class_of), dtype=np.int64)
    for low, high, number in part.class_of.runs:
        found[low:high] = number
    return found


def _renumbered(keys: Ints) -> Ints:
    """Return the keys renumbered from 0 without gaps, in the same order."""
    most = int(keys.max(initial=0))
    if most > 4 * len(keys):
        return np.unique(keys, return_inverse=True)[1]
    used = np.zeros(most + 1, dtype=np.int64)
    used[keys] = 1
    return (np.cumsum(used) - 1).take(keys)


def _split_answers(core: Core, classes: list[int]) -> None:
    """Split the calls of strict tools by the classes of all answers to the same question.

    Afterwards, two calls with the same letter have answers with the same letters.
    """
    marks = []
    for tool, groups in answers_of(core, strict=True).items():
        whole = possible_answers(core.tools[tool])
        for calls in groups:
            mark = frozenset([classes[call] for call in calls]), len(calls) == whole
            marks += [(call, mark) for call in calls]
    _split(classes, marks)


def _number(core: Core, classes: list[int], statements: tuple[StatementPart, ...]) -> Letters:
    numbers: dict[int, int] = {}
    letter = tuple([numbers.setdefault(name, len(numbers)) for name in classes])
    calls: list[list[int]] = [[] for _ in numbers]
    for call, number in enumerate(letter):
        calls[number].append(call)
    patterns = tuple(
        [
            tuple(sorted({letter[call] for call in plans.members(pattern)}))
            for pattern in core.patterns
        ]
    )
    return Letters(
        calls=tuple([tuple(group) for group in calls]),
        letter=letter,
        patterns=patterns,
        statements=statements,
    )


# Answers. The environment chooses the listed answers of a call. The calls that differ only in
# listed answers form a group: they stand for the answers to one question.


def has_answers(tool: Tool) -> bool:
    """Return whether a call of `tool` has a listed value that the environment chooses."""
    return any(field.type is None for field in tool.answers)


def possible_answers(tool: Tool) -> int:
    """Return how many answers a call may get; above MAX_CALLS, just some larger number."""
    found = 1
    for field in tool.answers:
        if field.type is None and found <= MAX_CALLS:
            found *= len(field.values) + field.optional
    return found


def listed_arguments(tool: Tool) -> int:
    """Return how many of the values of a call of `tool` are arguments; the others are answers."""
    return sum(field.type is None for field in tool.arguments)


def answers_of(core: Core, *, strict: bool) -> dict[int, list[list[int]]]:
    """Return, for each tool with listed answers, its groups of calls, ordered by first call.

    Args:
        strict: True leaves out the tools that are not strict.
    """
    asked = {
        at: listed_arguments(tool)
        for at, tool in enumerate(core.tools)
        if has_answers(tool) and (tool.strict or not strict)
    }
    groups: dict[int, dict[tuple[int, ...], list[int]]] = {}
    if asked:
        for number, call in enumerate(core.calls):
            if call.tool in asked:
                key = call.values[: asked[call.tool]]
                groups.setdefault(call.tool, {}).setdefault(key, []).append(number)
    return {tool: list(found.values()) for tool, found in groups.items()}


# Joint patterns. Alternatives that are single calls, as in `a | b | c`, become one call of one
# joint pattern. This changes no word and no derivation. Calls that are always alternatives of each
# other then share a letter: three hundred tools may have a dozen letters.


def join_calls(core: Core) -> Core:
    """Return `core` with joint patterns, which are numbered after its own patterns."""
    sets = _Sets(core.patterns)
    rules = {name: _join(expr, sets) for name, expr in core.rules.items()}
    plan = _join(core.plan, sets)
    return replace(core, patterns=tuple(sets.number), rules=rules, plan=plan)


class _Sets:
    """Sets of calls with their numbers."""

    def __init__(self, patterns: Sequence[plans.CallSet]) -> None:
        self.number = {pattern: at for at, pattern in enumerate(patterns)}
        self._patterns = list(patterns)

    def join(self, patterns: Sequence[int]) -> int:
        """Return the number of the union of the patterns, which is added if it is new."""
        pairs = sorted(pair for pattern in patterns for pair in self._patterns[pattern])
        joint: list[tuple[int, int]] = []
        for low, high in pairs:
            if joint and low <= joint[-1][1]:
                joint[-1] = (joint[-1][0], max(high, joint[-1][1]))
            else:
                joint.append((low, high))
        union = tuple(joint)
        if union not in self.number:
            self.number[union] = len(self._patterns)
            self._patterns.append(union)
        return self.number[union]


def _join(expr: plans.Expr, sets: _Sets) -> plans.Expr:
    """Return `expr` with joint patterns."""

    def made(node: plans.Expr, inner: tuple[plans.Expr, ...]) -> plans.Expr:
        return _joined(inner, sets) if isinstance(node, plans.Alt) else with_parts(node, inner)

    return fold(expr, made)


def _joined(items: tuple[plans.Expr, ...], sets: _Sets) -> plans.Expr:
    """Return the alternatives, with one call of a joint pattern for all single calls."""
    calls = [item.pattern for item in items if isinstance(item, plans.OneCall)]
    if len(calls) < 2:
        return plans.Alt(items)
    others = tuple(item for item in items if not isinstance(item, plans.OneCall))
    joint = plans.OneCall(sets.join(calls))
    return plans.Alt((joint, *others)) if others else joint


# Edges over calls. A shape is a distinct row of letters. If shapes are few, all states of one shape
# are handled together.

_ALIKE = 64  # states per shape, from which on shapes count as few


class CallEdges:
    """The edges of a table's states over calls.

    Attributes:
        start: [states+1], how many edges all earlier states have.
        degree: [states], how many edges each state has.
    """

    def __init__(self, table: Table, letters: Letters, guard: Guard) -> None:
        """Find the shapes of `table`.

        Raises:
            CompileRefused: TCC403, there are too many edges.
        """
        sizes = np.fromiter(map(len, letters.calls), dtype=np.int64)
        calls = np.array([call for group in letters.calls for call in group], dtype=np.int64)
        self._table = table
        self._target: Ints | Numbers = table.target
        # Letters are numbered by their first call. If each has a single call, rows are already
        # sorted.
        self._shapes: _Shapes | None = None
        self._calls: Ints | Numbers = calls
        if len(sizes) == len(calls):
            self.start = table.edge_start
        else:
            shape, rows = _shapes_of(table)
            due = [int(sizes.take(row).sum()) for row in rows]
            self.start = starts(np.array(due).take(shape))
        guard.room(int(self.start[-1]))
        self.degree = self.start[1:] - self.start[:-1]
        if len(sizes) < len(calls):
            self._shapes = _over_calls(shape, rows, calls, sizes)

    @property
    def count(self) -> int:
        """The number of edges."""
        return int(self.start[-1])

    def renamed(self, call: Ints | Numbers, target: Ints | Numbers) -> CallEdges:
        """Return the same edges with new numbers of calls, in the same order, and of targets."""
        made = copy(self)
        made._target = target.take(self._target)
        if self._shapes is None:
            made._calls = call.take(self._calls)
        else:
            made._shapes = replace(self._shapes, call=call.take(self._shapes.call))
        return made

    def of(
        self, states: Ints, key: Ints | Numbers | None = None, gaps: bool = False
    ) -> tuple[Ints | Numbers, Ints | Numbers]:
        """Return the calls and targets of the edges of `states`, in their order; calls increase.

        Args:
            key: [states], sorts edges with the same call by target; None if no state has such
                edges.
            gaps: True leaves one place before the edges of each state, with call -1 and any target.
        """
        table, shapes = self._table, self._shapes
        if not table.edges:
            return np.full(len(states) * gaps, -1), np.zeros(len(states) * gaps, dtype=np.int32)
        size = self.degree.take(states) + gaps
        first = table.edge_start.take(states)
        # A gap reads a neighbouring edge, or a place outside the array. Mode "clip" allows this,
        # and it is also faster.
        if shapes is None:
            edges = spread(first - gaps, size)
            call = self._calls.take(table.letter.take(edges, mode="clip"))
        else:
            at = spread(shapes.start.take(shapes.shape.take(states)) - gaps, size)
            edges = shapes.edge.take(at, mode="clip")
            edges += np.repeat(first, size)
            call = shapes.call.take(at, mode="clip")
        target = self._target.take(edges, mode="clip")
        if gaps:
            call[starts(size)[:-1]] = -1
        if key is None or not len(key):
            return call, target
        row = np.repeat(np.arange(len(states)), size)
        due = key.take(table.target.take(edges, mode="clip"), mode="clip")
        order = np.lexsort((due, call, row))
        return call[order], target[order]

    @property
    def gathered(self) -> bool:
        """True if shapes are few and no state has a call twice; :meth:`alike` needs this."""
        if self._shapes is None or self._table.nondeterministic:
            return False
        return len(self._shapes.start) * _ALIKE <= len(self.degree)

    def alike(self, begin: int, end: int) -> Iterator[tuple[Ints, Ints | Numbers, Ints]]:
        """Yield the states begin .. end-1 in groups of one shape; needs :attr:`gathered`.

        Yields:
            the states; the calls of their edges, increasing; for each call, its place in a row of
            :meth:`targets`.
        """
        shapes = self._shapes
        if shapes is None or self._table.nondeterministic:
            raise ValueError("these states have no shapes, or several edges of one call")
        shape = shapes.shape[begin:end]
        order = np.argsort(shape, kind="stable") + begin
        ends = np.cumsum(np.bincount(shape)).tolist()
        for each, (low, high) in enumerate(pairwise([0, *ends])):
            if low < high:
                own = slice(shapes.start[each], shapes.start[each + 1])
                yield order[low:high], shapes.call[own], shapes.edge[own]

    def targets(self, states: Ints) -> Numbers:
        """Return [states, edges over letters], the targets of `states`, which have one shape."""
        table = self._table
        edges = table.edge_start.take(states)[:, None] + np.arange(table.degree_of(states[0]))
        return table.target.take(edges, mode="clip")

    def call_rows(self, states: Ints, call: Ints | Numbers) -> list[bytes]:
        """Return, as bytes, the numbers of each state's calls; needs :attr:`gathered`."""
        shapes = self._shapes
        if shapes is None:
            raise ValueError("these states have no shapes")
        data, size = call.take(shapes.call).tobytes(), call.itemsize
        rows = [data[a * size : b * size] for a, b in pairwise(shapes.start.tolist())]
        return list(map(rows.__getitem__, shapes.shape.take(states).tolist()))


def _shapes_of(table: Table) -> tuple[Ints, list[Numbers]]:
    """Return the shape of each state, [states], and the row of letters of each shape."""
    begins = table.edge_start
    if not table.nondeterministic and int(table.letter.max(initial=0)) < 64:
        # A row is a set of letters below 64, which fits the bits of a word.
        word = np.zeros(table.states, dtype=np.uint64)
        some = np.flatnonzero(table.degree)
        bits = (np.uint64(1) << np.arange(64, dtype=np.uint64)).take(table.letter)
        word[some] = np.bitwise_or.reduceat(bits, begins.take(some))
        _, first, of = np.unique(word, return_index=True, return_inverse=True)
        return of, [table.letter[begins[q] : begins[q + 1]] for q in first.tolist()]
    known: dict[bytes, int] = {}
    data, width = table.letter.tobytes(), table.letter.itemsize
    ends = (begins * width).tolist()
    shape = [known.setdefault(data[a:b], len(known)) for a, b in pairwise(ends)]
    rows = [np.frombuffer(row, dtype=table.letter.dtype) for row in known]
    return np.array(shape, dtype=np.int64), rows


@frozen(eq=False)
class _Shapes:
    """The distinct rows of letters, turned into rows of calls.

    Attributes:
        shape: [states], the shape of each state.
        start: [shapes+1], where the calls of each shape begin.
        call, edge: the calls of a shape, increasing, and the place of each call's edge in its row.
    """

    shape: Ints
    start: Ints
    call: Ints | Numbers
    edge: Ints


def _over_calls(shape: Ints, rows: Sequence[Numbers], calls: Ints, sizes: Ints) -> _Shapes:
    """Return the shapes over calls.

    Args:
        calls: the calls of all letters, letter by letter.
        sizes: [letters], how many calls each letter has.
    """
    letter = np.concatenate(rows)
    letters = np.array([len(row) for row in rows], dtype=np.int64)
    size = sizes.take(letter)
    row = np.repeat(np.arange(len(letters)), letters)
    call = calls.take(spread(starts(sizes).take(letter), size))
    order = np.lexsort((call, np.repeat(row, size)))
    place = np.arange(len(letter)) - np.repeat(starts(letters)[:-1], letters)
    return _Shapes(
        shape=shape,
        start=starts(size).take(starts(letters)),
        call=call[order],
        edge=np.repeat(place, size)[order],
    )
