"""Replays sessions by the definition, and changes drafts until one breaks a question.

A local search changes single values and calls where the policy refuses a session.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from tcc_certs.errors import Rejected
from tcc_certs.policy import forms
from tcc_certs.policy.core import Learned, Tool
from tcc_certs.policy.course import Course, answer_states, argument_states
from tcc_certs.policy.history import Call
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import Refusal
from tcc_certs.policy.nodes import And, Require, text_of
from tcc_certs.proof.ground import Ground
from tcc_certs.proof.questions import stricter
from tcc_certs.session.machine import NOWHERE, Offer, SessionMachine
from tcc_certs.values.fields import Field
from tcc_certs.values.places import NONE, UNKNOWN, State
from tcc_runtime.exact.values import NOW_MS, Draft, Maker, Session, SessionCall, falling, is_of

MAX_REPAIRS = 500  # sessions of a local search
ROUTE_TRIES = 10  # that a route counts as
MAX_TOOLS = 6  # of which a draft gets calls that a statement asks for
MAX_NUMBERS = 8  # values of a number field in such drafts
MAX_COUNTED = 100  # calls that a draft gets because a question counts or adds them up
MAX_ROUTES = 12  # drafts with another call for which a path is searched, for each refused session

PLAN = -1  # in place of the number of a statement: the automaton refuses


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the definition says of a session.

    Attributes:
        breaks: the number of calls after which the question is broken; None: it is not.
        refused: the call that the policy refuses, from 0; None: it refuses none.
        refusals: the statements that refuse it.
        is_asked: whether the refused call would break the question.
        size: how many calls the session has.
    """

    breaks: int | None
    refused: int | None = None
    refusals: tuple[Refusal, ...] = ()
    is_asked: bool = False
    size: int = 0


def replayed(maker: Maker, kind: str, session: Session) -> Replayed:
    """Decide a session by the definition, and by the automaton if the maker has one.

    Args:
        kind: as of the question.
    """
    policy = maker.policy
    asked = len(policy.rules) - 1
    position = None if maker.machine is None else _Position(maker.machine)
    try:
        course = Course(policy, session.given)
    except Rejected:
        return Replayed(None, 0, (), False, len(session.calls) + 9)
    for at, one in enumerate(session.calls):
        now = one.at_ms or 0
        try:
            found = course.check(one.tool, one.arguments, now)
        except Rejected:
            return Replayed(None, at, (), False, len(session.calls) + 9)
        others = tuple([refusal for refusal in found if refusal.statement != asked])
        is_refused = any(refusal.code != "R211" for refusal in others)
        if kind == "reachable":
            rule = policy.rules[asked]
            call = Call(
                one.tool, at, now, argument_states(policy.core.tool_of[one.tool], one.arguments)
            )
            evaluation = policy.evaluation(course.history, call, now)
            is_it = one.tool in (rule.tools or ()) and evaluation.all_of(rule.where) is True
        else:
            asks = {refusal.statement for refusal in found if refusal.code == "R211"}
            stronger = stricter(policy, policy.rules[asked], one.tool)
            is_it = any(refusal.statement == asked for refusal in found)
            is_it = is_it and asks.isdisjoint([other for other in stronger if other != asked])
        if not is_refused and position is not None and not position.allows(one):
            others, is_refused = (Refusal(PLAN, "R201"),), True
        if is_refused:
            return Replayed(None, at, others, is_it, len(session.calls))
        if is_it:
            return Replayed(at + 1, is_asked=True)
        call = course.call(one.tool, one.arguments, now)
        if one.outcome:
            course.record(call, one.outcome, one.answer)
        if position is not None:
            position.record(one)
    if kind == "finishable" and position is not None and position.is_lost():
        return Replayed(len(session.calls), is_asked=True)
    if session.ends:
        now = session.calls[-1].at_ms or 0 if session.calls else 0
        unmet = course.unmet(now)
        others = tuple([Refusal(one, "R204") for one in unmet if one != asked])
        if not others and position is not None and not position.accepts():
            others = (Refusal(PLAN, "R201"),)
        if unmet and not others:
            return Replayed(len(session.calls), is_asked=True)
        if not others:
            return Replayed(None)
        return Replayed(None, len(session.calls), others, asked in unmet, len(session.calls))
    return Replayed(None)


def refusing(maker: Maker, session: Session, found: Replayed) -> str:
    """Return the condition of a `require` that refuses a session, as its author wrote it."""
    at, number = found.refused, found.refusals[0].statement
    statement, rule = maker.core.statements[number], maker.policy.rules[number]
    if not isinstance(statement, Require) or rule.then is None or at is None:
        return ""
    course = Course(maker.policy, session.given)
    for one in session.calls[:at]:
        course.record(course.call(one.tool, one.arguments, one.at_ms or 0), one.outcome, one.answer)
    call, now = None, 0
    if at < len(session.calls):
        last = session.calls[at]
        now = last.at_ms or 0
        states = argument_states(maker.core.tool_of[last.tool], last.arguments)
        call = Call(last.tool, at, now, states)
    evaluation = maker.policy.evaluation(course.history, call, now)
    if not isinstance(rule.then, forms.All) or not isinstance(statement.then, And):
        return text_of(statement.then)
    if len(rule.then.parts) != len(statement.then.parts):
        return text_of(statement.then)
    pairs = zip(rule.then.parts, statement.then.parts, strict=True)
    return next((text_of(node) for form, node in pairs if evaluation.truth(form) is not True), "")


class _Position:
    """Where a session is in the automaton."""

    def __init__(self, machine: SessionMachine) -> None:
        self._machine, self._held = machine, machine.start

    def _offer(self, call: SessionCall) -> Offer | None:
        at = self._machine.tools[call.tool]
        try:
            states = argument_states(self._machine.core.tools[at], call.arguments)
        except Rejected:  # a value that is none of its type
            return None
        return self._machine.offer_for(at, states)

    def allows(self, call: SessionCall) -> bool:
        """Return whether a plan continues with a call."""
        offer = self._offer(call)
        return offer is not None and self._machine.look(self._held, offer).code is None

    def record(self, call: SessionCall) -> None:
        """Follow an allowed call."""
        offer = self._offer(call)
        if offer is None or call.outcome in ("failed", "answered"):
            return
        if call.outcome != "done":
            self._held = self._machine.unknown(self._held, offer)
            return
        tool = self._machine.core.tools[offer.tool]
        answer = self._machine.listed(offer.tool).answer(answer_states(tool, call.answer))
        self._held = self._machine.done(self._held, offer, answer)

    def is_lost(self) -> bool:
        """Return whether no plan continues or ends, whatever the outcomes were."""
        return self._held == (NOWHERE,)

    def accepts(self) -> bool:
        """Return whether a plan may end."""
        return all(map(self._machine.accepts, self._held))


def repaired(
    maker: Maker, kind: str, draft: Draft, tick: Callable[[], None], most: int = MAX_REPAIRS
) -> tuple[Session, Replayed]:
    """Change a draft while each change is better, or until its session breaks the question.

    Return the last session and its replay.  Once a session would break the question without the
    policy, all later ones would, too.
    """
    if maker.route is not None and not _is_planned(maker, draft):
        draft = maker.route(draft) or draft
    session = draft.session(maker)
    best = replayed(maker, kind, session)
    asks = best.is_asked or _asks(maker, kind, session)
    tries, routes = 0, maker.routes
    moved = True
    while moved and best.breaks is None and tries < most:
        moved = False
        for other in _changes(maker, draft, best):
            tick()
            tries += 1 + ROUTE_TRIES * (maker.routes - routes)
            routes = maker.routes
            if tries >= most:
                break
            changed = other.session(maker)
            found = replayed(maker, kind, changed)
            if _score(found) <= _score(best):
                continue
            still = found.is_asked or _asks(maker, kind, changed)
            if still or not (asks or best.refused is None):
                draft, session, best, asks, moved = other, changed, found, still, True
                break
    return session, best


def _asks(maker: Maker, kind: str, session: Session) -> bool:
    """Return whether a session breaks the question without the policy and the automaton."""
    return replayed(maker.without_policy(), kind, session).breaks is not None


def _score(found: Replayed) -> tuple[int, int, bool, int]:
    if found.breaks is not None:
        return 2, 0, True, 0
    if found.refused is None:  # the session no longer asks anything
        return 0, 0, False, 0
    return 1, found.refused - found.size, found.is_asked, -len(found.refusals)


def _changes(maker: Maker, draft: Draft, found: Replayed) -> Iterator[Draft]:
    """Single changes of a draft, those that are likely to help first."""
    order = [one for one in draft.order if draft.tools[one] is not None]
    if not order:
        return
    at = len(order) - 1 if found.refused is None else min(found.refused, len(order) - 1)
    if maker.route is not None and [one.statement for one in found.refusals] == [PLAN]:
        routed = maker.route(draft)
        yield from () if routed is None else (routed,)
    if found.refused is None:
        for many in (1, 2, 3, 5):
            for number in reversed(order):
                yield _repeated(draft, number, many)
        yield from counted(maker, draft)
    more: Iterator[Draft] = iter(())
    if found.refused is not None:
        more = _routed(maker, _supported(maker, draft, order[at], found.refusals))
    for number in order[at + 1 : -1]:
        left = [one for one in draft.order if one != number]
        place = left.index(order[at])
        yield replace(draft, order=(*left[:place], number, *left[place:]))
    rules = [maker.policy.rules[one.statement] for one in found.refusals if one.statement != PLAN]
    if found.refused is None:
        rules = [maker.policy.rules[-1]]
    named = {form.name for rule in rules for form in walk(rule) if isinstance(form, forms.Get)}
    named |= {rule.field or "" for rule in rules}
    for pair in zip_longest(_revalued(maker, draft, order[: at + 1], named), more):
        yield from [one for one in pair if one is not None]
    for number in order[:-1]:
        yield replace(draft, order=tuple([one for one in draft.order if one != number]))
        tool = maker.core.tool_of[draft.tools[number] or ""]
        for outcome in ("done", "unknown", "failed", *["answered"] * tool.errors_failed):
            if draft.outcomes.get(number) != outcome:
                yield replace(draft, outcomes={**draft.outcomes, number: outcome})


def _routed(maker: Maker, drafts: Iterator[Draft]) -> Iterator[Draft]:
    """Drafts for which the automaton has a path."""
    routes = 0
    for draft in drafts:
        if maker.route is None or _is_planned(maker, draft):
            yield draft
        elif routes < MAX_ROUTES:
            routes += 1
            maker.routes += 1
            found = maker.route(draft)
            if found is not None:
                yield found


def _is_planned(maker: Maker, draft: Draft) -> bool:
    """Return whether the automaton lets all calls of a draft through."""
    if maker.machine is None:
        return True
    position = _Position(maker.machine)
    for call in draft.session(maker).calls:
        if not position.allows(call):
            return False
        position.record(call)
    return True


def _revalued(
    maker: Maker, draft: Draft, order: Sequence[int], named: Collection[str]
) -> Iterator[Draft]:
    """Drafts with another value of a field: of fields that refusing statements name first."""
    seen = [state for state in draft.states.values() if state[0] in ("s", "n", "t", "l")]
    items = [one for state in seen if state[0] == "l" for one in state[1]]
    lists = [("l", (one,)) for one in dict.fromkeys([*seen, *items]) if one[0] in ("s", "n")]
    columns: list[list[Draft]] = []
    others: list[list[Draft]] = []
    for number in reversed(order):
        tool: Tool = maker.core.tool_of[draft.tools[number] or ""]
        answers = tool.answers if draft.outcomes.get(number) == "done" else ()
        for one in (*tool.arguments, *answers):
            term = ("get", ("call", number), one.name)
            states = maker.candidates(one, [*seen, *items, *lists], number)[:100]
            if one.optional or one.null:
                states.append(NONE)
            if one in answers:
                states.append(UNKNOWN)
            changed = [
                replace(
                    draft,
                    states={**draft.states, term: state},
                    fillers=draft.fillers - {number},
                )
                for state in states
                if state != draft.states.get(term)
            ]
            (columns if one.name in named else others).append(changed)
        if maker.is_timed and number != order[-1]:
            columns.append(
                [
                    _at_time(draft, order, number, NOW_MS - span - more)
                    for span in maker.spans
                    for more in (-1, 0, 1)
                ]
            )
    for given in maker.core.given:
        if not isinstance(given, Learned):
            states = maker.candidates(given, seen)[:12]
            states += [NONE] if given.optional else []
            columns.append(
                [
                    replace(draft, states={**draft.states, ("attr", given.name): state})
                    for state in states
                ]
            )
    for some in (columns, others):
        for row in zip_longest(*some):
            yield from [one for one in row if one is not None]


def _at_time(draft: Draft, order: Sequence[int], number: int, ms: int) -> Draft:
    """The draft with a call at a time, and no earlier call after it."""
    states = dict(draft.states)
    for one in order:
        term = ("time", ("call", one))
        if one == number or states.get(term, ("t", NOW_MS))[1] > ms:
            states[term] = ("t", ms)
        if one == number:
            break
    return replace(draft, states=states)


def _repeated(draft: Draft, number: int, many: int) -> Draft:
    """The draft with more calls like one, before the last call."""
    for _ in range(many):
        draft = _inserted(draft, number, draft.tools[number] or "", {})
    return draft


def counted(maker: Maker, draft: Draft) -> Iterator[Draft]:
    """Drafts that try to exceed the constants of a question with counts or sums.

    Each adds at most `MAX_COUNTED` calls of one tool before the last call.  Number fields that the
    question names have a great value first, and then smaller ones.  In every second draft the calls
    differ.
    """
    inside = list(walk(maker.policy.rules[-1]))
    if not any(isinstance(one, forms.Count | forms.Sum) for one in inside):
        return
    bounds = [one.state[1] for one in inside
              if isinstance(one, forms.Constant) and one.state[0] == "n"]  # fmt: skip
    named = {form.name for form in inside if isinstance(form, forms.Get)}
    tools = [name for one in inside if isinstance(one, forms.Calls) for name in sorted(one.tools)]
    most = max(bounds, default=0)
    for name in list(dict.fromkeys(tools))[:MAX_TOOLS]:
        tool = maker.core.tool_of[name]
        fields = [one for one in (*tool.arguments, *tool.answers) if one.name in named]
        columns = {one.name: falling(maker, one)[:MAX_NUMBERS] for one in fields}
        columns = {one: column for one, column in columns.items() if column}
        for at in range(max(map(len, columns.values()), default=1)):
            states = {one: column[min(at, len(column) - 1)] for one, column in columns.items()}
            counts = {most // state[1] + 1 for state in states.values() if state[1] > 0}
            for many in sorted({int(one) for one in (*counts, most + 1) if 0 < one <= MAX_COUNTED}):
                for is_varied in (False, True):
                    yield _with_many(maker, draft, tool, states, many, is_varied=is_varied)


def _with_many(
    maker: Maker, draft: Draft, tool: Tool, states: Mapping[str, State], many: int, *,
    is_varied: bool,
) -> Draft:  # fmt: skip
    """Return a draft with so many calls of a tool before its last call.

    Args:
        states: of fields that are equal in all of them.
        is_varied: whether the other fields differ.  Otherwise required arguments and answers have
            plain values.
    """
    for turn in range(many):
        fields = (*tool.arguments, *tool.answers)
        own = {one.name: _varied(maker, one, turn) for one in fields if is_varied}
        draft = _inserted(
            draft, draft.order[-1], tool.name, {**_plainly(maker, tool), **own, **states}
        )
    return draft


def _varied(maker: Maker, declared: Field, turn: int) -> State:
    """Return a value of a field that depends on `turn`."""
    fresh: State = ("s", f"x{turn + 1}")
    if is_of(fresh, declared):
        return fresh
    found = maker.candidates(declared, (), turn) or [NONE]
    return found[turn % len(found)]


def _plainly(maker: Maker, tool: Tool) -> dict[str, State]:
    """Return values for all required arguments and for all answers of a tool."""
    fields = (*[one for one in tool.arguments if not one.optional], *tool.answers)
    return {one.name: (maker.candidates(one) or [NONE])[0] for one in fields}


def _inserted(draft: Draft, like: int, tool: str, states: Mapping[str, State]) -> Draft:
    """The draft with a call before another one, with its values where they have none."""
    new = max(draft.tools) + 1
    fields = {
        term[2]: state
        for term, state in draft.states.items()
        if term[0] == "get" and term[1] == ("call", like)
    }
    values: dict[Ground, State] = {
        ("get", ("call", new), name): state for name, state in {**fields, **states}.items()
    }
    time = ("time", ("call", like))
    if time in draft.states:
        values[("time", ("call", new))] = draft.states[time]
    at = draft.order.index(like)
    return replace(
        draft,
        tools={**draft.tools, new: tool},
        order=(*draft.order[:at], new, *draft.order[at:]),
        states={**draft.states, **values},
        outcomes={**draft.outcomes, new: draft.outcomes.get(like) or "done"},
        pairs=draft.pairs | {(new, like)},
        fillers=draft.fillers - {like},
    )


def _supported(
    maker: Maker, draft: Draft, number: int, refusals: Sequence[Refusal]
) -> Iterator[Draft]:
    """Drafts with a call before a refused one, of a tool that a statement asks for."""
    tools: dict[str, None] = {}
    for refusal in refusals:
        for form in (
            () if refusal.statement == PLAN else walk(maker.policy.rules[refusal.statement])
        ):
            if isinstance(form, forms.Calls):
                tools |= dict.fromkeys(sorted(form.tools))
            elif isinstance(form, forms.Attribute):
                for given in maker.core.given:
                    if isinstance(given, Learned) and given.name == form.name:
                        tools |= dict.fromkeys([tool for tool, _ in given.sources])
    states = [state for state in draft.states.values() if state[0] in ("s", "n", "t")]
    states += [one for state in draft.states.values() if state[0] == "l" for one in state[1]]
    here = [state for term, state in draft.states.items() if term[1:2] == (("call", number),)]
    items = [one for state in here if state[0] == "l" for one in state[1]]
    for name in list(tools)[:MAX_TOOLS]:
        tool = maker.core.tool_of[name]
        fields = (*tool.arguments, *tool.answers)
        for key in tool.arguments if items else ():
            many = draft
            for item in dict.fromkeys(items):
                if is_of(item, key):
                    values = {one.name: (maker.candidates(one) or [NONE])[0] for one in fields}
                    many = _inserted(many, number, name, {**values, key.name: item})
            if many is not draft:
                yield many
        columns = []
        for one in fields:
            same = draft.states.get(("get", ("call", number), one.name))
            found = maker.candidates(one, states, number)[:10] or [NONE]
            if same is not None and is_of(same, one):
                found = [same, *[state for state in found if state != same]]
            columns.append(found)
        first = [column[0] for column in columns]
        rows = [first]
        for at, column in enumerate(columns):
            rows += [[*first[:at], state, *first[at + 1 :]] for state in column[1:]]
        names = [one.name for one in fields]
        for row in rows[:10]:
            yield _inserted(draft, number, name, dict(zip(names, row, strict=True)))
