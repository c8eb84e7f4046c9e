"""Redundant statements: without one of them the plans are the same; why, and which may go together.

A statement has an effect where some word that meets all others violates it. Each of n statements is
asked about with all others applied; halving the statements does that in n log n applications, since
the questions about one half share the other half. Order statements (`require`, `forbid`) come
first, over an automaton that may have cycles, where a shortest violating word mostly settles the
limits too.
Specification: docs/lint.md. Cost: about that of compiling, times the logarithm of the statements;
beside strict tools, that of compiling for each statement that is not settled so. To explain one
redundant statement takes about as many automata as the logarithm of the statements.

The other way round, TCC707: a smallest set of statements that leave no plan together; `plan`, and
`start` with `goal`, are statements there like the others (without `plan` any sequence of calls is
one).  Cost: about as many automata as the logarithm of the statements for each of the set; then one
for each smaller set, within a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from tcc_certs.core.model import Limit
from tcc_compiler.automata.answers import siblings_of
from tcc_compiler.automata.constraint.statements import constraints
from tcc_compiler.automata.table import Machine, Table, trim
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast import GoalStatement, PlanStatement
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.source import Source, Span
from tcc_compiler.lint import violations
from tcc_compiler.lint.finding import LintFinding, statement_text
from tcc_compiler.lint.plans import (
    Automaton,
    PlanAutomata,
    SourceStatement,
    Subset,
    same_plans,
    with_parts,
)
from tcc_compiler.relax.contradiction import irreducible, smallest
from tcc_compiler.resolve.program import Program
from tcc_compiler.resources import CompileRefused, Statement


@frozen
class Redundant:
    """A statement without which the plans are the same.

    Attributes:
        reach: for a limit, the greatest sum of a plan (the least for a `>=`); else None.
    """

    statement: SourceStatement
    reach: int | None = None


@frozen
class Unsettled:
    """A statement that the limits left undecided, and why."""

    statement: SourceStatement
    why: str


@frozen
class Redundancy:
    """Redundant and undecided statements, each list in the order of the text."""

    redundant: tuple[Redundant, ...]
    undecided: tuple[Unsettled, ...]


def find_redundant(
    plans: PlanAutomata, stated: Sequence[SourceStatement], full: Table
) -> Redundancy:
    """The redundant ones of the statements that have parts of their own.

    Args:
        full: the smallest table of the plans, before strict tools are considered.
    """
    search = _Search(plans, stated, full)
    search.run()
    place = {id(item): at for at, item in enumerate(stated)}
    return Redundancy(
        redundant=tuple(sorted(search.redundant, key=lambda found: place[id(found.statement)])),
        undecided=tuple(sorted(search.undecided, key=lambda found: place[id(found.statement)])),
    )


class _Search:
    def __init__(self, plans: PlanAutomata, stated: Sequence[SourceStatement], full: Table) -> None:
        self.plans = plans
        self.redundant: list[Redundant] = []
        self.undecided: list[Unsettled] = []
        self._full = full
        self._full_plans: Table | None = None
        own = [item for item in stated if item.own]
        self._orders = [item for item in own if not item.is_limit]
        self._limits = [item for item in own if item.is_limit]
        self._settled: set[int] = set()
        self._siblings = siblings_of(plans.core, plans.letters).group if plans.strict else ()

    def run(self) -> None:
        """Decide every statement."""
        self._try(self._orders, self._test_orders)
        depths = [item for item in self._limits if any(_is_depth(part) for part in item.own)]
        others = [item for item in self._limits if item not in depths]
        self._try(others, self._test_limits)
        for item in depths:
            self._try([item], self._test_alone)

    def _try(
        self, items: Sequence[SourceStatement], test: Callable[[Sequence[SourceStatement]], None]
    ) -> None:
        """Decide some statements; beyond the limits the open ones among them are undecided."""
        if not items:
            return
        try:
            test(items)
        except CompileRefused as refusal:
            self.undecided += [
                Unsettled(statement=item, why=refusal.message)
                for item in items
                if id(item) not in self._settled
            ]

    def _settle(self, item: SourceStatement, reach: int | None = None, *, needed: bool) -> None:
        self._settled.add(id(item))
        if not needed:
            self.redundant.append(Redundant(statement=item, reach=reach))

    # Orders.

    def _test_orders(self, items: Sequence[SourceStatement]) -> None:
        own = {id(part) for item in items for part in item.own}
        shared = [part for part in self.plans.orders if id(part) not in own]
        machine = self.plans.expression(Subset(parts=(*self.plans.limits, *self.plans.orders)))
        signed = self.plans.core.start is not None
        items, needed = self._sorted(items, machine)
        if not items:
            return
        base = self.plans.restricted(machine, [*shared, *_own(needed)], signed=signed)
        # What the needed ones imply is redundant, and adds nothing to the questions about the rest.
        open_items = [item for item in items if base is None or not self._implied(item, base)]
        if open_items:
            self._halve(open_items, base, self._test_order)

    def _implied(self, item: SourceStatement, base: Automaton) -> bool:
        if all(violations.satisfies(self.plans, base, part) for part in item.own):
            self._settle(item, needed=False)
            return True
        return False

    def _sorted(
        self, items: Sequence[SourceStatement], machine: Machine
    ) -> tuple[list[SourceStatement], list[SourceStatement]]:
        """The undecided statements, and those that a near miss proves needed."""
        core = with_parts(self.plans.core, self.plans.orders)
        held = list(constraints(core, self.plans.letters))
        avoid = self._siblings if self.plans.strict else ()
        broken = violations.violated_alone(self.plans, machine, held, avoid)
        shown = {id(held[at].statement) for at in broken}
        needed = [item for item in items if any(id(part) in shown for part in item.own)]
        for item in needed:
            self._settle(item, needed=True)
        known = {id(item) for item in needed}
        return [item for item in items if id(item) not in known], needed

    def _halve(
        self,
        items: Sequence[SourceStatement],
        base: Automaton | None,
        test: Callable[[SourceStatement, Automaton], None],
    ) -> None:
        """Test each item over `base` with all other items applied."""
        if base is None:  # the grammar has plans, and so has every part of its statements
            raise ValueError("no word where there are plans")
        if len(items) == 1:
            test(items[0], base)
            return
        left, right = items[: len(items) // 2], items[len(items) // 2 :]
        self._halve(left, self.plans.restricted(base, _own(right)), test)
        self._halve(right, self.plans.restricted(base, _own(left)), test)

    def _test_order(self, item: SourceStatement, base: Automaton) -> None:
        for part in item.own:
            broken = violations.violating(self.plans, base, part)
            if broken is not None and self._breaks(item, broken, base):
                self._settle(item, needed=True)
                return
        self._settle(item, needed=False)

    def _breaks(self, item: SourceStatement, broken: Machine, base: Automaton) -> bool:
        """Whether a word of `broken` meets the limits and is a plan beside strict tools."""
        limits = self.plans.limits
        if not self.plans.strict:
            if violations.within_limits(self.plans, violations.shortest_word(broken), limits):
                return True
            return self.plans.restricted(broken, limits) is not None
        loose = self._without_strict_calls(broken)
        if loose is not None and violations.within_limits(
            self.plans, violations.shortest_word(loose), limits
        ):
            return True
        if self.plans.restricted(broken, limits) is None:
            return False
        return self._differs(self.plans.restricted(base, limits))

    def _without_strict_calls(self, machine: Machine) -> Machine | None:
        group = self._siblings
        edges = [tuple([e for e in row if group[e[0]] < 0]) for row in machine.edges]
        return trim(replace(machine, edges=edges))

    def _differs(self, wider: Automaton | None) -> bool:
        """Whether `wider` has more plans than the grammar, with strict tools considered."""
        if not isinstance(wider, Table):
            return True  # with cycles there are infinitely many, which no grammar may have
        if not self.plans.strict:
            return True
        if self._full_plans is None:
            self._full_plans = self.plans.with_answers(self._full)
        return not same_plans(self.plans.with_answers(wider), self._full_plans)

    # Limits.

    def _test_limits(self, items: Sequence[SourceStatement]) -> None:
        if not self.plans.is_free:
            for item in items:
                self._test_alone([item])
            return
        own = {id(part) for item in items for part in item.own}
        rest = [part for part in self.plans.limits if id(part) not in own]
        signed = self.plans.core.start is not None
        machine = self.plans.expression(Subset(parts=()))
        ordered = self.plans.restricted(machine, self.plans.orders, signed=signed)
        base = None if ordered is None else self.plans.restricted(ordered, rest)
        self._halve(items, base, self._test_limit)

    def _test_limit(self, item: SourceStatement, base: Automaton) -> None:
        if all(violations.satisfies(self.plans, base, part) for part in item.own):
            reach = (
                violations.extremal_sum(self.plans, base, item.own[0])
                if isinstance(item.own[0], Limit)
                else 0
            )
            self._settle(item, reach, needed=False)
        elif self._differs(base):
            self._settle(item, needed=True)
        else:
            self._settle(item, needed=False)

    def _test_alone(self, items: Sequence[SourceStatement]) -> None:
        """Test one limit with all others applied; one on depth is first loosened by a call."""
        (item,) = items
        others = tuple([part for part in self._parts() if part not in item.own])
        loosened = tuple([_loosened(part) for part in item.own if _is_depth(part)])
        if loosened:
            wider = self._remaining((*others, *loosened))
            kept = all(violations.satisfies(self.plans, wider, part) for part in item.own)
            if not kept and self._differs(wider):
                self._settle(item, needed=True)
                return
        self._test_limit(item, self._remaining(others))

    def _parts(self) -> tuple[Statement, ...]:
        return (*self.plans.limits, *self.plans.orders)

    def _remaining(self, parts: tuple[Statement, ...]) -> Automaton:
        found = self.plans.remaining(Subset(parts=parts, signed=self.plans.core.start is not None))
        if found is None:
            raise ValueError("no word where there are plans")
        return found


def _own(items: Iterable[SourceStatement]) -> list[Statement]:
    return [part for item in items for part in item.own]


def _is_depth(part: Statement) -> bool:
    return isinstance(part, Limit) and part.kind == "depth"


def _loosened(part: Statement) -> Limit:
    if not isinstance(part, Limit):
        raise TypeError("a limit is needed")
    return replace(part, value=part.value + 1, text=f"{part.kind}<={part.value + 1}")


MOST_EXPLAINED = 32  # statements; the others are reported without what implies them


def implied_by(
    plans: PlanAutomata, item: SourceStatement, stated: Sequence[SourceStatement]
) -> list[SourceStatement] | None:
    """Statements that imply `item` together with the plan expression and the signatures.

    Returns:
        an irreducible list; None beyond the limits, or where it is redundant because of strict
        tools.
    """
    others = [other for other in stated if other is not item and other.parts]

    def enough(chosen: Sequence[SourceStatement]) -> bool:
        parts = tuple([part for other in chosen for part in other.parts])
        signed = plans.core.start is not None
        left = plans.remaining(Subset(parts=_without(parts, item), signed=signed))
        return left is None or all(violations.satisfies(plans, left, part) for part in item.own)

    try:
        return irreducible(others, enough) if enough(others) else None
    except CompileRefused:
        return None


def _without(parts: Sequence[Statement], item: SourceStatement) -> tuple[Statement, ...]:
    own = frozenset(map(id, item.own))
    unique = {id(part): part for part in parts if id(part) not in own}
    return tuple(unique.values())


def removable(plans: PlanAutomata, redundant: Sequence[Redundant]) -> list[SourceStatement]:
    """Redundant statements that may be removed together, the last of the text first.

    Strict tools are considered only for the removal of each statement by itself.
    """
    gone: list[SourceStatement] = []
    every = (*plans.limits, *plans.orders)
    for found in reversed(redundant):
        item = found.statement
        if item.monitors:
            continue
        own = {id(part) for other in (*gone, item) for part in other.own}
        kept = tuple([part for part in every if id(part) not in own])
        try:
            left = plans.remaining(Subset(parts=kept, signed=plans.core.start is not None))
        except CompileRefused:
            continue
        if left is not None and all(violations.satisfies(plans, left, part) for part in item.own):
            gone.append(item)
    return gone


# Statements that leave no plan.

_MOST_QUESTIONS = 2000

_Member: TypeAlias = SourceStatement | PlanStatement | GoalStatement


def contradictory(
    plans: PlanAutomata,
    stated: Sequence[SourceStatement],
    program: Program,
    sources: Sequence[Source],
) -> Iterator[LintFinding]:
    """TCC707: a smallest set of statements that leave no plan, at the last of them.

    Raises:
        Refused: the question exceeds the limits.
    """
    found, _ = contradiction(plans, stated, program.plan, program.goal)
    if not found:
        return
    *others, last = found
    texts = [statement_text(sources, member.region) for member in found]
    if not others:
        message = f"{texts[-1]} leaves no plan by itself"
    elif len(others) == 1:
        message = f"{texts[-1]} and {texts[0]} leave no plan together"
    else:
        message = f"{texts[-1]} and {len(others)} other statements leave no plan together"
    yield LintFinding(
        diagnostic=Diagnostic(
            code="TCC707",
            message=message,
            span=_span(sources, last),
            hint="change one of them; without any one of them the others leave plans",
            notes=tuple(
                Note(message="it cannot stand with this", span=_span(sources, other))
                for other in others
            ),
        )
    )


def contradiction(
    plans: PlanAutomata,
    stated: Sequence[SourceStatement],
    plan: PlanStatement | None,
    goal: GoalStatement | None,
) -> tuple[tuple[_Member, ...], bool]:
    """The statements that leave no plan, in the order of the text, and whether no fewer do.

    Returns:
        no statements where there are plans before strict tools are considered.

    Raises:
        Refused: TCC403, TCC404, TCC406: the question exceeds the limits.
    """
    items: list[_Member] = [
        *(head for head in (plan, goal) if head is not None),
        *(item for item in stated if item.parts),
    ]
    items.sort(key=lambda item: item.region)

    def impossible(chosen: Sequence[_Member]) -> bool:
        parts = {
            id(part): part
            for one in chosen
            if isinstance(one, SourceStatement)
            for part in one.parts
        }
        kept = Subset(
            parts=tuple(parts.values()),
            planned=any(one is plan for one in chosen if plan is not None),
            signed=any(one is goal for one in chosen if goal is not None),
        )
        try:
            return plans.remaining(kept) is None
        except CompileRefused as refusal:
            if refusal.code == "TCC401":
                return False  # infinitely many are not none
            raise

    if not impossible(items):
        return (), False
    found, known = smallest(items, impossible, _MOST_QUESTIONS)
    return tuple(found), known


def _span(sources: Sequence[Source], member: _Member) -> Span:
    return sources[member.region.source].span(member.region)
