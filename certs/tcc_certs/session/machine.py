"""The positions of a session, the calls that it allows, and the positions after them.

The definition of the core decides every statement.  The automaton of the artifact decides the plan
expression, and whether the session can still finish.  A gate queries a :class:`Course` before each
call.  A validator queries a course for each record of a ledger.

Normative text: docs/spec/session.md, sections 5 and 8.

An automaton with cycles leaves out totals of depth.  Then a state of a session combines a state q
of the automaton with the number of calls so far: q + n * calls, for n states.  A call leads only to
states from which an end is near enough.

A *position* is a set of such states, or *nowhere*.  A session holds each position that it may be
at, for any outcome of the calls with unknown outcome.  If an outcome becomes known later, the
positions after that call are computed again.  The set only gets smaller, so an allowed call stays
allowed.

Cost: a look-up for a call from positions that occurred before.  Otherwise the edges of each held
state.  A late outcome takes the steps of the later calls, at most `MAX_REFOLDED` in all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import Automaton
from tcc_certs.formats.codec import written
from tcc_certs.limits import MAX_REFOLDED
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.history import DONE, LOST, Call, Draw, History
from tcc_certs.policy.meaning import Debt, Refusal, policy_of
from tcc_certs.session.overlap import commuting
from tcc_certs.values.fields import Field
from tcc_certs.values.places import UNKNOWN, State, listed_states

Position: TypeAlias = "tuple[int, ...]"  # states, strictly increasing
Positions: TypeAlias = "tuple[Position, ...]"  # strictly increasing, never empty
# For each listed argument, or each listed answer, the index of its value; None: not known.
Chosen: TypeAlias = "tuple[int, ...]"
Answer: TypeAlias = "tuple[int | None, ...]"

NOWHERE: Position = ()
MAX_POSITIONS = 64
_NO_ANSWERS: Mapping[str, State] = MappingProxyType({})
_MAX_KEPT = 1 << 12  # most cached looks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A call without its listed answers, as the agent chooses it.

    Attributes:
        tool: index into ``Core.tools``.
        text: canonical text without listed answers.
        values: for each listed argument, the index of its value.
        sizes: for each listed answer, the number of its values.
        calls: by the listed answers, the call of the artifact.
    """

    tool: int
    text: str
    values: Chosen
    sizes: tuple[int, ...]
    calls: Mapping[Answer, int]

    @property
    def answers(self) -> int:
        """The number of combinations of listed answers of the tool."""
        return prod(self.sizes)


@dataclass(slots=True)
class Look:
    """The positions after a call.

    Attributes:
        after: the positions that the session may be at if the outcome is unknown; may have repeats.
        code: R201 if the call leads nowhere from a held position, R301 if there would be too many
            positions; None if neither applies.
        done: cache: the positions after a done call, by its answers.
        unknown: cache: `after`, sorted and without repeats.
    """

    after: list[Position]
    code: Code | None
    done: dict[Answer, Positions]
    unknown: Positions = ()


class Listed:
    """The listed fields of a tool, and the states of their values."""

    def __init__(self, tool: Tool) -> None:
        self._arguments = _values(tool.arguments)
        self._answers = _values(tool.answers)
        self._of_arguments = _indices(self._arguments)
        self._of_answers = _indices(self._answers)
        self.sizes = tuple([len(states) for _, states in self._answers])
        self.arguments = len(self._arguments)

    def chosen(self, states: Mapping[str, State]) -> tuple[int | None, ...]:
        """Return the index of the value of each listed argument."""
        return tuple([of.get(states[name]) for name, of in self._of_arguments])

    def states(self, values: Sequence[int]) -> dict[str, State]:
        """Return the states of the listed arguments with these indices."""
        pairs = zip(self._arguments, values, strict=True)
        return {name: states[at] for (name, states), at in pairs}

    def answer(self, states: Mapping[str, State]) -> Answer:
        """Return the index of the value of each listed answer; None: the answer is not known."""
        return tuple([of.get(states.get(name, UNKNOWN)) for name, of in self._of_answers])


def _values(declared: Sequence[Field]) -> list[tuple[str, tuple[State, ...]]]:
    return [(field.name, listed_states(field)) for field in declared if field.type is None]


def _indices(
    listed: Sequence[tuple[str, tuple[State, ...]]],
) -> list[tuple[str, dict[State, int]]]:
    return [(name, {state: at for at, state in enumerate(states)}) for name, states in listed]


def call_text(tool: Tool, values: Sequence[int]) -> str:
    """Return the canonical text of a call without its listed answers.

    Args:
        values: for each listed argument, the index of its value.
    """
    chosen = []
    for field, at in zip(tool.listed, values, strict=False):
        at -= field.optional
        if at >= 0:
            chosen.append(f"{written(field.name)}={field.values[at]}")
    name = written(tool.name)
    return f"{name}({','.join(chosen)})" if chosen else name


class SessionMachine:
    """The automaton of an artifact, shared by all its sessions.

    Args:
        core_calls: for each call of the artifact, its index in the core.

    Attributes:
        start: the positions that a session holds before its first call.
    """

    def __init__(self, core: Core, automaton: Automaton, core_calls: Sequence[int]) -> None:
        self.core = core
        self.start: Positions = ((automaton.root,),)
        self._automaton = automaton
        self._most = core.depth if automaton.cyclic else None
        self._core_calls = core_calls
        self._listed: dict[int, Listed] = {}
        self._offers: dict[int, Mapping[Chosen, Offer]] = {}
        self._looks: dict[tuple[Positions, Offer], Look] = {}

    # Calls.

    @cached_property
    def _calls_of(self) -> Mapping[int, Sequence[int]]:
        """The calls of the artifact, by tool."""
        found: dict[int, list[int]] = {}
        for call, index in enumerate(self._core_calls):
            found.setdefault(self.core.calls[index].tool, []).append(call)
        return found

    @cached_property
    def tools(self) -> Mapping[str, int]:
        """By name, the index of each tool of the core."""
        return {tool.name: at for at, tool in enumerate(self.core.tools)}

    def offers(self, tool: int) -> Mapping[Chosen, Offer]:
        """Return the offers of a tool that the artifact has, by the values of the arguments."""
        found = self._offers.get(tool)
        if found is None:
            found = self._offers[tool] = self._offers_of(tool)
        return found

    def _offers_of(self, tool: int) -> Mapping[Chosen, Offer]:
        declared = self.core.tools[tool]
        listed = self.listed(tool)
        calls: dict[Chosen, dict[Answer, int]] = {}
        for call in self._calls_of.get(tool, ()):
            values = self.core.calls[self._core_calls[call]].values
            calls.setdefault(values[: listed.arguments], {})[values[listed.arguments :]] = call
        return {
            values: Offer(
                tool=tool, text=call_text(declared, values), values=values, sizes=listed.sizes,
                calls=answers,
            )
            for values, answers in calls.items()
        }  # fmt: skip

    @cached_property
    def _by_text(self) -> Mapping[str, Offer]:
        every = [self.offers(tool).values() for tool in range(len(self.core.tools))]
        return {offer.text: offer for offers in every for offer in offers}

    def offer(self, text: str) -> Offer | None:
        """Return the offer with a canonical text; None: the artifact has no such call."""
        return self._by_text.get(text)

    def offer_for(self, tool: int, arguments: Mapping[str, State]) -> Offer | None:
        """Return the offer of a tool with these arguments; None: the artifact has no such call."""
        chosen: Any = self.listed(tool).chosen(arguments)
        return self.offers(tool).get(chosen)

    def listed(self, tool: int) -> Listed:
        """Return the listed fields of a tool."""
        found = self._listed.get(tool)
        if found is None:
            found = self._listed[tool] = Listed(self.core.tools[tool])
        return found

    @cached_property
    def commuting(self) -> frozenset[tuple[int, int]]:
        """The pairs of tools whose calls may be under way together, the smaller index first."""
        tools = [self.core.calls[index].tool for index in self._core_calls]
        rules, states = policy_of(self.core).rules, self._automaton.states
        return commuting(self.core, rules, lru_cache(1 << 12)(self._row), tools, states)

    def commute(self, tool: int, other: int) -> bool:
        """Return whether calls of two tools may be under way together."""
        return (min(tool, other), max(tool, other)) in self.commuting

    # Positions after calls.

    def look(self, held: Positions, offer: Offer) -> Look:
        """Return the positions after a call from the held positions; recent results are cached."""
        found = self._looks.get((held, offer))
        if found is None:
            if len(self._looks) >= _MAX_KEPT:
                self._looks.clear()
            found = self._looks[held, offer] = self._looked_up(held, offer)
        return found

    def _looked_up(self, held: Positions, offer: Offer) -> Look:
        code = None
        every = list(held)
        done: dict[Answer, Positions] = {}
        for position in held:
            after = [self.step(position, call) for call in offer.calls.values()]
            if after.count(NOWHERE) == len(after):
                code = Code.NOT_PLANNED
            if len(held) == 1:
                done = {answer: (to,) for answer, to in zip(offer.calls, after, strict=True)}
            every += after if len(after) == offer.answers else [*after, NOWHERE]
        if code is None and len(every) > MAX_POSITIONS and len(set(every)) > MAX_POSITIONS:
            code = Code.MANY_STATES
        return Look(every, code, done)

    def done(self, held: Positions, offer: Offer, answer: Answer) -> Positions:
        """Return the positions after a done call, for all answers that agree with `answer`."""
        look = self.look(held, offer)
        found = look.done.get(answer)
        if found is None:
            calls = [offer.calls.get(answer)]
            if None in answer:
                calls = [call for one, call in offer.calls.items() if agrees(one, answer)]
                pairs = zip(offer.sizes, answer, strict=True)
                fitting = prod([size for size, known in pairs if known is None])
                calls += [None] * (len(calls) < fitting)
            after = {
                NOWHERE if call is None else self.step(position, call)
                for position in held
                for call in calls
            }
            found = look.done[answer] = tuple(sorted(after))
        return found

    def unknown(self, held: Positions, offer: Offer) -> Positions:
        """Return the positions after a call whose outcome is not known."""
        look = self.look(held, offer)
        look.unknown = look.unknown or tuple(sorted(set(look.after)))
        return look.unknown

    def step(self, position: Position, call: int) -> Position:
        """Return the position after a call of the artifact."""
        if self._most is not None:
            return self._counted_step(position, call)
        return self._plain_step(position, call)

    def _counted_step(self, position: Position, call: int) -> Position:
        """Do the work of :meth:`step` if states include the number of calls."""
        size, found = self._automaton.states, set[int]()
        for state in position:
            made, q = divmod(state, size)
            found.update([self._count(to, made + 1) for to in self._plain_step((q,), call)])
        found.discard(-1)
        return tuple(sorted(found))

    def _count(self, q: int, made: int) -> int:
        """Return the state q after `made` calls as one number; -1: no end is near enough."""
        near = self._most is None or made + self._automaton.calls_to_go[q] <= self._most
        return q + made * self._automaton.states if near else -1

    def next_calls(self, state: int) -> list[int]:
        """Return the calls of the artifact after which a plan may continue, increasing.

        Args:
            state: a state of the session, not of the automaton.
        """
        made, q = (0, state) if self._most is None else divmod(state, self._automaton.states)
        edges = self._automaton.edges(q)
        if self._most is None:
            return [call for call, _ in edges]
        return [call for call, to in edges if self._count(to, made + 1) >= 0]

    def _plain_step(self, position: Position, call: int) -> Position:
        """Do the work of :meth:`step` for states of the automaton."""
        found: list[int] = []
        calls, starts = self._automaton.edge_call, self._automaton.edge_start
        for state in position:
            end = starts[state + 1]
            at = bisect_left(calls, call, starts[state], end)
            while at < end and calls[at] == call:
                found.append(self._automaton.edge_target[at])
                at += 1
        return tuple(found if len(position) == 1 else sorted(set(found)))

    def _row(self, state: int) -> Mapping[int, tuple[int, ...]]:
        """Return the edges of a state: by call, its targets, increasing."""
        row: dict[int, list[int]] = {}
        for call, target in self._automaton.edges(state):
            row.setdefault(call, []).append(target)
        return {call: tuple(targets) for call, targets in row.items()}

    def accepts(self, position: Position) -> bool:
        """Return whether a plan may end at a position."""
        size = self._automaton.states
        return any(self._automaton.accept[state % size] for state in position)

    def shown(self, held: Positions) -> list[int]:
        """Return the member `states` of a record: all states of all positions, -1 for nowhere."""
        if len(held) == 1:
            return list(held[0]) or [-1]
        return sorted({state for position in held for state in position or (-1,)})


def agrees(answer: Answer, known: Answer) -> bool:
    """Return whether a full answer agrees with the known parts of another answer."""
    return all(at is None or at == one for one, at in zip(answer, known, strict=True))


# One session.


class Decider(Protocol):
    """An object that decides statements, such as :class:`tcc_certs.policy.meaning.Policy`.

    A decider works with the class of histories that it was made for.
    """

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules of the core's statements."""

    def refusals(self, history: Any, call: Call, now_ms: int) -> Sequence[Refusal]:
        """Return the statements that refuse a call, in the order of the core."""

    def draws(self, history: Any, call: Call, now_ms: int) -> Mapping[int, Draw]:
        """Return the draws of a call, by the number of each limit that counts it."""

    def bound(self, number: int, history: Any, call: Call, now_ms: int) -> Any | None:
        """Return the least value that a limit's bound may have for a call; None: no lower end."""

    def debts(self, history: Any, now_ms: int) -> Sequence[Debt]:
        """Return the obligations that may be open."""

    def unmet(self, history: Any, now_ms: int) -> Sequence[int]:
        """Return the numbers of the statements that keep the session from finishing."""

    def forget(self, history: Any, now_ms: int) -> None:
        """Remove the calls from a history that no later decision needs."""


class SessionHistory(History, Protocol):
    """A history to which the calls of a session are added."""

    def add(self, call: Call, draws: Mapping[int, Draw]) -> None:
        """Add a decided call with its draws."""

    def record(self, call: Call, outcome: str, answers: Mapping[str, State]) -> None:
        """Set the outcome of a call, also when an unknown outcome becomes known."""


class Refused(NamedTuple):
    """The refusal of a call.

    Attributes:
        statement: the number of the statement that refuses it; None: the plan or the positions do.
    """

    code: Code
    statement: int | None = None


class Decision(NamedTuple):
    """The decision on a call.

    Attributes:
        refused: the first refusal by a statement, the plan or the positions; None if nothing
            refuses.
        asks: the numbers of the `ask` statements that apply, in the order of the core.  The caller
            checks their approvals.
    """

    refused: Refused | None
    asks: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class _Step:
    """A call whose positions may have to be computed again."""

    call: Call
    offer: Offer
    answer: Answer = ()


class Course:
    """The calls of one session, in order, and the positions that it holds.

    A call under way counts like a call with an unknown outcome.  Positions are computed when a
    caller reads them.  Calls before the first unknown outcome are not kept here.

    Args:
        history: a new history, which is passed to the decider with each query.

    Attributes:
        broken_off: True if a computation of positions was interrupted, so that they are not known.
        calls: the number of calls that have begun.
    """

    def __init__(self, machine: SessionMachine, policy: Decider, history: SessionHistory) -> None:
        self.machine = machine
        self.policy = policy
        self.history = history
        self.broken_off = False
        self.calls = 0
        self._held: Positions = machine.start
        self._steps: list[_Step] = []
        self._before: list[Positions] = []  # the positions before each computed step
        # The number of steps that a reader of the records has computed by now, and the number of
        # steps that it computed again.
        self._reached = self._repeated = 0

    @property
    def held(self) -> Positions:
        """The positions that the session holds."""
        if len(self._before) < len(self._steps):
            self._catch_up()
        return self._held

    @property
    def lost(self) -> bool:
        """True if the session holds only the position *nowhere*."""
        return self.held == (NOWHERE,)

    def states(self) -> list[int]:
        """Return the member `states` of the next `call` record."""
        return self.machine.shown(self.held)

    def call(self, tool: str, arguments: Mapping[str, State], at_ms: int) -> Call:
        """Return a call object to decide; it is not added.

        Args:
            arguments: the states of all declared arguments.
        """
        at = len(self.history.calls)
        return Call(tool, at, at_ms, arguments, number=self.calls)

    def decide(self, call: Call, offer: Offer | None) -> Decision:
        """Decide a call at its time.

        Args:
            offer: the offer of its text; None: the artifact has no such call.
        """
        refusals = self.policy.refusals(self.history, call, call.at_ms)
        asks = []
        for statement, code in refusals:
            if code != Code.PENDING:
                return Decision(Refused(Code(code), statement))
            asks.append(statement)
        code = Code.NOT_PLANNED
        if offer is not None:
            found = self.machine.look(self.held, offer).code
            if found is None:
                return Decision(None, tuple(asks))
            code = found
        return Decision(Refused(code), tuple(asks))

    def draws(self, call: Call) -> Mapping[int, Draw]:
        """Return the draws of a call that is about to begin."""
        return self.policy.draws(self.history, call, call.at_ms)

    def begin(self, call: Call, offer: Offer, draws: Mapping[int, Draw] | None = None) -> None:
        """Add an allowed call; it is then under way.

        Args:
            draws: its draws, if the caller has computed them already.
        """
        self.history.add(call, self.draws(call) if draws is None else draws)
        self.calls += 1
        self.policy.forget(self.history, call.at_ms)
        self._reached = len(self._steps)
        self._steps.append(_Step(call, offer))

    def settle(self, seq: int, outcome: str, answers: Mapping[str, State] = _NO_ANSWERS) -> None:
        """Record the outcome of a call under way.

        Args:
            seq: the number of the call, from 1.
            outcome: DONE, FAILED, ANSWERED or LOST.
            answers: the states of its answers, if the call is done.
        """
        at = self._at(seq)
        newest = at == len(self._steps) - 1
        self._record(at, outcome, answers)
        # Only a few calls can follow a call under way, so they do not count as computed again.
        self._reached = len(self._steps) if newest else min(self._reached, at)

    def resolve(self, seq: int, outcome: str, answers: Mapping[str, State] = _NO_ANSWERS) -> None:
        """Record the outcome of a call whose outcome was unknown.

        Raises:
            Rejected: D201: too many calls would have to be computed again.
        """
        repeated = self.repeated(seq)
        if repeated > MAX_REFOLDED:
            expected = f"{MAX_REFOLDED} calls computed again after late outcomes"
            raise Rejected(Code.LIMIT, "resolve", expected, "more")
        self._repeated = repeated
        at = self._at(seq)
        self._reached = min(self._reached, at)
        self._record(at, outcome, answers)

    def repeated(self, seq: int) -> int:
        """Return the total number of repeated steps if the outcome of a call becomes known now."""
        return self._repeated + max(0, self._reached - self._at(seq) - 1)

    def debts(self, now_ms: int) -> Sequence[Debt]:
        """Return the obligations that may be open."""
        return self.policy.debts(self.history, now_ms)

    def unmet(self, now_ms: int) -> Sequence[int]:
        """Return the numbers of the statements that keep the session from finishing."""
        return self.policy.unmet(self.history, now_ms)

    def may_finish(self, now_ms: int) -> bool:
        """Return whether a plan may end at each held position, and all statements allow the end."""
        return all(map(self.machine.accepts, self.held)) and not self.unmet(now_ms)

    def _at(self, seq: int) -> int:
        if self._steps and self._steps[-1].call.number == seq - 1:
            return len(self._steps) - 1
        return bisect_left(self._steps, seq - 1, key=lambda step: step.call.number)

    def _record(self, at: int, outcome: str, answers: Mapping[str, State]) -> None:
        step = self._steps[at]
        self.history.record(step.call, outcome, answers)
        if outcome == LOST:
            return
        if len(self._before) > at:
            self._held = self._before[at]
            del self._before[at:]
        if outcome == DONE:
            step.answer = self.machine.listed(step.offer.tool).answer(answers)
        else:
            del self._steps[at]

    def _catch_up(self) -> None:
        """Compute the positions after the remaining steps."""
        machine, before = self.machine, self._before
        known = 0  # number of steps before the first unknown outcome
        self.broken_off = True
        for step in self._steps[len(before) :]:
            held = self._held
            if step.call.outcome == DONE:
                self._held = machine.done(held, step.offer, step.answer)
            else:
                self._held = machine.unknown(held, step.offer)
            if not before and step.call.outcome == DONE:
                known += 1
            else:
                before.append(held)
        del self._steps[:known]
        self._reached -= known
        self.broken_off = False
