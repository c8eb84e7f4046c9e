"""What monitors remember of a session, and whether they allow a call.

The definition is :mod:`tcc_certs.session.monitors`.  Values are known by their keyed digests, so
that a session that is taken up from its ledger remembers the same.  One memory is kept, the worst:
a call whose outcome is unknown counts where it takes something away, and not where it gives.
Text: docs/spec/session.md, section 5.
Cost: a look-up for each monitor that names the call's tool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias

from tcc_certs.core.model import Core, OrderMonitor, Selection, SumMonitor, UsesMonitor
from tcc_certs.formats.decimals import format_decimal

Indices: TypeAlias = "tuple[int, ...]"
Key: TypeAlias = "tuple[bytes, ...]"
# What takes back a note, the last part first.
Undo: TypeAlias = "tuple[Callable[[], object], ...]"
_PLACES: Final = 340  # more decimal places than any double's shortest text has


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What monitors may know of a call.

    Attributes:
        tool: its number in the core.
        listed: the indices of its listed values.
        values: for each parameter that a monitor compares, what stands for its value: a digest of
            an open one, the canonical text of a listed one.
        amounts: for each parameter that a monitor adds up, its value in units of 10^-340.
    """

    tool: int
    listed: Indices
    values: Mapping[str, bytes]
    amounts: Mapping[str, int]


def amount(text: str) -> int:
    """A canonical decimal in units of 10^-340."""
    whole, _, part = text.partition(".")
    digits = int(whole + part)
    return int(digits * 10 ** (_PLACES - len(part)))


class Monitor(Protocol):
    """One monitor and what it remembers of one session."""

    def allows(self, seen: Seen, behind: Seen | None) -> bool:
        """Whether the call may be made, also behind another whose outcome is unknown."""

    def note(self, seen: Seen, observed: Indices | None) -> Undo:
        """The call was made; its observed values, None where its outcome is unknown."""


def _with(found: set[Key], key: Key | None) -> Undo:
    if key is None or key in found:
        return ()
    found.add(key)
    return (partial(found.discard, key),)


def _without(found: set[Key], key: Key) -> Undo:
    if key not in found:
        return ()
    found.discard(key)
    return (partial(found.add, key),)


class _Chosen:
    """The calls of a selection; which values are bound, listed ones and observed ones apart."""

    __slots__ = ("_listed", "_observed", "tool")

    def __init__(self, core: Core, selection: Selection) -> None:
        self.tool = selection.tool
        split = sum(not p.observed for p in core.tools[selection.tool].parameters)
        bound = [(at, frozenset(values)) for at, values in selection.where]
        self._listed = [(at, values) for at, values in bound if at < split]
        self._observed = [(at - split, values) for at, values in bound if at >= split]

    def has(self, seen: Seen) -> bool:
        """Whether it is one of them, as far as its listed values say."""
        return seen.tool == self.tool and all(
            seen.listed[at] in values for at, values in self._listed
        )

    def came(self, observed: Indices) -> bool:
        """Whether its observed values are among those that are bound."""
        return all(observed[at] in values for at, values in self._observed)


class _Order:
    """The common part of the four kinds about two selections and a key."""

    __slots__ = ("_first", "_names", "_second")

    def __init__(self, core: Core, monitor: OrderMonitor) -> None:
        self._first = _Chosen(core, monitor.first)
        self._second = _Chosen(core, monitor.second)
        self._names = monitor.same

    def _key_of_first(self, seen: Seen) -> tuple[bytes, ...] | None:
        if not self._first.has(seen):
            return None
        return tuple([seen.values[name] for name, _ in self._names])

    def _key_of_second(self, seen: Seen) -> tuple[bytes, ...] | None:
        if not self._second.has(seen):
            return None
        return tuple([seen.values[name] for _, name in self._names])


class _RequireBefore(_Order):
    """A call of the second selection needs one of the first before it; maybe one each."""

    __slots__ = ("_each", "_there")

    def __init__(self, core: Core, monitor: OrderMonitor) -> None:
        super().__init__(core, monitor)
        self._each = monitor.order == "each"
        self._there: set[tuple[bytes, ...]] = set()

    def allows(self, seen: Seen, behind: Seen | None) -> bool:
        key = self._key_of_second(seen)
        if key is not None and behind is not None and self._each:
            return key in self._there and key != self._key_of_second(behind)
        return key is None or key in self._there

    def note(self, seen: Seen, observed: Indices | None) -> Undo:
        first, second = self._key_of_first(seen), self._key_of_second(seen)
        used: Undo = ()
        if self._each and second is not None:
            used = _without(self._there, second)
        if first is None or observed is None or not self._first.came(observed):
            return used
        # With `each` a call that is both is the boundary, and serves no call behind it.
        if self._each and first == second:
            return used
        return (*used, *_with(self._there, first))


class _ForbidBefore(_Order):
    """No call of the first selection before one of the second."""

    __slots__ = ("_there",)

    def __init__(self, core: Core, monitor: OrderMonitor) -> None:
        super().__init__(core, monitor)
        self._there: set[tuple[bytes, ...]] = set()

    def allows(self, seen: Seen, behind: Seen | None) -> bool:
        key = self._key_of_second(seen)
        if key is None or key in self._there:
            return key is None
        return behind is None or key != self._key_of_first(behind)

    def note(self, seen: Seen, observed: Indices | None) -> Undo:
        key = self._key_of_first(seen)
        # An answer that is not known may be one that is bound.
        if key is None or (observed is not None and not self._first.came(observed)):
            return ()
        return _with(self._there, key)


class _ForbidWith(_Order):
    """Not a call of the first selection and one of the second, in any order."""

    __slots__ = ("_firsts", "_seconds")

    def __init__(self, core: Core, monitor: OrderMonitor) -> None:
        super().__init__(core, monitor)
        self._firsts: set[tuple[bytes, ...]] = set()
        self._seconds: set[tuple[bytes, ...]] = set()

    def allows(self, seen: Seen, behind: Seen | None) -> bool:
        first, second = self._key_of_first(seen), self._key_of_second(seen)
        if first is not None and (first == second or first in self._seconds):
            return False
        if second is not None and second in self._firsts:
            return False
        if behind is None:
            return True
        one, other = self._key_of_first(behind), self._key_of_second(behind)
        return (first is None or first != other) and (second is None or second != one)

    def note(self, seen: Seen, observed: Indices | None) -> Undo:
        first, second = self._key_of_first(seen), self._key_of_second(seen)
        return (*_with(self._firsts, first), *_with(self._seconds, second))


class _Sum:
    """The values of an open parameter add up to no more than so much."""

    __slots__ = ("_most", "_name", "_spent", "_tool")

    def __init__(self, monitor: SumMonitor) -> None:
        self._tool = monitor.tool
        self._name = monitor.parameter
        self._most = amount(monitor.value)
        self._spent = 0

    @property
    def left(self) -> int:
        """What may still be added."""
        return self._most - self._spent

    def left_behind(self, behind: Seen | None) -> int:
        """What may still be added behind a call whose outcome is unknown."""
        counts = behind is not None and behind.tool == self._tool
        return self.left - (behind.amounts[self._name] if behind is not None and counts else 0)

    def allows(self, seen: Seen, behind: Seen | None) -> bool:
        return seen.tool != self._tool or seen.amounts[self._name] <= self.left_behind(behind)

    def note(self, seen: Seen, observed: Indices | None) -> Undo:
        if seen.tool != self._tool:
            return ()
        before, self._spent = self._spent, self._spent + seen.amounts[self._name]
        return (partial(setattr, self, "_spent", before),)


class _Uses:
    """So many calls of a selection for each value of an open parameter."""

    __slots__ = ("_chosen", "_counts", "_most", "_name")

    def __init__(self, core: Core, monitor: UsesMonitor) -> None:
        self._chosen = _Chosen(core, monitor.calls)
        self._name = monitor.per
        self._most = monitor.value
        self._counts: dict[bytes, int] = {}

    def allows(self, seen: Seen, behind: Seen | None) -> bool:
        if not self._chosen.has(seen):
            return True
        key = seen.values[self._name]
        also = behind is not None and self._chosen.has(behind) and behind.values[self._name] == key
        return self._counts.get(key, 0) + also < self._most

    def note(self, seen: Seen, observed: Indices | None) -> Undo:
        if not self._chosen.has(seen):
            return ()
        key = seen.values[self._name]
        before = self._counts.get(key, 0)
        self._counts[key] = before + 1
        return (partial(self._counts.__setitem__, key, before),)


class Memory:
    """What all monitors remember of one session."""

    __slots__ = ("_named", "_texts", "monitors")

    def __init__(self, plan: MonitorPlan) -> None:
        self.monitors = plan.fresh()
        self._named = plan.by_tool
        self._texts = plan.texts

    def forbids(self, seen: Seen, behind: Seen | None = None) -> int | None:
        """The number of the first monitor that forbids the call.

        Args:
            behind: a call before it that is not remembered yet, its outcome taken as unknown.
        """
        for at in self._named.get(seen.tool, ()):
            if not self.monitors[at].allows(seen, behind):
                return at
        return None

    def note(self, seen: Seen, observed: Indices | None) -> Undo:
        """The call was made; `observed` None: its outcome is unknown."""
        done: list[Callable[[], object]] = []
        for at in self._named.get(seen.tool, ()):
            done += self.monitors[at].note(seen, observed)
        return tuple(done)

    def left_of_sums(self, behind: Seen | None = None) -> list[tuple[str, str]]:
        """For each sum its text and what may still be added, a canonical decimal."""
        return [
            (text, format_decimal(monitor.left_behind(behind), _PLACES))
            for text, monitor in zip(self._texts, self.monitors, strict=True)
            if isinstance(monitor, _Sum)
        ]


class MonitorPlan:
    """The monitors of a core, made for many sessions.

    Attributes:
        texts: as a grammar writes them.
        by_tool: for each tool that monitors name, which.
        compared: for each tool the parameters that monitors compare.
        added: for each tool the parameters that monitors add up.
    """

    __slots__ = ("_core", "added", "by_tool", "compared", "texts")

    def __init__(self, core: Core) -> None:
        self._core = core
        self.texts = tuple(monitor.text for monitor in core.monitors)
        self.by_tool: dict[int, list[int]] = {}
        self.compared: dict[int, set[str]] = {}
        self.added: dict[int, set[str]] = {}
        for at, monitor in enumerate(core.monitors):
            match monitor:
                case OrderMonitor():
                    self._names(at, monitor.first.tool, {one for one, _ in monitor.same})
                    self._names(at, monitor.second.tool, {two for _, two in monitor.same})
                case UsesMonitor():
                    self._names(at, monitor.calls.tool, {monitor.per})
                case SumMonitor():
                    self._names(at, monitor.tool, set())
                    self.added.setdefault(monitor.tool, set()).add(monitor.parameter)

    def _names(self, at: int, tool: int, compared: set[str]) -> None:
        known = self.by_tool.setdefault(tool, [])
        if at not in known:
            known.append(at)
        self.compared.setdefault(tool, set()).update(compared)

    def fresh(self) -> Sequence[Monitor]:
        """The monitors, remembering nothing."""
        return [self._fresh(monitor) for monitor in self._core.monitors]

    def _fresh(self, monitor: object) -> Monitor:
        match monitor:
            case OrderMonitor(kind="require"):
                return _RequireBefore(self._core, monitor)
            case OrderMonitor(kind="forbid", order="before"):
                return _ForbidBefore(self._core, monitor)
            case OrderMonitor(kind="forbid", order="with"):
                return _ForbidWith(self._core, monitor)
            case SumMonitor():
                return _Sum(monitor)
            case UsesMonitor():
                return _Uses(self._core, monitor)
        raise ValueError("a monitor that this version does not know")
