"""Changes of a core that its plans do not show: statements, fields, and how calls are made.

The sense of a change is its effect on the calls that a gate allows.  Patterns are compared as
texts.  A member of a tool or of the core that this module does not know is compared as JSON, and
its sense is ``incomparable``.  So an unknown member never makes two different cores count as equal.
Text: docs/spec/core.md, sections 1, 2 and 6.  Cost: linear in the two cores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

from tcc_certs.formats.codec import Json, encode
from tcc_certs.policy.core import Core, Given, Learned, Tool
from tcc_certs.policy.nodes import (
    Ask,
    Definition,
    Forbid,
    Limit,
    Node,
    Null,
    Number,
    Owe,
    Require,
    Statement,
    Total,
    Word,
    definition_text,
    statement_text,
    walk,
)
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.type_texts import domain_text, field_text, name_text, place_text
from tcc_certs.values import paths, urls
from tcc_certs.values.declared import FlagType, JsonType, NumberType, PathType, TextType, UrlType
from tcc_certs.values.fields import Field, FieldType, ListType, NullableType, TimeType
from tcc_certs.values.zones import Zone
from tcc_runtime.analysis.statements import PlanTexts, kind_of

Sense: TypeAlias = Literal["equal", "narrower", "wider", "incomparable", "cost", "other"]

# Members that decide how a call is made or what its answer means. A change of such a member is
# always a finding.
CARRIED: Final = frozenset(
    {"bind", "error_text", "errors", "models", "parallel", "pass", "quotes", "strict"}
)
# members that change neither calls nor how they are made
_WORDS: Final = frozenset({"doc", "in", "out"})
_NUMBERS: Final = frozenset({"price", "latency_ms", "epsilon"})
# members that are compared as plans, as statements, or by the functions below
_COMPARED: Final = frozenset(
    {
        "calls", "given", "goals", "grammar", "lets", "pass", "patterns", "plan", "rules",
        "schema", "start", "statements", "tools", "zones",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change.

    Attributes:
        of: ``statement``, ``open``, ``field``, ``answers``, ``given``, ``lets`` or ``zones``; or
            the changed member of the core or of a tool, such as ``bind``, ``grammar``, ``tool`` or
            ``calls``.
        name: the kind of a statement, the field as ``tool.name``, the model as ``tool.name``, or
            the tool.
        old, new: the texts; None on a side without it.
        sense: the effect on the allowed calls, new against old.
    """

    of: str
    name: str
    old: str | None
    new: str | None
    sense: Sense


# Statements.


def statement_changes(old: Core, new: Core) -> list[Change]:
    """Return the statements that were added, removed, or got another bound; and changed `let`s.

    The comparison of plans shows the effect of a statement of the place ``automaton``, so its sense
    is ``other``.
    """
    before, after = _Stated(old), _Stated(new)
    found = list(_bound_changes(before, after))
    told = {text for change in found for text in (change.old, change.new)}
    for text in before.texts - after.texts:
        if text not in told:
            found.append(before.change(text, gone=True))
    for text in after.texts - before.texts:
        if text not in told:
            found.append(after.change(text, gone=False))
    found += _because_changes(old, new)
    found += _let_changes(old, new)
    found += _zone_changes(old, new)
    if not found and before.order != after.order:
        texts = [", ".join(side.order) for side in (before, after)]
        found.append(
            Change(of="statement", name="order", old=texts[0], new=texts[1], sense="other")
        )
    return found


class _Stated:
    """The statements of a core by their texts.

    Attributes:
        texts: the number of occurrences of each text.
        order: the texts in the order of the core.
    """

    def __init__(self, core: Core) -> None:
        self.order = [part.text for part in parts_of(core)]
        self.texts = Counter(self.order)
        self._statements = dict(zip(self.order, core.statements, strict=True))
        self._places = {part.text: part.place for part in parts_of(core)}
        self.bounds: dict[str, list[str]] = {}
        for text, statement in self._statements.items():
            self.bounds.setdefault(_without_bound(statement), []).append(text)

    def change(self, text: str, *, gone: bool) -> Change:
        """Return the change for a statement that only this side has."""
        sense: Sense = "wider" if gone else "narrower"
        sides = (text, None) if gone else (None, text)
        return Change(
            of="statement", name=kind_of(self._statements[text]), old=sides[0], new=sides[1],
            sense="other" if self._places[text] == "automaton" else sense,
        )  # fmt: skip

    def bound(self, text: str) -> Fraction | None:
        """Return the constant bound of a limit; None: the statement has none."""
        statement = self._statements[text]
        if isinstance(statement, Total):
            return Fraction(statement.most)
        if isinstance(statement, Limit) and isinstance(statement.most, Number):
            return Fraction(statement.most.value)
        return None

    def is_shown(self, text: str) -> bool:
        """Return whether the comparison of plans shows the effect of a statement."""
        return self._places[text] == "automaton"

    def kind(self, text: str) -> str:
        """Return the kind of a statement."""
        return kind_of(self._statements[text])


def _without_bound(statement: Statement) -> str:
    """Return the text of a statement; for a limit with a constant bound, without the bound."""
    match statement:
        case Total():
            statement = replace(statement, most="0")
        case Limit(most=Number()):
            statement = replace(statement, most=Null())
    return statement_text(statement)


def _bound_changes(before: _Stated, after: _Stated) -> Iterator[Change]:
    """Yield limits that differ only in a constant bound, if each side has one such limit."""
    for about, olds in before.bounds.items():
        news = after.bounds.get(about, [])
        if len(olds) != 1 or len(news) != 1 or olds == news:
            continue
        was, now = before.bound(olds[0]), after.bound(news[0])
        if was is None or now is None:
            continue
        shown = before.is_shown(olds[0]) and after.is_shown(news[0])
        sense: Sense = "narrower" if now < was else "wider"
        yield Change(
            of="statement", name=before.kind(olds[0]), old=olds[0], new=news[0],
            sense="other" if shown else sense,
        )  # fmt: skip


def _because_changes(old: Core, new: Core) -> Iterator[Change]:
    """Yield changed reasons of statements that both sides have."""
    before, after = (
        {statement_text(one): one.because for one in core.statements} for core in (old, new)
    )
    for text in before.keys() & after.keys():
        yield from _told("because", text, before[text], after[text], "other")


def _let_changes(old: Core, new: Core) -> Iterator[Change]:
    """Yield changed definitions.  They matter if a gate decides a statement that uses them."""
    before, after = ({let.name: let for let in core.lets} for core in (old, new))
    decided = _decided_names(old) | _decided_names(new)
    for name in sorted({**before, **after}):
        one, other = (_let_text(side.get(name)) for side in (before, after))
        sense: Sense = "incomparable" if name in decided else "other"
        yield from _told("lets", name_text(name), one, other, sense)
    if before == after and list(before) != list(after):
        yield from _told("lets", "order", ", ".join(before), ", ".join(after), "other")


def _zone_changes(old: Core, new: Core) -> Iterator[Change]:
    """Yield changed offsets of zones that both sides name.

    If the recorded offsets only end later, fewer times are unknown, so more calls are allowed.
    """
    before, after = old.zones, new.zones
    if before is None or after is None:
        return
    end = min(before.until, after.until)
    for name in sorted(before.of.keys() & after.of.keys()):
        one, other = before.of[name], after.of[name]
        if one == other:
            continue
        sense: Sense = "incomparable"
        if _changes_until(one, end) == _changes_until(other, end):
            sense = "wider" if after.until > before.until else "narrower"
        yield Change(
            of="zones", name=name, old=before.text(name), new=after.text(name), sense=sense
        )


def _changes_until(zone: Zone, end: int) -> list[tuple[int, int]]:
    pairs = zip(zone.starts, zone.offsets, strict=True)
    return [(start, offset) for start, offset in pairs if start < end]


def _let_text(let: Definition | None) -> str | None:
    return None if let is None else definition_text(let)


def _decided_names(core: Core) -> set[str]:
    """Return the names used by statements whose effect plans do not fully show, including through
    `let`s.
    """
    bodies = {let.name: let.body for let in core.lets}
    found: set[str] = set()
    todo = [
        node
        for part in parts_of(core)
        if part.place != "automaton"
        for node in nodes_of(core.statements[part.number])
    ]
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, Word) and node.name not in found:
                found.add(node.name)
                if node.name in bodies:
                    todo.append(bodies[node.name])
    return found


def nodes_of(statement: Statement) -> list[Node]:
    """Return the nodes of a statement."""
    match statement:
        case Require(on=on, where=where, lets=lets, then=then):
            return [*([] if on is None else [on]), *where, *(let.body for let in lets), then]
        case Ask(on=on, where=where, lets=lets):
            return [on, *where, *(let.body for let in lets)]
        case Forbid(on=on, where=where):
            return [on, *where]
        case Owe(after=after, where=where, calls=calls, pays=pays):
            return [after, *where, calls, *pays]
        case Limit(of=of, where=where, per=per, most=most):
            return [of, *where, *per, most]
    return []


def plan_changes(old: Core, new: Core) -> Iterator[Change]:
    """Yield changed texts of the plan expression, its rules, and start and goal.

    The comparison of plans shows their effect, so the sense is ``other``.
    """
    one, other = _plan_text(old), _plan_text(new)
    yield from _told("statement", "plan", one, other, "other")
    signatures = [
        None if core.start is None else f"start {core.start}\ngoal {' | '.join(core.goals)}"
        for core in (old, new)
    ]
    yield from _told("statement", "signature", signatures[0], signatures[1], "other")


def _plan_text(core: Core) -> str:
    texts = PlanTexts(core)
    rules = [f"rule {name} = {texts.expression(body)}" for name, body in core.rules.items()]
    return "\n".join([f"plan = {texts.expression(core.plan)}", *rules])


# Fields.


def field_changes(old: Core, new: Core, used: Collection[str]) -> list[Change]:
    """Return changed fields of tools, and changed attributes of sessions.

    Args:
        used: the names of the tools in plans of both sides.  Fields of other tools affect no call.
    """
    before, after = old.tool_of, new.tool_of
    found = list(_given_changes(old.given, new.given))
    for name in sorted(before.keys() & after.keys()):
        for change in _tool_changes(before[name], after[name]):
            found.append(change if name in used else replace(change, sense="other"))
    return found


def _given_changes(old: Sequence[Given], new: Sequence[Given]) -> Iterator[Change]:
    before, after = ({one.name: one for one in side} for side in (old, new))
    for name in sorted({**before, **after}):
        one, other = before.get(name), after.get(name)
        sense = _sense(one, other) if _are_fields(one, other) else "incomparable"
        texts = [None if side is None else _given_text(side) for side in (one, other)]
        yield from _told("given", name_text(name), texts[0], texts[1], sense)
    if before == after and list(before) != list(after):
        yield from _told("given", "order", ", ".join(before), ", ".join(after), "other")


def _are_fields(one: Given | None, other: Given | None) -> bool:
    return isinstance(one, Field) and isinstance(other, Field)


def _given_text(given: Given) -> str:
    if isinstance(given, Learned):
        sources = [f"{name_text(tool)}.{name_text(field)}" for tool, field in given.sources]
        return f"{name_text(given.name)} from {' | '.join(sources)}"
    return field_text(given)


def _tool_changes(old: Tool, new: Tool) -> Iterator[Change]:
    before, after = ({one.name: one for one in tool.arguments} for tool in (old, new))
    answers = [{one.name for one in tool.answers} for tool in (old, new)]
    for name in sorted({**before, **after}):
        shown = f"{name_text(old.name)}.{name_text(name)}"
        one, other = before.get(name), after.get(name)
        if other is None and name in answers[1]:
            yield Change(of="field", name=shown, old="argument", new="answer", sense="incomparable")
        elif one is None and name in answers[0]:
            yield Change(of="field", name=shown, old="answer", new="argument", sense="incomparable")
        elif all(_is_listed(field) for field in (one, other) if field is not None):
            yield from _listed_changes(shown, one, other)
        else:
            yield from _told("open", shown, _text(one), _text(other), _sense(one, other))
    yield from _answer_changes(old, new)
    if before.keys() == after.keys() and list(before) != list(after):
        order = [", ".join(map(name_text, side)) for side in (before, after)]
        yield from _told("open", name_text(old.name), order[0], order[1], "other")


def _answer_changes(old: Tool, new: Tool) -> Iterator[Change]:
    """Yield changed answers.  Plans show the values of listed answers; open ones affect
    conditions.
    """
    before, after = ({one.name: one for one in tool.answers} for tool in (old, new))
    arguments = {one.name for tool in (old, new) for one in tool.arguments}
    for name in sorted({**before, **after}):
        one, other = before.get(name), after.get(name)
        shown = f"{name_text(old.name)}.{name_text(name)}"
        if name in arguments:
            continue
        if all(_is_listed(field) for field in (one, other) if field is not None):
            yield from _listed_changes(shown, one, other)
        else:
            yield from _told("answers", shown, _text(one), _text(other), "incomparable")
    if before.keys() == after.keys() and list(before) != list(after):
        order = [", ".join(map(name_text, side)) for side in (before, after)]
        yield from _told("answers", name_text(old.name), order[0], order[1], "other")


def _listed_changes(shown: str, one: Field | None, other: Field | None) -> Iterator[Change]:
    """Yield changed values of a listed field.  Plans show their effect."""
    yield from _told("values", shown, _values_text(one), _values_text(other), "other")
    if one is not None and other is not None:
        yield from _told("at", shown, place_text(one), place_text(other), "incomparable")


def _is_listed(field: Field) -> bool:
    return field.type is None


def _values_text(field: Field | None) -> str | None:
    if field is None:
        return None
    return f"{'(absent) | ' * field.optional}{domain_text(field)}"


def _text(field: Field | None) -> str | None:
    if field is None:
        return None
    return f"{'optional ' * field.optional}{domain_text(field)}{place_text(field)}"


def _sense(old: Given | None, new: Given | None) -> Sense:
    """Return the effect of a changed field on the values that calls may have."""
    if old is None or new is None:
        # An optional field allows more calls. A required field changes every call.
        only = old or new
        if not isinstance(only, Field) or not only.optional:
            return "incomparable"
        return "wider" if old is None else "narrower"
    if not isinstance(old, Field) or not isinstance(new, Field):
        return "incomparable"
    narrower, wider = _is_less(new, old), _is_less(old, new)
    if narrower or wider:
        return "equal" if narrower and wider else ("narrower" if narrower else "wider")
    return "incomparable"


def _is_less(one: Field, other: Field) -> bool:
    """Return whether each value of `one`, including absent, is surely a value of `other`."""
    if one.type is None or other.type is None:
        return one == other
    same_place = one.steps == other.steps and one.optional <= other.optional
    return same_place and is_within(one.type, other.type)


def is_within(one: FieldType, other: FieldType) -> bool:
    """Return whether each value of `one` is surely a value of `other` with the same meaning."""
    if one == other:
        return True
    match one, other:
        case NullableType(of=inner), NullableType(of=outer):
            return is_within(inner, outer)
        case _, NullableType(of=outer):
            return is_within(one, outer)
        case TextType(among=texts), TextType(among=others) if texts and others:
            return set(texts) <= set(others)
        case TextType(among=texts), TextType(among=others) if texts or others:
            return False
        case TextType(), TextType():
            sizes = other.least <= one.least and one.most <= other.most
            return sizes and other.pattern in (None, one.pattern)
        case NumberType(), NumberType():
            return (one.whole or not other.whole) and _inside(one, other)
        case FlagType(), FlagType():
            return True
        case PathType(under=under), PathType(under=around):
            return around is None or (under is not None and paths.is_under(under, around))
        case UrlType(under=under), UrlType(under=around):
            return around is None or (under is not None and urls.is_under(under, around))
        case JsonType(), JsonType():
            return one.most <= other.most
        case ListType(), ListType():
            sizes = other.least <= one.least and one.most <= other.most
            distinct = other.distinct <= one.distinct
            return sizes and distinct and is_within(one.of, other.of)
        case TimeType(), TimeType():
            return one.zone is None  # each text of `one` includes its zone
    return False


def _inside(one: NumberType, other: NumberType) -> bool:
    if other.low is None or other.high is None:
        return True
    if one.low is None or one.high is None:
        return False
    return Fraction(other.low) <= Fraction(one.low) and Fraction(one.high) <= Fraction(other.high)


def joined(senses: Iterable[Sense]) -> Sense:
    """Return the sense of several changes together."""
    found = set(senses)
    if "incomparable" in found or {"narrower", "wider"} <= found:
        return "incomparable"
    order: tuple[Sense, ...] = ("wider", "narrower", "cost", "other")
    return next((sense for sense in order if sense in found), "equal")


# Other members.


def member_changes(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[Change]:
    """Return changes of members other than statements, plans and fields.

    Args:
        old, new: the JSON of the cores.
    """
    found = _grammar_changes(_object(old["grammar"]), _object(new["grammar"]))
    before, after = (_by_name(core["tools"]) for core in (old, new))
    for name in sorted({**before, **after}):
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            texts = [None if tool is None else _tool_text(tool) for tool in (one, other)]
            shown = name_text(name)
            found.append(Change(of="tool", name=shown, old=texts[0], new=texts[1], sense="other"))
        elif one != other:
            found += _of_tool(name_text(name), one, other)
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
    """Yield changes of the capabilities that a gate forwards unread."""
    one, other = (side if isinstance(side, list) else [] for side in (old, new))
    less, more = (all(word in b for word in a) for a, b in ((one, other), (other, one)))
    sense: Sense = "wider" if less else "narrower" if more else "incomparable"
    before, after = (", ".join(map(str, side)) or None for side in (one, other))
    yield from _told("pass", "core", before, after, sense)


def _of_tool(name: str, old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[Change]:
    """Yield changes of the members of a tool other than fields."""
    for member in sorted((old.keys() | new.keys()) - {"name", "fields", "gives"}):
        one, other = old.get(member), new.get(member)
        if member == "models":
            yield from _of_models(name, one, other)
        else:
            yield from _told(member, name, one, other, _member_sense(member, one))


def _member_sense(member: str, was: Json | None) -> Sense:
    """Return the sense of a changed member of a tool; `was` is its old value."""
    if member in _WORDS:
        return "other"
    if member == "quotes":
        return "cost"
    if member == "errors":  # an error that changed nothing does not count in limits
        return "wider" if was is None else "narrower"
    if member == "parallel":  # more calls may be under way at the same time
        return "wider" if was is None else "narrower"
    if member == "strict":  # plans have to continue after each answer
        return "narrower" if was is None else "wider"
    return "incomparable"


def _of_models(name: str, old: Json | None, new: Json | None) -> Iterator[Change]:
    """Yield changes of the models of a tool.  Their order matters."""
    before, after = _by_name(old), _by_name(new)
    for model in sorted({**before, **after}):
        one, other = before.get(model), after.get(model)
        sense: Sense = "wider" if one is None else "narrower" if other is None else "incomparable"
        if one is not None and other is not None and _but_numbers(one) == _but_numbers(other):
            sense = "cost"
        yield from _told("models", f"{name}.{name_text(model)}", one, other, sense)
    if before.keys() == after.keys() and list(before) != list(after):
        yield from _told("models", name, ", ".join(before), ", ".join(after), "incomparable")


def _but_numbers(model: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a model without prices, latencies and epsilons."""
    left = {member: value for member, value in model.items() if member not in _NUMBERS}
    if isinstance(left.get("execute"), dict):
        left["execute"] = dict(_but_numbers(_object(left["execute"])))
    return left


def _told(of: str, name: str, old: Json | None, new: Json | None, sense: Sense) -> Iterator[Change]:
    if old != new:
        yield Change(of=of, name=name, old=_shown(old), new=_shown(new), sense=sense)


def _shown(value: Json | None) -> str | None:
    """Return a text as it is, and another value as canonical JSON."""
    return value if value is None or isinstance(value, str) else encode(value).decode()


def _tool_text(tool: Mapping[str, Json]) -> str:
    return f"({', '.join(map(name_text, _by_name(tool.get('fields'))))})"


def _by_name(items: Json | None) -> dict[str, Mapping[str, Json]]:
    found = items if isinstance(items, list) else []
    return {str(item["name"]): item for item in found if isinstance(item, dict)}


def _object(value: Json) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
