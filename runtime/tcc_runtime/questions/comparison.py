"""How the plans of a new artifact, and what a gate holds beside them, differ from an old one's.

Numbers are exact: artifacts whose counts are bounds are unfolded first.  Where that, or the
product, is too large, nothing is said but the bounds.
Cost: that of :mod:`tcc_runtime.questions.difference`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tcc_certs.core.model import Call, Core
from tcc_certs.errors import Code, Rejected
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.questions.blame import blame
from tcc_runtime.questions.difference import OneSided, Plan, only_in
from tcc_runtime.questions.gate_changes import Change, Sense, monitor_changes, open_changes
from tcc_runtime.questions.graph import PlanGraph, graph_of
from tcc_runtime.questions.statements import Statement, Written, statements_of

AMOUNTS: Final = ("cost", "price", "latency", "epsilon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """What of one call changed.

    Attributes:
        call: canonical text.
        changes: (amount, old, new); of a cost both ends, nano-units, cents, ms, nano.
    """

    call: str
    changes: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls that plans have.

    Attributes:
        added, removed: those that plans of one side alone have; canonical texts, in order.
        amounts: those of both sides of which an amount changed.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    amounts: tuple[Amounts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A new artifact against an old one.

    Attributes:
        verdict: of the plans, as texts, alone; None where only bounds are known.
        counts: ``exact``, or ``upper`` where the numbers are bounds.
        added, removed: the plans of the new one alone, of the old one alone.
        common: how many plans both have.
        calls: None where only bounds are known.
        monitors, opened: what changed of that which a gate holds.
        because_added: the statements of the old one that keep the shortest added plan from it,
            those of them that the new one has not so; none where it is for calls or amounts.
        because_removed: the same of the new one and the shortest removed plan.
        reason: why nothing but bounds is known; else None.
    """

    verdict: Sense | None
    counts: Literal["exact", "upper"]
    added: OneSided
    removed: OneSided
    common: int
    calls: Calls | None
    monitors: tuple[Change, ...]
    opened: tuple[Change, ...]
    because_added: tuple[Statement, ...] = ()
    because_removed: tuple[Statement, ...] = ()
    reason: Rejected | None = None

    def breaks(self, sense: Literal["wider", "narrower"] = "wider") -> bool:
        """Whether the new one allows what the old one does not; for ``narrower``, lost something.

        What the new one asks of a call, or lets a call have, counts as well.
        """
        broken: tuple[Sense, ...] = (sense, "incomparable")
        return self.verdict in broken or any(
            change.sense in broken for change in (*self.monitors, *self.opened)
        )


def compare(
    old: Artifact,
    new: Artifact,
    old_written: Mapping[str, Written] | None = None,
    new_written: Mapping[str, Written] | None = None,
) -> Comparison:
    """Compare; see :class:`Comparison`.

    Args:
        old_written, new_written: the statements as they were written, where that is known.

    Raises:
        Rejected: an unverified artifact leads out of its ranges.
    """
    monitors = tuple(monitor_changes(old.core, new.core))
    try:
        before, after = graph_of(old), graph_of(new)
        added, removed = only_in(after, before), only_in(before, after)
    except Rejected as refusal:
        if refusal.code is not Code.LIMIT:
            raise
        return _bounds(old, new, monitors, refusal)
    were = statements_of(old.core, old_written or {})
    are = statements_of(new.core, new_written or {})
    return Comparison(
        because_added=_changed(old.core, were, are, added.shortest),
        because_removed=_changed(new.core, are, were, removed.shortest),
        verdict=_verdict(added.plans, removed.plans),
        counts="exact",
        added=added,
        removed=removed,
        common=_total(after) - added.plans,
        calls=_calls(old.core, new.core, before.used(), after.used()),
        monitors=monitors,
        opened=tuple(_opened(old.core, new.core, before.used(), after.used())),
    )


def _changed(
    core: Core, own: Sequence[Statement], others: Sequence[Statement], plan: Plan | None
) -> tuple[Statement, ...]:
    """Of the statements to blame that `plan` is none of `core`, those that the others have not."""
    number = {call.text: index for index, call in enumerate(core.calls)}
    if plan is None or not all(call in number for call in plan):
        return ()
    known = frozenset(text for statement in others for text in statement.says)
    word = [number[call] for call in plan]
    found = blame(core, own, word, ends=True, every=False)
    return tuple([statement for statement in found.sets[0] if not statement.says <= known])


def _verdict(added: int, removed: int) -> Sense:
    if added:
        return "incomparable" if removed else "wider"
    return "narrower" if removed else "equal"


def _total(graph: PlanGraph) -> int:
    return 0 if graph.root is None else graph.plans(graph.root)


def _bounds(
    old: Artifact, new: Artifact, monitors: tuple[Change, ...], refusal: Rejected
) -> Comparison:
    before, after = (artifact.plans(artifact.root) for artifact in (old, new))
    return Comparison(
        verdict=None,
        counts="upper",
        added=OneSided(plans=after, shortest=None, cheapest=None),
        removed=OneSided(plans=before, shortest=None, cheapest=None),
        common=min(before, after),
        calls=None,
        monitors=monitors,
        opened=tuple(_opened(old.core, new.core, old.texts, new.texts)),
        reason=refusal,
    )


def _opened(old: Core, new: Core, before: Sequence[str], after: Sequence[str]) -> Sequence[Change]:
    tools = _tools(old, before) & _tools(new, after)
    return open_changes(old, new, tools)


def _tools(core: Core, used: Sequence[str]) -> set[str]:
    """The names of the tools of these calls."""
    texts = set(used)
    return {core.tools[call.tool].name for call in core.calls if call.text in texts}


def _calls(old: Core, new: Core, before: Sequence[str], after: Sequence[str]) -> Calls:
    first, then = set(before), set(after)
    were = {call.text: call for call in old.calls}
    are = {call.text: call for call in new.calls}
    amounts = [_amounts(were[text], are[text]) for text in before if text in then]
    return Calls(
        added=tuple([text for text in after if text not in first]),
        removed=tuple([text for text in before if text not in then]),
        amounts=tuple([found for found in amounts if found.changes]),
    )


def _amounts(old: Call, new: Call) -> Amounts:
    rows = zip(AMOUNTS, _amounts_of(old), _amounts_of(new), strict=True)
    changes = tuple([(name, was, now) for name, was, now in rows if was != now])
    return Amounts(call=old.text, changes=changes)


def _amounts_of(call: Call) -> tuple[tuple[int, ...], ...]:
    cost = call.cost_low, call.cost_high
    return cost, (call.price,), (call.latency,), (call.epsilon,)
