"""Policy: what all gates over one artifact share, and what they ask of it.

The session machine, the tables of its tools, what its limits are taken by, and what plans allow
next.  Everything is made when it is first asked for, and kept with the artifact; the tables of what
plans may begin with when a small artifact is opened.
Text: docs/gate.md; docs/spec/core.md, section 2.
Cost: a call that is looked at again a look-up; what may come next, the calls of the states that are
held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tcc_certs.call_rules import check_calls
from tcc_certs.core.derived import summed_parameter
from tcc_certs.core.model import Call, Core, Limit, Tool
from tcc_certs.errors import Code, Rejected
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.session.machine import Held, Observed, Offer, Place, SessionMachine, agrees
from tcc_certs.values.declared import json_of, text_of
from tcc_runtime.artifact.constraints import core_calls
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.arguments import ToolTables
from tcc_runtime.gate.refusals import Allowed


def ensure_values_distinct(tools: Sequence[Tool]) -> None:
    """Every JSON value is one listed value of its parameter.

    Raises:
        Rejected: C801, of a core in which two texts stand for one value.
    """
    for tool in tools:
        for parameter in tool.parameters:
            texts = [text for text in parameter.values if text not in ("", "*")]
            if len({text_of(json_of(text)) for text in texts}) < len(texts):
                path = f"values of {tool.name}.{parameter.name}"
                raise Rejected(Code.CORE_SCHEMA, path, "one text for each JSON value", "two")


_MOST_PREPARED: Final = 1 << 12  # calls of a core; the tables of larger ones are made on demand


class Policy:
    """An artifact as its gates use it.

    Attributes:
        artifact: which one.
        core: its grammar.
        machine: how calls lead on, and what monitors allow.
        tables: of its tools.
        nothing_taken: of each limit; see :meth:`takes`.
    """

    __slots__ = (
        "_amounts", "_checked", "_core_calls", "_taken", "artifact", "core", "machine",
        "nothing_taken", "tables",
    )  # fmt: skip

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.core: Core = artifact.core
        ensure_values_distinct(self.core.tools)
        self._core_calls = core_calls(artifact)
        self.machine = SessionMachine(
            self.core, artifact.automaton, self._core_calls, artifact.relaxed
        )
        self.tables = ToolTables(self.machine)
        self._amounts: list[Callable[[int], int]] | None = None
        self._taken: dict[tuple[Offer, Observed | None], tuple[int, ...]] = {}
        self.nothing_taken = (0,) * len(self.core.limits)
        self._checked: CheckedArtifact | None = None

    def prepare(self) -> None:
        """Makes the tables of the tools that plans may begin with: no first call waits for them."""
        for offer in self.next_offers(self.machine.start):
            self.tables.numbered(offer.tool)

    def takes(self, offer: Offer, observed: Observed | None) -> tuple[int, ...]:
        """What a call takes of each limit; the most, where its observed values are not known."""
        key = offer, observed
        found = self._taken.get(key)
        if found is None:
            known = (None,) * len(offer.observed) if observed is None else observed
            agreeing = [call for one, call in offer.calls.items() if agrees(one, known)]
            calls = agreeing or tuple(offer.calls.values())
            numbers = [self._core_calls[call] for call in calls]
            if self._amounts is None:
                self._amounts = [_amount(self.core, limit) for limit in self.core.limits]
            most = [max([of(one) for one in numbers], default=0) for of in self._amounts]
            found = self._taken[key] = tuple(most)
        return found

    def checked(self) -> CheckedArtifact:
        """The artifact as the validator of sessions takes it; made for the first ledger."""
        if self._checked is None:
            file = self.artifact.file
            # Certificates were checked when it was opened; no session looks at its counts.
            self._checked = CheckedArtifact(
                file=file,
                automaton=self.artifact.automaton,
                core=self.core,
                table=check_calls(file),
                core_calls=self._core_calls,
                plans=(),
                race_count=(),
            )
        return self._checked

    def leads_on(self, place: Place, offer: Offer) -> bool:
        """Whether a call leads on from a place, for some answer."""
        return any(self.machine.step(place, call) is not None for call in offer.calls.values())

    def next_offers(self, held: Held) -> Sequence[Offer]:
        """The calls that plans allow from every place, in the order of the artifact's calls."""
        machine, first, found = self.machine, held[0], dict[Offer, None]()
        for call in sorted({call for q in first[0] for call in machine.row(q)}):
            offer = machine.offer_of(call)
            known = offer in found or machine.step(first, call) is None
            if not known and all(self.leads_on(place, offer) for place in held[1:]):
                found[offer] = None
        return tuple(found)

    def allowed(self, held: Held) -> tuple[Allowed, ...]:
        """The same calls as JSON values."""
        return tuple([self.tables.numbered(o.tool).allowed(o) for o in self.next_offers(held)])

    def most_calls(self, held: Held) -> int:
        """The most calls that may follow, whichever place it is."""
        rank = self.artifact.automaton.rank
        return min([max([rank[q] for q in states], default=0) for states, _ in held])


_OF: Final[Mapping[str, Callable[[Call], int]]] = {
    "depth": lambda _call: 1,
    "price": lambda call: call.price,
    "latency": lambda call: call.latency,
    "cost": lambda call: call.cost_high,
    "epsilon": lambda call: call.epsilon,
}


def _amount(core: Core, limit: Limit) -> Callable[[int], int]:
    """What a call of the core takes of a limit."""
    ranges = limit.calls
    if ranges is not None:
        return lambda number: any(low <= number < high for low, high in ranges)
    if limit.parameter is not None:
        return summed_parameter(core.tools, core.calls, limit.parameter).__getitem__
    of = _OF[limit.kind]
    return lambda number: of(core.calls[number])


def policy_of(artifact: Artifact) -> Policy:
    """The policy of an artifact, kept with it."""
    found = artifact.kept.get("gate")
    if not isinstance(found, Policy):
        found = artifact.kept["gate"] = Policy(artifact)
        if len(found.core.calls) <= _MOST_PREPARED:
            found.prepare()
    return found
