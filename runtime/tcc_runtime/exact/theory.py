"""Finds reasons why literals contradict each other, in the form that the kernel checks.

Order and arithmetic are decided by Fourier-Motzkin elimination, which keeps the multipliers of each
row.  Equalities are a graph, and the path between two terms is the explanation.
Cost: bounded by `MAX_ROWS`; past it a contradiction may stay unseen, which leaves a branch open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.errors import Rejected
from tcc_certs.proof.ground import Ground, parts
from tcc_certs.proof.plans import Plan, most_counted
from tcc_certs.proof.reasons import (
    Fact,
    Variable,
    counted_of,
    evaluated,
    fact_at_most,
    fact_between,
    facts_about,
    facts_of,
    most_before,
    renamed,
    renaming,
    tightened,
)
from tcc_certs.proof.rules import Wrong, operands
from tcc_certs.proof.scene import Scene, calls_in, contradicts, order

Truths: TypeAlias = "Mapping[int, bool]"
Reason: TypeAlias = "tuple[Any, ...]"
Found: TypeAlias = "tuple[Reason, frozenset[int], frozenset[int]]"  # reason, needs, names

MAX_ROWS = 600
_LINEAR = frozenset({"lt", "le", "eq", "before", "known"})
_DIRECT = frozenset(
    {"eq", "ne", "lt", "le", "match", "unmatch", "null", "nonnull", "same", "differ", "known",
     "under", "outside"}
)  # fmt: skip


class _Row(NamedTuple):
    """A combination of facts: `terms` are at most `most`, or less."""

    terms: dict[Variable, Fraction]
    most: Fraction
    strict: bool
    factors: dict[int, Fraction]


class Theory:
    """Reasons about the literals of a scene."""

    def __init__(self, scene: Scene, statements: Sequence[int], plan: Plan | None) -> None:
        self._scene, self._plan = scene, plan
        self._bounds = [one for one in statements if scene.rules[one].kind in ("limit", "total")]
        self._most: dict[Any, Any] = {}
        self._facts: dict[Any, list[Fact]] = {}
        self._inside: dict[int, frozenset[Ground]] = {}
        self._calls: dict[int, tuple[int, ...]] = {}

    def conflict(self, truths: Truths, fresh: Sequence[int]) -> Found | None:
        """Return why literals contradict each other; None: no reason was found.

        Args:
            fresh: the literals that were assigned since the last time.
        """
        return (
            self._opposite(truths, fresh)
            or self._equality(truths, fresh)
            or self._linear(truths, fresh)
        )

    def _opposite(self, truths: Truths, fresh: Sequence[int]) -> Found | None:
        for number in fresh:
            if not truths[number]:
                continue
            other = contradicts(self._scene.literals[number])
            if other is None:
                continue
            second = self._scene.number(other)
            if second is not None and truths.get(second):
                return ("both", number, second), frozenset([number, second]), frozenset()
        return None

    # Equality.

    def _equality(self, truths: Truths, fresh: Sequence[int]) -> Found | None:
        literals = self._scene.literals
        equal = [one for one, truth in truths.items() if truth and literals[one][0] == "eq"]
        names, clash = renaming([literals[one] for one in equal]) if equal else ({}, False)
        graph: dict[Ground, list[tuple[Ground, int]]] = {}
        for one in equal:
            _, left, right = literals[one]
            graph.setdefault(left, []).append((right, one))
            graph.setdefault(right, []).append((left, one))
        if clash:
            return self._clash(graph)
        known = {names.get(term, term) for term in graph}
        new = set(fresh)
        is_new = any(truths[one] and literals[one][0] == "eq" for one in fresh)
        seen: dict[Ground, int] = {}
        for number, truth in truths.items():
            if number not in new and not is_new:
                continue
            literal = literals[number]
            touched = bool(names) and not self._terms(number).isdisjoint(names)
            if not touched and number not in new:
                continue
            renewed = renamed(literal, names) if touched else literal
            if literal[0] in _DIRECT:
                value = evaluated(renewed, known)
                if value is not None and value is not truth:
                    return self._explained(graph, names, number)
            if not touched:
                continue
            plain = self._scene.number(renewed)
            other = seen.setdefault(renewed, number)
            if plain is not None and plain in truths:
                other = plain
            if other != number and truths[other] is not truth:
                return self._explained(graph, names, number, other)
        return None

    def _terms(self, number: int) -> frozenset[Ground]:
        found = self._inside.get(number)
        if found is None:
            found = self._inside[number] = frozenset(parts(self._scene.literals[number]))
        return found

    def _clash(self, graph: Mapping[Ground, Sequence[tuple[Ground, int]]]) -> Found | None:
        constants = [term for term in graph if term[0] == "const"]
        for at, one in enumerate(constants):
            for other in constants[at + 1 :]:
                path = _path(graph, one, other)
                if path is not None and renaming([self._scene.literals[n] for n in path])[1]:
                    return ("equal", tuple(path)), frozenset(path), frozenset()
        return None

    def _explained(
        self,
        graph: Mapping[Ground, Sequence[tuple[Ground, int]]],
        names: Mapping[Ground, Ground],
        *numbers: int,
    ) -> Found:
        """The reason that named literals are evaluated otherwise, with the equalities it needs."""
        used: dict[int, None] = {}
        for number in numbers:
            for term in parts(self._scene.literals[number]):
                if term in names:
                    used |= dict.fromkeys(_path(graph, term, names[term]) or ())
        literals = [self._scene.literals[number] for number in numbers]
        if len(numbers) == 1 and literals[0][0] in ("eq", "ne") and literals[0][1] in graph:
            path = _path(graph, literals[0][1], literals[0][2])
            if path is not None:
                used = dict.fromkeys(path)
        chosen = tuple(used)
        return ("equal", chosen, *numbers), frozenset([*chosen, *numbers]), frozenset()

    # Order and arithmetic.

    def _facts_of(self, number: int, truth: bool) -> list[Fact]:
        calls = self._calls.get(number)
        if calls is None:
            calls = self._calls[number] = tuple(sorted(calls_in(self._scene.literals[number])))
        actors = [self._scene.actors[call] for call in calls]
        key = number, truth, tuple([actor.base or actor.tool for actor in actors])
        found = self._facts.get(key)
        if found is None:
            found = self._facts[key] = facts_of(self._scene, self._scene.literals[number], truth)
        return found

    def _linear(self, truths: Truths, fresh: Sequence[int]) -> Found | None:
        literals = self._scene.literals
        if not any(
            self._facts_of(one, truths[one]) for one in fresh if literals[one][0] in _LINEAR
        ):
            return None
        named: list[Reason] = []
        facts: list[Fact] = []
        places: dict[Variable, tuple[int, int, int, int]] = {}
        for number, truth in truths.items():
            if literals[number][0] not in _LINEAR:
                continue
            for at, fact in enumerate(self._facts_of(number, truth)):
                for place, variable in enumerate(fact.terms):
                    places.setdefault(variable, (number, int(truth), at, place))
                named.append(("literal", number, at))
                facts.append(fact)
        special = [one for one in places if one[1][0] in ("time", "count", "sum", "counted")]
        between: dict[tuple[Variable, Variable], Fact] = {}
        for one in special:
            for other in special:
                linking = fact_between(self._scene, one, other) if one != other else None
                if linking is not None:
                    between[one, other] = linking
        component = self._component(facts, between, truths, fresh)
        for variable in places:
            if variable not in component:
                continue
            for at, fact in enumerate(facts_about(self._scene, variable)):
                if set(fact.terms) <= component or fact.terms.keys() <= places.keys():
                    named.append(("about", variable, at))
                    facts.append(fact)
        for (one, other), linking in between.items():
            if one in component:
                named.append(("between", one, other))
                facts.append(linking)
        factors = self._eliminated(facts, component)
        if factors is None:
            more = list(self._of_counts(component & places.keys(), truths))
            if not more:
                return None
            named += [reason for reason, _ in more]
            facts += [fact for _, fact in more]
            factors = self._eliminated(facts, component)
        if factors is None:
            return None
        scale = lcm(*[factor.denominator for factor in factors.values()])
        needs: set[int] = set()
        names: set[int] = set()
        combined: list[Reason] = []
        for at, factor in factors.items():
            reason = named[at]
            if reason[0] == "literal":
                needs.add(reason[1])
            elif reason[0] in ("about", "total", "plan"):
                names.add(places[reason[1]][0])
                needs.update(reason[2] if reason[0] == "plan" else ())
                reason = reason[0], places[reason[1]], *reason[2:]
            else:
                names |= {places[one][0] for one in reason[1:]}
                reason = "between", places[reason[1]], places[reason[2]]
            combined.append((*reason, int(factor * scale)))
        return ("sum", tuple(combined)), frozenset(needs), frozenset(names)

    def _eliminated(
        self, facts: Sequence[Fact], component: set[Variable]
    ) -> dict[int, Fraction] | None:
        rows = []
        for at, fact in enumerate(facts):
            if fact.terms.keys() <= component or not fact.terms:
                fact = tightened(self._scene, fact)
                rows.append(_Row(dict(fact.terms), fact.most, fact.strict, {at: Fraction(1)}))
        return _eliminated(rows)

    def _of_counts(
        self, variables: Collection[Variable], truths: Truths
    ) -> Iterator[tuple[Reason, Fact]]:
        """What limits, totals and the automaton say of counts and sums."""
        for variable in sorted(variables, key=order):
            for statement in self._bounds:
                most = most_before(self._scene, variable, statement)
                if most is not None:
                    yield ("total", variable, statement), fact_at_most(variable, most)
            counted = None if self._plan is None else counted_of(self._scene, variable)
            if counted is None:
                continue
            most = self._most_on_paths(variable, (), truths)
            literals = self._scene.literals
            about = [one for one in truths if self._is_listed(literals[one], counted.view)]
            less = self._most_on_paths(variable, about, truths) if about else most
            if less is not None and (most is None or less < most):
                yield ("plan", variable, tuple(about)), fact_at_most(variable, less)
            elif most is not None:
                yield ("plan", variable, ()), fact_at_most(variable, most)

    def _is_listed(self, literal: Ground, view: Ground) -> bool:
        """Return whether a literal compares a listed field of a call with constants alone."""
        if literal[0] not in _DIRECT - {"under", "outside"}:
            return False
        terms = [term for term in operands(literal) or literal[1:2] if term[0] != "const"]
        field = self._scene.field(terms[0]) if len(terms) == 1 else None
        return field is not None and field[0].type is None and terms[0][1] == view

    def _most_on_paths(
        self, variable: Variable, about: Sequence[int], truths: Truths
    ) -> Any | None:
        if self._plan is None:
            return None
        named = [(self._scene.literals[number], truths[number]) for number in about]
        tools = [self._scene.actors[call].tool for call in sorted(calls_in(variable))]
        key = variable, *named, *tools
        if key not in self._most:
            try:
                self._most[key] = most_counted(self._plan, self._scene, variable, named)
            except (Rejected, Wrong):
                self._most[key] = None
        return self._most[key]

    def _component(
        self,
        facts: Sequence[Fact],
        between: Collection[tuple[Variable, Variable]],
        truths: Truths,
        fresh: Sequence[int],
    ) -> set[Variable]:
        """The variables that facts connect with those of fresh literals."""
        found: set[Variable] = set()
        for one in fresh:
            if self._scene.literals[one][0] in _LINEAR:
                for fact in self._facts_of(one, truths[one]):
                    found |= fact.terms.keys()
        links: list[set[Variable]] = [set(fact.terms) for fact in facts]
        links += [{one, other} for one, other in between]
        for link in list(links):
            for end, term in link:
                if end != "value":
                    links.append({("low", term), ("high", term)})
        moved = True
        while moved:
            moved = False
            for link in links:
                if link and not link <= found and not found.isdisjoint(link):
                    found |= link
                    moved = True
        return found


def _path(
    graph: Mapping[Ground, Sequence[tuple[Ground, int]]], start: Ground, end: Ground
) -> list[int] | None:
    """The equalities that connect two terms."""
    before: dict[Ground, tuple[Ground, int] | None] = {start: None}
    queue = deque([start])
    while queue:
        term = queue.popleft()
        if term == end:
            path: list[int] = []
            step = before[term]
            while step is not None:
                path.append(step[1])
                step = before[step[0]]
            return path
        for other, number in graph.get(term, ()):
            if other not in before:
                before[other] = term, number
                queue.append(other)
    return None


def _eliminated(rows: list[_Row]) -> dict[int, Fraction] | None:
    """Multipliers of rows whose combination is a contradiction; None: none was found."""
    while True:
        for row in rows:
            if not row.terms and (row.most < 0 or (row.most == 0 and row.strict)):
                return row.factors
        rows = [row for row in rows if row.terms]
        counts: dict[Variable, list[int]] = {}
        for row in rows:
            for variable, factor in row.terms.items():
                counts.setdefault(variable, [0, 0])[factor > 0] += 1
        if not counts:
            return None
        variable = min(counts, key=lambda one: counts[one][0] * counts[one][1])
        lows, highs = counts[variable]
        if len(rows) - lows - highs + lows * highs > MAX_ROWS:
            return None
        rows = list(_without(rows, variable))


def _without(rows: Sequence[_Row], variable: Variable) -> Iterator[_Row]:
    low = [row for row in rows if row.terms.get(variable, 0) < 0]
    high = [row for row in rows if row.terms.get(variable, 0) > 0]
    for row in rows:
        if variable not in row.terms:
            yield row
    for one in low:
        for other in high:
            first, second = other.terms[variable], -one.terms[variable]
            terms = _sum(one.terms, first, other.terms, second)
            factors = _sum(one.factors, first, other.factors, second)
            most = one.most * first + other.most * second
            yield _Row(terms, most, one.strict or other.strict, factors)


def _sum(one: Mapping[Any, Fraction], first: Fraction, other: Mapping[Any, Fraction],
         second: Fraction) -> dict[Any, Fraction]:  # fmt: skip
    found = {name: factor * first for name, factor in one.items()}
    for name, factor in other.items():
        found[name] = found.get(name, Fraction(0)) + factor * second
    return {name: factor for name, factor in found.items() if factor}
