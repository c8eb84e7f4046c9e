"""What all sessions over one artifact share: its tools, its walk, its monitors.

Everything is made when it is first asked for, and kept with the artifact.
Cost: of a decision a few look-ups; of a tool's table its calls, once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tcc_certs.core.amounts import summed_parameter
from tcc_certs.core.model import Call, Core, Limit
from tcc_certs.kernel import CheckedArtifact, check_documents
from tcc_certs.rules.calls import check_calls
from tcc_certs.session.states import Plans
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.monitors import MonitorPlan
from tcc_runtime.gate.refusals import Allowed
from tcc_runtime.gate.tools import Group, Indices, ToolTable, ensure_values_distinct
from tcc_runtime.gate.walking import Place, Walk, walk_of


class Policy:
    """An artifact as its gates use it.

    Attributes:
        artifact: which one.
        core: its grammar.
        walk: how calls lead on.
        monitors: what is held about open arguments.
        nothing_taken: of each limit; see :meth:`takes`.
    """

    __slots__ = (
        "_amounts",
        "_by_text",
        "_groups",
        "_numbers",
        "_shown",
        "_tables",
        "_taken",
        "artifact",
        "core",
        "monitors",
        "nothing_taken",
        "walk",
    )

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.core: Core = artifact.core
        self.walk: Walk = walk_of(artifact)
        self.monitors = MonitorPlan(self.core)
        ensure_values_distinct(self.core.tools)
        self._numbers = {tool.name: at for at, tool in enumerate(self.core.tools)}
        self._tables: dict[int, ToolTable] = {}
        self._groups: dict[int, Group] = {}
        self._by_text: dict[str, Group] | None = None
        self._amounts: list[Callable[[int], int]] | None = None
        self._taken: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.nothing_taken = (0,) * len(self.core.limits)
        self._shown: tuple[CheckedArtifact, Plans] | None = None

    def tool(self, name: object) -> ToolTable | None:
        """The table of a tool, None where there is no such tool."""
        number = self._numbers.get(name) if type(name) is str else None
        return None if number is None else self.table(number)

    def table(self, number: int) -> ToolTable:
        """The table of a tool by its number."""
        found = self._tables.get(number)
        if found is None:
            found = ToolTable(self.artifact, number)
            for group in found.groups.values():
                self._groups.update(dict.fromkeys(group.calls, group))
            self._tables[number] = found
        return found

    def group_of(self, call: int) -> Group:
        """The group that a call of the artifact is in."""
        found = self._groups.get(call)
        if found is None:
            self.table(self.core.calls[self.core_call(call)].tool)
            found = self._groups[call]
        return found

    def core_call(self, call: int) -> int:
        """The number in the core of a call of the artifact."""
        text = self.artifact.texts[call].encode()
        return bisect_left(self.core.calls, text, key=lambda one: one.text.encode())

    def takes(self, group: Group, observed: Indices | None) -> tuple[int, ...]:
        """What a call takes of each limit; the most, where its observed values are not known."""
        known = None if observed is None else group.by_observed.get(observed)
        calls = group.calls if known is None else (known,)
        found = self._taken.get(calls)
        if found is None:
            numbers = [self.core_call(call) for call in calls]
            if self._amounts is None:
                self._amounts = [_amount(self.core, limit) for limit in self.core.limits]
            most = [max([of(one) for one in numbers], default=0) for of in self._amounts]
            found = tuple(most)
            self._taken[calls] = found
        return found

    def by_text(self, text: str) -> Group | None:
        """The group with that canonical text; all tools are made for it."""
        if self._by_text is None:
            tables = [self.table(number) for number in range(len(self.core.tools))]
            self._by_text = {
                group.text: group for table in tables for group in table.groups.values()
            }
        return self._by_text.get(text)

    def shown(self) -> tuple[CheckedArtifact, Plans]:
        """The artifact as the validator of sessions goes through it; made for the first ledger."""
        if self._shown is None:
            file = self.artifact.file
            table = check_calls(file)
            core, core_calls = check_documents(file, table)
            # Certificates were checked when it was opened; no session looks at its counts.
            found = CheckedArtifact(
                file=file,
                automaton=self.artifact.automaton,
                core=core,
                table=table,
                core_calls=core_calls,
                plans=(),
                race_count=(),
            )
            self._shown = found, Plans(found)
        return self._shown

    def next_groups(self, places: Sequence[Place]) -> list[Group]:
        """The calls that plans allow from everywhere in `places`, in order, each group once."""
        found: dict[str, Group] = {}
        for call in self.walk.calls(places[0]):
            group = self.group_of(call)
            if group.text not in found and all(self.leads_on(group, place) for place in places):
                found[group.text] = group
        return list(found.values())

    def leads_on(self, group: Group, place: Place) -> bool:
        """Whether a call of the group leads on from a place, for some observed values."""
        step = self.walk.step
        return any(step(place, call) is not None for call in group.calls)

    def allowed(self, places: Sequence[Place]) -> tuple[Allowed, ...]:
        """The same calls as JSON values."""
        return tuple(self.table(g.tool).allowed(g) for g in self.next_groups(places))


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
    return found
