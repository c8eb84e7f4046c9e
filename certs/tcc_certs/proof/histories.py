"""What statements of version 1.2 remember on both sides of a question, and what they decide of it.

A statement is asked of :mod:`tcc_certs.session.monitors`, the one interpreter, over a short
history: the calls that it remembers, with those fields alone that it names.  A call that comes
again with the same fields stands for the one before it, where the statement counts none.  Where no
order matters the calls are a bag; statements with spans of time share one line of calls, in which
each call has an *age*: how many of the spans, from the least on, it has left.  Time goes on before
a call, and ages rise, of older calls first.
Normative text: docs/spec/proof.md, section 1.  No Coq theorem covers these forms: they are held to
brute force by tests/exact.
Cost: a decision that was not met before takes the calls that are remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tcc_certs.core.model import Core, PolicyMonitor, SumMonitor
from tcc_certs.core.opened import fields_of
from tcc_certs.core.policies import (
    MAX_WINDOW,
    Ban,
    Count,
    Fields,
    Need,
    Owe,
    Policy,
    Total,
)
from tcc_certs.proof.spoken import Part, alternatives_of, named_by
from tcc_certs.session.monitors.keyed import Event
from tcc_certs.session.monitors.policies import Memory, Policies
from tcc_certs.values.places import NONE, UNKNOWN, State, constant

Entry: TypeAlias = "tuple[int, int, int, tuple[Part, ...]]"  # tool, fields left out, age, the rest
Past: TypeAlias = "tuple[tuple[Entry, ...], ...]"  # for each group its calls
Flat: TypeAlias = "tuple[int, int, tuple[Part, ...], int]"  # group, slot, key, value
MAX_LEFT_OUT = 12  # fields of a tool that a statement names
MAX_ALIKE = 1 << 12  # calls with the same fields
MAX_REMEMBERED = 1 << 15  # decisions that are kept
_NOW = 2 * MAX_WINDOW


# Statements, compiled.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rule:
    """A statement of a side.

    Attributes:
        number: of its monitor, sums not counted.
        lasting: the age from which on a call is nothing to it.
    """

    side: int
    number: int
    policies: Policies
    tools: Mapping[str, int]
    lasting: int

    def memory(self) -> Memory:
        """Of no call."""
        return Memory(self.policies)


@dataclass(slots=True, kw_only=True, eq=False)
class _Group:
    """Statements that share a history.

    Attributes:
        names: for each tool, by its name, the fields that are kept.
        most: how many calls that are alike are kept; None: all.
    """

    ordered: bool
    timed: bool
    most: int | None
    rules: list[_Rule] = field(default_factory=list)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallParts:
    """A call of the left side, with what stands for the values of its fields.

    Attributes:
        parts: by name; what is left out is not there.
        answers: names of the fields that the tool answers, which are not known when it is decided.
    """

    tool: str
    parts: tuple[tuple[str, Part], ...]
    answers: frozenset[str]


class Histories:
    """The statements of version 1.2 of two sides.

    Args:
        state_of: the value that a token stands for.

    Attributes:
        windows: the spans of time, increasing.
    """

    def __init__(self, cores: Sequence[Core], state_of: Callable[[Part], State]) -> None:
        self._state_of = state_of
        self._tools = [tool.name for tool in cores[0].tools]
        self._numbers = {name: at for at, name in enumerate(self._tools)}
        held = [
            (side, number, one.policy)
            for side, core in enumerate(cores)
            for number, one in enumerate(
                [one for one in core.monitors if not isinstance(one, SumMonitor)]
            )
            if isinstance(one, PolicyMonitor)
        ]
        self.windows = sorted({span for _, _, one in held for span in _windows(one) if span})
        self._offsets = (0, *[span + 1 for span in self.windows])
        self._groups: list[_Group] = []
        line = _Group(ordered=True, timed=True, most=0)
        for side, number, policy in held:
            self._place(line, side, number, policy, cores[side])
        if line.rules:
            self._groups.append(line)
        for group in self._groups:
            group.names = {tool: tuple(sorted(names)) for tool, names in group.names.items()}
        self._known: dict[Any, Any] = {}

    def _place(self, line: _Group, side: int, number: int, policy: Policy, core: Core) -> None:
        spans = _windows(policy)
        timed = any(span is not None for span in spans)
        group = line if timed else _Group(ordered=_in_order(policy), timed=False, most=0)
        if not timed:
            self._groups.append(group)
        most = _alike(policy)
        group.most = None if most is None or group.most is None else max(most, group.most)
        whole = None in spans or not spans
        greatest = max([span for span in spans if span is not None], default=0)
        fields = Fields(tools=tuple(map(fields_of, core.tools)))
        group.rules.append(
            _Rule(
                side=side,
                number=number,
                policies=Policies([policy], fields),
                tools={tool.name: at for at, tool in enumerate(core.tools)},
                lasting=len(self.windows) + 1 if whole else 1 + self.windows.index(greatest),
            )
        )
        for tool, names in named_by(core, policy).items():
            name = core.tools[tool].name
            group.names[name] = tuple({*group.names.get(name, ()), *names})

    @property
    def empty(self) -> bool:
        """Whether neither side has any."""
        return not self._groups

    @property
    def size(self) -> int:
        """How many histories there are."""
        return len(self._groups)

    @property
    def start(self) -> Past:
        """Before the first call."""
        return ((),) * len(self._groups)

    # Time.

    def advances(self, past: Past) -> Iterator[tuple[bool, Past]]:
        """What time may be gone before the next call, first none, and whether it always may."""
        now = self.ages(past)
        if not now:
            yield True, past
            return
        for ages in self._ages(now):
            sure = ages == now or set(ages) == {len(self.windows)}
            yield sure, self.aged(past, ages)

    def aged(self, past: Past, ages: Sequence[int]) -> Past:
        """A history whose calls in the line have these ages."""
        at = next((at for at, one in enumerate(self._groups) if one.timed), None)
        if at is None:
            return past
        line = tuple(
            [(tool, out, age, key) for (tool, out, _, key), age in zip(past[at], ages, strict=True)]
        )
        return (*past[:at], line, *past[at + 1 :])

    def _ages(self, now: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Ages that are no less, and no less for older calls."""

        def choose(at: int, most: int, later: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if at == len(now):
                yield later
                return
            for age in range(now[at], most + 1):
                yield from choose(at + 1, age, (*later, age))

        return choose(0, len(self.windows), ())

    # Calls.

    def refused(self, past: Past, made: CallParts, uses: frozenset[int], side: int) -> bool:
        """Whether a statement of a side refuses a call; of the left only those of `uses` count."""
        for group, entries in zip(self._groups, past, strict=True):
            for rule in group.rules:
                if rule.side != side or (side == 0 and rule.number not in uses):
                    continue
                if made.tool not in rule.tools:
                    continue
                key = rule, entries, made
                found = self._known.get(key)
                if found is None:
                    found = self._keep(key, self._refuses(rule, group, entries, made))
                if found:
                    return True
        return False

    def _refuses(
        self, rule: _Rule, group: _Group, entries: Sequence[Entry], made: CallParts
    ) -> bool:
        tool = rule.tools[made.tool]
        if not rule.policies.decides[tool]:
            return False
        memory = rule.memory()
        for event in self._events(rule, group, entries):
            if event is not None:
                memory.add(event)
        parts = {
            name: UNKNOWN if name in made.answers else self._state(part)
            for name, part in made.parts
        }
        states = {name: parts.get(name, NONE) for name in group.names.get(made.tool, ())}
        own = Event(at=len(entries) + 1, tool=tool, states=states, stamp=_NOW)
        return memory.refuses(own) is not None

    def after(self, past: Past, made: CallParts) -> Past:
        """What is remembered when a call is done."""
        found = []
        for group, entries in zip(self._groups, past, strict=True):
            key = group, entries, made
            kept = self._known.get(key)
            if kept is None:
                kept = self._keep(key, self._settled(group, entries, made))
            found.append(kept)
        return tuple(found)

    def ages(self, past: Past) -> tuple[int, ...]:
        """Of the calls in the line, how many spans of time each has left."""
        for group, entries in zip(self._groups, past, strict=True):
            if group.timed:
                return tuple([entry[2] for entry in entries])
        return ()

    def sources(self, past: Past, made: CallParts) -> tuple[int, ...]:
        """Of each call in the line after a call its place before it; -1 of the call itself."""
        for group, entries in zip(self._groups, past, strict=True):
            if group.timed:
                every = self._with(group, entries, made)
                return tuple([at if at < len(entries) else -1 for at in self._places(group, every)])
        return ()

    def _keep(self, key: Any, value: Any) -> Any:
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = value
        return value

    def _with(self, group: _Group, entries: Sequence[Entry], made: CallParts) -> list[Entry]:
        names = group.names.get(made.tool)
        if names is None:
            return list(entries)
        parts = dict(made.parts)
        out = sum((name not in parts) << at for at, name in enumerate(names))
        key = tuple([parts[name] for name in names if name in parts])
        return [*entries, (self._numbers[made.tool], out, 0, key)]

    def _settled(
        self, group: _Group, entries: Sequence[Entry], made: CallParts
    ) -> tuple[Entry, ...]:
        every = self._with(group, entries, made)
        kept = [every[at] for at in self._places(group, every)]
        return tuple(kept if group.ordered else sorted(kept))

    def _places(self, group: _Group, entries: Sequence[Entry]) -> list[int]:
        """The places of calls that are still remembered."""
        wanted = [False] * len(entries)
        for rule in group.rules:
            memory = rule.memory()
            for at, event in enumerate(self._events(rule, group, entries)):
                if event is not None and memory.add(event):
                    wanted[at] = wanted[at] or entries[at][2] < rule.lasting
        alike: dict[Any, int] = {}
        found = []
        for at in reversed(range(len(entries))):
            tool, out, _, key = entries[at]
            same = alike.get((tool, out, key), 0)
            if wanted[at] and (group.most is None or same < group.most):
                alike[tool, out, key] = same + 1
                found.append(at)
        found.reverse()
        return found

    def owes(self, past: Past, uses: frozenset[int], side: int) -> bool:
        """Whether by a statement of a side a call has to come yet."""
        for group, entries in zip(self._groups, past, strict=True):
            for rule in group.rules:
                if rule.side != side or (side == 0 and rule.number not in uses):
                    continue
                memory = rule.memory()
                for event in self._events(rule, group, entries):
                    if event is not None:
                        memory.add(event)
                if memory.owed:
                    return True
        return False

    def _events(
        self, rule: _Rule, group: _Group, entries: Sequence[Entry]
    ) -> Iterator[Event | None]:
        """The calls as a statement has them; None where its side has no such tool."""
        for at, (tool, out, age, key) in enumerate(entries, 1):
            name = self._tools[tool]
            number = rule.tools.get(name)
            if number is None:
                yield None
                continue
            parts = iter(key)
            states = {
                field_name: NONE if out >> place & 1 else self._state(next(parts))
                for place, field_name in enumerate(group.names[name])
            }
            yield Event(
                at=at,
                tool=number,
                states=states,
                stamp=_NOW - self._offsets[age],
                done=True,
                told=at,
            )

    def _state(self, part: Part) -> State:
        return constant(part) if isinstance(part, str) else self._state_of(part)

    # As facts.

    def flat(self, past: Past) -> list[Flat]:
        """A history as facts: of a bag slots are calls and values numbers, of a line places."""
        found: list[Flat] = []
        ages = len(self.windows) + 1
        for number, (group, entries) in enumerate(zip(self._groups, past, strict=True)):
            if group.ordered:
                for at, (tool, out, age, key) in enumerate(entries):
                    found.append((number, at, key, _code(tool, out) * ages + age))
                continue
            counts: dict[tuple[int, tuple[Part, ...]], int] = {}
            for tool, out, _, key in entries:
                slot = _code(tool, out), key
                counts[slot] = counts.get(slot, 0) + 1
            found += [(number, slot, key, many) for (slot, key), many in counts.items()]
        return found

    def whole(self, flat: Sequence[Flat]) -> Past:
        """The history that facts are of."""
        found: list[list[Any]] = [[] for _ in self._groups]
        ages = len(self.windows) + 1
        for number, slot, key, value in flat:
            if self._groups[number].ordered:
                code, age = divmod(value, ages)
                found[number].append((slot, (*divmod(code, 1 << MAX_LEFT_OUT), age, key)))
            else:
                entry = (*divmod(slot, 1 << MAX_LEFT_OUT), 0, key)
                found[number] += [entry] * value
        return tuple(
            [
                tuple([entry for _, entry in sorted(some, key=lambda one: one[0])])
                if group.ordered
                else tuple(sorted(some))
                for group, some in zip(self._groups, found, strict=True)
            ]
        )

    def fields(self, group: int, slot: int, value: int) -> list[tuple[str, str]] | None:
        """The tool and the name of each part of the key of a fact; None: there is no such fact."""
        of = self._groups[group]
        code = value // (len(self.windows) + 1) if of.ordered else slot
        tool, out = divmod(code, 1 << MAX_LEFT_OUT)
        name = self._tools[tool] if tool < len(self._tools) else ""
        names = of.names.get(name)
        if names is None or out >> len(names) or (not of.ordered and value > MAX_ALIKE):
            return None
        return [(name, one) for at, one in enumerate(names) if not out >> at & 1]


def _code(tool: int, out: int) -> int:
    return (tool << MAX_LEFT_OUT) + out


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
