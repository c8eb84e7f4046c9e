"""Residual constraints: the statements that a relaxed automaton leaves to the run, and its cut.

Normative text: docs/spec/race.md and docs/spec/core.md, section 5.  A *tally* holds one integer for
each constraint: what of the prefix it has to know.  A call is forbidden with which a running sum
breaks its ``<=`` (no look-ahead), that a `before` does not allow yet or that completes what a
`forbid` rules out; a stop is forbidden where a ``uses >=`` or an `after` is still open.
Cost: constant a constraint and call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tcc_certs.grammar import Core, ForbidNext, ForbidWith, Limit, Require, members
from tcc_certs.kernel import CheckedArtifact

Tally: TypeAlias = "tuple[int, ...]"


class Constraint(Protocol):
    """One constraint: the tally of the empty prefix is 0."""

    def after(self, tally: int, call: int) -> int | None:
        """The tally once `call` (an index of the artifact) was made; None: it is forbidden."""

    def may_stop(self, tally: int) -> bool:
        """Whether a plan may end here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """A sum over the plan that stays at or below `most`; amounts are at least 0."""

    amount: Sequence[int]
    most: int

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        total = tally + self.amount[call]
        return total if total <= self.most else None

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`; only the empty sum can be too great here."""
        return tally <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeast:
    """Calls of a set, at least `least` of them."""

    chosen: frozenset[int]
    least: int

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        return tally + (call in self.chosen)

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return tally >= self.least


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Each call of `second` has one of `first` strictly before it."""

    first: frozenset[int]
    second: frozenset[int]

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        if call in self.second and not tally:
            return None
        return 1 if call in self.first else tally

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """Each call of `second` has one of `first` strictly after it; 1 is one that has none yet."""

    first: frozenset[int]
    second: frozenset[int]

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        if call in self.second:
            return 1
        return 0 if call in self.first else tally

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return tally == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverNext:
    """Nowhere neighbours of these sets in this order; bit i: the first i + 1 have just matched."""

    chain: tuple[frozenset[int], ...]

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        ready, found = tally << 1 | 1, 0
        for at, chosen in enumerate(self.chain):
            if ready >> at & 1 and call in chosen:
                found |= 1 << at
        return None if found >> len(self.chain) - 1 else found

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverWith:
    """No call of `first` and call of `second` in one plan; bits 0 and 1: which were made."""

    first: frozenset[int]
    second: frozenset[int]

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        found = tally | (call in self.first) | (call in self.second) << 1
        return None if found == 3 else found

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """All of them at once."""

    items: tuple[Constraint, ...]

    @property
    def start(self) -> Tally:
        """The tally of the empty prefix."""
        return (0,) * len(self.items)

    def after(self, tally: Tally, call: int) -> Tally | None:
        """The tally once `call` was made; None where one of them forbids it."""
        if not tally:
            return tally
        found: list[int] = []
        for constraint, before in zip(self.items, tally, strict=True):
            step = constraint.after(before, call)
            if step is None:
                return None
            found.append(step)
        return tuple(found)

    def may_stop(self, tally: Tally) -> bool:
        """Whether a plan may end here."""
        pairs = zip(self.items, tally, strict=True)
        return all(constraint.may_stop(value) for constraint, value in pairs)


def residual_constraints(artifact: CheckedArtifact, truncate: int) -> Constraints:
    """What the artifact leaves to a run whose plans have at most `truncate` calls."""
    core, calls = artifact.core, artifact.core_calls
    items: list[Constraint] = []
    relaxed = artifact.file.manifest.relaxed
    if relaxed is not None:
        items += [_limit(core.limits[i], core, calls) for i in relaxed.limits]
        items += [_require(core.requires[i], core, calls) for i in relaxed.requires]
        items += [_forbid(core.forbids[i], core, calls) for i in relaxed.forbids]
    if truncate < artifact.automaton.rank[artifact.automaton.root]:
        items.append(AtMost(amount=[1] * len(calls), most=truncate))
    return Constraints(items=tuple(items))


def _limit(limit: Limit, core: Core, calls: Sequence[int]) -> Constraint:
    of = [core.calls[index] for index in calls]
    chosen = frozenset() if limit.calls is None else _members(members(limit.calls), calls)
    if limit.least:
        return AtLeast(chosen=chosen, least=limit.value)
    amount = {
        "depth": [1] * len(of),
        "uses": [int(i in chosen) for i in range(len(of))],
        "price": [call.price for call in of],
        "latency": [call.latency for call in of],
        "cost": [call.cost_high for call in of],
        "epsilon": [call.epsilon for call in of],
    }[limit.kind]
    return AtMost(amount=amount, most=limit.value)


def _require(statement: Require, core: Core, calls: Sequence[int]) -> Constraint:
    first = _pattern(statement.first, core, calls)
    second = _pattern(statement.second, core, calls)
    if statement.order == "before":
        return Before(first=first, second=second)
    return After(first=first, second=second)


def _forbid(statement: ForbidNext | ForbidWith, core: Core, calls: Sequence[int]) -> Constraint:
    if isinstance(statement, ForbidNext):
        return NeverNext(chain=tuple([_pattern(p, core, calls) for p in statement.patterns]))
    first = _pattern(statement.first, core, calls)
    return NeverWith(first=first, second=_pattern(statement.second, core, calls))


def _pattern(number: int, core: Core, calls: Sequence[int]) -> frozenset[int]:
    """The calls of a pattern, as indices of the artifact."""
    return _members(members(core.patterns[number]), calls)


def _members(chosen: Iterable[int], calls: Sequence[int]) -> frozenset[int]:
    wanted = frozenset(chosen)
    return frozenset([at for at, index in enumerate(calls) if index in wanted])
