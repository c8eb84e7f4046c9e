"""Objects that all gates over one artifact share: session machine, decider and tables of tools.

The policy of an artifact is built when the first gate is opened, and is kept with the artifact.
Text: docs/gate.md.  Cost: linear in the artifact, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias

from tcc_certs.call_rules import check_calls
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.policy import forms
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.forms import Tools
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.nodes import statement_text
from tcc_certs.policy.uses import Uses
from tcc_certs.session.machine import Course, Offer, Position, Positions, SessionMachine
from tcc_certs.session.records import open_name
from tcc_certs.session.replay import Statements
from tcc_certs.values.places import State
from tcc_runtime.artifact.constraints import core_calls
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.arguments import FieldReader, ToolTables
from tcc_runtime.gate.decide import FastHistory, FastPolicy
from tcc_runtime.gate.refusals import Allowed
from tcc_runtime.gate.remedies import Remedies

# if a core has at most so many calls, the first tables are built when the policy is
_MOST_PREPARED: Final = 1 << 12


# Sets of tools; and for each learned attribute the tools that it is learned from.
Reads: TypeAlias = "tuple[Sequence[Tools], Mapping[str, Tools]]"


class Policy:
    """The policy of an artifact, with the objects that its gates need.

    Attributes:
        core: the grammar of the artifact.
        decider, statements: decides statements; the same with the class of its histories.
        machine: decides the plan expression.
        tables: read arguments and answers of the tools.
        core_calls: the index in the core of each call of the artifact.
        given: reads the attributes that a session starts with.
        uses: which part of each value a ledger has: the value, its type or its digest.
        texts, remedies: the texts of the statements, and the explanations of their refusals.
        open_fields: tool and name of each open field, as `show` names it.
        timed: whether records have times.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.core: Core = artifact.core
        self.core_calls = core_calls(artifact)
        self.machine = SessionMachine(self.core, artifact.automaton, self.core_calls)
        self.decider = FastPolicy(self.core)
        self.tables = ToolTables(self.machine)
        self.given = FieldReader([one for one in self.core.given if not isinstance(one, Learned)])
        self.uses = Uses(self.core, self.decider.rules)
        self.timed = self.uses.timed
        self.statements = Statements(policy=self.decider, history=FastHistory, uses=self.uses)
        self.texts = tuple(map(statement_text, self.core.statements))
        self.remedies = Remedies(self.core, self.decider.rules)
        self.open_fields = {
            open_name(tool.name, field.name): (tool.name, field.name)
            for tool in self.core.tools
            for field in (*tool.arguments, *tool.answers)
            if field.type is not None
        }
        self._reads: dict[int, Reads] = {}

    def course(self, given: Mapping[str, State]) -> Course:
        """Return the course of a new session.

        Args:
            given: the states of its attributes.
        """
        return Course(self.machine, self.decider, self.statements.history(self.core, given))

    def prepare(self) -> None:
        """Build the tables of the tools that plans may begin with, so that no call waits for it."""
        for offer in self.next_offers(self.machine.start):
            self.tables.numbered(offer.tool)

    @cached_property
    def checked(self) -> CheckedArtifact:
        """The artifact for the validator of sessions."""
        file = self.artifact.file
        # The certificates were checked when the artifact was loaded; sessions do not use its
        # counts.
        return CheckedArtifact(
            file=file,
            automaton=self.artifact.automaton,
            core=self.core,
            table=check_calls(file),
            core_calls=self.core_calls,
            plans=(),
            race_count=(),
        )

    # Plans.

    def leads_on(self, position: Position, offer: Offer) -> bool:
        """Return whether some plan continues after a call at a position, for some answer."""
        return any(self.machine.step(position, call) for call in offer.calls.values())

    def leads_to(self, position: Position, core_call: int) -> bool:
        """Return whether some plan continues after a core call at a position."""
        call = self._artifact_calls.get(core_call)
        return call is not None and bool(self.machine.step(position, call))

    @cached_property
    def _artifact_calls(self) -> Mapping[int, int]:
        return {core_call: call for call, core_call in enumerate(self.core_calls)}

    def next_offers(self, held: Positions) -> tuple[Offer, ...]:
        """Return the calls that plans allow at each of the positions, in the order of the
        artifact's calls.
        """
        calls = sorted({call for state in held[0] for call in self.machine.next_calls(state)})
        offers = dict.fromkeys(map(self._offer_of, calls))
        others = held[1:]
        return tuple(
            [one for one in offers if all(self.leads_on(position, one) for position in others)]
        )

    def _offer_of(self, call: int) -> Offer:
        known = self.core.calls[self.core_calls[call]]
        arguments = self.machine.listed(known.tool).arguments
        return self.machine.offers(known.tool)[known.values[:arguments]]

    def calls_of(
        self, tool: int, arguments: tuple[int | None, ...]
    ) -> Sequence[tuple[tuple[int, ...], int]]:
        """Return the core calls with these listed arguments: their answers, and their indices."""
        return self._core_offers.get((tool, arguments), ())

    @cached_property
    def _core_offers(self) -> Mapping[Any, list[tuple[tuple[int, ...], int]]]:
        found: dict[Any, list[tuple[tuple[int, ...], int]]] = {}
        for at, call in enumerate(self.core.calls):
            arguments = self.machine.listed(call.tool).arguments
            answers = call.values[arguments:]
            found.setdefault((call.tool, call.values[:arguments]), []).append((answers, at))
        return found

    def allowed(self, offers: Sequence[Offer]) -> tuple[Allowed, ...]:
        """Return calls as JSON values."""
        return tuple([self.tables.numbered(one.tool).allowed(one) for one in offers])

    # Statements.

    def read_by(self, statement: int) -> Reads:
        """Return the sets of tools, and the learned attributes, whose outcomes a statement depends
        on.
        """
        found = self._reads.get(statement)
        if found is None:
            found = self._reads[statement] = self._read_by(statement)
        return found

    def _read_by(self, statement: int) -> Reads:
        rule: Any = self.decider.rules[statement]
        if rule.kind == "total":
            return [frozenset([tool.name for tool in self.core.tools])], {}
        sets: list[Tools] = [rule.pays]
        if rule.kind in ("limit", "owe"):
            sets.append(rule.tools)
        learned = {one.name: one.sources for one in self.core.given if isinstance(one, Learned)}
        attributes: dict[str, Tools] = {}
        for form in walk(rule):
            match form:
                case forms.Calls(tools):
                    sets.append(tools)
                case forms.Attribute(name) if name in learned:
                    attributes[name] = frozenset([tool for tool, _ in learned[name]])
        return sets, attributes


def policy_of(artifact: Artifact) -> Policy:
    """Return the policy of an artifact, which is kept with the artifact."""
    found = artifact.kept.get("gate")
    if not isinstance(found, Policy):
        found = artifact.kept["gate"] = Policy(artifact)
        if len(found.core.calls) <= _MOST_PREPARED:
            found.prepare()
    return found
