"""Statements that compare keys alone: what they remember of a session, and which calls they allow.

Normative text: docs/spec/core.md, section 5, and docs/spec/session.md, section 5.  A monitor speaks
of calls that agree in values, so what it remembers is one number for each *key*, the values in
which they agree.  The rules here are those of core 1.1, and of core 1.2 where a statement has keys
and no other conditions (:mod:`tcc_certs.session.monitors.policies` reads keys for them, and says
what comes of one that is not known).  Where an outcome is unknown there is one memory, the worst:
an A that is required counts when it is known to be done; all else counts as soon as it may have
been done.  So what is allowed is allowed whatever the outcomes were, and what all of them allow is
not refused (Monitors.v: memory_is_the_definition, one_memory_is_as_good_as_all_worlds,
one_total_is_as_good_as_all_worlds, one_total_of_a_key_is_as_good_as_all_worlds,
passed_sessions_meet_monitors, passed_sessions_keep_totals).
A core's monitors are compiled once, to the rules that name each tool and how each reads its keys.
Cost: a look-up or two for each monitor that names the call's tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tcc_certs.core import model

if TYPE_CHECKING:
    from tcc_certs.formats.codec import Json
    from tcc_certs.values.places import State

PLACES = 400  # decimal places of a unit of sums; no canonical number has more

Values: TypeAlias = "tuple[int | None, ...]"  # of each listed parameter its index; None: not known
Key: TypeAlias = "tuple[Any, ...]"
Counts: TypeAlias = "dict[tuple[int, Key], int]"
Marks: TypeAlias = "Sequence[tuple[tuple[int, Key], int]]"
Undo: TypeAlias = "list[Callable[[], object]]"
Truth: TypeAlias = "bool | None"
# Of a call the field of a look-up with keys, and whether it counts errors that were read.
Look: TypeAlias = "Callable[[Event, str, tuple[State, ...], str, bool], State]"
_Read: TypeAlias = "Callable[[Values, Mapping[str, object]], Key | None]"
# A rule, how it reads the two keys of a call of the tool, and the parameter that it adds up.
_Row: TypeAlias = "tuple[MonitorRule, _Read | None, _Read | None, str | None]"


@dataclass(slots=True, kw_only=True)
class Seen:
    """What one rule sees of a call.

    Attributes:
        a, b: its keys as a call of the first and of the second selection; None where it is none.
        adds: what it adds to a sum or a number of uses; 0 of a number that is not shown: whoever
            wrote the record answers for it.
    """

    rule: MonitorRule
    a: Key | None
    b: Key | None
    adds: Any  # an exact number


@dataclass(slots=True, eq=False)
class Event:
    """A call that was made, or that is decided on.

    Attributes:
        at: its number among the calls of the session, increasing.
        seen: as rules over keys of core 1.1 see it; values: of the listed parameters, with those
            observed that are known.
        states: of each field, for statements of version 1.2; of an answer that is not known
            UNKNOWN.
        stamp: UTC ms, that never go back; 0 where no statement looks at the clock.
        session: its attributes as they were when it was decided.
        marks: of a pattern and a digest of the session whether that text matches.
        done: whether it is known to be done.
        answered: it failed, and its caller has read what the tool said.
        told: the number of the last call that was made when its first outcome was recorded; None
            while it is under way.
        look: looks up what earlier calls of its session say; None: it has no session.
        asked: how much was asked for it: elements, and one for each 64 steps of a pattern.
    """

    at: int
    tool: int
    seen: Sequence[Seen] = ()
    values: Values = ()
    states: Mapping[str, State] = field(default_factory=dict)
    stamp: int = 0
    session: Mapping[str, State] = field(default_factory=dict)
    marks: Mapping[tuple[str, bytes], Truth] = field(default_factory=dict)
    done: bool = False
    answered: bool = False
    told: int | None = None
    look: Look | None = None
    asked: int = 0


class MonitorRule(Protocol):
    """One monitor.

    Attributes:
        number: of the monitor.
        forbids: whether it is a `forbid`, for which an error that was read counts as done.
    """

    number: int
    forbids: bool

    def allows(self, counts: Counts, seen: Seen) -> bool:
        """Whether the call may be made."""

    def marks(self, counts: Counts, seen: Seen, certain: bool, values: Values) -> Marks:
        """What counts from now on, once the call was made."""


class OrderRule:
    """A statement about two sets of calls; keys of the first count at `first`, others at `second`.

    Args:
        observed: places of observed parameters and the values that calls of the first set have:
            whether a call is one of them may hang on these.
    """

    forbids = True

    def __init__(
        self, number: int, each: bool = False, observed: Sequence[tuple[int, frozenset[int]]] = ()
    ) -> None:
        self.number = number
        self.first, self.second = 2 * number, 2 * number + 1
        self._each, self._observed = each, observed

    def came(self, values: Values, *, unknown: bool) -> bool:
        """Whether the observed values are among those bound; of one not known `unknown` says so."""
        return all(
            unknown if (found := values[at]) is None else found in some
            for at, some in self._observed
        )


class RequireRule(OrderRule):
    """A call of `second` needs one of `first` before it, with `each` since the one before it."""

    forbids = False

    def allows(self, counts: Counts, seen: Seen) -> bool:
        """See :class:`Rule`."""
        return seen.b is None or (self.first, seen.b) in counts

    def marks(self, counts: Counts, seen: Seen, certain: bool, values: Values) -> Marks:
        """See :class:`Rule`; with `each` a call that is both serves no call behind it."""
        found = []
        if seen.a is not None and certain and self.came(values, unknown=False):
            found.append(((self.first, seen.a), 1))
        if seen.b is not None and self._each:
            found.append(((self.first, seen.b), 0))
        return found


class BeforeRule(OrderRule):
    """No call of `first` before one of `second`."""

    def allows(self, counts: Counts, seen: Seen) -> bool:
        """See :class:`Rule`."""
        return seen.b is None or (self.first, seen.b) not in counts

    def marks(self, counts: Counts, seen: Seen, certain: bool, values: Values) -> Marks:
        """See :class:`Rule`."""
        if seen.a is None or not self.came(values, unknown=True):
            return ()
        return [((self.first, seen.a), 1)]


class WithRule(OrderRule):
    """Not a call of `first` and one of `second`, in any order; neither binds observed values."""

    def allows(self, counts: Counts, seen: Seen) -> bool:
        """See :class:`Rule`."""
        a, b = seen.a, seen.b
        if a is not None and (a == b or (self.second, a) in counts):
            return False
        return b is None or (self.first, b) not in counts

    def marks(self, counts: Counts, seen: Seen, certain: bool, values: Values) -> Marks:
        """See :class:`Rule`."""
        pairs = (self.first, seen.a), (self.second, seen.b)
        return [((of, key), 1) for of, key in pairs if key is not None]


_ORDERS: Mapping[str, type[RequireRule | BeforeRule | WithRule]] = {
    "require": RequireRule, "before": BeforeRule, "with": WithRule,
}  # fmt: skip


class AtMostRule:
    """A sum, whose one key is empty, or the uses of a selection for each value."""

    forbids = False

    def __init__(self, number: int, most: Any) -> None:
        self.number = number
        self.first, self.most = 2 * number, most

    def allows(self, counts: Counts, seen: Seen) -> bool:
        """See :class:`Rule`."""
        b = seen.b
        return b is None or counts.get((self.first, b), 0) + seen.adds <= self.most

    def marks(self, counts: Counts, seen: Seen, certain: bool, values: Values) -> Marks:
        """See :class:`Rule`."""
        if seen.b is None:
            return ()
        key = self.first, seen.b
        return [(key, counts.get(key, 0) + seen.adds)]


class Monitors:
    """The monitors of a core, compiled; what a session remembers is a :class:`Memory`.

    Attributes:
        texts: as a grammar writes them.
        compared: for each tool that monitors name the open parameters whose values are compared.
        added: for each tool the open parameters that are added up.
    """

    def __init__(self, core: model.Core) -> None:
        self.texts = tuple([monitor.text for monitor in core.monitors])
        self.compared: dict[int, set[str]] = {}
        self.added: dict[int, set[str]] = {}
        self.sums: list[tuple[str, AtMostRule]] = []
        self._rows: dict[int, list[_Row]] = {}
        for number, monitor in enumerate(core.monitors):
            self._compile(number, monitor, core.tools)

    def read(self, tool: int, values: Values, opened: Mapping[str, Json]) -> Sequence[Seen]:
        """The same of a call whose open parameters are as a record has them: digests are keys.

        A number that is not shown counts as 0.
        """
        if tool not in self._rows:
            return ()
        digests = {name: _member(opened, name, "digest") for name in self.compared[tool]}
        shown = {name: _member(opened, name, "value") for name in self.added.get(tool, ())}
        numbers = {name: str(text) for name, text in shown.items() if text is not None}
        return self.see(tool, values, digests, numbers)

    def see(
        self,
        tool: int,
        values: Values,
        opened: Mapping[str, object],
        numbers: Mapping[str, str],
    ) -> tuple[Seen, ...]:
        """A call as each rule that names its tool sees it, in the order of the monitors.

        Args:
            values: without observed ones.
            opened: for each open parameter that is there a text or bytes, the same exactly for the
                same values.
            numbers: canonical decimals of the open numbers that are known.
        """
        return tuple(
            [
                Seen(
                    rule=rule,
                    a=a and a(values, opened),
                    b=b and b(values, opened),
                    adds=1 if name is None else units(numbers.get(name, "0")),
                )
                for rule, a, b, name in self._rows.get(tool, ())
            ]
        )

    def _compile(self, number: int, monitor: model.Monitor, tools: Sequence[model.Tool]) -> None:
        match monitor:
            case model.OrderMonitor():
                self._order(number, monitor, tools)
            case model.SumMonitor():
                total = AtMostRule(number, units(monitor.value))
                self.sums.append((monitor.text, total))
                self.added.setdefault(monitor.tool, set()).add(monitor.parameter)
                of_all = _reader(tools[monitor.tool], model.Selection(tool=monitor.tool), ())
                self._row(monitor.tool, total, None, of_all, (), monitor.parameter)
            case model.UsesMonitor():
                calls, names = monitor.calls, [monitor.per]
                key = _reader(tools[calls.tool], calls, names)
                self._row(calls.tool, AtMostRule(number, monitor.value), None, key, names)
            case model.PolicyMonitor():
                pass  # compiled by tcc_certs.session.monitors.policies

    def _order(self, number: int, monitor: model.OrderMonitor, tools: Sequence[model.Tool]) -> None:
        ones, others = zip(*monitor.same, strict=True)
        first, second = monitor.first, monitor.second
        a = _reader(tools[first.tool], first, ones)
        b = _reader(tools[second.tool], second, others)
        parameters = tools[first.tool].parameters
        observed = [(at, frozenset(v)) for at, v in first.where if parameters[at].observed]
        kind = monitor.order if monitor.kind == "forbid" else "require"
        rule = _ORDERS[kind](number, monitor.order == "each", observed)
        if first.tool == second.tool:
            self._row(first.tool, rule, a, b, (*ones, *others))
        else:
            self._row(first.tool, rule, a, None, ones)
            self._row(second.tool, rule, None, b, others)

    def _row(
        self,
        tool: int,
        rule: MonitorRule,
        a: _Read | None,
        b: _Read | None,
        compared: Iterable[str],
        added: str | None = None,
    ) -> None:
        self._rows.setdefault(tool, []).append((rule, a, b, added))
        self.compared.setdefault(tool, set()).update(compared)


class KeyCounts(dict[tuple[int, Key], Any]):
    """What counts for each key; 0 is not kept."""

    __slots__ = ()

    def keep(self, at: tuple[int, Key], value: Any, undo: Undo) -> None:
        """So much counts for a key from now on."""
        undo.append(partial(self._put, at, self.get(at)))
        self._put(at, value)

    def _put(self, at: tuple[int, Key], value: Any) -> None:
        if not value:
            self.pop(at, None)
        else:
            self[at] = value


class Memory:
    """What the statements of a core remember of the calls of one session.

    Args:
        monitors: None: there are none of core 1.1.
    """

    def __init__(self, monitors: Monitors | None = None) -> None:
        self._texts = () if monitors is None else monitors.texts
        self._sums = () if monitors is None else tuple(monitors.sums)
        self._counts = KeyCounts()

    def forbids(self, call: Iterable[Seen]) -> str | None:
        """The text of the first monitor of core 1.1 that does not allow a call; None: all do."""
        for seen in call:
            if not seen.rule.allows(self._counts, seen):
                return self._texts[seen.rule.number]
        return None

    @property
    def owed(self) -> Sequence[int]:
        """The statements of core 1.2 by which a call still has to come; here there are none."""
        return ()

    def refuses(self, own: Event) -> tuple[int, bool] | None:
        """The statement of core 1.2 that refuses a call; here there are none."""
        return None

    def add(self, call: Event) -> Undo:
        """Remember a call that was done, or may have been.

        One that was answered with an error counts for forbids alone.

        Returns:
            what :meth:`undo` takes.
        """
        undo: Undo = []
        counts = self._counts
        for seen in call.seen:
            if call.answered and not seen.rule.forbids:
                continue
            for key, value in seen.rule.marks(counts, seen, call.done, call.values):
                counts.keep(key, value, undo)
        return undo

    def undo(self, undo: Undo | tuple[()]) -> None:
        """Forget the call that was remembered last."""
        for back in reversed(undo):
            back()

    def left_of_sums(self) -> list[tuple[str, int]]:
        """For each sum its text and what may still be added, in units of 10^-400."""
        counts = self._counts
        return [(text, rule.most - counts.get((rule.first, ()), 0)) for text, rule in self._sums]


def _reader(tool: model.Tool, selection: model.Selection, names: Sequence[str]) -> _Read:
    """Reads the values of `names` from a call of a selection; None from any other call.

    Observed values, which may be bound in a first selection alone, are looked at when they came.
    """
    parameters = tool.parameters
    bound = [(at, frozenset(v)) for at, v in selection.where if not parameters[at].observed]
    places = {parameter.name: at for at, parameter in enumerate(parameters)}
    parts = [(name, places.get(name)) for name in names]

    def read(values: Values, opened: Mapping[str, object]) -> Key | None:
        for place, some in bound:
            if values[place] not in some:
                return None
        found: list[object] = []
        for name, at in parts:
            index = None if at is None else values[at]
            if at is None or index is None:
                found.append(opened.get(name))
            else:
                found.append(parameters[at].values[index])
        return tuple(found)

    return read


def _member(opened: Mapping[str, Json], name: str, part: str) -> object:
    """A member of what a record has of a value; None where it has none."""
    entry = opened.get(name)
    return entry.get(part) if isinstance(entry, dict) else None


def units(decimal: str) -> int:
    """A canonical decimal in units of 10^-400."""
    whole, _, part = decimal.partition(".")
    return int(whole + part) * _power(PLACES - len(part))


@cache
def _power(exponent: int) -> int:
    return int(10**exponent)
