"""Where a session may be: the states that its calls may have led to, and what they allow.

Normative text: docs/spec/session.md, section 4.  A *place* is what one resolution of the unknown
outcomes leads to: the states of the automaton (one, where it is deterministic), and what the
statements that are left to the run have to know of the calls.  A session holds every place that it
may be at; one that no plan reaches is NOWHERE, and allows nothing.
Cost: for each call the edges of its tool's answers from the places that are held; an artifact's
states are looked at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from tcc_certs.core.calls import call_text
from tcc_certs.errors import Code
from tcc_certs.formats.codec import Json
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.replay.constraints import Tally, residual_constraints

Place: TypeAlias = "tuple[tuple[int, ...], Tally]"  # states, and what the statements know
Held: TypeAlias = "tuple[Place, ...]"  # strictly increasing, never empty
Answer: TypeAlias = "tuple[int, ...]"  # of each observed parameter the index of its value

NOWHERE: Place = ((), ())
MAX_PLACES = 64
_MAX_KEPT = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A call as its caller chooses it; the world chooses the values that are observed.

    Attributes:
        number: of this offer among those of the artifact.
        tool: index into ``Core.tools``.
        values: for each listed parameter the index of its value; None of an observed one.
        observed: places of the observed parameters among the tool's.
        calls: for each answer the call of the artifact, where it has one.
        answers: how many answers there may be.
    """

    number: int
    tool: int
    values: tuple[int | None, ...]
    observed: tuple[int, ...]
    calls: Mapping[Answer, int]
    answers: int

    def answered(self, answer: Answer) -> tuple[int | None, ...]:
        """The values, with those that were observed."""
        found = list(self.values)
        for param, index in zip(self.observed, answer, strict=True):
            found[param] = index
        return tuple(found)


class Plans:
    """An artifact as sessions go through it.

    Attributes:
        offers: by their canonical texts, without observed values.
        start: what a session holds before its first call.
    """

    def __init__(self, artifact: CheckedArtifact) -> None:
        self._automaton = artifact.automaton
        self._constraints = residual_constraints(
            artifact, artifact.automaton.rank[artifact.automaton.root]
        )
        self.offers = _offers(artifact)
        self._offer_of = {
            call: offer.number for offer in self.offers.values() for call in offer.calls.values()
        }
        self._edges: dict[int, Mapping[int, Mapping[int, Sequence[int]]]] = {}
        self._looked: dict[tuple[Held, int], tuple[Code | None, Held]] = {}
        self.start: Held = (((artifact.automaton.root,), self._constraints.start),)

    def refuses(self, held: Held, offer: Offer) -> Code | None:
        """Why a call may not be made now; None: from every place some answer of it leads on.

        Returns:
            R201 the plans, R203 a statement left to the run, R301 too many places if it is unknown.
        """
        return self._look(held, offer)[0]

    def done(self, held: Held, offer: Offer, answer: Answer) -> Held:
        """What is held after a call was done, and answered so."""
        call = offer.calls.get(answer)
        return tuple(sorted({self._after(place, offer, call) for place in held}))

    def unknown(self, held: Held, offer: Offer) -> Held:
        """What is held after a call of which it is not known whether it was done.

        Args:
            offer: one that is not refused.
        """
        return self._look(held, offer)[1]

    def may_finish(self, held: Held) -> bool:
        """Whether a plan may end at every place."""
        accept = self._automaton.accept
        return all(
            any(accept[q] for q in states) and self._constraints.may_stop(tally)
            for states, tally in held
        )

    def shown(self, held: Held) -> Sequence[Json]:
        """The places as a record has them: all their states, each once, -1 for NOWHERE."""
        return sorted({q for states, _ in held for q in states or (-1,)})

    def _look(self, held: Held, offer: Offer) -> tuple[Code | None, Held]:
        """Why a call is refused, and what is held once it is made and unknown; kept for a while."""
        key = held, offer.number
        known = self._looked.get(key)
        if known is None:
            if len(self._looked) >= _MAX_KEPT:
                self._looked.clear()
            known = self._looked[key] = self._looked_up(held, offer)
        return known

    def _looked_up(self, held: Held, offer: Offer) -> tuple[Code | None, Held]:
        found = set(held)
        for place in held:
            calls = {call for q in place[0] for call in self._answers(q, offer)}
            after = {self._after(place, offer, call) for call in calls}
            if not calls or after == {NOWHERE}:
                return Code.STATEMENT_FORBIDS if calls else Code.NOT_PLANNED, held
            found |= after
            if len(calls) < offer.answers:
                found.add(NOWHERE)
            if len(found) > MAX_PLACES:
                return Code.MANY_STATES, held
        return None, tuple(sorted(found))

    def _after(self, place: Place, offer: Offer, call: int | None) -> Place:
        """Where one call of an offer leads; None is an answer that no call of the artifact has."""
        if call is None:
            return NOWHERE
        states = {target for q in place[0] for target in self._answers(q, offer).get(call, ())}
        tally = self._constraints.after(place[1], call) if states else None
        return NOWHERE if tally is None else (tuple(sorted(states)), tally)

    def _answers(self, q: int, offer: Offer) -> Mapping[int, Sequence[int]]:
        """For each call that is an answer to the offer and an edge of state `q` its targets."""
        found = self._edges.get(q)
        if found is None:
            edges: dict[int, dict[int, list[int]]] = {}
            for call, target in self._automaton.edges(q):
                answers = edges.setdefault(self._offer_of[call], {})
                answers.setdefault(call, []).append(target)
            found = self._edges[q] = edges
        return found.get(offer.number, {})


def _offers(artifact: CheckedArtifact) -> Mapping[str, Offer]:
    """The artifact's calls, together where they differ in observed values alone."""
    core = artifact.core
    found: dict[str, Offer] = {}
    calls: list[dict[Answer, int]] = []
    for number, index in enumerate(artifact.core_calls):
        call = core.calls[index]
        tool = core.tools[call.tool]
        params = tool.parameters
        observed = tuple(at for at, parameter in enumerate(params) if parameter.observed)
        text = call_text(tool, call.values, observed=False)
        if text not in found:
            calls.append({})
            found[text] = Offer(
                number=len(calls) - 1,
                tool=call.tool,
                values=tuple(
                    None if params[at].observed else value for at, value in enumerate(call.values)
                ),
                observed=observed,
                calls=calls[-1],
                answers=prod([len(params[at].values) for at in observed]),
            )
        calls[found[text].number][tuple(call.values[at] for at in observed)] = number
    return found
