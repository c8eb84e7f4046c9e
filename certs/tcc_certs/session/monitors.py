"""Monitors: what they remember of a session, and which calls they allow.

Normative text: docs/spec/core.md, section 5, and docs/spec/session.md, section 5.  A monitor speaks
of calls that agree in values, so what it remembers is one number for each *key*, the values in
which they agree.  Where an outcome is unknown there is one memory, the worst: an A that is required
counts when it is known to be done; all else counts as soon as it may have been done.  So what is
allowed is allowed whatever the outcomes were; and each question is about one number, whose worst is
that of some resolution of the unknowns: what all of them allow is not refused.
Cost: constant for each monitor that names the call's tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcc_certs.core.model import (
    Core,
    Monitor,
    OrderMonitor,
    Selection,
    SumMonitor,
    Tool,
    UsesMonitor,
)

Key: TypeAlias = "tuple[object, ...]"
Count: TypeAlias = "Callable[[Key], int]"
_FIRST, _SECOND, _TOTAL = "first", "second", "total"
_PLACES = 400  # decimal places of a unit of sums; no canonical number has more


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A call as monitors see it.

    Attributes:
        tool: index into ``Core.tools``.
        values: for each listed parameter the index of its value; None where it is not known.
        opened: for each open parameter that is there a text or bytes, the same exactly for the
            same values.
        numbers: canonical decimals of the open numbers that are known.
    """

    tool: int
    values: tuple[int | None, ...]
    opened: Mapping[str, object]
    numbers: Mapping[str, str]


Undo: TypeAlias = "tuple[tuple[Key, int], ...]"


class Memory:
    """What all monitors of a core remember of the calls of a session."""

    def __init__(self, core: Core) -> None:
        self._monitors = core.monitors
        self._tools = core.tools
        self._of: dict[int, list[int]] = {}
        for number, monitor in enumerate(core.monitors):
            for tool in sorted(_tools_of(monitor)):
                self._of.setdefault(tool, []).append(number)
        self._counts: dict[Key, int] = {}

    def forbids(self, made: Made) -> int | None:
        """The number of the first monitor that does not allow the call; None: all do."""
        for number in self._of.get(made.tool, ()):
            if not _allows(self._monitors[number], made, self._count_of(number), self._tools):
                return number
        return None

    def add(self, made: Made, *, certain: bool) -> Undo:
        """Remember a call that was done, or may have been.

        Args:
            certain: whether it is known to be done; its observed values are known then, if any.

        Returns:
            what :meth:`undo` takes.
        """
        before: list[tuple[Key, int]] = []
        for number in self._of.get(made.tool, ()):
            monitor, count = self._monitors[number], self._count_of(number)
            for key, value in _marks(monitor, made, count, self._tools, certain):
                whole = (number, *key)
                before.append((whole, self._counts.get(whole, 0)))
                self._counts[whole] = value
        return tuple(before)

    def undo(self, undo: Undo) -> None:
        """Forget the call that was remembered last."""
        for key, value in reversed(undo):
            if value:
                self._counts[key] = value
            else:
                self._counts.pop(key, None)

    def _count_of(self, number: int) -> Count:
        return lambda key: self._counts.get((number, *key), 0)


def _allows(monitor: Monitor, made: Made, count: Count, tools: Sequence[Tool]) -> bool:
    """Whether a monitor allows a call after what it counted."""
    match monitor:
        case OrderMonitor():
            return _orders(monitor, made, count, tools)
        case SumMonitor():
            number = made.numbers.get(monitor.parameter)
            if number is None:  # not shown: whoever wrote the record answers for it
                return True
            return count((_TOTAL,)) + _units(number) <= _units(monitor.value)
        case UsesMonitor():
            if not _selects(monitor.calls, made):
                return True
            return count((_TOTAL, made.opened[monitor.per])) < monitor.value


def _orders(monitor: OrderMonitor, made: Made, count: Count, tools: Sequence[Tool]) -> bool:
    a, b = _keys(monitor, made, tools)
    if monitor.kind == "require":
        return b is None or count((_FIRST, *b)) > 0
    if monitor.order == "before":
        return b is None or count((_FIRST, *b)) == 0
    if a is not None and (a == b or count((_SECOND, *a))):
        return False
    return b is None or not count((_FIRST, *b))


def _marks(
    monitor: Monitor, made: Made, count: Count, tools: Sequence[Tool], certain: bool
) -> Iterator[tuple[Key, int]]:
    """What a monitor counts from now on, once a call was made."""
    match monitor:
        case OrderMonitor():
            yield from _order_marks(monitor, *_keys(monitor, made, tools), certain)
        case SumMonitor():
            number = made.numbers.get(monitor.parameter)
            if number is not None:
                yield (_TOTAL,), count((_TOTAL,)) + _units(number)
        case UsesMonitor():
            if _selects(monitor.calls, made):
                key = _TOTAL, made.opened[monitor.per]
                yield key, count(key) + 1


def _order_marks(
    monitor: OrderMonitor, a: Key | None, b: Key | None, certain: bool
) -> Iterator[tuple[Key, int]]:
    if a is not None and (certain or monitor.kind == "forbid"):
        yield (_FIRST, *a), 1
    if b is not None and monitor.order == "each":
        yield (_FIRST, *b), 0
    if b is not None and monitor.order == "with":
        yield (_SECOND, *b), 1


def _keys(
    monitor: OrderMonitor, made: Made, tools: Sequence[Tool]
) -> tuple[Key | None, Key | None]:
    """The values in which the call has to agree, as one of `first` and as one of `second`."""
    tool = tools[made.tool]
    a = _key(made, tool, [name for name, _ in monitor.same])
    b = _key(made, tool, [name for _, name in monitor.same])
    first = _selects(monitor.first, made, monitor.kind == "forbid")
    return a if first else None, b if _selects(monitor.second, made) else None


def _key(made: Made, tool: Tool, names: Sequence[str]) -> Key:
    places = {parameter.name: at for at, parameter in enumerate(tool.parameters)}
    found: list[object] = []
    for name in names:
        at = places.get(name)
        index = None if at is None else made.values[at]
        if at is not None and index is not None:
            found.append(tool.parameters[at].values[index])
        else:
            found.append(made.opened.get(name))
    return tuple(found)


def _selects(selection: Selection, made: Made, maybe: bool = False) -> bool:
    """Whether a call is one of the selection's; of a value that is not known `maybe` says so."""
    told = made.values
    return selection.tool == made.tool and all(
        maybe if told[at] is None else told[at] in some for at, some in selection.where
    )


def _tools_of(monitor: Monitor) -> set[int]:
    match monitor:
        case OrderMonitor():
            return {monitor.first.tool, monitor.second.tool}
        case SumMonitor():
            return {monitor.tool}
        case UsesMonitor():
            return {monitor.calls.tool}


def _units(decimal: str) -> int:
    whole, _, part = decimal.partition(".")
    return int(whole + part.ljust(_PLACES, "0"))
