"""Changes that plans do not show: monitors, open parameters, and how calls are made.

Each change is narrower (nothing new passes), wider (nothing is lost), a change of cost, a change
that lets the same calls through, or unknown.  Texts of patterns are compared as texts.  A member of
a tool or of the core that this module does not know is compared as JSON, and its change is unknown:
so two cores never count as equal because a member is newer than this file.
Statements: docs/spec/core.md, sections 1, 2 and 5.  Cost: linear in the two cores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

from tcc_certs.core.model import Core, Monitor, SumMonitor, Tool, UsesMonitor
from tcc_certs.core.type_texts import place_text, type_text
from tcc_certs.formats.codec import Json, encode, written
from tcc_certs.values.declared import FlagType, JsonType, NumberType, OpenParameter, TextType
from tcc_certs.values.fields import FieldType, ListType, TimeType

Sense: TypeAlias = Literal["equal", "narrower", "wider", "incomparable", "cost", "other"]

# What decides how a call is made, and what an answer to it means: a change of these is a finding
# whichever way it goes.
CARRIED: Final = frozenset(
    {"bind", "error_text", "errors", "models", "parallel", "pass", "quotes", "strict"}
)
# What sessions have, and say all about.
IN_SESSIONS: Final = frozenset(
    {"calls", "grammar", "monitor", "open", "statement", "tool", "values"}
)
# Names and words: whatever they are, the same calls are let through, and made in the same way.
_WORDS: Final = frozenset({"doc", "in", "out"})
_NUMBERS: Final = frozenset({"price", "latency_ms", "epsilon"})
_COMPARED: Final = frozenset(  # as plans, as statements, or by what is below
    {
        "calls", "forbids", "format", "goals", "grammar", "limits", "monitors", "pass",
        "patterns", "plan", "requires", "rules", "start", "tools", "version",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change.

    Attributes:
        of: ``monitor``, ``open`` or ``observed``; otherwise the member of the core: of a tool
            ``bind``, ``errors`` and the like, ``statement``, ``grammar``, ``tool``, ``calls``.
        name: the parameter, ``tool.name``; for a monitor its subject; else the tool, the
            model as ``tool.name``, or the kind of statement.
        old, new: the texts; None if there was, or is, none.
        sense: how it changes the calls that are let through, new against old.
    """

    of: str
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
    """Changed types of open parameters, and of who chooses a value, for these tools."""
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
    words = f"{'optional ' * parameter.optional}{type_text(parameter.type)}"
    placed = place_text(parameter.name, parameter.at)
    return f"{words}{' or null' * parameter.null}{placed}"


def _sense(old: OpenParameter | None, new: OpenParameter | None) -> Sense:
    if old is None or new is None:
        # An optional one more lets more through; a call needs each of the others, or has none.
        only = old or new
        if only is None or not only.optional:
            return "incomparable"
        return "wider" if old is None else "narrower"
    narrower, wider = _is_less(new, old), _is_less(old, new)
    if narrower or wider:
        return "equal" if narrower and wider else ("narrower" if narrower else "wider")
    return "incomparable"


def _is_less(one: OpenParameter, other: OpenParameter) -> bool:
    """Whether every call that has `one` as it may be is seen to have the other so."""
    absent = one.optional <= other.optional and one.null <= other.null
    return one.at == other.at and absent and _within(one.type, other.type)


def _within(one: FieldType, other: FieldType) -> bool:
    """Whether every value of `one` is seen to be one of `other`, and the same there."""
    if one == other:
        return True
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
        case ListType(), ListType():
            sizes = other.least <= one.least and one.most <= other.most
            distinct = other.distinct <= one.distinct
            return sizes and distinct and _within(one.of, other.of)
        case TimeType(), TimeType():
            return one.zone is None  # its texts say theirs
    return False


def _inside(one: NumberType, other: NumberType) -> bool:
    if other.low is None or other.high is None:
        return True
    if one.low is None or one.high is None:
        return False
    return Fraction(other.low) <= Fraction(one.low) and Fraction(one.high) <= Fraction(other.high)


def joined(senses: Iterable[Sense]) -> Sense:
    """The sense of several changes together."""
    found = set(senses)
    if "incomparable" in found or {"narrower", "wider"} <= found:
        return "incomparable"
    order: tuple[Sense, ...] = ("wider", "narrower", "cost", "other")
    return next((sense for sense in order if sense in found), "equal")


def member_changes(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[Change]:
    """Differences of two cores other than statements, calls and who chooses a value.

    Args:
        old, new: the cores as JSON, their schema checked.
    """
    found = _grammar_changes(_object(old["grammar"]), _object(new["grammar"]))
    before, after = (_by_name(core["tools"]) for core in (old, new))
    for name in sorted({**before, **after}):
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            texts = [None if tool is None else _tool_text(tool) for tool in (one, other)]
            shown = written(name)
            found.append(Change(of="tool", name=shown, old=texts[0], new=texts[1], sense="other"))
        elif one != other:
            found += _of_tool(written(name), one, other)
    found += _passed_changes(old.get("pass"), new.get("pass"))
    for member in sorted((old.keys() | new.keys()) - _COMPARED):
        found += _told(member, "core", old.get(member), new.get(member), "incomparable")
    return found


def _grammar_changes(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[Change]:
    return [
        change
        for member in sorted(old.keys() | new.keys())
        for change in _told("grammar", member, old.get(member), new.get(member), "other")
    ]


def _passed_changes(old: Json | None, new: Json | None) -> Iterator[Change]:
    """What passes a gate unread: one thing more lets more through."""
    one, other = (side if isinstance(side, list) else [] for side in (old, new))
    less, more = (all(word in b for word in a) for a, b in ((one, other), (other, one)))
    sense: Sense = "wider" if less else "narrower" if more else "incomparable"
    before, after = (", ".join(map(str, side)) or None for side in (one, other))
    yield from _told("pass", "core", before, after, sense)


def _of_tool(name: str, old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[Change]:
    """What one tool has of its own, but for its open parameters and who chooses a value."""
    for member in sorted((old.keys() | new.keys()) - {"name", "open"}):
        one, other = old.get(member), new.get(member)
        if member == "models":
            yield from _of_models(name, one, other)
        elif member == "params":
            yield from _of_listed(name, _by_name(one), _by_name(other))
        else:
            yield from _told(member, name, one, other, _member_sense(member, one))


def _member_sense(member: str, was: Json | None) -> Sense:
    """What it does that a member of a tool, which was so, is another now."""
    if member in _WORDS:
        return "other"
    if member == "quotes":
        return "cost"
    if member == "errors":  # an error that means nothing happened leaves the call for another time
        return "wider" if was is None else "narrower"
    if member == "parallel":  # calls of it may be under way beside others
        return "wider" if was is None else "narrower"
    if member == "strict":  # it asks for a way on after each answer
        return "narrower" if was is None else "wider"
    return "incomparable"


def _of_models(name: str, old: Json | None, new: Json | None) -> Iterator[Change]:
    """The ways of asking and of making calls: one more is one way more; their order counts."""
    before, after = _by_name(old), _by_name(new)
    for model in sorted({**before, **after}):
        one, other = before.get(model), after.get(model)
        sense: Sense = "wider" if one is None else "narrower" if other is None else "incomparable"
        if one is not None and other is not None and _but_numbers(one) == _but_numbers(other):
            sense = "cost"
        yield from _told("models", f"{name}.{written(model)}", one, other, sense)
    if before.keys() == after.keys() and list(before) != list(after):
        yield from _told("models", name, ", ".join(before), ", ".join(after), "incomparable")


def _but_numbers(model: Mapping[str, Json]) -> Mapping[str, Json]:
    """A model without what it takes, in asking and in making a call."""
    left = {member: value for member, value in model.items() if member not in _NUMBERS}
    if isinstance(left.get("execute"), dict):
        left["execute"] = dict(_but_numbers(_object(left["execute"])))
    return left


def _of_listed(
    name: str, old: Mapping[str, Mapping[str, Json]], new: Mapping[str, Mapping[str, Json]]
) -> Iterator[Change]:
    """Values that calls may have, and their order: what plans have of them is seen in plans."""
    for parameter in sorted({**old, **new}):
        one, other = (_values(side.get(parameter)) for side in (old, new))
        yield from _told("values", f"{name}.{written(parameter)}", one, other, "other")
    if old.keys() == new.keys() and list(old) != list(new):
        yield from _told("values", name, ", ".join(old), ", ".join(new), "other")


def _values(parameter: Mapping[str, Json] | None) -> str | None:
    if parameter is None:
        return None
    values = parameter["values"]
    texts = values if isinstance(values, list) else []
    return " | ".join([str(text) or "(absent)" for text in texts])


def _told(of: str, name: str, old: Json | None, new: Json | None, sense: Sense) -> Iterator[Change]:
    if old != new:
        yield Change(of=of, name=name, old=_shown(old), new=_shown(new), sense=sense)


def _shown(value: Json | None) -> str | None:
    """A member as text: a text as it is, else canonical JSON."""
    return value if value is None or isinstance(value, str) else encode(value).decode()


def _tool_text(tool: Mapping[str, Json]) -> str:
    names = [*_by_name(tool["params"]), *_by_name(tool.get("open"))]
    return f"({', '.join(map(written, names))})"


def rest_of_open(old: Core, new: Core, told: Collection[str]) -> Iterator[Change]:
    """Open and observed parameters, and their order, of tools in the plans of one side only."""
    before = {tool.name: tool for tool in old.tools}
    after = {tool.name: tool for tool in new.tools}
    for name in sorted(before.keys() & after.keys()):
        one, other = before[name], after[name]
        if name not in told:
            for change in _tool_changes(one, other):
                yield Change(
                    of=change.of, name=change.name, old=change.old, new=change.new, sense="other"
                )
        orders = [[p.name for p in tool.opened] for tool in (one, other)]
        if sorted(orders[0]) == sorted(orders[1]):
            yield from _told("open", written(name), ", ".join(orders[0]), ", ".join(orders[1]),
                             "other")  # fmt: skip


def _by_name(items: Json | None) -> dict[str, Mapping[str, Json]]:
    found = items if isinstance(items, list) else []
    return {str(item["name"]): item for item in found if isinstance(item, dict)}


def _object(value: Json) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
