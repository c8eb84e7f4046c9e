"""The statements that a relaxed artifact left out, and the cut, kept as running state on a path.

Text: docs/spec/race.md, section 12; the statements themselves: docs/spec/core.md, section 5.
Nothing is looked ahead: a call is forbidden where it breaks a statement, `stop` where an end
condition does not hold.  Every sum is of numbers that are never negative, so what is broken stays
broken.  Of a prefix only what is not 0 is kept, and a call is shown only to the statements that
name it or keep something; of several limits on one sum the strictest is enforced.
Cost: a few integer operations for each of those and child; nothing where there is no statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import lt
from typing import TypeAlias

from tcc_certs.core.model import (
    Call,
    CallSet,
    Core,
    Forbid,
    ForbidBefore,
    ForbidNext,
    Limit,
    Require,
)
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.decimals import nano_of
from tcc_certs.formats.manifest import Relaxed
from tcc_runtime.artifact.call_sets import CallRanges, NamedBy
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.statements import (
    After,
    Apart,
    AtLeast,
    AtMost,
    Before,
    Each,
    Never,
    NoMoreThan,
    NotBefore,
    Statement,
)

_MOST_AFTER = 1 << 16  # of what is kept for one run
Held: TypeAlias = "tuple[tuple[int, int], ...]"  # statement and what it has seen, if not 0


class Constraints:
    """All statements that a run enforces itself.

    Attributes:
        start: what is held at the root of the run.
    """

    __slots__ = ("_after", "_everywhere", "_most", "_named", "_statements", "_unmet", "start")

    def __init__(self, statements: Sequence[Statement], calls: int, start: Held = ()) -> None:
        """Take the statements of an artifact with so many calls."""
        self._statements = statements
        self.start = start
        self._after: dict[Held, Steps] = {}
        self._most = max(1, _MOST_AFTER // max(1, calls))
        named = [(n, chosen) for n, s in enumerate(statements) for chosen in s.names or ()]
        self._named = NamedBy(calls, named)
        self._everywhere = tuple(n for n, s in enumerate(statements) if s.names is None)
        self._unmet = frozenset([n for n, s in enumerate(statements) if not s.ends(0)])

    def step(self, held: Held, call: int) -> Held | None:
        """What is held after `call`; None where a statement forbids it."""
        before = dict(held)
        seen = dict(before)
        for number in {**before, **dict.fromkeys((*self._everywhere, *self._named.of(call)))}:
            after = self._statements[number].step(before.get(number, 0), call)
            if after < 0:
                return None
            if after or number in before:
                seen[number] = after
        return held if seen == before else tuple([pair for pair in seen.items() if pair[1]])

    def after(self, held: Held) -> Steps:
        """What is held after each call, kept for the nodes that hold the same."""
        found = self._after.get(held)
        if found is None:
            if len(self._after) >= self._most:
                self._after.clear()
            found = self._after[held] = Steps(self, held)
        return found

    def may_stop(self, held: Held) -> bool:
        """Whether every end condition holds."""
        if not all(self._statements[number].ends(seen) for number, seen in held):
            return False
        return not self._unmet or self._unmet <= dict(held).keys()


class Steps(dict[int, "Held | None"]):
    """:meth:`Constraints.step` by call, from one that is held; each made when it is asked for."""

    __slots__ = ("_constraints", "held")

    def __init__(self, constraints: Constraints, held: Held) -> None:
        self._constraints = constraints
        self.held = held

    def __missing__(self, call: int) -> Held | None:
        found = self[call] = self._constraints.step(self.held, call)
        return found

    def stopped(self) -> Held | None:
        """What a leaf holds; None where an end condition does not hold."""
        return self.held if self._constraints.may_stop(self.held) else None


def constraints_of(
    artifact: Artifact, truncate: int | None, start: Held = ()
) -> Constraints | None:
    """What a run over `artifact` enforces: what it relaxed, and depth <= `truncate`.

    Args:
        truncate: most calls of a plan; None is no cut.
        start: what the statements that it relaxed have seen before the root of the run.  The cut
            is the last statement and counts from there, so the others have their numbers without.

    Returns:
        None where there is nothing to enforce.
    """
    found = list(_relaxed(artifact))
    if truncate is not None:
        found.append(AtMost([1] * artifact.manifest.calls, truncate))
    return Constraints(found, artifact.manifest.calls, start) if found else None


def _relaxed(artifact: Artifact) -> Sequence[Statement]:
    return () if artifact.relaxed is None else _made(artifact, artifact.relaxed)


def every_statement(artifact: Artifact) -> Sequence[Statement]:
    """All limits, requires and forbids of the core, whoever enforces them.

    Returns:
        the limits, the strictest of those on one sum; then the requires and the forbids.

    Raises:
        Rejected: M301, of an unverified artifact whose calls are in no order.
    """
    core = artifact.core
    limits, requires, forbids = map(len, (core.limits, core.requires, core.forbids))
    everything = Relaxed(
        limits=tuple(range(limits)), requires=tuple(range(requires)), forbids=tuple(range(forbids))
    )
    return _made(artifact, everything)


def _made(artifact: Artifact, named: Relaxed) -> Sequence[Statement]:
    core = artifact.core
    numbers = {call.text: index for index, call in enumerate(core.calls)}
    indices = [numbers[text] for text in artifact.texts]
    if not all(map(lt, indices, indices[1:])):  # in an unverified artifact
        raise Rejected(Code.CALL_TABLE, "call_text", "strictly increasing texts", "others")
    limits = _strictest([core.limits[i] for i in named.limits])
    calls = [core.calls[index] for index in indices]
    chosen = _Chosen(indices, core)
    return [
        *(_limit(limit, calls, chosen, core) for limit in limits),
        *(_require(core.requires[i], chosen) for i in named.requires),
        *(_forbid(core.forbids[i], chosen) for i in named.forbids),
    ]


class _Chosen:
    """Sets of the core's calls as calls of the artifact; each pattern is made once."""

    def __init__(self, numbers: Sequence[int], core: Core) -> None:
        self._numbers = numbers
        self._core = core
        self._patterns: dict[int, CallRanges] = {}

    def by_set(self, calls: CallSet) -> CallRanges:
        return CallRanges(calls, self._numbers)

    def by_pattern(self, pattern: int) -> CallRanges:
        if pattern not in self._patterns:
            self._patterns[pattern] = self.by_set(self._core.patterns[pattern])
        return self._patterns[pattern]


_AMOUNT: dict[str, Callable[[Call], int]] = {
    "depth": lambda _call: 1,
    "price": lambda call: call.price,
    "latency": lambda call: call.latency,
    "cost": lambda call: call.cost_high,
    "epsilon": lambda call: call.epsilon,
}


def _strictest(limits: Sequence[Limit]) -> list[Limit]:
    """Of the limits on one sum, or on the uses of one set of calls, the one that implies all."""
    found: dict[tuple[object, ...], Limit] = {}
    for limit in sorted(limits, key=lambda limit: limit.value, reverse=True):
        what = (limit.kind, limit.least, limit.calls, limit.parameter)
        if not limit.least or what not in found:
            found[what] = limit
    return list(found.values())


def _limit(limit: Limit, calls: Sequence[Call], chosen: _Chosen, core: Core) -> Statement:
    if limit.calls is not None:
        counted = chosen.by_set(limit.calls)
        return AtLeast(counted, limit.value) if limit.least else NoMoreThan(counted, limit.value)
    if limit.parameter is not None:
        return AtMost(_added(*limit.parameter, calls, core), limit.value)
    amount = _AMOUNT[limit.kind]
    return AtMost([amount(call) for call in calls], limit.value)


def _added(tool: int, place: int, calls: Sequence[Call], core: Core) -> list[int]:
    """What each call adds to the sum of a parameter, in nano-units; an absent one adds nothing."""
    values = [nano_of(text) or 0 for text in core.tools[tool].parameters[place].values]
    return [values[call.values[place]] if call.tool == tool else 0 for call in calls]


_REQUIRE: dict[str, type[Before | After | Each]] = {"before": Before, "after": After, "each": Each}


def _require(statement: Require, chosen: _Chosen) -> Statement:
    kind = _REQUIRE[statement.order]
    return kind(chosen.by_pattern(statement.first), chosen.by_pattern(statement.second))


def _forbid(statement: Forbid, chosen: _Chosen) -> Statement:
    if isinstance(statement, ForbidNext):
        return Never([chosen.by_pattern(p) for p in statement.patterns])
    kind = NotBefore if isinstance(statement, ForbidBefore) else Apart
    return kind(chosen.by_pattern(statement.first), chosen.by_pattern(statement.second))
