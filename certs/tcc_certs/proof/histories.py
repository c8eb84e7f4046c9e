"""What statements of version 1.2 remember on both sides of a question, and what they decide of it.

A statement is asked of :mod:`tcc_certs.session.monitors`, the one interpreter, over a short
history: the calls that it remembers, with those fields alone that it names.  A call that comes
again with the same fields stands for the one before it, where the statement counts none.  Where no
order matters the calls are a bag; statements with spans of time share one line of calls, in which
each call has an *age*: how many of the spans, from the least on, it has left.  Time goes on before
a call, and ages rise, of older calls first.  What a session is given and has learned is the last
history: one entry, whose fields are the attributes that statements speak of.  Before it stands
that of lists, an entry for each live value that is one of the elements of a list.
Normative text: docs/spec/proof.md, section 1.  No Coq theorem covers these forms: they are held to
brute force by tests/exact.
Cost: a decision that was not met before takes the calls that are remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tcc_certs.core.model import Core
from tcc_certs.core.policies import MAX_WINDOW
from tcc_certs.errors import Code, require
from tcc_certs.proof.fields import ANY
from tcc_certs.proof.lists import MEMBERS, Elements, Pair
from tcc_certs.proof.rules import MAX_LEFT_OUT, SESSION, Group, Marks, Rule, groups_of, learned_name
from tcc_certs.proof.spoken import Part
from tcc_certs.session.monitors.keyed import Event
from tcc_certs.values.places import NONE, UNKNOWN, State, constant

Entry: TypeAlias = "tuple[int, int, int, tuple[Part, ...]]"  # tool, fields left out, age, the rest
Past: TypeAlias = "tuple[tuple[Entry, ...], ...]"  # for each group its calls
Taken: TypeAlias = "Sequence[tuple[Part, Part]]"  # values and summaries, each of a summary
Flat: TypeAlias = "tuple[int, int, tuple[Part, ...], int]"  # group, slot, key, value
MAX_ALIKE = 1 << 12  # calls with the same fields
MAX_REMEMBERED = 1 << 15  # decisions that are kept
_NOW = 2 * MAX_WINDOW


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What a session is given and has learned, by the places of attributes, and its lists."""

    known: Mapping[int, Part]
    lists: Mapping[Part, tuple[Part, ...]]


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
        matches: whether the text that a state stands for matches a pattern.
        elements: the lists that statements compare with values.

    Attributes:
        windows: the spans of time, increasing.
        attributes: what they speak of that a session is given, or learns.

    Raises:
        Uncovered: more fields of a tool than there is room for.
    """

    def __init__(
        self,
        cores: Sequence[Core],
        state_of: Callable[[Part], State],
        matches: Callable[[str, Any], bool],
        elements: Elements,
    ) -> None:
        self._state_of = state_of
        self._elements = elements
        self._marks = Marks(matches)
        self._tools = [tool.name for tool in cores[0].tools]
        self._numbers = {name: at for at, name in enumerate(self._tools)}
        self.windows, self.attributes, self._groups = groups_of(cores, listed=bool(elements.fields))
        # A place that no history has: nothing is kept there.
        self._lists = next(
            (at for at, one in enumerate(self._groups) if MEMBERS in one.names), len(self._groups)
        )
        self._offsets = (0, *[span + 1 for span in self.windows])
        self._known: dict[Any, Any] = {}
        self._states: dict[Part, State] = {}

    @property
    def empty(self) -> bool:
        """Whether neither side has any."""
        return not self._groups

    @property
    def size(self) -> int:
        """How many histories there are."""
        return len(self._groups)

    @property
    def lists(self) -> int:
        """The place of the history of lists; that of none where there is none."""
        return self._lists

    def begun(self, given: Mapping[int, Part]) -> Past:
        """Before the first call.

        Args:
            given: by the places of attributes what is given.
        """
        bare = ((),) * (len(self._groups) - bool(self.attributes))
        return (*bare, (self._attributes_entry(given),)) if self.attributes else bare

    # What a session is given and learns.

    def _attributes_entry(self, known: Mapping[int, Part]) -> Entry:
        numbers = range(len(self.attributes))
        out = sum((at not in known) << at for at in numbers)
        return 0, out, 0, tuple([known[at] for at in numbers if at in known])

    def _attributes_of(self, past: Past) -> dict[int, Part]:
        """By their places the attributes that are given or known."""
        if not self.attributes:
            return {}
        ((_, out, _, key),) = past[-1]
        parts = iter(key)
        return {at: next(parts) for at in range(len(self.attributes)) if not out >> at & 1}

    def _with_learned(self, past: Past, made: CallParts) -> CallParts:
        """A call beside what its session had learned when it was decided."""
        known = self._attributes_of(past)
        learned = [(learned_name(at), part) for at, part in known.items()]
        return replace(made, parts=(*made.parts, *learned))

    def _learned(self, past: Past, made: CallParts) -> tuple[Entry, ...]:
        """The attributes after a call: those that it is the first to tell are known."""
        known, told = self._attributes_of(past), dict(made.parts)
        for at, one in enumerate(self.attributes):
            if at not in known:
                names = [name for tool, name in one.sources if tool == made.tool and name in told]
                if names:
                    known[at] = told[names[0]]
        return (self._attributes_entry(known),)

    def _context(self, past: Past) -> _Context:
        lists: dict[Part, tuple[Part, ...]] = {}
        for _, _, _, (many, one) in past[self._lists] if self._elements.fields else ():
            lists[many] = (*lists.get(many, ()), one)
        return _Context(known=self._attributes_of(past), lists=lists)

    def _session(self, rule: Rule, known: Mapping[int, Part]) -> dict[str, State]:
        """The attributes as a statement has them; what is not learned yet is not there."""
        return {
            name: self._state(known[at]) if at in known else NONE
            for name, at in rule.session.items()
            if at in known or not self.attributes[at].sources
        }

    # Lists.

    def listed(
        self, past: Past, made: CallParts, held: Collection[Part]
    ) -> Iterator[tuple[Past, Taken]]:
        """A history for each choice of which values are elements of lists, as far as that is new.

        Beside it the values and summaries that were of a summary before.

        Args:
            made: the call that comes next.
            held: the tokens that anything but pairs held before it.
        """
        if not self._elements.fields:
            yield past, ()
            return
        values: tuple[list[Part], list[Part]] = [], []
        for name, part in made.parts:
            if not isinstance(part, str):
                values[(made.tool, name) in self._elements.fields].append(part)
        for one in self._elements.choices(self.pairs(past), held, values[1], values[0]):
            yield self._with_pairs(past, sorted(one.pairs)), one.taken

    def pairs(self, past: Past) -> list[Pair]:
        """Which values are elements of which lists."""
        return [key for _, _, _, key in past[self._lists]] if self._elements.fields else []

    def _with_pairs(self, past: Past, pairs: Sequence[Pair]) -> Past:
        entries = tuple([(0, 0, 0, pair) for pair in pairs])
        return (*past[: self._lists], entries, *past[self._lists + 1 :])

    def joined(
        self, past: Past, held: Collection[Part]
    ) -> tuple[Past, Sequence[tuple[Part, Part]]]:
        """A history without elements that do not matter, and summaries that became one with others.

        Args:
            held: the tokens that anything else holds.
        """
        if not self._elements.fields:
            return past, ()
        rest = (*past[: self._lists], *past[self._lists + 1 :])
        every = {*held, *[part for entries in rest for entry in entries for part in entry[3]]}
        pairs, joined = self._elements.kept(self.pairs(past), every)
        return self._with_pairs(past, sorted(pairs)), joined

    # Time.

    def advances(self, past: Past) -> Iterator[tuple[bool, Past]]:
        """What time may be gone before the next call, first none, and whether it always may."""
        now = self.ages(past)
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
                key = rule, entries, made, self._beside(past, session=bool(rule.session))
                found = self._known.get(key)
                if found is None:
                    now = self._context(past)
                    found = self._keep(key, self._refuses(rule, group, entries, made, now))
                if found:
                    return True
        return False

    def _beside(self, past: Past, *, session: bool) -> Past:
        """What a decision hangs on beside the history of its statement."""
        lists = past[self._lists : self._lists + 1] if self._elements.fields else ()
        return (*lists, *past[-1:]) if session else lists

    def _refuses(
        self, rule: Rule, group: Group, entries: Sequence[Entry], made: CallParts, now: _Context
    ) -> bool:
        tool = rule.tools[made.tool]
        if not rule.policies.decides[tool]:
            return False
        memory = rule.memory()
        for event in self._events(rule, group, entries, now):
            if event is not None:
                memory.add(event)
        parts = dict(made.parts)
        states = {
            name: UNKNOWN
            if name in made.answers
            else self._field(rule, made.tool, name, parts[name], now)
            if name in parts
            else NONE
            for name in group.names.get(made.tool, ())
        }
        own = Event(
            at=len(entries) + 1,
            tool=tool,
            states=states,
            stamp=_NOW,
            session=self._session(rule, now.known),
            marks=self._marks,
        )
        return memory.refuses(own) is not None

    def after(self, past: Past, made: CallParts) -> Past:
        """What is remembered when a call is done; of lists all is, see :meth:`joined`."""
        found = []
        whole = self._with_learned(past, made)
        for group, entries in zip(self._groups, past, strict=True):
            if SESSION in group.names:
                found.append(self._learned(past, made))
                continue
            if MEMBERS in group.names:
                found.append(entries)
                continue
            key = group, entries, whole, self._beside(past, session=bool(self.attributes))
            kept = self._known.get(key)
            if kept is None:
                kept = self._keep(key, self._settled(group, entries, whole, self._context(past)))
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
        now, whole = self._context(past), self._with_learned(past, made)
        for group, entries in zip(self._groups, past, strict=True):
            if group.timed:
                places = self._places(group, self._with(group, entries, whole), now)
                return tuple([at if at < len(entries) else -1 for at in places])
        return ()

    def _keep(self, key: Any, value: Any) -> Any:
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = value
        return value

    def _with(self, group: Group, entries: Sequence[Entry], made: CallParts) -> list[Entry]:
        names = group.names.get(made.tool)
        if names is None:
            return list(entries)
        parts = dict(made.parts)
        out = sum((name not in parts) << at for at, name in enumerate(names))
        key = tuple([parts[name] for name in names if name in parts])
        return [*entries, (self._numbers[made.tool], out, 0, key)]

    def _settled(
        self, group: Group, entries: Sequence[Entry], made: CallParts, now: _Context
    ) -> tuple[Entry, ...]:
        every = self._with(group, entries, made)
        kept = [every[at] for at in self._places(group, every, now)]
        return tuple(kept if group.ordered else sorted(kept))

    def _places(self, group: Group, entries: Sequence[Entry], now: _Context) -> list[int]:
        """The places of calls that are still remembered."""
        wanted = [False] * len(entries)
        for rule in group.rules:
            memory = rule.memory()
            for at, event in enumerate(self._events(rule, group, entries, now)):
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
        now = self._context(past)
        for group, entries in zip(self._groups, past, strict=True):
            for rule in group.rules:
                if rule.side != side or (side == 0 and rule.number not in uses):
                    continue
                memory = rule.memory()
                for event in self._events(rule, group, entries, now):
                    if event is not None:
                        memory.add(event)
                if memory.owed:
                    return True
        return False

    def _events(
        self, rule: Rule, group: Group, entries: Sequence[Entry], now: _Context
    ) -> Iterator[Event | None]:
        """The calls as a statement has them; None where its side has no such tool."""
        known = now.known
        for at, (tool, out, age, key) in enumerate(entries, 1):
            name = self._tools[tool]
            number = rule.tools.get(name)
            if number is None:
                yield None
                continue
            names, left = group.names[name], iter(key)
            parts = {one: next(left) for place, one in enumerate(names) if not out >> place & 1}
            states = {
                one: self._field(rule, name, one, parts[one], now) if one in parts else NONE
                for one in names
            }
            then = {at: part for at, part in known.items() if not self.attributes[at].sources} | {
                at: parts[one] for at in known if (one := learned_name(at)) in parts
            }
            yield Event(
                at=at,
                tool=number,
                states=states,
                stamp=_NOW - self._offsets[age],
                session=self._session(rule, then) if rule.session else {},
                marks=self._marks,
                done=True,
                told=at,
            )

    def _field(self, rule: Rule, tool: str, name: str, part: Part, now: _Context) -> State:
        if (tool, name) in self._elements.fields:
            return "l", tuple([self._state(one) for one in now.lists.get(part, ())])
        return rule.rests[tool, name] if part == ANY else self._state(part)

    def _state(self, part: Part) -> State:
        found = self._states.get(part)
        if found is None:
            found = constant(part) if isinstance(part, str) else self._state_of(part)
            if len(self._states) >= MAX_REMEMBERED:
                self._states.clear()
            self._states[part] = found
        return found

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
        """The history that facts are of.

        Raises:
            Rejected: T101 the attributes of the session are not there, or more than once.
        """
        found: list[list[Any]] = [[] for _ in self._groups]
        ages = len(self.windows) + 1
        for number, slot, key, value in flat:
            if self._groups[number].ordered:
                code, age = divmod(value, ages)
                found[number].append((slot, (*divmod(code, 1 << MAX_LEFT_OUT), age, key)))
            else:
                entry = (*divmod(slot, 1 << MAX_LEFT_OUT), 0, key)
                found[number] += [entry] * value
        if self.attributes:
            require(1, len(found[-1]), Code.PROOF_FORM, "attributes of the session")
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
        if SESSION in of.names:
            name = "" if tool else SESSION
        if MEMBERS in of.names:
            name = "" if code or value != 1 else MEMBERS
        names = of.names.get(name)
        if names is None or out >> len(names) or (not of.ordered and value > MAX_ALIKE):
            return None
        return [(name, one) for at, one in enumerate(names) if not out >> at & 1]


def _code(tool: int, out: int) -> int:
    return (tool << MAX_LEFT_OUT) + out
