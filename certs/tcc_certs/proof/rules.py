"""Statements of version 1.2, as exact questions remember calls for them.

Statements with spans of time share one history, a line; each other one has its own, a line where
it matters which of two calls came first, else a bag.
Normative text: docs/spec/proof.md, section 1.  Cost: linear in the statements and their tools.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcc_certs.core.model import Core, PolicyMonitor, SumMonitor
from tcc_certs.core.opened import fields_of
from tcc_certs.core.policies import Ban, Count, Fields, Need, Owe, Policy, Total
from tcc_certs.proof.fields import ANY, Uncovered
from tcc_certs.proof.lists import MEMBERS, PAIR
from tcc_certs.proof.spoken import Attribute, alternatives_of, attributes_of, named_by
from tcc_certs.session.monitors.policies import Memory, Policies
from tcc_certs.values.places import State, constant

MAX_LEFT_OUT = 12  # fields of a tool that a statement names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """A statement of a side.

    Attributes:
        number: of its monitor, sums not counted.
        session: the attributes that it speaks of, by name their places.
        rests: for each tool and field that lists its values, the state of what is not listed.
        lasting: the age from which on a call is nothing to it.
    """

    side: int
    number: int
    policies: Policies
    tools: Mapping[str, int]
    session: Mapping[str, int]
    rests: Mapping[tuple[str, str], State]
    lasting: int

    def memory(self) -> Memory:
        """Of no call."""
        return Memory(self.policies)


@dataclass(slots=True, kw_only=True, eq=False)
class Group:
    """Statements that share a history.

    Attributes:
        names: for each tool, by its name, the fields that are kept.
        most: how many calls that are alike are kept; None: all.
    """

    ordered: bool
    timed: bool
    most: int | None
    rules: list[Rule] = field(default_factory=list)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Marks(dict["tuple[str, bytes]", "bool | None"]):
    """Of each pattern and each text whether it matches, as a ledger's marks say it."""

    def __init__(self, matches: Callable[[str, Any], bool]) -> None:
        super().__init__()
        self._matches = matches

    def get(self, key: Any, default: Any = None) -> Any:
        """See the class."""
        return self._matches(*key)


def groups_of(
    cores: Sequence[Core], *, listed: bool
) -> tuple[list[int], list[Attribute], list[Group]]:
    """The spans of time of the statements of two sides, what they speak of, and their histories.

    Args:
        listed: whether some compare lists with values.

    Raises:
        Uncovered: more fields of a tool than there is room for.
    """
    held = [
        (side, number, one.policy)
        for side, core in enumerate(cores)
        for number, one in enumerate(
            [one for one in core.monitors if not isinstance(one, SumMonitor)]
        )
        if isinstance(one, PolicyMonitor)
    ]
    windows = sorted({span for _, _, one in held for span in _windows(one) if span})
    attributes = sorted(
        {one for side, _, policy in held for one in attributes_of(cores[side], policy).values()}
    )
    line = Group(ordered=True, timed=True, most=0)
    found = []
    for side, number, policy in held:
        timed = any(span is not None for span in _windows(policy))
        group = line if timed else Group(ordered=_in_order(policy), timed=False, most=0)
        if not timed:
            found.append(group)
        rule = _rule(side, number, policy, cores[side], windows, attributes)
        _place(group, rule, policy, cores[side], attributes)
    found += [line] if line.rules else []
    for group in found:
        group.names = {tool: tuple(sorted(names)) for tool, names in group.names.items()}
    if listed:
        found.append(Group(ordered=False, timed=False, most=1, names={MEMBERS: PAIR}))
    if attributes:
        every = tuple(map(learned_name, range(len(attributes))))
        found.append(Group(ordered=False, timed=False, most=1, names={SESSION: every}))
    many = max([len(names) for group in found for names in group.names.values()] or [0])
    if many > MAX_LEFT_OUT:
        raise Uncovered(f"more than {MAX_LEFT_OUT} fields of a tool")
    return windows, attributes, found


def _rule(
    side: int,
    number: int,
    policy: Policy,
    core: Core,
    windows: Sequence[int],
    attributes: Sequence[Attribute],
) -> Rule:
    spans = _windows(policy)
    whole = None in spans or not spans
    greatest = max([span for span in spans if span is not None], default=0)
    spoken = attributes_of(core, policy)
    fields = Fields(
        tools=tuple(map(fields_of, core.tools)),
        session=frozenset(spoken),
        looks={one.name: one for one in core.looks},
    )
    return Rule(
        side=side,
        number=number,
        policies=Policies([policy], fields),
        tools={tool.name: at for at, tool in enumerate(core.tools)},
        session={name: attributes.index(one) for name, one in spoken.items()},
        rests={
            (tool.name, one.name): (
                "*",
                tuple([constant(text) for text in one.values[:-1] if text]),
            )
            for tool in core.tools
            for one in tool.parameters
            if one.values[-1] == ANY
        },
        lasting=len(windows) + 1 if whole else 1 + windows.index(greatest),
    )


def _place(
    group: Group, rule: Rule, policy: Policy, core: Core, attributes: Sequence[Attribute]
) -> None:
    most = _alike(policy)
    group.most = None if most is None or group.most is None else max(most, group.most)
    group.rules.append(rule)
    learned = [learned_name(at) for at in rule.session.values() if attributes[at].sources]
    for tool, names in named_by(core, policy).items():
        name = core.tools[tool].name
        group.names[name] = tuple({*group.names.get(name, ()), *names, *learned})


SESSION = "\0"  # in the place of a tool's name: the attributes of the session


def learned_name(number: int) -> str:
    """The name of an attribute among the fields of a call that was decided when it was known."""
    return f"{SESSION}{number}"


def attribute_of(name: str) -> int | None:
    """The place of the attribute that a field of a remembered call is; None: it is another one."""
    return int(name[1:]) if name[:1] == SESSION else None


def _windows(policy: Policy) -> list[int | None]:
    """The spans of time in which calls count, None where there is none."""
    if isinstance(policy, Need | Ban):
        return [one.within for one in alternatives_of(policy) if one.calls is not None]
    return [policy.within] if isinstance(policy, Count | Total) else [None]


def _in_order(policy: Policy) -> bool:
    """Whether it matters which of two calls came first."""
    if isinstance(policy, Need):
        return policy.order == "each" or any(one.last for one in policy.alternatives)
    if isinstance(policy, Ban):
        return bool(policy.unless) or any(one.last for one in policy.alternatives)
    return isinstance(policy, Owe)


def _alike(policy: Policy) -> int | None:
    """How many calls with the same fields it tells apart; None: any number."""
    if isinstance(policy, Need) and policy.order == "each":
        return None
    if isinstance(policy, Count | Total):
        return None
    return max([1, *[one.least for one in alternatives_of(policy)]])
