"""Where a session may be, which calls it allows, and where they lead.

The definition of the core decides every statement.  The automaton of the artifact decides the plan
expression, and whether the session can still finish.  A gate asks a :class:`Course` before each
call; a validator asks one for each record of a ledger.

Normative text: docs/spec/session.md, sections 5 and 8.

If the automaton has cycles, a total of depth is not in it.  Then a state of a session is a state of
the automaton and the number of calls so far, as one number: q + n * calls.  A call leads only to
states from which an end is near enough.

A *position* is a set of such states, or *nowhere*.  A session holds each position that
it may be at, whatever its unknown outcomes were.  If an outcome becomes known late, the positions
after that call are computed again.  The set only gets smaller, so an allowed call stays allowed.

Cost: a call from positions that were met before is a look-up.  Otherwise it takes the edges of each
state held.  A late outcome takes the steps of the calls after it, at most `MAX_REFOLDED` in all.
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
# The index of the value of each listed argument, or of each listed answer; None: not known.
Chosen: TypeAlias = "tuple[int, ...]"
Answer: TypeAlias = "tuple[int | None, ...]"

NOWHERE: Position = ()
MAX_POSITIONS = 64
_NO_ANSWERS: Mapping[str, State] = MappingProxyType({})
_MAX_KEPT = 1 << 12  # looks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A call as its caller chooses it.  The world chooses its listed answers.

    Attributes:
        tool: index into ``Core.tools``.
        text: canonical text without listed answers.
        values: for each listed argument the index of its value.
        sizes: how many values each listed answer has.
        calls: the call of the artifact for each answer that the artifact has.
    """

    tool: int
    text: str
    values: Chosen
    sizes: tuple[int, ...]
    calls: Mapping[Answer, int]

    @property
    def answers(self) -> int:
        """The number of answers that the tool has."""
        return prod(self.sizes)


@dataclass(slots=True)
class Look:
    """Where a call leads from the positions held.

    Attributes:
        after: the positions that the session may be at if the outcome is unknown, with repeats.
        code: R201 if a position leads only nowhere, R301 if there would be too many positions.
        done: the positions after each answer that was asked for.
        unknown: `after` without repeats, once it was asked for.
    """

    after: list[Position]
    code: Code | None
    done: dict[Answer, Positions]
    unknown: Positions = ()


class Listed:
    """The listed fields of a tool, and the states of their values by index."""

    def __init__(self, tool: Tool) -> None:
        self._arguments = _values(tool.arguments)
        self._answers = _values(tool.answers)
        self._of_arguments = _indices(self._arguments)
        self._of_answers = _indices(self._answers)
        self.sizes = tuple([len(states) for _, states in self._answers])
        self.arguments = len(self._arguments)

    def chosen(self, states: Mapping[str, State]) -> tuple[int | None, ...]:
        """The indices of the listed arguments."""
        return tuple([of.get(states[name]) for name, of in self._of_arguments])

    def states(self, values: Sequence[int]) -> dict[str, State]:
        """The states of the listed arguments."""
        pairs = zip(self._arguments, values, strict=True)
        return {name: states[at] for (name, states), at in pairs}

    def answer(self, states: Mapping[str, State]) -> Answer:
        """The indices of the listed answers; None where the answer is not known."""
        return tuple([of.get(states.get(name, UNKNOWN)) for name, of in self._of_answers])


def _values(declared: Sequence[Field]) -> list[tuple[str, tuple[State, ...]]]:
    return [(field.name, listed_states(field)) for field in declared if field.type is None]


def _indices(
    listed: Sequence[tuple[str, tuple[State, ...]]],
) -> list[tuple[str, dict[State, int]]]:
    return [(name, {state: at for at, state in enumerate(states)}) for name, states in listed]


def call_text(tool: Tool, values: Sequence[int]) -> str:
    """The canonical text of a call without its listed answers.

    Args:
        values: for each listed argument the index of its value.
    """
    chosen = []
    for field, at in zip(tool.listed, values, strict=False):
        at -= field.optional
        if at >= 0:
            chosen.append(f"{written(field.name)}={field.values[at]}")
    name = written(tool.name)
    return f"{name}({','.join(chosen)})" if chosen else name


class SessionMachine:
    """The automaton of an artifact, as sessions use it.  All sessions share it.

    Args:
        core_calls: for each call of the artifact its index in the core.

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
        """The calls of the artifact by their tools."""
        found: dict[int, list[int]] = {}
        for call, index in enumerate(self._core_calls):
            found.setdefault(self.core.calls[index].tool, []).append(call)
        return found

    @cached_property
    def tools(self) -> Mapping[str, int]:
        """The index of each tool of the core by its name."""
        return {tool.name: at for at, tool in enumerate(self.core.tools)}

    def offers(self, tool: int) -> Mapping[Chosen, Offer]:
        """The offers of a tool that the artifact has a call of, by the values of its arguments."""
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
        """The offer of a canonical text; None: the artifact has no such call."""
        return self._by_text.get(text)

    def offer_for(self, tool: int, arguments: Mapping[str, State]) -> Offer | None:
        """The offer of a tool with these arguments; None: the artifact has no such call."""
        chosen: Any = self.listed(tool).chosen(arguments)
        return self.offers(tool).get(chosen)

    def listed(self, tool: int) -> Listed:
        """The listed fields of a tool."""
        found = self._listed.get(tool)
        if found is None:
            found = self._listed[tool] = Listed(self.core.tools[tool])
        return found

    @cached_property
    def commuting(self) -> frozenset[tuple[int, int]]:
        """The pairs of tools whose calls may be under way together, the lesser index first."""
        tools = [self.core.calls[index].tool for index in self._core_calls]
        rules, states = policy_of(self.core).rules, self._automaton.states
        return commuting(self.core, rules, lru_cache(1 << 12)(self._row), tools, states)

    def commute(self, tool: int, other: int) -> bool:
        """Whether calls of two tools may be under way together."""
        return (min(tool, other), max(tool, other)) in self.commuting

    # Where calls lead.

    def look(self, held: Positions, offer: Offer) -> Look:
        """Where a call leads from the positions held; the latest results are kept."""
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
        """The positions after a call that is done, for each answer that agrees with `answer`."""
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
        """The positions after a call whose outcome is not known."""
        look = self.look(held, offer)
        look.unknown = look.unknown or tuple(sorted(set(look.after)))
        return look.unknown

    def step(self, position: Position, call: int) -> Position:
        """Where a call of the artifact leads from a position."""
        if self._most is not None:
            return self._counted_step(position, call)
        return self._plain_step(position, call)

    def _counted_step(self, position: Position, call: int) -> Position:
        """:meth:`step`, with the number of calls in each state."""
        size, found = self._automaton.states, set[int]()
        for state in position:
            made, q = divmod(state, size)
            found.update([self._count(to, made + 1) for to in self._plain_step((q,), call)])
        found.discard(-1)
        return tuple(sorted(found))

    def _count(self, q: int, made: int) -> int:
        """A state of the automaton after some calls; -1: no end is near enough."""
        near = self._most is None or made + self._automaton.calls_to_go[q] <= self._most
        return q + made * self._automaton.states if near else -1

    def next_calls(self, state: int) -> list[int]:
        """The calls of the artifact after which a plan may go on from a state, increasing."""
        made, q = (0, state) if self._most is None else divmod(state, self._automaton.states)
        edges = self._automaton.edges(q)
        if self._most is None:
            return [call for call, _ in edges]
        return [call for call, to in edges if self._count(to, made + 1) >= 0]

    def _plain_step(self, position: Position, call: int) -> Position:
        """:meth:`step` in the automaton."""
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
        """The edges of a state: for each call its targets, increasing."""
        row: dict[int, list[int]] = {}
        for call, target in self._automaton.edges(state):
            row.setdefault(call, []).append(target)
        return {call: tuple(targets) for call, targets in row.items()}

    def accepts(self, position: Position) -> bool:
        """Whether a plan may end at a position."""
        size = self._automaton.states
        return any(self._automaton.accept[state % size] for state in position)

    def shown(self, held: Positions) -> list[int]:
        """The `states` of a record: all states of all positions, each once, -1 for nowhere."""
        if len(held) == 1:
            return list(held[0]) or [-1]
        return sorted({state for position in held for state in position or (-1,)})


def agrees(answer: Answer, known: Answer) -> bool:
    """Whether an answer may be one of which a part is known."""
    return all(at is None or at == one for one, at in zip(answer, known, strict=True))


# One session.


class Decider(Protocol):
    """An object that decides statements, as :class:`tcc_certs.policy.meaning.Policy` does.

    A decider and its history belong together: each may know its own kind of history.
    """

    @property
    def rules(self) -> Sequence[Rule]:
        """The statements of the core, their words resolved."""

    def refusals(self, history: Any, call: Call, now_ms: int) -> Sequence[Refusal]:
        """The statements that do not let a call through, in the order of the core."""

    def draws(self, history: Any, call: Call, now_ms: int) -> Mapping[int, Draw]:
        """The draws of a call, by the number of each limit that counts it."""

    def bound(self, number: int, history: Any, call: Call, now_ms: int) -> Any | None:
        """The bound of a limit for a call: what the limit surely allows; None: nothing."""

    def debts(self, history: Any, now_ms: int) -> Sequence[Debt]:
        """The obligations that may be open."""

    def unmet(self, history: Any, now_ms: int) -> Sequence[int]:
        """The numbers of the statements that keep the session from finishing."""

    def forget(self, history: Any, now_ms: int) -> None:
        """Let a history forget calls that no later decision needs."""


class SessionHistory(History, Protocol):
    """A history that the calls of a session are added to."""

    def add(self, call: Call, draws: Mapping[int, Draw]) -> None:
        """Add a call that was decided, with its draws."""

    def record(self, call: Call, outcome: str, answers: Mapping[str, State]) -> None:
        """Record an outcome of a call, or another one once an unknown outcome becomes known."""


class Refused(NamedTuple):
    """A call is refused.

    Attributes:
        statement: the number of the statement that refuses it; None: no statement does.
    """

    code: Code
    statement: int | None = None


class Decision(NamedTuple):
    """A decision on a call.

    Attributes:
        refused: the first refusal by a statement, the plan or the positions; None: there is none.
        asks: the numbers of the `ask` statements that apply, in the order of the core.  The caller
            looks for their approvals.
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

    A call that is under way counts as one whose outcome is unknown.  Positions are computed when
    they are asked for.  Calls before the first unknown outcome are not kept here.

    Args:
        history: a new history; the decider gets it with each question.

    Attributes:
        broken_off: a computation was interrupted, so the positions are not known.
        calls: how many calls have begun.
    """

    def __init__(self, machine: SessionMachine, policy: Decider, history: SessionHistory) -> None:
        self.machine = machine
        self.policy = policy
        self.history = history
        self.broken_off = False
        self.calls = 0
        self._held: Positions = machine.start
        self._steps: list[_Step] = []
        self._before: list[Positions] = []  # before each step that is computed
        # How many steps a reader of the records has computed by now, and how many of them again.
        self._reached = self._repeated = 0

    @property
    def held(self) -> Positions:
        """The positions that the session holds."""
        if len(self._before) < len(self._steps):
            self._catch_up()
        return self._held

    @property
    def lost(self) -> bool:
        """Whether the session is nowhere, whatever its unknown outcomes were."""
        return self.held == (NOWHERE,)

    def states(self) -> list[int]:
        """The `states` of the next `call` record."""
        return self.machine.shown(self.held)

    def call(self, tool: str, arguments: Mapping[str, State], at_ms: int) -> Call:
        """A call that is to be decided.

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
        """The draws of a call that is to begin."""
        return self.policy.draws(self.history, call, call.at_ms)

    def begin(self, call: Call, offer: Offer, draws: Mapping[int, Draw] | None = None) -> None:
        """Add a call that is allowed; it is under way.

        Args:
            draws: its draws, if the caller asked for them already.
        """
        self.history.add(call, self.draws(call) if draws is None else draws)
        self.calls += 1
        self.policy.forget(self.history, call.at_ms)
        self._reached = len(self._steps)
        self._steps.append(_Step(call, offer))

    def settle(self, seq: int, outcome: str, answers: Mapping[str, State] = _NO_ANSWERS) -> None:
        """Record the outcome of a call that is under way.

        Args:
            seq: the number of the call, from 1.
            outcome: DONE, FAILED, ANSWERED or LOST.
            answers: of a call that is done, the states of its answers.
        """
        at = self._at(seq)
        newest = at == len(self._steps) - 1
        self._record(at, outcome, answers)
        # So few calls may follow a call under way that they are not counted as computed again.
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
        """How many calls are computed again in all, once the outcome of a call becomes known."""
        return self._repeated + max(0, self._reached - self._at(seq) - 1)

    def debts(self, now_ms: int) -> Sequence[Debt]:
        """The obligations that may be open."""
        return self.policy.debts(self.history, now_ms)

    def unmet(self, now_ms: int) -> Sequence[int]:
        """The numbers of the statements that keep the session from finishing."""
        return self.policy.unmet(self.history, now_ms)

    def may_finish(self, now_ms: int) -> bool:
        """Whether a plan may end at each position, and every statement allows the end."""
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
        """Compute the positions after the steps that are left."""
        machine, before = self.machine, self._before
        known = 0  # steps before the first unknown outcome
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
