"""Uses the automaton of an artifact in a search: which branches have no path, and paths of others.

The kernel decides whether a path exists (:mod:`tcc_certs.proof.plans`).  This module chooses the
calls and the literals that a reason names, as few as it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tcc_certs.errors import Rejected
from tcc_certs.policy.core import Core
from tcc_certs.proof import rules
from tcc_certs.proof.ground import Ground
from tcc_certs.proof.plans import Plan, Step, walk_of
from tcc_certs.proof.reasons import value_of
from tcc_certs.proof.rules import Wrong
from tcc_certs.proof.scene import Formula, Scene

MAX_EDGES = 1 << 26  # looked at by a search


class SearchedPlan(Plan):
    """The automaton of an artifact, with a clock that each state looks at."""

    def __init__(self, of: Plan, tick: Callable[[], None]) -> None:
        self.__dict__.update(of.__dict__)
        self.edges_left = MAX_EDGES
        self._tick = tick

    def row(self, state: int) -> Sequence[tuple[int, int]]:
        """The edges of a state, as labels and targets."""
        self._tick()
        return super().row(state)


class Needed(NamedTuple):
    """Calls in their order, and literals, for which the automaton has no path."""

    chain: tuple[int, ...]
    literals: tuple[int, ...]
    why: frozenset[int]


class Paths:
    """The paths of the branches of one search."""

    def __init__(self, plan: SearchedPlan, scene: Scene) -> None:
        self._plan, self._scene = plan, scene
        self._kept: dict[Any, list[Step] | None] = {}

    def conflict(self, truths: Mapping[int, bool]) -> Needed | None:
        """Return why a branch has no path; None: it has one, or the automaton is too large."""
        try:
            return self._conflict(truths)
        except Rejected:
            return None

    def _conflict(self, truths: Mapping[int, bool]) -> Needed | None:
        chain = self._chain(truths)
        for literals in self._choices(chain, truths):
            if self._path(chain, literals, truths) is None:
                return self._least(chain, literals, truths)
        return None

    def path(self, truths: Mapping[int, bool]) -> tuple[tuple[int, ...], list[Step]] | None:
        """The named calls of a branch, and a path that has them."""
        chain = self._chain(truths)
        try:
            for literals in self._choices(chain, truths):
                found = self._path(chain, literals, truths)
                if found is not None:
                    return chain, found
        except Rejected:
            pass
        return None

    def _chain(self, truths: Mapping[int, bool]) -> tuple[int, ...]:
        """As many calls as surely are in one order, call 0 last."""
        scene = self._scene
        calls = [
            call
            for call, actor in enumerate(scene.actors)
            if call and actor.base is None and value_of(rules.made(scene, call), truths) is True
        ]
        found: list[int] = []
        for call in calls:
            at = 0
            while at < len(found) and self._is_before(found[at], call, truths):
                at += 1
            if all(self._is_before(call, other, truths) for other in found[at:]):
                found.insert(at, call)
        return (*found, 0)

    def _is_before(self, one: int, other: int, truths: Mapping[int, bool]) -> bool:
        return value_of(self._scene.before(one, other), truths) is True

    def _choices(
        self, chain: Sequence[int], truths: Mapping[int, bool]
    ) -> Iterator[tuple[int, ...]]:
        """The literals that a walk may use together."""
        alone: list[int] = []  # of which a walk has one
        others: list[int] = []
        for number, truth in truths.items():
            literal = self._scene.literals[number]
            if not _says(literal, truth):
                continue
            try:
                walk = walk_of(self._plan, self._scene, chain, [(literal, truth)])
            except (Wrong, ValueError):
                continue
            is_alone = any(one.is_answered or one.marks for one in walk.avoided)
            (alone if is_alone else others).append(number)
        yield tuple(others)
        for number in alone:
            yield (*others, number)

    def _path(
        self, chain: Sequence[int], literals: Sequence[int], truths: Mapping[int, bool]
    ) -> list[Step] | None:
        named = [(self._scene.literals[number], truths[number]) for number in literals]
        walk = walk_of(self._plan, self._scene, chain, named)
        if walk not in self._kept:
            self._kept[walk] = self._plan.path(walk)
        return self._kept[walk]

    def _least(
        self, chain: tuple[int, ...], literals: tuple[int, ...], truths: Mapping[int, bool]
    ) -> Needed:
        """The conflict without calls and literals that it does not need."""

        def is_closed(calls: tuple[int, ...], numbers: tuple[int, ...]) -> bool:
            try:
                return self._path(calls, numbers, truths) is None
            except (Wrong, ValueError):
                return False

        for number in literals:
            less = tuple([one for one in literals if one != number])
            if is_closed(chain, less):
                literals = less
        for call in chain[:-1]:
            shorter = tuple([one for one in chain if one != call])
            if is_closed(shorter, literals):
                chain = shorter
        scene = self._scene
        needed = [rules.made(scene, call) for call in chain[:-1]]
        needed += [scene.before(*pair) for pair in pairwise(chain)]
        why = frozenset(literals).union(*[_why_true(one, truths) for one in needed])
        return Needed(chain, literals, why)


_VALUES = frozenset(
    {"eq", "ne", "lt", "le", "match", "unmatch", "null", "nonnull", "same", "differ", "known"}
)


def _says(literal: Ground, truth: bool) -> bool:
    """Return whether a literal may restrict paths."""
    if literal[0] in _VALUES:
        return True
    return (literal[0] in ("some", "paid")) != truth and (
        literal[0] in ("some", "paid", "none", "latest", "clear")
    )


def _why_true(formula: Formula, truths: Mapping[int, bool]) -> frozenset[int]:
    """Literals whose truths make a formula true."""
    if isinstance(formula, bool):
        return frozenset()
    tag, inner, *_ = formula
    if tag == "lit":
        return frozenset([inner])
    if tag == "and":
        return frozenset().union(*[_why_true(part, truths) for part in inner])
    return next(_why_true(part, truths) for part in inner if value_of(part, truths) is True)


def plan_of(artifact: Any) -> Plan:
    """The automaton of an artifact, for proofs.

    Args:
        artifact: a :class:`tcc_runtime.artifact.load.Artifact`.
    """
    from tcc_runtime.artifact.constraints import core_calls

    found = artifact.kept.get("proof plan")
    if not isinstance(found, Plan):
        core: Core = artifact.core
        found = artifact.kept["proof plan"] = Plan(
            core, artifact.automaton, core_calls(artifact), artifact.omitted
        )
    return found
