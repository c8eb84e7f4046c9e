"""Comparison of a new artifact with an old one: the plans, and everything else in the core.

Two artifacts are equal if their cores are.  Numbers are exact: artifacts whose counts are bounds
are unfolded first.  If the unfolding or the product is too large, only bounds on the plans are
reported.
Cost: that of :mod:`tcc_runtime.analysis.difference`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from blake3 import blake3

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, decode
from tcc_certs.policy.core import Core
from tcc_certs.policy.plans import Call
from tcc_certs.policy.reader import read_core
from tcc_certs.policy.type_texts import name_text
from tcc_runtime.analysis import gate_changes
from tcc_runtime.analysis.blame import blame
from tcc_runtime.analysis.difference import OneSided, Plan, only_in
from tcc_runtime.analysis.endless import Endless, endless_difference
from tcc_runtime.analysis.graph import PlanGraph, graph_of
from tcc_runtime.analysis.statements import Written, WrittenStatement, statements_of
from tcc_runtime.artifact.load import Artifact

if TYPE_CHECKING:
    from tcc_runtime.analysis.sessions import SessionChanges

AMOUNTS: Final = ("cost", "price", "latency", "epsilon")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChange:
    """A call whose amounts changed.

    Attributes:
        call: the canonical text of the call.
        changes: for each changed amount its name, the old and the new value.  A cost has two ends
            in nano-units; the others have one value: cents, ms, 10^-9 epsilon.
    """

    call: str
    changes: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls that occur in plans.

    Attributes:
        added, removed: calls that only plans of one side have; canonical texts, in order.
        amounts: calls of both sides with a changed amount.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    amounts: tuple[CallChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences of a new artifact from an old one.

    Attributes:
        verdict: the verdict on the whole core; None if only bounds are known.  Only equal cores are
            ``equal``.  ``cost``: amounts differ.  ``other``: there are differences, but the same
            calls are allowed.
        plans: the verdict on the plans, compared as texts.
        counts: ``exact``, ``upper`` if the numbers are bounds, or ``none`` if a side has cycles.
        added, removed: the plans that only the new, or only the old, artifact has.
        common: the number of plans that both have; None without counts.
        calls: the calls of both; None if only bounds are known.
        statements, fields: changes of statements and fields.
        members: other changes of the core.
        because_added: the statements of the old artifact that forbid the shortest added plan, if
            the new artifact lacks them; empty if calls or amounts are the reason.
        because_removed: the same for the new artifact and the shortest removed plan.
        reason: why only bounds are known; else None.
        sessions: the differences of the sessions; None: not compared.
    """

    verdict: gate_changes.Sense | None
    plans: gate_changes.Sense | None
    counts: Literal["exact", "upper", "none"]
    added: OneSided
    removed: OneSided
    common: int | None
    calls: Calls | None
    statements: tuple[gate_changes.Change, ...]
    fields: tuple[gate_changes.Change, ...]
    members: tuple[gate_changes.Change, ...]
    because_added: tuple[WrittenStatement, ...] = ()
    because_removed: tuple[WrittenStatement, ...] = ()
    reason: Rejected | None = None
    sessions: SessionChanges | None = None

    def with_sessions(self, sessions: SessionChanges) -> Comparison:
        """Return the comparison with the differences of sessions, which its verdict then takes into
        account.
        """
        verdict = self.verdict
        if verdict is not None and sessions.verdict is not None:
            amounts = bool(self.calls and self.calls.amounts)
            changes = [*self.statements, *self.fields]
            costs: list[gate_changes.Sense] = ["cost" for one in changes if one.sense == "cost"]
            costs += ["cost"] * amounts
            others: list[gate_changes.Sense] = ["other"] * bool(changes)
            members = [change.sense for change in self.members]
            plans = self.plans or "equal"
            found = [plans, sessions.verdict, *costs, *others, *members]
            verdict = gate_changes.joined(found)
        return replace(self, verdict=verdict, sessions=sessions)

    def breaks(self, sense: Literal["wider", "narrower"] = "wider") -> bool:
        """Return whether the new artifact may allow calls that the old one refuses (``wider``), or
        the reverse (``narrower``).

        Any change of members in CARRIED breaks, whatever its sense.  The senses of statements and
        fields count only if the sessions have no verdict.
        """
        broken: tuple[gate_changes.Sense, ...] = (sense, "incomparable")
        changes = (*self.statements, *self.fields, *self.members)
        if self.plans in broken or any(one.of in gate_changes.CARRIED for one in changes):
            return True
        if self.sessions is not None:
            shown = self.sessions.added if sense == "wider" else self.sessions.removed
            if shown is not None or self.sessions.verdict in broken:
                return True
            if self.sessions.verdict is not None:
                changes = self.members
        return any(one.sense in broken for one in changes)


def compare(
    old: Artifact,
    new: Artifact,
    old_written: Mapping[str, Written] | None = None,
    new_written: Mapping[str, Written] | None = None,
) -> Comparison:
    """Compare two artifacts.

    Args:
        old_written, new_written: the statements as they were written, by canonical text, if known.

    Raises:
        Rejected: a number of an unverified artifact is outside its range.
    """
    statements = tuple(gate_changes.statement_changes(old.core, new.core))
    endless = old.cyclic or new.cyclic
    try:
        if endless:
            before, after = _uncounted(old), _uncounted(new)
            added, removed = endless_difference(old, new, (before, after))
        else:
            before, after = graph_of(old), graph_of(new)
            added, removed = only_in(after, before), only_in(before, after)
    except Rejected as refusal:
        if refusal.code not in (Code.LIMIT, Code.ENDLESS):
            raise
        return _bounds(old, new, statements, refusal)
    were = statements_of(old.core, old_written or {})
    are = statements_of(new.core, new_written or {})
    calls = _calls(old.core, new.core, before.used(), after.used())
    used = _tools(old.core, before.used()) & _tools(new.core, after.used())
    fields = tuple(gate_changes.field_changes(old.core, new.core, used))
    told = [*statements, *fields]
    members = _members(old, new, told, {amounts.call for amounts in calls.amounts})
    plans = _verdict(added.shortest is not None, removed.shortest is not None)
    # a bound above 0 does not mean that a plan exists
    bounds = old.manifest.gate or new.manifest.gate
    costs: list[gate_changes.Sense] = ["cost"] * bool(calls.amounts)
    senses = [change.sense for change in (*told, *members)]
    return Comparison(
        because_added=_changed(old.core, were, are, added.shortest),
        because_removed=_changed(new.core, are, were, removed.shortest),
        verdict=gate_changes.joined([plans, *costs, *senses]),
        plans=plans,
        counts="none" if endless else "upper" if bounds else "exact",
        added=added,
        removed=removed,
        common=None if endless else _common(before, after, added, bounds),
        calls=calls,
        statements=statements,
        fields=fields,
        members=members,
    )


def _members(
    old: Artifact, new: Artifact, told: Sequence[gate_changes.Change], calls: Collection[str]
) -> tuple[gate_changes.Change, ...]:
    """Return all other differences of two cores; at least one if they differ and no other change
    was found.

    Args:
        told: the changes of statements and fields.
        calls: the calls with other amounts.
    """
    one, other = (bytes(artifact.file.columns["core"].data) for artifact in (old, new))
    if one == other:
        return ()
    found = gate_changes.member_changes(_json(one), _json(other))
    found += _other_calls(old.core, new.core, calls)
    found += gate_changes.plan_changes(old.core, new.core)
    if not (found or told or calls):
        digests = [blake3(core).hexdigest() for core in (one, other)]
        found.append(
            gate_changes.Change(
                of="core", name="core", old=digests[0], new=digests[1], sense="incomparable"
            )
        )
    return tuple(found)


def core_changes(old: bytes, new: bytes) -> list[gate_changes.Change]:
    """Return the differences of two cores except plans: statements, fields, tools, amounts of
    calls.

    Raises:
        Rejected: a core is not valid.
    """
    if old == new:
        return []
    before, after = read_core(old), read_core(new)
    tools = before.tool_of.keys() & after.tool_of.keys()
    found = gate_changes.statement_changes(before, after)
    found += gate_changes.field_changes(before, after, tools)
    found += gate_changes.member_changes(_json(old), _json(new))
    found += _other_calls(before, after, ())
    return found + list(gate_changes.plan_changes(before, after))


def _json(core: bytes) -> Mapping[str, Json]:
    found = decode(core, "core")
    return found if isinstance(found, dict) else {}


def _other_calls(old: Core, new: Core, told: Collection[str]) -> Iterator[gate_changes.Change]:
    """Yield a change for each tool with calls whose amounts differ and that are not in `told`."""
    were = {call.text: call for call in old.calls if call.text not in told}
    changed: dict[str, list[str]] = {}
    for call in new.calls:
        was = were.get(call.text)
        if was is not None and _amounts_of(was) != _amounts_of(call):
            changed.setdefault(new.tools[call.tool].name, []).append(call.text)
    for name, texts in changed.items():
        said = f"amounts of {len(texts)} calls, {texts[0]} first"
        yield gate_changes.Change(
            of="calls", name=name_text(name), old=said, new="other amounts", sense="cost"
        )


def _changed(
    core: Core,
    own: Sequence[WrittenStatement],
    others: Sequence[WrittenStatement],
    plan: Plan | None,
) -> tuple[WrittenStatement, ...]:
    """Return the statements that keep `plan` from being a plan of `core`, without those in
    `others`.
    """
    number = {call.text: index for index, call in enumerate(core.calls)}
    if plan is None or not all(call in number for call in plan):
        return ()
    known = frozenset(statement.canonical for statement in others)
    word = [number[call] for call in plan]
    found = blame(core, own, word, ends=True, every=False)
    return tuple([one for one in found.sets[0] if one.canonical not in known])


def _uncounted(artifact: Artifact) -> PlanGraph:
    """Return the graph of the plans, without totals of depth if the artifact has cycles."""
    return Endless(artifact, counted=False) if artifact.cyclic else graph_of(artifact)


def _common(before: PlanGraph, after: PlanGraph, added: OneSided, bounds: bool) -> int:
    whole = _total(after)
    return min(_total(before), whole) if bounds or added.plans is None else whole - added.plans


def _verdict(added: bool, removed: bool) -> gate_changes.Sense:
    if added:
        return "incomparable" if removed else "wider"
    return "narrower" if removed else "equal"


def _total(graph: PlanGraph) -> int:
    return 0 if graph.root is None else graph.plans(graph.root)


def _bounds(
    old: Artifact, new: Artifact, statements: tuple[gate_changes.Change, ...], refusal: Rejected
) -> Comparison:
    endless = old.cyclic or new.cyclic
    before, after = (None if endless else artifact.plans(artifact.root) for artifact in (old, new))
    used = _tools(old.core, old.texts) & _tools(new.core, new.texts)
    fields = tuple(gate_changes.field_changes(old.core, new.core, used))
    return Comparison(
        verdict=None,
        plans=None,
        counts="none" if endless else "upper",
        added=OneSided(plans=after, shortest=None, cheapest=None),
        removed=OneSided(plans=before, shortest=None, cheapest=None),
        common=None if before is None or after is None else min(before, after),
        calls=None,
        statements=statements,
        fields=fields,
        members=_members(old, new, [*statements, *fields], ()),
        reason=refusal,
    )


def _tools(core: Core, used: Sequence[str]) -> set[str]:
    """Return the names of the tools of these calls."""
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
