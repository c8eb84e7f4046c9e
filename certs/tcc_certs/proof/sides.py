"""Sides of an exact question: a grammar, or the statement of a question beside its tools.

What plans, statements and monitors mean is said by :mod:`tcc_certs.session` and
:mod:`tcc_certs.statements`.
Cost: linear in the core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tcc_certs.core.mentions import attributes_named
from tcc_certs.core.model import Core, OrderMonitor, PolicyMonitor, SumMonitor, Tool, UsesMonitor
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.artifact import Automaton, Relaxed
from tcc_certs.proof.fields import Uncovered, ensure_alike, ensure_covered, given_alike
from tcc_certs.session.machine import Place, SessionMachine
from tcc_certs.session.monitors.keyed import Monitors, Values
from tcc_certs.statements import Constraints, statement_constraints
from tcc_certs.values.numbers import compare

# Sides.


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A grammar, or the statements of a question beside the tools of one.

    Attributes:
        machine: its plans; statements: what stands in their place for a question's statement.
        monitors: without sums.  caps: of each summed parameter, by names, the least cap.
    """

    core: Core
    machine: SessionMachine | None
    statements: Constraints
    core_calls: Sequence[int]
    monitors: Monitors
    caps: Mapping[tuple[str, str], str]
    tools: Mapping[str, int]
    own: Mapping[int, int]  # of a call of the core that of the artifact
    states: int
    shapes: Mapping[int, tuple[bool, ...]]  # of the keys of a slot: which parts are of open values
    monitored: Sequence[tuple[int, ...]]  # for each monitor the tools that it names
    policies: Sequence[PolicyMonitor]
    longest: int  # calls of a plan
    places: dict[tuple[int, ...], Place] = field(default_factory=dict)  # of states alone, each once

    @property
    def start(self) -> Place:
        """Before the first call."""
        return ((), ()) if self.machine is None else self.machine.start[0]

    def step(self, place: Place, call: int) -> Place | None:
        """After a call of the core; None: it may not come next."""
        if self.machine is None:
            after = self.statements.step(place[1], call)
            return None if after is None else ((), after)
        mine = self.own.get(call)
        return None if mine is None else self.machine.step(place, mine)

    def accepts(self, place: Place) -> bool:
        """Whether a session may end there."""
        if self.machine is None:
            return self.statements.may_stop(place[1])
        return self.machine.accepts(place)

    def steps(self, place: Place) -> dict[int, Place]:
        """The calls of the core that plans go on with, increasing, and where each leads."""
        if self.machine is None:
            return {}
        numbers, states = self.core_calls, place[0]
        if len(states) == 1 and not self.statements.items:  # targets increase, as edges do
            once = self.places.setdefault
            made = [(numbers[c], tuple(to)) for c, to in self.machine.row(states[0]).items()]
            return {call: once(to, (to, ())) for call, to in sorted(made)}
        calls = sorted({numbers[c] for q in states for c in self.machine.row(q)})
        steps = [(call, self.step(place, call)) for call in calls]
        return {call: after for call, after in steps if after is not None}


def grammar_side(
    core: Core, automaton: Automaton, core_calls: Sequence[int], relaxed: Relaxed | None
) -> Side:
    """The side of a grammar: what its artifact has."""
    machine = SessionMachine(core, automaton, core_calls, relaxed)
    items = statement_constraints(core, core_calls, relaxed)
    longest = automaton.rank[automaton.root]
    return _side(core, machine, items, core_calls, automaton.states, longest)


def statement_side(core: Core) -> Side:
    """The side of the statements of a core, over any sequence of its calls."""
    every = Relaxed(
        limits=tuple(range(len(core.limits))),
        requires=tuple(range(len(core.requires))),
        forbids=tuple(range(len(core.forbids))),
    )
    calls = range(len(core.calls))
    return _side(core, None, statement_constraints(core, calls, every), calls, 0)


def ensure_one_session(left: Side, right: Side) -> None:
    """Calls with values are the same calls on both sides, so that a session may be one of each.

    What a closed list needs besides is for :mod:`tcc_certs.proof.compared`.

    Raises:
        Rejected: D101 they are not.
    """
    every = (*left.policies, *right.policies)
    spoken = {name for one in every for name in attributes_named(one.policy)}
    given = {one.name for of in (left, right) for one in of.core.given}
    try:
        given_alike(left.core, right.core, spoken & given)
        for tool in left.core.tools:
            number = right.tools.get(tool.name)
            if number is not None:  # what is null cannot be written: it is left out
                ensure_alike(tool, right.core.tools[number], ())
    except Uncovered as why:
        raise Rejected(Code.UNKNOWN_FEATURE, "core", "sides alike", str(why)) from None


def forgetting(core: Core, left: Core | None = None) -> Core:
    """A core without statements of version 1.2.

    A left side may be without any of its own: that lets more sessions through.  A right side may be
    without those that the left side has, too, about the same tools: no session of the left breaks
    them, whether the left side is looked at with them or without.

    Args:
        left: of a right side the core of the left.
    """
    if left is not None and _spoken_of(left) != _spoken_of(core):
        return core
    held = [one.policy for one in left.monitors if isinstance(one, PolicyMonitor)] if left else []
    kept = tuple(
        [
            one
            for one in core.monitors
            if (isinstance(one, PolicyMonitor) and left is not None and one.policy not in held)
            or not isinstance(one, PolicyMonitor)
        ]
    )
    some = any(isinstance(one, PolicyMonitor) for one in kept)
    if some:
        return replace(core, monitors=kept)
    return replace(core, monitors=kept, given=(), lets=(), looks=())


def _spoken_of(core: Core) -> tuple[object, ...]:
    """What statements may speak of."""
    return core.tools, core.calls, core.given, core.lets, core.looks


def compared_cores(cores: Sequence[Core], *, listed: bool, bare: bool) -> list[Core]:
    """The cores of a question's artifacts, as far as they are looked at: see :func:`forgetting`.

    Args:
        listed: closed lists show it, and no session.
        bare: these leave statements of version 1.2 of the left aside, as all do that look at one
            key at a time.
    """
    if not listed:
        return list(cores)
    left = forgetting(cores[0]) if bare else cores[0]
    return [left, *[forgetting(core, cores[0]) for core in cores[1:]]]


_KNOWN = (OrderMonitor, SumMonitor, UsesMonitor, PolicyMonitor)


def _side(
    core: Core,
    machine: SessionMachine | None,
    items: list[Any],
    calls: Sequence[int],
    states: int,
    longest: int = 0,
) -> Side:
    policies = [one for one in core.monitors if isinstance(one, PolicyMonitor)]
    try:
        ensure_covered(core)
    except Uncovered as why:
        raise Rejected(Code.UNKNOWN_FEATURE, "core", "fields that are covered", str(why)) from None
    caps: dict[tuple[str, str], str] = {}
    for one in core.monitors:
        ensure(isinstance(one, _KNOWN), Code.UNKNOWN_FEATURE, "core", "monitors of 1.1", one.text)
        if isinstance(one, SumMonitor):
            name = core.tools[one.tool].name, one.parameter
            caps[name] = min_decimal(caps.get(name, one.value), one.value)
    rest = tuple([one for one in core.monitors if not isinstance(one, SumMonitor)])
    return Side(
        core=core,
        machine=machine,
        statements=Constraints(items=items, calls=max(1, len(calls))),
        core_calls=calls,
        monitors=Monitors(replace(core, monitors=rest)),
        caps=caps,
        tools={tool.name: at for at, tool in enumerate(core.tools)},
        own={index: call for call, index in enumerate(calls)},
        states=states,
        shapes=_shapes(core, rest),
        monitored=[_named(one) for one in rest],
        policies=tuple(policies),
        longest=longest,
    )


def _named(one: Any) -> tuple[int, ...]:
    """The tools that a monitor of 1.1 names."""
    if isinstance(one, PolicyMonitor):
        return ()
    return (one.calls.tool,) if isinstance(one, UsesMonitor) else (one.first.tool, one.second.tool)


def _shapes(core: Core, monitors: Sequence[Any]) -> dict[int, tuple[bool, ...]]:
    found: dict[int, tuple[bool, ...]] = {}
    for number, one in enumerate(monitors):
        if isinstance(one, PolicyMonitor):
            continue
        if isinstance(one, UsesMonitor):
            found[2 * number] = (True,)
            continue
        for at, of in enumerate((one.first, one.second)):
            opened = {p.name for p in core.tools[of.tool].opened}
            found[2 * number + at] = tuple([pair[at] in opened for pair in one.same])
    return found


def min_decimal(one: str, other: str) -> str:
    """The lesser of two canonical decimals."""
    return one if compare(one, other) <= 0 else other


def named(tool: Tool, values: Sequence[int]) -> tuple[str, frozenset[tuple[str, str]]]:
    """A call by the names of its tool and of its listed values."""
    pairs = zip(tool.parameters, values, strict=True)
    return tool.name, frozenset([(p.name, p.values[i]) for p, i in pairs if p.values[i]])


def chosen_values(tool: Tool, values: Sequence[int | None]) -> Values:
    """The listed values of a call without its answers."""
    pairs = zip(tool.parameters, values, strict=True)
    return tuple([None if param.observed else value for param, value in pairs])
