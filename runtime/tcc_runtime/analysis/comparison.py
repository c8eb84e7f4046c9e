"""How the plans of a new artifact, and everything else in its core, differ from an old one's.

Two artifacts are equal if their cores are.  Numbers are exact: artifacts whose counts are bounds
are unfolded first.  If the unfolding, or the product, is too large, only the bounds are reported of
plans.
Cost: that of :mod:`tcc_runtime.analysis.difference`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from blake3 import blake3

from tcc_certs.core.model import Call, Core
from tcc_certs.core.reader import decode_core, read_core
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import written
from tcc_runtime.analysis import gate_changes
from tcc_runtime.analysis.blame import blame
from tcc_runtime.analysis.difference import OneSided, Plan, only_in
from tcc_runtime.analysis.graph import PlanGraph, graph_of
from tcc_runtime.analysis.statements import Written, WrittenStatement, statements_of
from tcc_runtime.artifact.load import Artifact

AMOUNTS: Final = ("cost", "price", "latency", "epsilon")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChange:
    """Change of one call.

    Attributes:
        call: canonical text.
        changes: (amount, old, new); a cost has both ends. Nano-units, cents, ms, nano.
    """

    call: str
    changes: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls that plans have.

    Attributes:
        added, removed: calls that only plans of one side have; canonical texts, in order.
        amounts: calls of both sides with a changed amount.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    amounts: tuple[CallChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A new artifact against an old one.

    Attributes:
        verdict: on the whole core; None if only bounds are known.  Only equal cores are ``equal``;
            ``cost`` if amounts differ, ``other`` if the difference lets the same calls through.
        plans: the verdict on the plans alone, as texts.
        counts: ``exact``, or ``upper`` if the numbers are bounds.
        added, removed: the plans that only the new, or only the old, artifact has.
        common: number of plans that both have.
        calls: None if only bounds are known.
        monitors, opened: changes of what a gate enforces.
        members: other changes of the core.
        because_added: the statements of the old artifact that forbid the shortest added plan, if
            the new one does not have them; empty if calls or amounts are the reason.
        because_removed: the same for the new artifact and the shortest removed plan.
        reason: why only bounds are known; else None.
    """

    verdict: gate_changes.Sense | None
    plans: gate_changes.Sense | None
    counts: Literal["exact", "upper"]
    added: OneSided
    removed: OneSided
    common: int
    calls: Calls | None
    monitors: tuple[gate_changes.Change, ...]
    opened: tuple[gate_changes.Change, ...]
    members: tuple[gate_changes.Change, ...]
    because_added: tuple[WrittenStatement, ...] = ()
    because_removed: tuple[WrittenStatement, ...] = ()
    reason: Rejected | None = None

    def breaks(self, sense: Literal["wider", "narrower"] = "wider") -> bool:
        """Whether the new artifact may allow what the old one does not; ``narrower``: the reverse.

        The senses of the changes decide.
        """
        broken: tuple[gate_changes.Sense, ...] = (sense, "incomparable")
        changes = (*self.monitors, *self.opened, *self.members)
        return self.plans in broken or any(
            change.sense in broken or change.of in gate_changes.CARRIED for change in changes
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
    monitors = tuple(gate_changes.monitor_changes(old.core, new.core))
    try:
        before, after = graph_of(old), graph_of(new)
        added, removed = only_in(after, before), only_in(before, after)
    except Rejected as refusal:
        if refusal.code is not Code.LIMIT:
            raise
        return _bounds(old, new, monitors, refusal)
    were = statements_of(old.core, old_written or {})
    are = statements_of(new.core, new_written or {})
    calls = _calls(old.core, new.core, before.used(), after.used())
    opened = tuple(_opened(old.core, new.core, before.used(), after.used()))
    used = _tools(old.core, before.used()) & _tools(new.core, after.used())
    told = [*monitors, *opened]
    members = _members(old, new, told, used, {amounts.call for amounts in calls.amounts})
    plans = _verdict(added.plans, removed.plans)
    bounds = old.manifest.gate or new.manifest.gate  # none that is above 0 is of no plan
    costs: list[gate_changes.Sense] = ["cost"] * bool(calls.amounts)
    senses = [change.sense for change in (*told, *members)]
    return Comparison(
        because_added=_changed(old.core, were, are, added.shortest),
        because_removed=_changed(new.core, are, were, removed.shortest),
        verdict=gate_changes.joined([plans, *costs, *senses]),
        plans=plans,
        counts="upper" if bounds else "exact",
        added=added,
        removed=removed,
        common=min(_total(before), _total(after)) if bounds else _total(after) - added.plans,
        calls=calls,
        monitors=monitors,
        opened=opened,
        members=members,
    )


def _members(
    old: Artifact,
    new: Artifact,
    told: Sequence[gate_changes.Change],
    used: Collection[str],
    calls: Collection[str],
) -> tuple[gate_changes.Change, ...]:
    """Whatever else the two cores differ in; something, where they differ and nothing was told.

    Args:
        told: what was found of monitors and open parameters.
        used: the tools whose open parameters were compared.
        calls: those whose amounts were found to differ.
    """
    one, other = (bytes(artifact.file.columns["core"].data) for artifact in (old, new))
    if one == other:
        return ()
    found = gate_changes.member_changes(decode_core(one), decode_core(other))
    found += gate_changes.rest_of_open(old.core, new.core, used)
    found += _other_calls(old.core, new.core, calls)
    found += _rewritten(old.core, new.core, told)
    if not (found or told or calls):
        digests = [blake3(core).hexdigest() for core in (one, other)]
        found.append(
            gate_changes.Change(
                of="core", name="core", old=digests[0], new=digests[1], sense="incomparable"
            )
        )
    return tuple(found)


def core_changes(old: bytes, new: bytes) -> list[gate_changes.Change]:
    """Differences of two cores other than plans: statements, monitors, tools, amounts of calls.

    Raises:
        Rejected: one of them is no core.
    """
    if old == new:
        return []
    before, after = read_core(old), read_core(new)
    told = gate_changes.monitor_changes(before, after)
    told += gate_changes.open_changes(
        before, after, {t.name for t in before.tools} & {t.name for t in after.tools}
    )
    found = [*told, *gate_changes.member_changes(decode_core(old), decode_core(new))]
    found += _other_calls(before, after, ())
    return found + list(_rewritten(before, after, told))


def _other_calls(old: Core, new: Core, told: Collection[str]) -> Iterator[gate_changes.Change]:
    """Calls whose amounts differ and that no plan of both has, tool by tool."""
    were = {call.text: call for call in old.calls if call.text not in told}
    changed: dict[str, list[str]] = {}
    for call in new.calls:
        was = were.get(call.text)
        if was is not None and _amounts_of(was) != _amounts_of(call):
            changed.setdefault(new.tools[call.tool].name, []).append(call.text)
    for name, texts in changed.items():
        said = f"amounts of {len(texts)} calls, {texts[0]} first"
        yield gate_changes.Change(
            of="calls", name=written(name), old=said, new="other amounts", sense="cost"
        )


def _rewritten(
    old: Core, new: Core, told: Sequence[gate_changes.Change]
) -> Iterator[gate_changes.Change]:
    """Statements that one side alone has; what they do to plans is seen in the plans."""
    known = {text for change in told for text in (change.old, change.new)}
    before, after = (_said(core) for core in (old, new))
    for side, others, old_side in ((before, after, True), (after, before, False)):
        for text, kind in side.items():
            if text not in others and text not in known:
                sides = (text, None) if old_side else (None, text)
                yield gate_changes.Change(
                    of="statement", name=kind, old=sides[0], new=sides[1], sense="other"
                )


def _said(core: Core) -> dict[str, str]:
    """The statements in words that depend on the core alone, each with its kind."""
    found = {
        text: statement.kind
        for statement in statements_of(core, {})
        if statement.kind not in ("monitor", "strict")
        for text in statement.says
    }
    return found | {monitor.text: "monitor" for monitor in core.monitors}


def _changed(
    core: Core,
    own: Sequence[WrittenStatement],
    others: Sequence[WrittenStatement],
    plan: Plan | None,
) -> tuple[WrittenStatement, ...]:
    """Of the statements to blame that `plan` is none of `core`, those that the others have not."""
    number = {call.text: index for index, call in enumerate(core.calls)}
    if plan is None or not all(call in number for call in plan):
        return ()
    known = frozenset(text for statement in others for text in statement.says)
    word = [number[call] for call in plan]
    found = blame(core, own, word, ends=True, every=False)
    return tuple([statement for statement in found.sets[0] if not statement.says <= known])


def _verdict(added: int | bool, removed: int | bool) -> gate_changes.Sense:
    if added:
        return "incomparable" if removed else "wider"
    return "narrower" if removed else "equal"


def _total(graph: PlanGraph) -> int:
    return 0 if graph.root is None else graph.plans(graph.root)


def _bounds(
    old: Artifact, new: Artifact, monitors: tuple[gate_changes.Change, ...], refusal: Rejected
) -> Comparison:
    before, after = (artifact.plans(artifact.root) for artifact in (old, new))
    used = _tools(old.core, old.texts) & _tools(new.core, new.texts)
    opened = tuple(_opened(old.core, new.core, old.texts, new.texts))
    return Comparison(
        verdict=None,
        plans=None,
        counts="upper",
        added=OneSided(plans=after, shortest=None, cheapest=None),
        removed=OneSided(plans=before, shortest=None, cheapest=None),
        common=min(before, after),
        calls=None,
        monitors=monitors,
        opened=opened,
        members=_members(old, new, [*monitors, *opened], used, ()),
        reason=refusal,
    )


def _opened(
    old: Core, new: Core, before: Sequence[str], after: Sequence[str]
) -> Sequence[gate_changes.Change]:
    tools = _tools(old, before) & _tools(new, after)
    return gate_changes.open_changes(old, new, tools)


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


def _amounts(old: Call, new: Call) -> CallChange:
    rows = zip(AMOUNTS, _amounts_of(old), _amounts_of(new), strict=True)
    changes = tuple([(name, was, now) for name, was, now in rows if was != now])
    return CallChange(call=old.text, changes=changes)


def _amounts_of(call: Call) -> tuple[tuple[int, ...], ...]:
    cost = call.cost_low, call.cost_high
    return cost, (call.price,), (call.latency,), (call.epsilon,)
