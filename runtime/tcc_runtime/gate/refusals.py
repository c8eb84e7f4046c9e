"""What a gate answers: a call that is allowed, a decision, a refusal, and what would do instead.

Codes: docs/spec/session.md, section 6.  Why something is refused and what is allowed instead is
found when it is read, from the session as it was then; a decision itself does neither.  Of a
statement of version 1.2 the relations are named by which it refuses, and of a ``require`` the
alternatives; of an argument the values, the bounds or the pattern that it has to be of.
What a model reads of a refusal is put together in :func:`tcc_runtime.gate.wrapping.refusal_text`
and, for MCP, in :func:`tcc_runtime.mcp.gate_interface.refusal_result`; the remedy of a plain
``require`` in :mod:`tcc_runtime.gate.reasons`.
Definition of these: tests/gate/test_remedies.py.
Cost: constant to make; what the reading costs stands with :mod:`tcc_runtime.gate.reasons`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from tcc_certs.core.derived import selection_text
from tcc_certs.core.model import Core, OrderMonitor, PolicyMonitor, Tool
from tcc_certs.core.type_texts import place_text, type_text
from tcc_certs.errors import Code, clip
from tcc_certs.formats.codec import written
from tcc_certs.session.machine import Course, Offer
from tcc_certs.session.records import REFUSALS

if TYPE_CHECKING:
    from tcc_certs.core.policies import Alternative, Tree
    from tcc_certs.session.monitors.alternatives import Alt
    from tcc_certs.session.monitors.kept import Pool
    from tcc_certs.session.monitors.keyed import Event
    from tcc_certs.values.places import State

Scalar: TypeAlias = "str | int | float | Decimal | bool | None"
Reason: TypeAlias = "Mapping[str, str]"
Because: TypeAlias = "Callable[[], list[Reason]]"
AllowedNext: TypeAlias = "Callable[[], tuple[Allowed, ...]]"


@dataclass(frozen=True, slots=True)
class Allowed:
    """A call that plans allow next.

    Attributes:
        tool: its tool.
        arguments: its listed arguments by name; absent ones are left out, and open ones are for
            the caller to add.
    """

    tool: str
    arguments: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """That nothing more can be called in a session.

    Attributes:
        session: its id.
        way_on: what whoever wants to go on can do.
    """

    session: str
    way_on: str


def _not_spent() -> Spent | None:
    return None


class Decision:
    """What a gate says of one call; it has no effect.

    Attributes:
        allowed: whether the call may be made.
        code: why not; None where it may.
        place: the argument at fault, or what else the refusal is about; the empty text if nothing.
        offer: the call of the artifact that was asked for, where it is one.
    """

    __slots__ = (
        "_allowed_next", "_because", "_find_spent", "_next", "_reasons", "_spent", "allowed",
        "code", "offer", "place",
    )  # fmt: skip

    def __init__(
        self,
        code: Code | None,
        place: str,
        because: Because,
        allowed_next: AllowedNext,
        spent: Callable[[], Spent | None] = _not_spent,
    ) -> None:
        self.allowed = code is None
        self.code = code
        self.place = place
        self.offer: Offer | None = None
        self._because, self._allowed_next = because, allowed_next
        self._reasons: list[Reason] | None = None
        self._next: tuple[Allowed, ...] | None = None
        self._find_spent: Callable[[], Spent | None] | None = spent
        self._spent: Spent | None = None

    @property
    def spent(self) -> Spent | None:
        """Where it is refused in a session that allows nothing any more: which, and the way on."""
        if self._find_spent is not None:
            self._spent, self._find_spent = self._find_spent(), None
        return self._spent

    @property
    def because(self) -> list[Reason]:
        """What forbids it, as ``{"kind": .., "text": ..}``; empty where it is allowed."""
        if self._reasons is None:
            self._reasons = self._because()
        return self._reasons

    @property
    def allowed_next(self) -> tuple[Allowed, ...]:
        """The calls that plans allowed when this was decided."""
        if self._next is None:
            self._next = self._allowed_next()
        return self._next

    def __bool__(self) -> bool:
        return self.allowed

    def __repr__(self) -> str:
        return f"Decision(allowed={self.allowed}, code={self.code!r}, place={self.place!r})"


class Refused(Exception):
    """A call, or an end, that is not allowed.  Nothing was done.

    Args:
        decision: the refusal.
        tool: what was to be called; empty for an end.

    Attributes:
        code: why, R101 to R308.
        place: the argument at fault, if it is one.
    """

    def __init__(self, decision: Decision, tool: str = "") -> None:
        self.decision = decision
        self.tool = tool
        code = decision.code or Code.NOT_WRITTEN
        self.code: str = code.value
        self.place = decision.place
        where = ": ".join(part for part in (_shown(tool), decision.place) if part)
        super().__init__(f"{code.value}: {where + ': ' if where else ''}{REFUSALS[code]}")

    @property
    def because(self) -> list[Reason]:
        """As of the decision."""
        return self.decision.because

    @property
    def allowed_next(self) -> tuple[Allowed, ...]:
        """As of the decision."""
        return self.decision.allowed_next

    @property
    def spent(self) -> Spent | None:
        """As of the decision."""
        return self.decision.spent

    def __str__(self) -> str:
        said, spent = super().__str__(), self.spent
        return said if spent is None else f"{said}. This session is spent: {spent.way_on}"

    def __reduce__(self) -> tuple[Callable[..., Refused], tuple[object, ...]]:
        found = (list(self.because), tuple(self.allowed_next), self.spent)
        return _again, (type(self), self.code, self.place, found, self.tool)


class AlreadyDone(Refused):
    """The ledger has a call with this id: it is not made again.

    Attributes:
        seq: the number of that call.
        outcome: ``done``, ``failed`` or ``unknown``.
    """

    seq: int = 0
    outcome: str = "unknown"

    def __reduce__(self) -> tuple[Callable[..., Refused], tuple[object, ...]]:
        again, given = super().__reduce__()
        return again, (*given, self.seq, self.outcome)


def _again(
    kind: type[Refused],
    code: str,
    place: str,
    found: tuple[list[Reason], tuple[Allowed, ...], Spent | None],
    tool: str,
    *more: object,
) -> Refused:
    because, following, spent = found
    decision = Decision(Code(code), place, lambda: because, lambda: following, lambda: spent)
    error = kind(decision, tool)
    if isinstance(error, AlreadyDone) and len(more) == 2:
        error.seq, error.outcome = int(str(more[0])), str(more[1])
    return error


def _shown(text: str) -> str:
    """A name that came from outside, on one line and not too long."""
    return clip(text, 80) if text else ""


# What a refused call lacks: the relation that failed, and what would do.  What was seen is kept
# when it is refused: references to the calls that were looked at, 128 at most an alternative.

More: TypeAlias = "Callable[[], Mapping[str, str]]"  # members of a reason: relation, remedy
_SHOWN: Final = 24  # values, names
_WIDEST: Final = 1000


def argument_remedy(core: Core, tool: Tool | None, code: Code, name: str) -> Mapping[str, str]:
    """What would do in place of an argument that is refused.

    Args:
        tool: None: the grammar has no such tool.
        code: R101 to R105.
        name: the argument's.
    """
    if tool is None:
        return _told(_some([written(one.name) for one in core.tools]))
    if code is Code.UNDECLARED_ARGUMENT:
        return _told(_some(list(_arguments(tool))) or "no arguments")
    for listed in tool.parameters:
        if listed.name == name and not listed.observed:
            values = _some([text for text in listed.values if text], " | ")
            return _told(f"{written(name)}: {values}{place_text(name, listed.at)}")
    for one in tool.opened:
        if one.name == name:
            kind = type_text(one.type) + " or null" * one.null
            return _told(f"{written(name)}: {kind}{place_text(name, one.at)}")
    return {}


def _arguments(tool: Tool) -> Iterator[str]:
    for listed in tool.parameters:
        if listed.at is None and not listed.observed:
            yield written(listed.name) + "?" * listed.optional
    for one in tool.opened:
        if one.at is None:
            yield written(one.name) + "?" * one.optional


def _some(texts: Sequence[str], between: str = ", ") -> str:
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return between.join([*texts[:_SHOWN], *more])


def _told(remedy: str) -> Mapping[str, str]:
    return {"remedy": clip(remedy, _WIDEST)}


def statement_remedy(core: Core, text: str) -> Mapping[str, str]:
    """What would do before a call that the statement of that text refuses."""
    found = next((one for one in core.monitors if one.text == text), None)
    if isinstance(found, OrderMonitor) and found.kind == "require":
        same = [a if a == b else f"{a} = {b}" for a, b in _written(found.same)]
        return _told(f"{selection_text(found.first, core.tools)} same {', '.join(same)}")
    if not isinstance(found, PolicyMonitor):
        return {}
    from tcc_certs.core.policies import Ban, Need, Owe
    from tcc_certs.core.wording import Wording

    say = Wording([tool.name for tool in core.tools])
    match found.policy:
        case Need(alternatives=some):
            return _told(say.alternatives(some))
        case Ban(unless=unless) if unless:
            return _told(say.alternatives(unless))
        case Owe():
            return _told(say.owed(found.policy))
    return {}


def _written(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(written(one), written(other)) for one, other in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """What an alternative was asked about.

    Attributes:
        calls: earlier calls of its tools, latest first, each once; used: those that do not help
            any more.
    """

    of: Alternative
    calls: Sequence[Event]
    used: frozenset[int]


def why(
    course: Course,
    text: str,
    seq: int,
    tool: int,
    states: Mapping[str, State] | None,
    stamp: int,
) -> More:
    """What a call that the statement of that text refuses lacks; what is known now is kept.

    Args:
        seq: its number; tool, states, stamp: as it was decided with.
    """
    core = course.machine.core
    found = [one for one in core.monitors if isinstance(one, PolicyMonitor)]
    number = next((at for at, one in enumerate(found) if one.text == text), None)
    statements, memory = course.machine.statements, course.memory
    remedy = partial(statement_remedy, core, text)
    if number is None or statements is None or states is None:
        return remedy
    from tcc_certs.core.policies import Ban, Need
    from tcc_certs.core.wording import Wording
    from tcc_certs.session.monitors.keyed import Event
    from tcc_certs.session.monitors.policies import BanRule, Memory

    own = Event(
        at=seq, tool=tool, states=states, stamp=stamp, session=course.attributes,
        marks=course.marks,
    )  # fmt: skip
    policy, rule = found[number].policy, statements.policies.statements[number]
    if not isinstance(policy, Need | Ban) or not isinstance(memory, Memory):
        return remedy
    pairs = list(zip(policy.alternatives, rule.alternatives, strict=False))
    if isinstance(rule, BanRule):
        against = rule.against(memory, own)
        named = [one.where for (one, _), is_one in zip(pairs, against, strict=True) if is_one]
        told: Callable[[], Sequence[Tree]] = partial(list, next(iter(named), ()))
    else:
        looked = [_looked_at(one, alt, memory.pools[alt.number], own) for one, alt in pairs]
        told = partial(_failed, looked, own)
        if statements.policies.looks:  # what is looked up is known differently later
            memory.refuses(own)
            told = partial(list, _failed(looked, own))

    def more() -> Mapping[str, str]:
        relations = told()
        say = Wording([tool.name for tool in core.tools])
        said = {"relation": clip(say.relations(relations), _WIDEST)} if relations else {}
        return {**said, **remedy()}

    return more


def _looked_at(of: Alternative, alt: Alt, pool: Pool, own: Event) -> _Looked:
    if alt.alone:
        return _Looked(of=of, calls=(), used=frozenset())
    near = islice(pool.near(alt.key_for(own)), alt.most)
    # Those of other keys, too: an equality that is a condition is a part of the key.
    calls = {call.at: call for call in (*near, *islice(pool.latest(), alt.most))}
    used = frozenset([at for at, call in calls.items() if pool.is_used(call)])
    return _Looked(of=of, calls=[calls[at] for at in sorted(calls, reverse=True)], used=used)


def _failed(looked: Sequence[_Looked], own: Event) -> Sequence[Tree]:
    """The fewest relations of one alternative without which it would hold; none where more fails.

    Of an alternative those are its relations that are not sure of the latest calls that have all
    else: its set, its keys, its window.
    """
    found = [one for one in (_failed_of(one, own) for one in looked) if one]
    return min(found, key=len, default=())


def _failed_of(one: _Looked, own: Event) -> Sequence[Tree]:
    from tcc_certs.session.monitors.relations import NO_NAMES, compiled_relation

    relations = [(tree, compiled_relation(tree)) for tree in one.of.where]
    calls = [own] if one.of.calls is None else list(_having(one, own))[: one.of.least]
    if len(calls) < one.of.least:
        return ()
    return [
        tree
        for tree, holds in relations
        if any(holds(own, call, NO_NAMES) is not True for call in calls)
    ]


def _having(one: _Looked, own: Event) -> Iterator[Event]:
    """The calls that surely have all but its relations, latest first."""
    from tcc_certs.session.monitors import relations

    inside, alternative = relations.compiled_set(one.of.calls or ("any",)), one.of
    terms = alternative.same
    due = [
        (name, relations.compiled_term(term)(own, own, relations.NO_NAMES)) for name, term in terms
    ]
    for call in one.calls:
        if call.answered:
            continue
        equal = relations.both([relations.same(call.states[name], key) for name, key in due])
        if equal is False:
            continue
        late = alternative.within is not None and call.stamp < own.stamp - alternative.within
        if call.done and equal and inside(call) and not late and call.at not in one.used:
            yield call
        if alternative.last:
            return
