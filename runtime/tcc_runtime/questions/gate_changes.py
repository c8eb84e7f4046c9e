"""What changed of that which no plan tells: monitors, the types of open parameters, who chooses.

Each change is narrower (nothing new passes), wider (nothing is lost), or neither can be told.
Texts of patterns are compared as texts.  Statements: docs/spec/core.md, sections 2 and 5.
Cost: linear in the tools and the monitors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from tcc_certs.core.enforced import type_text
from tcc_certs.core.model import Core, Monitor, SumMonitor, Tool, UsesMonitor
from tcc_certs.formats.names import written
from tcc_certs.values.kinds import FlagType, JsonType, NumberType, OpenParameter, OpenType, TextType

Sense: TypeAlias = Literal["equal", "narrower", "wider", "incomparable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change.

    Attributes:
        of: ``monitor``, ``open`` or ``observed``.
        name: the parameter, ``tool.name``; of a monitor what it is about.
        old, new: the texts; None where there was, or is, none.
        sense: what it does to the calls that are let through, new against old.
    """

    of: Literal["monitor", "open", "observed"]
    name: str
    old: str | None
    new: str | None
    sense: Sense


def monitor_changes(old: Core, new: Core) -> list[Change]:
    """The monitors that were added, removed, or have another bound."""
    before, after = _strictest(old), _strictest(new)
    found = []
    for about in sorted({**before, **after}):
        one, other = before.get(about), after.get(about)
        sense: Sense
        if one is None or other is None:
            sense = "narrower" if one is None else "wider"
        else:
            sense = _ordered(_bound(one), _bound(other))
        if sense != "equal":
            texts = [None if monitor is None else monitor.text for monitor in (one, other)]
            found.append(Change(of="monitor", name=about, old=texts[0], new=texts[1], sense=sense))
    return found


def _strictest(core: Core) -> dict[str, Monitor]:
    """By what it is about, the monitor that counts: of several bounds the least."""
    ordered = sorted(core.monitors, key=_bound, reverse=True)
    return {_about(monitor): monitor for monitor in ordered}


def _about(monitor: Monitor) -> str:
    """What a monitor is about, without the bound that it has: that may be moved."""
    if isinstance(monitor, SumMonitor | UsesMonitor):
        return monitor.text.rpartition(" <= ")[0]
    return monitor.text


def _bound(monitor: Monitor) -> Fraction:
    return Fraction(monitor.value) if isinstance(monitor, SumMonitor | UsesMonitor) else Fraction(0)


def _ordered(old: Fraction, new: Fraction) -> Sense:
    if old == new:
        return "equal"
    return "narrower" if new < old else "wider"


def open_changes(old: Core, new: Core, tools: Collection[str]) -> list[Change]:
    """Changed types of open parameters, and who chooses a value, of the tools of these names."""
    before = {tool.name: tool for tool in old.tools}
    after = {tool.name: tool for tool in new.tools}
    found: list[Change] = []
    for name in sorted(tools):
        found += _tool_changes(before[name], after[name])
    return found


def _tool_changes(old: Tool, new: Tool) -> Iterator[Change]:
    before, after = ({p.name: p for p in tool.opened} for tool in (old, new))
    for name in sorted({**before, **after}):
        one, other = before.get(name), after.get(name)
        sense = _sense(one, other)
        if sense != "equal":
            yield Change(
                of="open", name=f"{written(old.name)}.{written(name)}", old=_text(one),
                new=_text(other), sense=sense,
            )  # fmt: skip
    seen, sees = ({p.name: p.observed for p in tool.parameters} for tool in (old, new))
    for name in sorted(seen.keys() & sees.keys()):
        if seen[name] != sees[name]:
            who = {True: "observed", False: "listed"}
            yield Change(
                of="observed", name=f"{written(old.name)}.{written(name)}", old=who[seen[name]],
                new=who[sees[name]], sense="incomparable",
            )  # fmt: skip


def _text(parameter: OpenParameter | None) -> str | None:
    if parameter is None:
        return None
    return f"{'optional ' * parameter.optional}{type_text(parameter.type)}"


def _sense(old: OpenParameter | None, new: OpenParameter | None) -> Sense:
    if old is None or new is None:
        # An optional one more lets more through; a call needs each of the others, or has none.
        only = old or new
        if only is None or not only.optional:
            return "incomparable"
        return "wider" if old is None else "narrower"
    narrower = _within(new.type, old.type) and new.optional <= old.optional
    wider = _within(old.type, new.type) and old.optional <= new.optional
    if narrower or wider:
        return "equal" if narrower and wider else ("narrower" if narrower else "wider")
    return "incomparable"


def _within(one: OpenType, other: OpenType) -> bool:
    """Whether every value of `one` is seen to be one of `other`."""
    match one, other:
        case TextType(), TextType():
            sizes = other.least <= one.least and one.most <= other.most
            return sizes and other.pattern in (None, one.pattern)
        case NumberType(), NumberType():
            return (one.whole or not other.whole) and _inside(one, other)
        case FlagType(), FlagType():
            return True
        case JsonType(), JsonType():
            return one.most <= other.most
    return False


def _inside(one: NumberType, other: NumberType) -> bool:
    if other.low is None or other.high is None:
        return True
    if one.low is None or one.high is None:
        return False
    return Fraction(other.low) <= Fraction(one.low) and Fraction(one.high) <= Fraction(other.high)
