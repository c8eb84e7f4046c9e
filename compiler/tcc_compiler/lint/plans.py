"""The plans that some of the statements leave, as automata, within one limit on states and time.

The letters are those of the whole grammar, so automata of different statements can be compared.
The automaton of the plan expression is made once where no limit has to bound it on the way.
Cost: that of compiling, for each set of statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from tcc_certs.core.model import Core, Limit
from tcc_compiler.automata.constraint.apply import apply_limits, constrain
from tcc_compiler.automata.letters import Letters, partition
from tcc_compiler.automata.machine import Machine
from tcc_compiler.automata.regular.explore import explore
from tcc_compiler.automata.regular.joined_calls import join_calls
from tcc_compiler.automata.strict import keep_strict
from tcc_compiler.automata.table import Table, as_deterministic, as_machine, ranked
from tcc_compiler.frozen import frozen
from tcc_compiler.lint.statements import statements, with_parts
from tcc_compiler.options import Options
from tcc_compiler.resources.guard import Guard
from tcc_compiler.resources.place import Statement
from tcc_compiler.resources.refusal import Refused
from tcc_compiler.resources.timer import Timer

Automaton: TypeAlias = Machine | Table
# The plan expression is tried without limits first, and given up early: it may be recursive.
_FREE_STATES = 20_000


@frozen
class Kept:
    """What is applied to the plan expression.

    Attributes:
        parts: statements of the core.
        planned, signed: whether `plan`, and `start` with `goal`, are among them.
    """

    parts: tuple[Statement, ...]
    planned: bool = True
    signed: bool = True


class Plans:
    """A core, its letters, and the automata of its statements."""

    def __init__(self, core: Core, options: Options, timer: Timer) -> None:
        self.core = join_calls(core)
        self.letters: Letters = partition(self.core)
        self.limits = self.core.limits
        self.orders: tuple[Statement, ...] = (*core.requires, *core.forbids)
        self.strict = any(tool.strict for tool in core.tools)
        self._options = options
        self._timer = timer
        self._expressions: dict[frozenset[int], Machine] = {}
        self._free: Machine | None = None
        self._tried = False

    def guard(self, max_states: int | None = None) -> Guard:
        """The limits of one more automaton."""
        least = self._options.max_states if max_states is None else max_states
        options = replace(self._options, max_states=min(least, self._options.max_states))
        return Guard(options, self._timer.share())

    @property
    def is_free(self) -> bool:
        """Whether the expression has an automaton without limits."""
        if not self._tried:
            self._tried = True
            try:
                bare = with_parts(self.core, ())
                self._free = explore(bare, self.letters, self.guard(_FREE_STATES))
            except Refused as refusal:
                if refusal.code == "TCC404":
                    raise
        return self._free is not None

    def expression(self, kept: Kept) -> Machine:
        """The plan expression; words that break a limit among `kept` may be missing.

        Raises:
            Refused: TCC402 nothing is left; TCC401, TCC403, TCC404, TCC406.
        """
        if not kept.planned:
            edges = tuple([(letter, 0) for letter in range(len(self.letters.calls))])
            return Machine(start=0, accept=[True], edges=[edges])
        if self.is_free and self._free is not None:
            return self._free
        key = frozenset(map(id, kept.parts))
        if key not in self._expressions:
            core = with_parts(self.core, kept.parts, signed=kept.signed)
            self._expressions.clear()  # one at a time: they may be large
            self._expressions[key] = explore(core, self.letters, self.guard())
        return self._expressions[key]

    def left(self, kept: Kept) -> Automaton | None:
        """The smallest automaton of the words that meet these; None where there is none.

        What is asked of strict tools is no part of it.

        Raises:
            Refused: TCC401 infinitely many words of ever lower cost; TCC403, TCC404, TCC406.
        """
        try:
            machine = self.expression(kept)
        except Refused as refusal:
            if refusal.code == "TCC402":
                return None
            raise
        return self.narrowed(machine, kept.parts, signed=kept.signed)

    def narrowed(
        self, automaton: Automaton, parts: Iterable[Statement], *, signed: bool = False
    ) -> Automaton | None:
        """`automaton` under more statements, smallest; None where nothing is left.

        Raises:
            Refused: as :meth:`left`.
        """
        chosen = tuple(parts)
        if not chosen and not signed and isinstance(automaton, Table):
            return automaton
        core = with_loose(self.core, chosen, signed=signed)
        try:
            if isinstance(automaton, Table) and not (core.requires or core.forbids or signed):
                return apply_limits(core, self.letters, automaton, self.guard())
            machine = as_machine(automaton) if isinstance(automaton, Table) else automaton
            return constrain(core, self.letters, machine, self.guard())
        except Refused as refusal:
            if refusal.code == "TCC402":
                return None
            raise

    def answered(self, table: Table) -> Table:
        """What of a table is left where every answer of a strict tool leads on.

        Raises:
            Refused: TCC414 nothing; TCC403, TCC404.
        """
        if not self.strict:
            return table
        ordered = ranked(as_deterministic(table))
        kept = keep_strict(self.core, self.letters, ordered, self.guard())
        # Part of a table has no cycle either.
        return ranked(kept) if isinstance(kept, Table) else ordered


def with_loose(core: Core, parts: Sequence[Statement], *, signed: bool) -> Core:
    """The core with these statements, among which there may be limits that it has not."""
    known = frozenset(map(id, statements(core)))
    added = tuple([p for p in parts if id(p) not in known and isinstance(p, Limit)])
    left = with_parts(core, parts, signed=signed)
    return replace(left, limits=(*left.limits, *added)) if added else left


def same_plans(left: Table, right: Table) -> bool:
    """Whether two smallest tables over the same letters have the same words."""
    if (left.states, left.edges) != (right.states, right.edges):
        return False
    number = {left.start: right.start}
    todo = [left.start]
    for q in todo:
        p = number[q]
        ours, theirs = left.row(q), right.row(p)
        same_letters = [letter for letter, _ in ours] == [letter for letter, _ in theirs]
        if bool(left.accept[q]) != bool(right.accept[p]) or not same_letters:
            return False
        for (_, target), (_, other) in zip(ours, theirs, strict=True):
            if target not in number:
                number[target] = other
                todo.append(target)
            elif number[target] != other:
                return False
    return True
