"""The session machine: where a session may be, which calls it allows, where they lead.

A gate asks it before each call, a validator over the records of a ledger; a session's own course is
:mod:`tcc_certs.session.course`.  What a session is, is the definition of tests/oracle_session: a
quantifier over all resolutions of the unknown outcomes (Session.v: held_are_the_resolutions,
calls_are_made_on_plans, passed_traces_are_prefixes, nowhere_lets_nothing, finished_is_a_plan).
Normative text: docs/spec/session.md, section 4.

A *place* is what one resolution leads to: the states of the automaton (one, where it is
deterministic), and the tally of the statements that are left to the run.  A session holds every
place that it may be at; one that no plan reaches is NOWHERE, and allows nothing.
Cost: a call at places that were met before a look-up; else the edges of the states that are held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from tcc_certs.core.derived import call_text
from tcc_certs.core.model import Core
from tcc_certs.errors import Code
from tcc_certs.formats.artifact import Automaton, Relaxed
from tcc_certs.session.monitors import Monitors, Values

if TYPE_CHECKING:
    from tcc_certs.statements import Constraints, Tally

Place: TypeAlias = "tuple[tuple[int, ...], Tally]"  # states, and what the statements know
Held: TypeAlias = "tuple[Place, ...]"  # strictly increasing, never empty
Observed: TypeAlias = "tuple[int, ...]"  # of each observed parameter the index of its value

NOWHERE: Place = ((), ())
MAX_PLACES = 64
_MAX_KEPT = 1 << 12  # calls that were looked at
_MAX_EDGES = 1 << 20  # that were read


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A call as its caller chooses it; the world chooses the values that are observed.

    Attributes:
        tool: index into ``Core.tools``.
        text: canonical, without observed values.
        values: for each listed parameter the index of its value; None of an observed one.
        observed: places of the observed parameters among the tool's.
        calls: for each answer the call of the artifact, where it has one.
        answers: how many answers there may be.
    """

    tool: int
    text: str
    values: Values
    observed: tuple[int, ...]
    calls: Mapping[Observed, int]
    answers: int

    def answered(self, answer: Observed | None) -> Values:
        """The values, with those that were observed, where they are known."""
        if not answer:
            return self.values
        found = list(self.values)
        for param, index in zip(self.observed, answer, strict=True):
            found[param] = index
        return tuple(found)


@dataclass(slots=True, kw_only=True)
class _Look:
    """A call at the places that are held: why not, and what is held after it."""

    code: Code | None
    unknown: Held
    done: dict[Observed, Held] = field(default_factory=dict)


class Machine:
    """An artifact as sessions go through it; made once, for all of them.

    Args:
        core_calls: for each call of the artifact its index in the core.
        relaxed: the statements that the automaton leaves to the run.

    Attributes:
        core: the grammar; monitors: its monitors.
        start: what a session holds before its first call.
    """

    def __init__(
        self,
        core: Core,
        automaton: Automaton,
        core_calls: Sequence[int],
        relaxed: Relaxed | None,
    ) -> None:
        self.core = core
        self.monitors = Monitors(core)
        self._automaton = automaton
        self._core_calls = core_calls
        self._constraints: Constraints | None = None
        if relaxed is not None:  # without statements left to the run there is none of it to load
            from tcc_certs.statements import Constraints, statement_constraints

            items = statement_constraints(core, core_calls, relaxed)
            self._constraints = Constraints(items=items)
        self.start: Held = (((automaton.root,), ()),)
        self._calls_of: dict[int, list[int]] = {}
        for call, index in enumerate(core_calls):
            self._calls_of.setdefault(core.calls[index].tool, []).append(call)
        self._offers: dict[int, Mapping[Values, Offer]] = {}
        self._offer_of: dict[int, Offer] = {}
        self._by_text: dict[str, Offer] | None = None
        self._rows: dict[int, Mapping[int, Sequence[int]]] = {}
        self._edges = 0  # of these rows
        self._looked: dict[tuple[Held, Offer], _Look] = {}

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
                )
            calls[values][tuple([made[at] for at in observed])] = call
            self._offer_of[call] = found[values]
        return found

    # Where calls lead.

    def refuses(self, held: Held, offer: Offer) -> Code | None:
        """Why a call may not be made now; None: from every place some answer of it leads on.

        Returns:
            R201 the plans, R203 a statement left to the run, R301 too many places if it is unknown.
        """
        return self._look(held, offer).code

    def done(self, held: Held, offer: Offer, answer: Observed) -> Held:
        """What is held after a call was done, and answered so."""
        look = self._look(held, offer)
        found = look.done.get(answer)
        if found is None:
            call = offer.calls.get(answer)
            after = (
                {self.step(place, call) or NOWHERE for place in held} if call is not None else ()
            )
            found = look.done[answer] = tuple(sorted(after)) or (NOWHERE,)
        return found

    def unknown(self, held: Held, offer: Offer) -> Held:
        """What is held after a call of which it is not known whether it was done."""
        return self._look(held, offer).unknown

    def step(self, place: Place, call: int) -> Place | None:
        """Where a call of the artifact leads; None where it may not be made."""
        states, tally = place
        targets = {target for q in states for target in self.row(q).get(call, ())}
        if not targets:
            return None
        after = tally if self._constraints is None else self._constraints.step(tally, call)
        return None if after is None else (tuple(sorted(targets)), after)

    def accepts(self, place: Place) -> bool:
        """Whether a plan may end at a place."""
        states, tally = place
        accept = self._automaton.accept
        ends = self._constraints is None or self._constraints.may_stop(tally)
        return ends and any(accept[q] for q in states)

    def shown(self, held: Held) -> list[int]:
        """The places as a record has them: all their states, each once, -1 for NOWHERE."""
        if len(held) == 1:
            return list(held[0][0]) or [-1]
        return sorted({q for states, _ in held for q in states or (-1,)})

    def _look(self, held: Held, offer: Offer) -> _Look:
        """A call from what is held; kept for a while."""
        key = held, offer
        found = self._looked.get(key)
        if found is None:
            if len(self._looked) >= _MAX_KEPT:
                self._looked.clear()
            found = self._looked[key] = self._looked_up(held, offer)
        return found

    def _looked_up(self, held: Held, offer: Offer) -> _Look:
        found, code = set(held), None
        for place in held:
            calls = [
                call for call in offer.calls.values() if any(call in self.row(q) for q in place[0])
            ]
            after = {self.step(place, call) for call in calls}
            if code is None and after <= {None}:
                code = Code.STATEMENT_FORBIDS if calls else Code.NOT_PLANNED
            found |= {NOWHERE if to is None else to for to in after}
            if len(calls) < offer.answers:
                found.add(NOWHERE)
        if code is None and len(found) > MAX_PLACES:
            code = Code.MANY_STATES
        return _Look(code=code, unknown=tuple(sorted(found)))

    def row(self, q: int) -> Mapping[int, Sequence[int]]:
        """The edges of a state: for each call its targets."""
        found = self._rows.get(q)
        if found is None:
            row: dict[int, list[int]] = {}
            for call, target in self._automaton.edges(q):
                row.setdefault(call, []).append(target)
            self._edges += len(row)
            if self._edges > _MAX_EDGES:
                self._rows.clear()
                self._edges = len(row)
            found = self._rows[q] = row
        return found
