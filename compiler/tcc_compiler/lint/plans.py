"""Statements as written, and automata of the plans that some of them leave.

A statement of the text may make several statements of the core (`same` over listed parameters),
none (where nothing is forbidden), or one that another statement makes too; a gate enforces some of
them as monitors. `Plans` makes the automaton of any set of statements within one limit on states
and time. Its letters are those of the whole grammar, so automata of different sets can be compared.
The automaton of the plan expression is made once where no limit has to bound it.
Specification: docs/spec/language.md, section 7. Cost: that of compiling, for each set of
statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from tcc_certs.core.model import Core, Expr, Limit, Monitor, PolicyMonitor
from tcc_certs.formats.codec import Json, decode, encode
from tcc_certs.policy.expressions import read_expression
from tcc_compiler.automata.answers import keep_strict
from tcc_compiler.automata.constraint.apply import apply_limits, constrain
from tcc_compiler.automata.letters import Letters, join_calls, partition
from tcc_compiler.automata.regular.explore import explore
from tcc_compiler.automata.table import Machine, Table, as_deterministic, as_machine, ranked
from tcc_compiler.frontend import Frontend
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.source import Region
from tcc_compiler.options import Options
from tcc_compiler.resources import CompileRefused, Guard, Statement, Timer, place_of

StatementNode: TypeAlias = (
    ast.LimitStatement | ast.RequireStatement | ast.ForbidStatement | ast.PolicyStatement
)


@frozen(eq=False)
class Cut:
    """Words that a statement takes from the plans; with `asked` it takes all other ones."""

    words: Expr
    asked: bool


@frozen(eq=False)
class SourceStatement:
    """A `limit`, `require` or `forbid`.

    Attributes:
        parts: the statements of the core that it makes, in the order of the core.
        own: those of the parts that no other statement makes.
        monitors: those that a gate enforces for it.
        alone: whether no other statement makes one of these monitors.
        cuts: what `plan` is written anew for it, and for no other statement; cut: whether it is.
    """

    written: StatementNode
    parts: tuple[Statement, ...]
    own: tuple[Statement, ...]
    monitors: tuple[Monitor, ...]
    alone: bool
    cuts: tuple[Cut, ...] = ()
    cut: bool = False

    @property
    def repeats(self) -> bool:
        """Whether other statements make all that it makes."""
        made = bool(self.parts or self.monitors or self.cut)
        return made and not (self.own or self.cuts) and not (self.monitors and self.alone)

    @property
    def region(self) -> Region:
        """Its place in the text."""
        return self.written.region

    @property
    def kind(self) -> Literal["limit", "require", "forbid"]:
        """The word that it begins with."""
        of = self.written
        word = of.kind if isinstance(of, ast.PolicyStatement) else ""
        if isinstance(of, ast.RequireStatement) or word == "require":
            return "require"
        return "forbid" if isinstance(of, ast.ForbidStatement) or word == "forbid" else "limit"

    @property
    def is_limit(self) -> bool:
        """Whether it is a `limit`."""
        return self.kind == "limit"


CUT, ASKED = "cut", "asked"  # words before what `plan` is written anew for


def is_cut(place: str) -> bool:
    """Whether a place is of what `plan` is written anew for."""
    return place.startswith((f"{CUT} ", f"{ASKED} "))


def source_statements(
    front: Frontend, core: Core, *, expanded: bool = False
) -> tuple[SourceStatement, ...]:
    """The statements in the order of the text; a grammar without errors.

    Args:
        expanded: those of version 1.2, too, that are statements of the core, or that `plan` is
            written anew for, and nothing else: not what a gate holds.
    """
    program = front.program
    if program is None:
        return ()
    parts = {place_of(part): part for part in statements(core)}
    monitors = {f"monitor {monitor.text}": monitor for monitor in core.monitors}
    places: dict[Region, dict[str, bool]] = {}
    for place, region in front.written:
        places.setdefault(region, {})[place] = True
    makers = Counter(place for found in places.values() for place in found)
    listed: list[StatementNode] = [*program.limits, *program.requires, *program.forbids]
    if expanded:
        listed += [
            one
            for one in program.policies
            if one.region in places
            and all(place in parts or is_cut(place) for place in places[one.region])
        ]
    listed.sort(key=lambda statement: statement.region)
    return tuple(
        _stated(statement, places.get(statement.region, {}), parts, monitors, makers, core)
        for statement in listed
    )


def later_statements(front: Frontend, core: Core, data: Json) -> tuple[SourceStatement, ...]:
    """The statements of version 1.2 that a gate holds, in the order of the text.

    Args:
        data: the core's JSON, whose monitors are in the order of the core's.
    """
    program = front.program
    if program is None or not isinstance(data, Mapping):
        return ()
    items = data.get("monitors", [])
    texts = [encode(item).decode() for item in items] if isinstance(items, list) else []
    held = {
        f"monitor {text}": one
        for text, one in zip(texts, core.monitors, strict=False)
        if isinstance(one, PolicyMonitor)
    }
    made: dict[Region, list[Monitor]] = {}
    for place, region in front.written:
        if place in held:
            made.setdefault(region, []).append(held[place])
    return tuple(
        SourceStatement(
            written=written, parts=(), own=(), monitors=tuple(made[written.region]), alone=True
        )
        for written in sorted(program.policies, key=lambda one: one.region)
        if written.region in made
    )


def _stated(
    written: StatementNode,
    places: Iterable[str],
    parts: Mapping[str, Statement],
    monitors: Mapping[str, Monitor],
    makers: Mapping[str, int],
    core: Core,
) -> SourceStatement:
    made = [place for place in places if place in parts]
    cuts = [place for place in places if is_cut(place)]
    return SourceStatement(
        written=written,
        parts=tuple(parts[place] for place in made),
        own=tuple(parts[place] for place in made if makers[place] == 1),
        monitors=tuple(monitors[place] for place in places if place in monitors),
        alone=any(makers[place] == 1 for place in places if place in monitors),
        cuts=tuple(_cut(place, core) for place in cuts if makers[place] == 1),
        cut=bool(cuts),
    )


def _cut(place: str, core: Core) -> Cut:
    word, _, text = place.partition(" ")
    words = read_expression(decode(text.encode(), place), place, len(core.patterns))
    return Cut(words=words, asked=word == ASKED)


def statements(core: Core) -> tuple[Statement, ...]:
    """Every statement of the core on whole plans, in its order."""
    return (*core.limits, *core.requires, *core.forbids)


def with_parts(core: Core, kept: Iterable[Statement], *, signed: bool = True) -> Core:
    """The core with these of its statements.

    Args:
        signed: False leaves `start` and `goal` out.
    """
    chosen = frozenset(map(id, kept))
    left = replace(
        core,
        limits=tuple([part for part in core.limits if id(part) in chosen]),
        requires=tuple([part for part in core.requires if id(part) in chosen]),
        forbids=tuple([part for part in core.forbids if id(part) in chosen]),
    )
    return left if signed else replace(left, start=None, goals=())


Automaton: TypeAlias = Machine | Table
# The plan expression is tried without limits first, and given up early: it may be recursive.
_FREE_STATES = 20_000


@frozen
class Subset:
    """Statements to apply to the plan expression.

    Attributes:
        parts: statements of the core.
        planned, signed: whether `plan`, and `start` with `goal`, are among them.
    """

    parts: tuple[Statement, ...]
    planned: bool = True
    signed: bool = True


class PlanAutomata:
    """A core, its letters, and the automata of its statements.

    Args:
        letters: those of the core with more in its plan; None: its own.

    Attributes:
        written: the core, in whose plan no calls are joined.
    """

    def __init__(
        self, core: Core, options: Options, timer: Timer, letters: Letters | None = None
    ) -> None:
        self.core = join_calls(core)
        self.letters: Letters = partition(self.core) if letters is None else letters
        self.written = core
        self.limits = self.core.limits
        self.orders: tuple[Statement, ...] = (*core.requires, *core.forbids)
        self.strict = any(tool.strict for tool in core.tools)
        self._options = options
        self._timer = timer
        self._expressions: dict[frozenset[int], Machine] = {}
        self._free: Machine | None = None
        self._tried = False

    def planned(self, plan: Expr) -> PlanAutomata:
        """The same with another plan expression, of parts of this one; over the same letters."""
        core = replace(self.written, plan=plan, patterns=self.core.patterns)
        return PlanAutomata(core, self._options, self._timer, self.letters)

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
            except CompileRefused as refusal:
                if refusal.code == "TCC404":
                    raise
        return self._free is not None

    def expression(self, kept: Subset) -> Machine:
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

    def remaining(self, kept: Subset) -> Automaton | None:
        """The smallest automaton of the words that meet these statements; None without any.

        Strict tools are not considered.

        Raises:
            Refused: TCC401 infinitely many words of ever lower cost; TCC403, TCC404, TCC406.
        """
        try:
            machine = self.expression(kept)
        except CompileRefused as refusal:
            if refusal.code == "TCC402":
                return None
            raise
        return self.restricted(machine, kept.parts, signed=kept.signed)

    def restricted(
        self, automaton: Automaton, parts: Iterable[Statement], *, signed: bool = False
    ) -> Automaton | None:
        """The smallest automaton of the words that meet more statements; None without any.

        Raises:
            Refused: as :meth:`remaining`.
        """
        chosen = tuple(parts)
        if not chosen and not signed and isinstance(automaton, Table):
            return automaton
        core = with_added_limits(self.core, chosen, signed=signed)
        try:
            if isinstance(automaton, Table) and not (core.requires or core.forbids or signed):
                return apply_limits(core, self.letters, automaton, self.guard())
            machine = as_machine(automaton) if isinstance(automaton, Table) else automaton
            return constrain(core, self.letters, machine, self.guard())
        except CompileRefused as refusal:
            if refusal.code == "TCC402":
                return None
            raise

    def with_answers(self, table: Table) -> Table:
        """The part of a table in which every answer of a strict tool has a continuation.

        Raises:
            Refused: TCC414 nothing; TCC403, TCC404.
        """
        if not self.strict:
            return table
        ordered = ranked(as_deterministic(table))
        kept = keep_strict(self.core, self.letters, ordered, self.guard())
        # Part of a table has no cycle either.
        return ranked(kept) if isinstance(kept, Table) else ordered


def with_added_limits(core: Core, parts: Sequence[Statement], *, signed: bool) -> Core:
    """The core with these statements, which may include limits that it does not have."""
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
