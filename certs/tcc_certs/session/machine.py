"""The session machine: where a session may be, which calls it allows, where they lead.

A gate asks it before each call, a validator over the records of a ledger.  What a session is, is
the definition of tests/oracle_session: a quantifier over all resolutions of the unknown outcomes
(Session.v: held_are_the_resolutions, calls_are_made_on_plans, passed_traces_are_prefixes,
nowhere_lets_nothing, finished_is_a_plan).  Normative text: docs/spec/session.md, section 4.

A *place* is what one resolution leads to: the states of the automaton (one, where it is
deterministic), and the tally of the statements that are left to the run.  A session holds every
place that it may be at; one that no plan reaches is NOWHERE, and allows nothing.

When an outcome becomes known late, all that was made after that call is gone through again with
what is known now: what is held then was held before, and a monitor counts nothing against a call
that it did not count before, so every call that was allowed stays allowed (Session.v:
knowing_more_keeps_calls).
Cost: a call at places that were met before a look-up, else one in the edges of each state held;
a late outcome the steps of the calls after it, and of these there may be so many in all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tcc_certs.core.derived import call_text
from tcc_certs.core.model import Core, PolicyMonitor
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import Automaton, Relaxed
from tcc_certs.limits import MAX_REFOLDED
from tcc_certs.session.monitors.keyed import Event, Memory, Monitors, Seen, Undo, Values

if TYPE_CHECKING:
    from tcc_certs.session.errors import ErrorForbids, How, Known
    from tcc_certs.session.monitors.statements import Statements
    from tcc_certs.statements import Constraints, Tally
    from tcc_certs.values.places import State

Place: TypeAlias = "tuple[tuple[int, ...], Tally]"  # states, and what the statements know
Held: TypeAlias = "tuple[Place, ...]"  # strictly increasing, never empty
# Of each observed parameter the index of its value; None: an answer that was not foreseen.
Observed: TypeAlias = "tuple[int | None, ...]"

NOWHERE: Place = ((), ())
MAX_PLACES = 64
_NOTHING: Mapping[Any, Any] = MappingProxyType({})
_MAX_KEPT = 1 << 12  # calls that were looked at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A call as its caller chooses it; the world chooses the values that are observed.

    Attributes:
        tool: index into ``Core.tools``.
        text: canonical, without observed values.
        values: for each listed parameter the index of its value; None of an observed one.
        observed: places of the observed parameters among the tool's.
        calls: for each answer, all of it known, the call of the artifact, where it has one.
        answers: how many answers there may be; sizes: of each observed parameter how many values.
    """

    tool: int
    text: str
    values: Values
    observed: tuple[int, ...]
    calls: Mapping[Observed, int]
    answers: int
    sizes: tuple[int, ...] = ()

    def answered(self, answer: Observed | None) -> Values:
        """The values, with those that were observed, where they are known."""
        if not answer:
            return self.values
        found = list(self.values)
        for param, index in zip(self.observed, answer, strict=True):
            found[param] = index
        return tuple(found)


@dataclass(slots=True)
class Look:
    """A call at the places that are held: where it leads, why not, and what is held after it.

    After an unknown outcome that is put together when it is asked for: most are known by then.
    """

    after: list[Place]
    done: dict[Observed, Held]
    code: Code | None = None  # R201 of plans, R203 of statements left to the run, R301 of places
    unknown: Held = ()


class SessionMachine:
    """An artifact as sessions go through it; made once, for all of them.

    Args:
        core_calls: for each call of the artifact its index in the core.
        relaxed: the statements that the automaton leaves to the run.

    Attributes:
        core: the grammar; errors: its forbids, over errors that were read, where there are any.
        monitors: its monitors of core 1.1; statements: those of 1.2; None where it has none.
        start: what a session holds before its first call.
    """

    def __init__(
        self, core: Core, automaton: Automaton, core_calls: Sequence[int], relaxed: Relaxed | None
    ) -> None:
        self.core = core
        self.monitors = Monitors(core)
        self.errors: ErrorForbids | None = None
        if core.forbids and any(tool.errors_failed for tool in core.tools):
            from tcc_certs.session.errors import ErrorForbids  # here: most cores have none

            self.errors = ErrorForbids(core)
        self.statements: Statements | None = None
        if any(isinstance(monitor, PolicyMonitor) for monitor in core.monitors):
            from tcc_certs.session.monitors.statements import Statements

            self.statements = Statements(core)
        self._automaton = automaton
        self._core_calls = core_calls
        self._relaxed = relaxed
        self._commuting: frozenset[tuple[int, int]] | None = None
        self._constraints: Constraints | None = None
        if relaxed is not None:  # without statements left to the run there is none of it to load
            from tcc_certs.statements import Constraints, statement_constraints

            self._constraints = Constraints(items=statement_constraints(core, core_calls, relaxed))
        self.start: Held = (((automaton.root,), ()),)
        self._calls_of: dict[int, list[int]] = {}
        for call, index in enumerate(core_calls):
            self._calls_of.setdefault(core.calls[index].tool, []).append(call)
        self._offers: dict[int, Mapping[Values, Offer]] = {}
        self._offer_of: dict[int, Offer] = {}
        self._by_text: dict[str, Offer] | None = None
        self._looked: dict[tuple[Held, Offer], Look] = {}

    # The calls.

    def offers(self, tool: int) -> Mapping[Values, Offer]:
        """The calls of a tool that the artifact has, those together that differ in observed values.

        By the values that their callers choose; None of the observed ones.
        """
        found = self._offers.get(tool)
        if found is None:
            found = self._offers[tool] = self._offers_of(tool)
        return found

    def offer(self, text: str) -> Offer | None:
        """The one of that canonical text; all tools are made for it."""
        if self._by_text is None:
            tools = range(len(self.core.tools))
            every = [offer for tool in tools for offer in self.offers(tool).values()]
            self._by_text = {offer.text: offer for offer in every}
        return self._by_text.get(text)

    def offer_of(self, call: int) -> Offer:
        """The one that a call of the artifact answers."""
        found = self._offer_of.get(call)
        if found is None:
            self.offers(self.core.calls[self._core_calls[call]].tool)
            found = self._offer_of[call]
        return found

    def _offers_of(self, tool: int) -> Mapping[Values, Offer]:
        params, found = self.core.tools[tool].parameters, dict[Values, Offer]()
        observed = tuple([at for at, param in enumerate(params) if param.observed])
        calls: dict[Values, dict[Observed, int]] = {}
        for call in self._calls_of.get(tool, ()):
            made = self.core.calls[self._core_calls[call]].values
            values = tuple([None if at in observed else value for at, value in enumerate(made)])
            if values not in found:
                calls[values] = {}
                found[values] = Offer(
                    tool=tool,
                    text=call_text(self.core.tools[tool], made, observed=False),
                    values=values,
                    observed=observed,
                    calls=calls[values],
                    answers=prod([len(params[at].values) for at in observed]),
                    sizes=tuple([len(params[at].values) for at in observed]),
                )
            calls[values][tuple([made[at] for at in observed])] = call
            self._offer_of[call] = found[values]
        return found

    @property
    def commuting(self) -> frozenset[tuple[int, int]]:
        """The pairs of tools whose calls may be under way together, the lesser first."""
        if self._commuting is None:
            found: frozenset[tuple[int, int]] = frozenset()
            if any(tool.parallel for tool in self.core.tools):
                from tcc_certs.session.overlap import commuting  # here: most cores have none

                core, automaton = self.core, self._automaton
                tools = [core.calls[index].tool for index in self._core_calls]
                rows = lru_cache(1 << 12)(self.row)  # each is asked for by several
                found = commuting(core, rows, tools, automaton.states, self._relaxed)
            self._commuting = found
        return self._commuting

    def memory(self) -> Memory:
        """What its monitors remember of a session that begins."""
        made = self.statements
        return Memory(self.monitors) if made is None else made.memory(self.monitors)

    def commute(self, one: int, other: int) -> bool:
        """Whether calls of two tools may be under way together."""
        return (min(one, other), max(one, other)) in self.commuting

    # Where calls lead.

    def goes_on(self, held: Held, offer: Offer) -> Held | None:
        """What is held after a call, where one place leads to one, as nearly always; else None."""
        if len(held) > 1 or self._constraints is not None:
            return None
        call = offer.calls.get(())
        targets = () if call is None else self._targets(held[0][0], call)
        return ((targets, ()),) if targets else None

    def look(self, held: Held, offer: Offer) -> Look:
        """A call from what is held; kept for a while."""
        key = held, offer
        found = self._looked.get(key)
        if found is None:
            if len(self._looked) >= _MAX_KEPT:
                self._looked.clear()
            found = self._looked[key] = self._looked_up(held, offer)
        return found

    def done(self, held: Held, offer: Offer, answer: Observed) -> Held:
        """What is held after a call was done, and answered so; of what was not foreseen any."""
        look = self.look(held, offer)
        found = look.done.get(answer)
        if found is None:
            calls = [offer.calls.get(answer)]
            if None in answer:
                calls = [call for one, call in offer.calls.items() if agrees(one, answer)]
                left = prod([n for n, one in zip(offer.sizes, answer, strict=True) if one is None])
                calls += [None] * (len(calls) < left)
            after = {
                NOWHERE if call is None else self.step(place, call) or NOWHERE
                for place in held
                for call in calls
            }
            found = look.done[answer] = tuple(sorted(after))
        return found

    def unknown(self, held: Held, offer: Offer) -> Held:
        """What is held after a call of which it is not known whether it was done."""
        look = self.look(held, offer)
        look.unknown = look.unknown or tuple(sorted(set(look.after)))
        return look.unknown

    def step(self, place: Place, call: int) -> Place | None:
        """Where a call of the artifact leads; None where it may not be made."""
        states, tally = place
        targets = self._targets(states, call)
        if not targets:
            return None
        after = tally if self._constraints is None else self._constraints.step(tally, call)
        return None if after is None else (targets, after)

    def _targets(self, states: tuple[int, ...], call: int) -> tuple[int, ...]:
        """Where a call leads to from any of these states, whatever the statements; increasing."""
        found: list[int] = []
        calls, starts = self._automaton.edge_call, self._automaton.edge_start
        for q in states:
            end = starts[q + 1]
            at = bisect_left(calls, call, starts[q], end)
            while at < end and calls[at] == call:
                found.append(self._automaton.edge_target[at])
                at += 1
        return tuple(found if len(states) == 1 else sorted(set(found)))

    def accepts(self, place: Place) -> bool:
        """Whether a plan may end at a place."""
        states, tally = place
        ends = self._constraints is None or self._constraints.may_stop(tally)
        return ends and any(self._automaton.accept[q] for q in states)

    def shown(self, held: Held) -> list[int]:
        """The places as a record has them: all their states, each once, -1 for NOWHERE."""
        if len(held) == 1:
            return list(held[0][0]) or [-1]
        return sorted({q for states, _ in held for q in states or (-1,)})

    def _looked_up(self, held: Held, offer: Offer) -> Look:
        code, calls, every = None, offer.calls.values(), list(held)
        done: dict[Observed, Held] = {}
        for place in held:
            after = [self.step(place, call) or NOWHERE for call in calls]
            if code is None and after.count(NOWHERE) == len(after):
                planned = any(self._targets(place[0], call) for call in calls)
                code = Code.STATEMENT_FORBIDS if planned else Code.NOT_PLANNED
            if len(held) == 1:
                done = {answer: (to,) for answer, to in zip(offer.calls, after, strict=True)}
            if len(after) < offer.answers:
                after.append(NOWHERE)
            every += after
        if code is None and len(every) > MAX_PLACES and len(set(every)) > MAX_PLACES:
            code = Code.MANY_STATES
        return Look(every, done, code)

    def row(self, q: int) -> Mapping[int, tuple[int, ...]]:
        """The edges of a state: for each call its targets, increasing."""
        row: dict[int, list[int]] = {}
        for call, target in self._automaton.edges(q):
            row.setdefault(call, []).append(target)
        return {call: tuple(to) for call, to in row.items()}


def agrees(answer: Observed, known: Observed) -> bool:
    """Whether an answer may be one of which a part is known."""
    return all(at is None or at == one for one, at in zip(answer, known, strict=True))


# The calls of one session; a step may be taken back.

Outcome: TypeAlias = Literal["done", "failed", "unknown"]


@dataclass(slots=True, eq=False)
class Step(Event):
    """A call that was done, or may have been; or that is decided on.

    Attributes:
        answer: its observed values; None where it is not known to be done.
    """

    offer: Offer = field(kw_only=True)
    answer: Observed | None = None


class Course:
    """The calls of one session, in order, and what follows from them.

    A call counts as one of unknown outcome from when it is made.  Steps are gone through when
    somebody asks where the session is, and taken back when an outcome becomes known: once for all
    that became known in between.  Steps before all that may still become known are let go.

    Attributes:
        machine: of its artifact; broken_off: a step was interrupted; it is at no place.
        attributes: what the session was given when it began, and what it learned since.
        marks: of a pattern and a digest whether that text matches; it may grow.
    """

    def __init__(
        self,
        machine: SessionMachine,
        given: Mapping[str, State] = MappingProxyType({}),
        marks: Mapping[tuple[str, bytes], bool | None] = MappingProxyType({}),
    ) -> None:
        self.machine = machine
        self.attributes, self.marks, self.broken_off = given, marks, False
        self._held: Held = machine.start
        # Of the last decision: what was held, the call, and where it leads from there.
        self._ahead: tuple[Held, Offer | None, Held | None] = (), None, None
        self._statements = machine.statements
        self._memory = machine.memory()
        self._steps: list[Step] = []  # but those that were let go
        self._last = 0  # the number of the latest call
        self._errors: Known = () if machine.errors is None else machine.errors.start
        # Of those steps that were gone through.
        self._before: list[tuple[Held, Undo | tuple[()], Known]] = []
        # How many of them a reader of the records has gone through by now, and in all again.
        self._reached = self._repeated = 0

    @property
    def held(self) -> Held:
        """Where the session may be."""
        if len(self._before) < len(self._steps):
            self._catch_up()
        return self._held

    @property
    def memory(self) -> Memory:
        """Of its monitors."""
        self._catch_up()
        return self._memory

    @property
    def lost(self) -> bool:
        """Whether the session is nowhere, whatever the unknown outcomes were."""
        return self.held == (NOWHERE,)

    def refuses(
        self,
        offer: Offer,
        seen: Sequence[Seen],
        states: Mapping[str, State] | None = None,
        stamp: int = 0,
    ) -> tuple[Code, str] | None:
        """Why a call may not be made now, and the monitor that forbids it; None where it may.

        Args:
            stamp: UTC ms; never less than that of a call that was made.

        Returns:
            R201, R203, R202, R207, R301, the first that holds; a text of R202 and R207.
        """
        held, machine, statements = self.held, self.machine, self._statements
        after = machine.goes_on(held, offer)
        self._ahead = held, offer, after
        code = machine.look(held, offer).code if after is None else None
        if code is None or code is Code.MANY_STATES:
            text = self._memory.forbids(seen) if seen else None
            if text is None and machine.errors is not None:
                text = machine.errors.forbids(self._errors, offer.tool, offer.values)
            if text is not None:
                return Code.MONITOR_FORBIDS, text
            if statements is not None:
                if states is None:
                    return Code.MONITOR_FORBIDS, "statements over fields that are not known"
                own = self.attributes, self.marks
                at, tool, values = self._last + 1, offer.tool, offer.values
                call = Step(at, tool, seen, values, states, stamp, *own, offer=offer)
                found = statements.forbids(self._memory, call)
                if found is not None:
                    return found
        return None if code is None else (code, "")

    def owed(self) -> str:
        """The text of a statement by which a call has to come before the end; empty: none."""
        statements = self.machine.statements
        return "" if statements is None else statements.owed(self.memory)

    def may_finish(self) -> bool:
        """Whether a plan may end at every place, and no call is owed."""
        return all(self.machine.accepts(place) for place in self.held) and not self.owed()

    def begin(
        self,
        seq: int,
        offer: Offer,
        seen: Sequence[Seen],
        states: Mapping[str, State] | None = None,
        stamp: int = 0,
    ) -> None:
        """A call that is not refused is made."""
        if states is None and self._statements is not None:
            # Nothing is known of it: it helps nothing, and stands against all.
            states = self._statements.states(offer.tool, (None,) * len(offer.values), {})
        self._reached = len(self._steps)
        step = Step(
            seq, offer.tool, seen, offer.values, states or _NOTHING, stamp, self.attributes,
            self.marks, offer=offer,
        )  # fmt: skip
        self._steps.append(step)
        self._last = seq

    def settle(
        self,
        outcome: Outcome,
        answer: Observed | None,
        *,
        read: bool = False,
        told: Mapping[str, State] = MappingProxyType({}),
        seq: int | None = None,
    ) -> None:
        """The outcome of a call that is under way.

        Args:
            answer: of one that is done.
            read: of one that failed: with an error that was read.
            told: of one that is done its open answers.
            seq: the call's number; None: the one that was made last.
        """
        newest = seq is None or seq == self._last  # nearly always
        at = len(self._steps) - 1 if newest or seq is None else self._at(seq)
        # The first outcome that is recorded; a `resolve` changes nothing of it.
        self._steps[at].told = self._last
        if outcome != "unknown":
            self._know(at, outcome, answer, read, told)
        # What lies behind is gone through again, and is so little that it is not counted.
        self._reached = len(self._steps) if newest else min(self._reached, at)

    def resolve(
        self,
        seq: int,
        outcome: Outcome,
        answer: Observed | None,
        told: Mapping[str, State] = MappingProxyType({}),
    ) -> None:
        """The outcome of an unknown call is known now.

        Raises:
            Rejected: D201 so many calls would have to be gone through again.
        """
        self._repeated = self.repeated(seq)
        if self._repeated > MAX_REFOLDED:
            raise Rejected(
                Code.LIMIT, "resolve", f"{MAX_REFOLDED} calls gone through again", "more"
            )
        at = self._at(seq)
        self._reached = min(self._reached, at)
        self._know(at, outcome, answer, told=told)

    def repeated(self, seq: int) -> int:
        """How many calls are gone through again, that of call `seq` told late, in all."""
        return self._repeated + max(0, self._reached - self._at(seq) - 1)

    def _at(self, seq: int) -> int:
        return bisect_left(self._steps, seq, key=lambda step: step.at)

    def _know(
        self,
        at: int,
        outcome: Outcome,
        answer: Observed | None,
        read: bool = False,
        told: Mapping[str, State] = MappingProxyType({}),
    ) -> None:
        while len(self._before) > at:
            self._held, undo, self._errors = self._before.pop()
            self._memory.undo(undo)
        step = self._steps[at]
        if outcome == "done":
            step.done, step.answer = True, answer
            if answer:
                step.values = step.offer.answered(answer)
            statements = self._statements
            if statements is not None:
                states = statements.answered(step.tool, step.states, step.values, told)
                self.attributes = statements.learned(self.attributes, step.tool, states)
                step.states = states
        elif read:
            step.answered = True
        else:
            del self._steps[at]

    def _catch_up(self) -> None:
        machine, memory, before, known = self.machine, self._memory, self._before, 0
        recalls, errors, self.broken_off = self._statements is not None, machine.errors, True
        for step in self._steps[len(before) :]:
            held, standing = self._held, self._errors
            undo = memory.add(step) or () if step.seen or recalls else ()
            if errors is not None and standing:
                how: How = "answered" if step.answered else "done" if step.done else "unknown"
                self._errors = errors.after(standing, step.tool, step.values, how)
            if step.done:
                of, offer, after = self._ahead
                if of is not held or offer is not step.offer:
                    after = machine.goes_on(held, step.offer)
                self._held = after or machine.done(held, step.offer, step.answer or ())
            elif not step.answered:
                self._held = machine.unknown(held, step.offer)
            if not before and (step.done or step.answered):
                known += 1
            else:
                before.append((held, undo, standing))
        del self._steps[:known]
        self._reached, self.broken_off = self._reached - known, False
