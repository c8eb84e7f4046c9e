"""A side of an exact question: a grammar, or one statement with a grammar's tools.

A side consists of configurations of plans and of memories of monitors; sums of open values are kept
apart, as intervals (:mod:`tcc_runtime.exact.system`).  :mod:`tcc_certs.session.monitors.keyed`
defines what monitors mean, and :mod:`tcc_certs.session.machine` what plans and relaxed statements
mean; this module repeats none of it.
Cost: linear in the calls of the core, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol, TypeAlias

from tcc_certs.core.model import Core, OrderMonitor, PolicyMonitor, SumMonitor, UsesMonitor
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.proof.fields import Uncovered, ensure_covered as fields_covered
from tcc_certs.session.machine import Place, SessionMachine
from tcc_certs.session.monitors.keyed import Counts, Key, Monitors, Seen, Values
from tcc_certs.statements import Constraints, Tally, statement_constraints
from tcc_runtime.artifact.constraints import core_calls
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.exact.atoms import OpenQuestion

Items: TypeAlias = "frozenset[tuple[tuple[int, Key], int]]"  # counts of monitors, none of them 0


class Walk(Protocol):
    """The configurations of plans on a side; calls by their indices in the core."""

    @property
    def start(self) -> Place:
        """The configuration before the first call."""

    @property
    def longest(self) -> int:
        """Number of calls of a longest plan."""

    def step(self, place: Place, call: int) -> Place | None:
        """The configuration after a call; None if the call may not come next."""

    def accepts(self, place: Place) -> bool:
        """Whether a session may end here."""

    def calls(self, place: Place) -> Sequence[int]:
        """The calls that may come next, as far as the automaton knows."""


class OfPlans:
    """The plans of an artifact, and the statements that it leaves to the run.

    Attributes:
        artifact: the artifact.
        numbers: for each of its calls, the index in the core.
        is_plain: whether a configuration is one state and nothing else.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.numbers = numbers = core_calls(artifact)
        self._mine = {index: call for call, index in enumerate(numbers)}
        core, relaxed = artifact.core, artifact.manifest.relaxed
        self._machine = SessionMachine(core, artifact.automaton, numbers, relaxed)
        self.start: Place = self._machine.start[0]
        self.longest = artifact.automaton.rank[artifact.automaton.root]
        self.artifact = artifact
        self.is_plain = relaxed is None and not artifact.nondeterministic

    def step(self, place: Place, call: int) -> Place | None:
        """See :class:`Walk`."""
        mine = self._mine.get(call)
        return None if mine is None else self._machine.step(place, mine)

    def accepts(self, place: Place) -> bool:
        """See :class:`Walk`."""
        return self._machine.accepts(place)

    def calls(self, place: Place) -> Sequence[int]:
        """See :class:`Walk`."""
        found = {call for q in place[0] for call in self._machine.row(q)}
        return [self.numbers[call] for call in sorted(found)]

    def mine(self, call: int) -> int:
        """The artifact's call for a call of the core; -1 if it has none."""
        return self._mine.get(call, -1)

    # Where `is_plain`: places are states.

    def row(self, q: int) -> list[tuple[int, int]]:
        """The edges of a state as (call of the core, target), in the order of :meth:`calls`."""
        numbers = self.numbers
        return [(numbers[call], target) for call, target in self.artifact.edges(q)]

    def ends(self, q: int) -> bool:
        """Whether a session may end in a state."""
        return self.artifact.accepts(q)


class OfStatements:
    """All statements of a core except its monitors, over any sequence of calls."""

    def __init__(self, core: Core) -> None:
        every = Relaxed(
            limits=tuple(range(len(core.limits))),
            requires=tuple(range(len(core.requires))),
            forbids=tuple(range(len(core.forbids))),
        )
        items = statement_constraints(core, range(len(core.calls)), every)
        self._constraints = Constraints(items=items, calls=len(core.calls))
        self.start: Place = ((), ())
        self.longest = 0

    def step(self, place: Place, call: int) -> Place | None:
        """See :class:`Walk`."""
        after: Tally | None = self._constraints.step(place[1], call)
        return None if after is None else ((), after)

    def accepts(self, place: Place) -> bool:
        """See :class:`Walk`."""
        return self._constraints.may_stop(place[1])

    def calls(self, place: Place) -> Sequence[int]:
        """None, as nobody asks."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A side, prepared for a search.

    Attributes:
        walk: its plans.
        monitors: those without sums, compiled.
        caps: for each summed parameter, by the names of tool and parameter, the least cap.
        tools: index of each tool by name.
        policies: its statements of version 1.2.
        longest: number of calls of a longest plan.
    """

    core: Core
    walk: Walk
    monitors: Monitors
    caps: Mapping[tuple[str, str], str]
    tools: Mapping[str, int]
    policies: Sequence[PolicyMonitor]
    longest: int


_CORE = frozenset(
    (
        "name",
        "version",
        "tools",
        "calls",
        "patterns",
        "rules",
        "plan",
        "start",
        "goals",
        "limits",
        "requires",
        "forbids",
        "monitors",
        "limit_texts",
        "given",
        "lets",
        "looks",
    )
)
_TOOL = frozenset(
    (
        "name",
        "parameters",
        "takes",
        "gives",
        "models",
        "quotes_same",
        "opened",
        "strict",
        "errors_failed",
        "answers",
        "error_text",
    )
)
_MONITORS = (OrderMonitor, SumMonitor, UsesMonitor, PolicyMonitor)


def ensure_covered(core: Core) -> None:
    """Check that this search knows everything in the core: a later version may have more.

    Raises:
        OpenQuestion: P501.
    """
    later = [f.name for f in fields(core) if f.name not in _CORE and getattr(core, f.name)]
    for tool in core.tools:
        later += [f.name for f in fields(tool) if f.name not in _TOOL and getattr(tool, f.name)]
    later += [one.text for one in core.monitors if type(one) not in _MONITORS]
    if later:
        named = ", ".join(later[:3])
        raise OpenQuestion("P501", f"what the search does not know: {named}")
    try:
        fields_covered(core)
    except Uncovered as why:
        raise OpenQuestion("P501", str(why)) from None


def side_of(core: Core, walk: Walk) -> Side:
    """Side of a core and its plans.

    Raises:
        OpenQuestion: P501.
    """
    from tcc_certs.values.numbers import compare

    ensure_covered(core)
    caps: dict[tuple[str, str], str] = {}
    for one in core.monitors:
        if isinstance(one, SumMonitor):
            name = core.tools[one.tool].name, one.parameter
            known = caps.get(name, one.value)
            caps[name] = one.value if compare(one.value, known) < 0 else known
    rest = tuple([one for one in core.monitors if not isinstance(one, SumMonitor)])
    return Side(
        core=core,
        walk=walk,
        monitors=Monitors(replace(core, monitors=rest)),
        caps=caps,
        tools={tool.name: at for at, tool in enumerate(core.tools)},
        policies=[one for one in rest if isinstance(one, PolicyMonitor)],
        longest=walk.longest,
    )


def artifact_side(artifact: Artifact, core: Core | None = None) -> Side:
    """Side of a grammar, or of a part of its core."""
    return side_of(artifact.core if core is None else core, OfPlans(artifact))


def statement_side(core: Core) -> Side:
    """Side of the statements of a core, whatever its plan is."""
    return side_of(core, OfStatements(core))


def remembered(seen: Sequence[Seen], memory: Items, values: Values) -> Items | None:
    """The memory after a call that is done; None if a monitor does not allow the call."""
    counts: Counts = dict(memory)
    for one in seen:
        if not one.rule.allows(counts, one):
            return None
    changed = False
    for one in seen:
        for key, value in one.rule.marks(counts, one, True, values):
            changed = True
            if value:
                counts[key] = value
            else:
                counts.pop(key, None)
    return frozenset(counts.items()) if changed else memory
