"""A resolved grammar, every name replaced by what it stands for, and its canonical JSON.

A limit or a monitor has a canonical text as well, by which limits are ordered and statements named.
Normative text: docs/spec/core.md.  Whatever has an order there is sorted here, so that statements
in another order give the same bytes.  Cost: linear in the core, and its sorts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import TypeAlias

from tcc_certs.policy.plans import CallSet
from tcc_certs.formats.codec import Json, encode, is_bare, large, written
from tcc_compiler.frozen import frozen
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import NANO, REST, decimal_text
from tcc_compiler.resolve.calls import (
    CallList,
    Chosen,
    ResolvedCall,
    ResolvedSelection,
    selection_text,
)
from tcc_compiler.resolve.decided import relation_json, term_json
from tcc_compiler.resolve.fields import opened_json
from tcc_compiler.resolve.parameters import ResolvedParameter
from tcc_compiler.resolve.policies import Attributes, PolicyPart, ResolvedPolicy
from tcc_compiler.resolve.tools import ResolvedTool


@frozen
class ResolvedOrder:
    """``require`` or ``forbid`` between calls that agree in some parameters.

    Attributes:
        kind: ``require`` with the order ``before`` or ``each``; ``forbid`` with ``before`` or
            ``with``.
        same: names of a parameter of `first` and one of `second`, strictly increasing.
    """

    kind: str
    order: str
    first: ResolvedSelection
    second: ResolvedSelection
    same: tuple[tuple[str, str], ...]


@frozen
class ResolvedSum:
    """``limit sum(tool.parameter) <= value``, a canonical decimal."""

    tool: str
    parameter: str
    value: str


@frozen
class ResolvedUses:
    """``limit uses(of) per parameter <= value``."""

    of: ResolvedSelection
    per: str
    value: int


Monitor: TypeAlias = ResolvedOrder | ResolvedSum | ResolvedUses


@frozen
class ResolvedLimit:
    """A limit, resolved: `value` in calls, cents, milliseconds or nano-units.

    Attributes:
        of: for ``uses`` what is counted.
        total: for ``sum`` the tool, and the place of the parameter that is added up.
    """

    kind: str
    op: str
    value: int
    of: ResolvedSelection | None = None
    total: tuple[str, int] | None = None


@frozen
class Resolved:
    """A grammar in which every name is replaced by what it stands for.

    Attributes:
        patterns: the call sets in use, strictly increasing; other members name them by number.
        rules: those that the plan reaches, by name.
        requires: order (``after``, ``before``, ``each``) and two patterns.
        forbids: kind (``before``, ``next``, ``with``) and the patterns.
        places: the region of each statement, by its place (:mod:`tcc_compiler.resources`).
        policies: statements of 1.2 that are held call by call.
        session: its attributes.
        written: the same for every statement, where two of them say one thing, too.
    """

    name: str
    version: str
    call_list: CallList
    patterns: Sequence[CallSet]
    rules: Mapping[str, Json]
    plan: Json
    start: str | None
    goals: Sequence[str]
    limits: Sequence[ResolvedLimit]
    requires: Sequence[tuple[str, int, int]]
    forbids: Sequence[tuple[str, tuple[int, ...]]]
    monitors: Sequence[Monitor] = ()
    policies: Sequence[ResolvedPolicy] = ()
    session: Attributes = field(default_factory=Attributes)
    passed: Sequence[str] = ()
    places: Mapping[str, Region] = field(default_factory=dict)
    written: Sequence[tuple[str, Region]] = ()


_NEW_EXTRAS = frozenset(("strict", "errors"))
_NEW_PARTS = frozenset(("atom", "execute", "quality"))  # of a model


def core_bytes(grammar: Resolved) -> bytes:
    """The core."""
    tools = grammar.call_list.tools
    names = sorted(tools)
    numbers = {name: number for number, name in enumerate(names)}
    limits = {limit_text(limit, tools): limit for limit in grammar.limits}
    members: dict[str, Json] = {
        "format": "tcc.core",
        "version": [1, minor_of(grammar)],
        "grammar": {"name": grammar.name, "version": grammar.version},
        "tools": [_tool(tools[name]) for name in names],
        "calls": [_call(call, numbers) for call in grammar.call_list.calls],
        "patterns": [[list(pair) for pair in pattern] for pattern in grammar.patterns],
        "rules": [[name, grammar.rules[name]] for name in sorted(grammar.rules)],
        "plan": grammar.plan,
        "limits": [limit_json(limits[text], numbers) for text in sorted(limits, key=str.encode)],
        "requires": [list(item) for item in sorted(set(grammar.requires))],
        "forbids": _forbids(grammar),
    }
    monitors = {encode(item): item for item in _monitors(grammar, numbers)}
    if monitors:
        members["monitors"] = [monitors[key] for key in sorted(monitors)]
    if grammar.session.given:
        members["given"] = [dict(one.members) for one in grammar.session.given]
    if grammar.session.lets:
        members["lets"] = lets_json(grammar.session, numbers, tools)
    if grammar.passed:
        members["pass"] = list(grammar.passed)
    if grammar.start is not None:
        members["start"] = grammar.start
        members["goals"] = sorted(grammar.goals)
    return encode(members)


def _monitors(grammar: Resolved, numbers: Mapping[str, int]) -> list[Json]:
    tools = grammar.call_list.tools
    return [
        *(monitor_json(monitor, numbers) for monitor in grammar.monitors),
        *(policy_json(policy, numbers, tools) for policy in grammar.policies),
    ]


def _forbids(grammar: Resolved) -> list[Json]:
    found = set()
    for kind, patterns in grammar.forbids:
        found.add((kind, tuple(sorted(patterns)) if kind == "with" else patterns))
    return [
        [kind, list(patterns)] if kind == "next" else [kind, *patterns]
        for kind, patterns in sorted(found)
    ]


def _tool(tool: ResolvedTool) -> Json:
    members: dict[str, Json] = {
        "name": tool.name,
        "params": [_parameter(parameter) for parameter in tool.parameters],
        **tool.extras,
    }
    if tool.arguments:
        members["open"] = [dict(one.members) for one in tool.arguments]
    elif tool.opened:
        members["open"] = [opened_json(parameter) for parameter in tool.opened.values()]
    if tool.answers:
        members["answers"] = [dict(one.members) for one in tool.answers]
    if tool.takes is not None and tool.gives is not None:
        members["in"] = tool.takes
        members["out"] = tool.gives
    return members


def _parameter(parameter: ResolvedParameter) -> Json:
    members: dict[str, Json] = {"name": parameter.name, "values": list(parameter.values)}
    members |= {} if parameter.at is None else {"at": parameter.at}
    return {**members, "observed": True} if parameter.observed else members


def _call(call: ResolvedCall, numbers: Mapping[str, int]) -> Json:
    return [numbers[call.tool], list(call.values), *(large(amount) for amount in call.amounts)]


def minor_of(grammar: Resolved) -> int:
    """The minor version of the core: the least that knows all that the grammar has."""
    if grammar.policies or grammar.session.given or grammar.session.lets or grammar.passed:
        return 2
    if any(map(_is_newer_tool, grammar.call_list.tools.values())):
        return 2
    return 1 if is_new(grammar) else 0


def _is_newer_tool(tool: ResolvedTool) -> bool:
    placed = any(
        parameter.at is not None
        or parameter.values[-1] == REST
        or (parameter.observed and parameter.optional)
        for parameter in tool.parameters
    )
    placed = placed or "parallel" in tool.extras or "error_text" in tool.extras
    return placed or bool(tool.answers) or any(one.new for one in tool.arguments)


def is_new(grammar: Resolved) -> bool:
    """Whether a grammar has something that version 1.0 of the core does not know."""
    return (
        bool(grammar.monitors)
        or any(order == "each" for order, _, _ in grammar.requires)
        or any(kind == "before" for kind, _ in grammar.forbids)
        or any(limit.kind == "sum" for limit in grammar.limits)
        or any(_is_new_tool(tool) for tool in grammar.call_list.tools.values())
    )


def _is_new_tool(tool: ResolvedTool) -> bool:
    names = (tool.name, *(parameter.name for parameter in tool.parameters))
    listed = tool.extras.get("models")
    models = listed if isinstance(listed, list) else []
    return (
        bool(tool.opened)
        or not _NEW_EXTRAS.isdisjoint(tool.extras)
        or any(not _NEW_PARTS.isdisjoint(model) for model in models)
        or any(parameter.optional or parameter.observed for parameter in tool.parameters)
        or not all(map(is_bare, names))
    )


def set_json(chosen: Chosen, numbers: Mapping[str, int], tools: Mapping[str, ResolvedTool]) -> Json:
    """A set of calls."""
    if chosen.op == "any":
        return ["any"]
    if chosen.selection is not None:
        tool = tools[chosen.selection.tool]
        bound = sorted(
            (tool.parameters[place].name, [tool.parameters[place].values[one] for one in values])
            for place, values in chosen.selection.where
        )
        where: Json = [[name, sorted(values)] for name, values in bound]
        return ["calls", numbers[tool.name], where]
    items = [set_json(item, numbers, tools) for item in chosen.items]
    if chosen.op == "|":
        return ["or", items]
    made = items[0]
    for item in items[1:]:
        made = ["but", made, item]
    return made


def _part_json(
    part: PolicyPart, numbers: Mapping[str, int], tools: Mapping[str, ResolvedTool]
) -> Json:
    members: dict[str, Json] = {}
    if part.calls is not None:
        members["calls"] = set_json(part.calls, numbers, tools)
    members |= {"last": True} if part.last else {}
    members |= {"n": part.least} if part.least > 1 else {}
    members |= {"same": _keys_json(part)} if part.keys else {}
    members |= {"where": [relation_json(one) for one in part.where]} if part.where else {}
    members |= {} if part.within is None else {"within": part.within}
    return members


def _keys_json(part: PolicyPart) -> Json:
    keys: list[Json] = [[name, term_json(made)] for name, made in part.keys]
    return sorted(keys, key=encode)


def policy_json(
    policy: ResolvedPolicy, numbers: Mapping[str, int], tools: Mapping[str, ResolvedTool]
) -> Json:
    """The monitor object of a statement."""

    def calls(chosen: Chosen | None) -> Json:
        return ["any"] if chosen is None else set_json(chosen, numbers, tools)

    def parts(some: Sequence[PolicyPart]) -> Json:
        return [_part_json(one, numbers, tools) for one in some]

    first = policy.parts[0] if policy.parts else None
    members: dict[str, Json]
    if policy.total is not None:
        tool, name, most = policy.total
        members = {"kind": "total", "tool": numbers[tool], "param": name, "value": most}
    elif first is None:
        raise ValueError("a statement of nothing")
    elif policy.kind == "uses":
        members = {"kind": "count", "of": calls(first.calls), "value": large(policy.most)}
        members |= {"where": [relation_json(one) for one in first.where]} if first.where else {}
    elif policy.order == "after":
        members = {"kind": "owe", "first": calls(first.calls), "of": calls(policy.own)}
        members |= {"same": _keys_json(first)} if first.keys else {}
    elif policy.order == "with":
        members = {"kind": "apart", "one": calls(first.calls), "other": calls(policy.own)}
        members |= {"same": _keys_json(first)} if first.keys else {}
    elif policy.kind == "forbid":
        members = {"kind": "ban", "any": parts(policy.parts), "of": calls(policy.own)}
        members |= {"unless": parts(policy.unless)} if policy.unless else {}
    else:
        order = "each" if policy.order == "each" else "before"
        members = {
            "kind": "need",
            "order": order,
            "any": parts(policy.parts),
            "of": calls(policy.own),
        }
    members |= {"per": [term_json(made) for made in policy.per]} if policy.per else {}
    members |= {} if policy.within is None else {"within": policy.within}
    members |= {"across": True} if policy.across else {}
    return members


def lets_json(
    session: Attributes, numbers: Mapping[str, int], tools: Mapping[str, ResolvedTool]
) -> list[Json]:
    """The member ``lets`` of the core."""
    made: list[Json] = []
    for let in sorted(session.lets, key=lambda one: one.name.text.encode()):
        sources: Json = [[numbers[tool.text], name.text] for tool, name in let.sources]
        keys: Json = [key.text for key in let.keys]
        if not let.keys:
            made.append({"name": let.name.text, "of": sources})
        elif let.calls is None:
            made.append({"name": let.name.text, "keys": keys, "rows": sources})
        else:
            calls = set_json(session.calls[let.name.text], numbers, tools)
            made.append({"name": let.name.text, "keys": keys, "calls": calls})
    return made


def limit_json(limit: ResolvedLimit, tool_numbers: Mapping[str, int]) -> Json:
    """The limit object of the core."""
    members: dict[str, Json] = {"kind": limit.kind, "op": limit.op, "value": large(limit.value)}
    if limit.of is not None:
        members["of"] = selection_json(limit.of, tool_numbers)
    if limit.total is not None:
        members["of"] = {"tool": tool_numbers[limit.total[0]], "param": limit.total[1]}
    return members


def limit_text(limit: ResolvedLimit, tools: Mapping[str, ResolvedTool]) -> str:
    """The canonical text, as the root context document has it."""
    kind = limit.kind
    value = str(limit.value)
    if limit.of is not None:
        kind = f"uses({selection_text(tools[limit.of.tool], limit.of)})"
    if limit.total is not None:
        tool = tools[limit.total[0]]
        kind = f"sum({written(tool.name)}.{written(tool.parameters[limit.total[1]].name)})"
    if limit.kind in ("cost", "epsilon", "sum"):
        value = decimal_text(Fraction(limit.value, NANO))
    return f"{kind}{limit.op}{value}"


def monitor_json(monitor: Monitor, tool_numbers: Mapping[str, int]) -> Json:
    """The monitor object of the core."""
    match monitor:
        case ResolvedOrder():
            return {
                "kind": monitor.kind,
                "order": monitor.order,
                "first": selection_json(monitor.first, tool_numbers),
                "second": selection_json(monitor.second, tool_numbers),
                "same": [list(pair) for pair in monitor.same],
            }
        case ResolvedSum(tool=tool, parameter=parameter, value=value):
            number = tool_numbers[tool]
            return {"kind": "sum", "tool": number, "param": parameter, "value": value}
        case ResolvedUses(of=of, per=per, value=count):
            selection = selection_json(of, tool_numbers)
            return {"kind": "uses", "of": selection, "per": per, "value": large(count)}


def selection_json(selection: ResolvedSelection, tool_numbers: Mapping[str, int]) -> Json:
    """A pattern as the core has it where it names calls by their tool and values."""
    where: Json = [[place, list(values)] for place, values in selection.where]
    return {"tool": tool_numbers[selection.tool], "where": where}


def monitor_text(monitor: Monitor, tools: Mapping[str, ResolvedTool]) -> str:
    """The monitor as a grammar writes it."""
    match monitor:
        case ResolvedOrder():
            first = selection_text(tools[monitor.first.tool], monitor.first)
            second = selection_text(tools[monitor.second.tool], monitor.second)
            order = "before each" if monitor.order == "each" else monitor.order
            same = ", ".join(_pair_text(*pair) for pair in monitor.same)
            return f"{monitor.kind} {first} {order} {second} same {same}"
        case ResolvedSum(tool=tool, parameter=parameter, value=value):
            return f"limit sum({written(tool)}.{written(parameter)}) <= {value}"
        case ResolvedUses(of=of, per=per, value=count):
            pattern = selection_text(tools[of.tool], of)
            return f"limit uses({pattern}) per {written(per)} <= {count}"


def _pair_text(first: str, second: str) -> str:
    return written(first) if first == second else f"{written(first)} = {written(second)}"
