"""Turn a graph into the core of a grammar: right-linear rules, one for each node.

A graph of states has calls on its edges; a graph of tools has them on its nodes. Nodes that are on
no path from a start to a goal are left out. A float is read as its shortest decimal text: this text
is in the file, or the writer meant it. The parameters of a tool get one order that agrees with
the order in every call.
Specification: docs/spec/imports.md, section 1. Cost: linear in the graph and its attributes, plus a
sort of values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tcc_certs.errors import is_plain
from tcc_certs.formats.codec import MAX_NAME, written
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.nodes import Total
from tcc_certs.policy.plans import Alt, Call, CallSet, Empty, Expr, OneCall, RuleRef, Seq
from tcc_certs.values.fields import Field
from tcc_compiler.frozen import frozen
from tcc_compiler.imports import graphs
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.source import Region, Source, Unreadable, decode, read_bytes, source_of
from tcc_compiler.language.values import decimal_text, parse_decimal, string_value
from tcc_compiler.names.amounts import Amounts, in_unit
from tcc_compiler.names.compile import Compiled, unreadable, version_fault

if TYPE_CHECKING:
    import networkx as nx

# Attributes: calls, their amounts, and the tools that are derived from the calls.

WHOLE_FILE = Region(0, 0, 0)
_AMOUNTS = {"price": "price", "latency_ms": "latency", "epsilon": "epsilon"}
_DECIMAL = re.compile(r"(-?)([0-9]{1,400}(?:\.[0-9]{1,400})?)")
_QUOTED = r'"(?:[^"\\\x00-\x1f]++|\\.)*+"'
_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]*+|{_QUOTED}")
_ARGUMENT = re.compile(
    rf"""(?P<open>[(,])(?P<name>[A-Za-z_][A-Za-z0-9_]*+|{_QUOTED})=
        (?P<value>[A-Za-z_][A-Za-z0-9_]*+|-?[0-9]{{1,400}}+(?:\.[0-9]{{1,400}}+)?|{_QUOTED})""",
    re.VERBOSE,
)


class GraphCall(NamedTuple):
    """A call of a graph: its canonical text, its tool, and pairs (parameter, text of the value)."""

    text: str
    tool: str
    arguments: tuple[tuple[str, str], ...]


def parse_call(text: str) -> GraphCall:
    """Return the call that a text means.

    Raises:
        GraphRefused: TCC606, the text is no call.
    """
    name = _NAME.match(text)
    if name is None:
        raise _no_call(text)
    tool = _name(name.group(), text)
    rest = text[name.end() :]
    arguments: dict[str, str] = {}
    at = 0
    while at < len(rest) - 1:
        match = _ARGUMENT.match(rest, at)
        if match is None or match["open"] != ("," if arguments else "("):
            raise _no_call(text)
        parameter = _name(match["name"], text)
        if parameter in arguments:
            raise _no_call(text)
        arguments[parameter] = _canonical(match["value"], text)
        at = match.end()
    if rest[at:] != (")" if arguments else ""):
        raise _no_call(text)
    inside = ",".join(f"{written(parameter)}={value}" for parameter, value in arguments.items())
    canonical = f"{written(tool)}({inside})" if arguments else written(tool)
    return GraphCall(canonical, tool, tuple(arguments.items()))


def _no_call(text: str) -> graphs.GraphRefused:
    return graphs.GraphRefused("TCC606", f"{quote(text)} is not the text of a call")


def _name(written_name: str, text: str) -> str:
    """Return the name of a tool or parameter, unquoted."""
    quoted = written_name.startswith('"')
    name = _string(written_name, text) if quoted else written_name
    if not 1 <= len(name) <= MAX_NAME or "`" in name or not is_plain(name):
        raise _no_call(text)
    return name


def _string(literal: str, text: str) -> str:
    try:
        value = str(json.loads(literal))
        value.encode("utf-8")  # raises UnicodeEncodeError, a ValueError, for half a surrogate pair
    except ValueError:
        raise graphs.GraphRefused(
            "TCC606", f"{quote(text)} has a string that is not JSON"
        ) from None
    return value


def _canonical(value: str, text: str) -> str:
    """Return a value's canonical text: the shortest number, a bare name, or a JSON string."""
    if value.startswith('"'):
        return string_value(_string(value, text))
    number = _decimal(value)
    return value if number is None else decimal_text(number)


def _decimal(text: str) -> Fraction | None:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    number = parse_decimal(match.group(2))
    return -number if match.group(1) else number


def number_of(value: object) -> Fraction | None:
    """Return an attribute as an exact number; floats by their shortest text; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value) if value.bit_length() <= 256 else None
    if isinstance(value, float):
        return Fraction(repr(value)) if math.isfinite(value) else None
    return _decimal(value) if isinstance(value, str) else None


def amounts_in(attributes: graphs.Attributes, where: str, report: Report) -> Amounts:
    """Return the amounts among the attributes of a node or edge; a missing amount is 0.

    If a cost is a range, `cost_high` is its upper end.
    """
    low = _amount(attributes, "cost", "cost", where, report)
    high = low
    if "cost_high" in attributes:
        high = _amount(attributes, "cost_high", "cost", where, report)
    if low > high and not report.failed:
        report.error("TCC309", WHOLE_FILE, f"the cost of {where} is above its cost_high")
    rest = [_amount(attributes, name, kind, where, report) for name, kind in _AMOUNTS.items()]
    return Amounts(low, high, *rest)


def _amount(attributes: graphs.Attributes, name: str, kind: str, where: str, report: Report) -> int:
    number = number_of(attributes.get(name, 0))
    if number is None:
        report.error("TCC604", WHOLE_FILE, f"{name} of {where} is not a number that is finite")
        return 0
    # The error is about the whole file, so its text names the node or edge.
    return in_unit(kind, number, WHOLE_FILE, report, f" ({name} of {where})") or 0


def flag(attributes: Mapping[str, object], name: str, where: str, report: Report) -> bool:
    """Return a boolean attribute; False if it is missing."""
    value = attributes.get(name, False)
    if not isinstance(value, bool):
        report.error("TCC604", WHOLE_FILE, f"{name} of {where} is not a boolean")
    return value is True


_SHOWN = 6  # the most parameters that an error names


def tools_of(calls: Iterable[GraphCall]) -> dict[str, Tool]:
    """Return the tools by name.

    Args:
        calls: in an order that does not depend on the order in the graph's file.

    Raises:
        GraphRefused: TCC606, calls of one tool have their parameters in different orders.
    """
    by_tool: dict[str, list[GraphCall]] = {}
    for call in calls:
        by_tool.setdefault(call.tool, []).append(call)
    return {name: _tool(name, own) for name, own in by_tool.items()}


def _tool(name: str, calls: list[GraphCall]) -> Tool:
    domains: dict[str, dict[str, None]] = {}
    times: dict[str, int] = {}
    before: dict[str, dict[str, None]] = {}
    for call in calls:
        last = None
        for parameter, value in call.arguments:
            domains.setdefault(parameter, {})[value] = None
            times[parameter] = times.get(parameter, 0) + 1
            earlier = before.setdefault(parameter, {})
            if last is not None:
                earlier[last] = None
            last = parameter
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError as error:
        around = error.args[1][1:]
        shown = ", ".join(map(quote, around[:_SHOWN])) + (", .." if len(around) > _SHOWN else "")
        message = f"the calls of {quote(name)} have these parameters in no one order: {shown}"
        raise graphs.GraphRefused("TCC606", message) from None
    fields = [_field(each, domains[each], optional=times[each] < len(calls)) for each in order]
    return Tool(name=name, arguments=tuple(fields))


def _field(name: str, domain: Iterable[str], *, optional: bool) -> Field:
    """Return a listed argument: its numbers by size, then its other values by text."""
    ordered = sorted(
        domain, key=lambda text: ((number := number_of(text)) is None, number or 0, text)
    )
    return Field(name=name, steps=(name,), values=tuple(ordered), optional=optional)


# The grammar.

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@frozen
class _Machine:
    """A graph, read as an automaton over calls.

    Attributes:
        steps: for each node the pairs (call, next node), sorted.
        starts, goals: the start nodes in the order of their keys; the goal nodes.
        on_nodes: in a graph of tools, the call that is made on entering each node; else None.
    """

    steps: Mapping[str, Sequence[tuple[str, str]]]
    starts: Sequence[str]
    goals: frozenset[str]
    on_nodes: Mapping[str, str] | None


def grammar_of(graph: graphs.Graph, default_name: str, report: Report) -> Core | None:
    """Return the core of a graph; None after an error.

    Raises:
        GraphRefused: an error that ends the reading.
    """
    calls: dict[str, tuple[GraphCall, Amounts]] = {}
    machine = _machine(graph, calls, report)
    name, version = _heading(graph, default_name, report)
    limits = _limits(graph, report)
    if report.failed:
        return None
    kept = _useful(machine)
    if not any(start in kept for start in machine.starts):
        raise graphs.GraphRefused("TCC605", "no path leads from a start to a goal")
    bare = Core(name=name, version=version, rules={}, plan=Empty(), tools=(), statements=limits)
    return _planned(machine, kept, _with_calls(bare, calls))


def _machine(
    graph: graphs.Graph, calls: dict[str, tuple[GraphCall, Amounts]], report: Report
) -> _Machine:
    starts = [key for key, node in graph.nodes.items() if flag(node, "start", key, report)]
    goals = []
    for key, node in graph.nodes.items():
        report.tick()
        # No short circuit: both flags are read, so that both are checked.
        if flag(node, "goal", key, report) | flag(node, "accept", key, report):
            goals.append(key)
    if not starts or not goals:
        missing = '"start"' if not starts else '"goal"'
        raise graphs.GraphRefused("TCC605", f"no node is marked {missing}: true")
    labelled = [edge for edge in graph.edges if "call" in edge.attributes]
    steps: dict[str, list[tuple[str, str]]] = {key: [] for key in graph.nodes}
    on_nodes = None
    if labelled and len(labelled) < len(graph.edges):
        bare = next(edge for edge in graph.edges if "call" not in edge.attributes)
        raise graphs.GraphRefused(
            "TCC607", f"the edge {bare.source} -> {bare.target} has no call, others have"
        )
    if not labelled:
        on_nodes = {key: _node_call(key, node, calls, report) for key, node in graph.nodes.items()}
    for edge in graph.edges:
        report.tick()
        if on_nodes is not None:
            call = on_nodes[edge.target]
        else:
            where = f"the edge {edge.source} -> {edge.target}"
            call = _call(edge.attributes["call"], edge.attributes, where, calls, report)
        steps[edge.source].append((call, edge.target))
    return _Machine(
        steps={key: sorted(set(leaving)) for key, leaving in steps.items()},
        starts=starts,
        goals=frozenset(goals),
        on_nodes=on_nodes,
    )


def _node_call(
    key: str,
    node: Mapping[str, object],
    calls: dict[str, tuple[GraphCall, Amounts]],
    report: Report,
) -> str:
    tool = node["tool"] if "tool" in node else json.loads(key)
    return _call(tool, node, f"the node {key}", calls, report)


def _call(
    text: object,
    attributes: Mapping[str, object],
    where: str,
    calls: dict[str, tuple[GraphCall, Amounts]],
    report: Report,
) -> str:
    """Return the canonical text of a call; add the call with its amounts to `calls`."""
    if not isinstance(text, str):
        raise graphs.GraphRefused("TCC606", f"the call of {where} is not a text")
    call = parse_call(text)
    amounts = amounts_in(attributes, where, report)
    known = calls.setdefault(call.text, (call, amounts))
    if known[1] != amounts:
        message = f"the call {quote(call.text)} has other amounts at {where} than elsewhere"
        report.error("TCC608", WHOLE_FILE, message)
    return call.text


def _heading(graph: graphs.Graph, default_name: str, report: Report) -> tuple[str, str]:
    name = graph.attributes.get("name") or default_name
    version = graph.attributes.get("version", "1")
    if not isinstance(name, str) or _IDENTIFIER.fullmatch(name) is None:
        report.error("TCC604", WHOLE_FILE, "the graph's name is not an identifier")
    if not isinstance(version, str):
        report.error("TCC604", WHOLE_FILE, "the graph's version is not a text")
    elif (fault := version_fault(version)) is not None:
        report.error("TCC315", WHOLE_FILE, *fault)
    return str(name), str(version)


def _limits(graph: graphs.Graph, report: Report) -> tuple[Total, ...]:
    if "depth" not in graph.attributes:
        return ()
    depth = number_of(graph.attributes["depth"])
    if depth is None or depth.denominator != 1 or not 0 <= depth < 1 << 63:
        report.error("TCC604", WHOLE_FILE, "the graph's depth is not a whole number, zero or more")
        return ()
    return (Total(what="depth", most=str(depth.numerator)),)


def _useful(machine: _Machine) -> frozenset[str]:
    """Return the nodes on some path from a start to a goal."""
    onward = {key: [target for _, target in steps] for key, steps in machine.steps.items()}
    back: dict[str, list[str]] = {key: [] for key in machine.steps}
    for key, targets in onward.items():
        for target in targets:
            back[target].append(key)
    return _closure(machine.starts, onward) & _closure(machine.goals, back)


def _closure(roots: Iterable[str], next_of: Mapping[str, Sequence[str]]) -> frozenset[str]:
    reached = set(roots)
    todo = list(reached)
    while todo:
        for target in next_of[todo.pop()]:
            if target not in reached:
                reached.add(target)
                todo.append(target)
    return frozenset(reached)


def _with_calls(core: Core, calls: Mapping[str, tuple[GraphCall, Amounts]]) -> Core:
    """Return the core with the calls of the graph and the tools derived from them.

    Raises:
        GraphRefused: TCC606, calls of one tool have their parameters in different orders.
    """
    tools = tools_of([calls[text][0] for text in sorted(calls)])
    numbers = {name: at for at, name in enumerate(tools)}
    found = []
    for text in sorted(calls, key=str.encode):
        call, (cost_low, cost_high, price, latency, epsilon) = calls[text]
        given = dict(call.arguments)
        values = [
            one.optional + one.values.index(given[one.name]) if one.name in given else 0
            for one in tools[call.tool].arguments
        ]
        made = Call(
            text=text, tool=numbers[call.tool], values=tuple(values), cost_low=cost_low,
            cost_high=cost_high, price=price, latency=latency, epsilon=epsilon,
        )  # fmt: skip
        found.append(made)
    return replace(core, tools=tuple(tools.values()), calls=tuple(found))


def _planned(machine: _Machine, kept: frozenset[str], core: Core) -> Core:
    """Return the core with a rule for each node in `kept`."""
    numbers = {call.text: at for at, call in enumerate(core.calls)}
    names = {key: f"node_{i}" for i, key in enumerate(sorted(kept))}
    starts = [(_entry(machine, key), key) for key in machine.starts if key in kept]
    used = {call for call, _ in starts if call is not None}
    used.update(call for key in kept for call, target in machine.steps[key] if target in kept)
    patterns: list[CallSet] = sorted([((numbers[call], numbers[call] + 1),) for call in used])
    places = {pattern[0][0]: place for place, pattern in enumerate(patterns)}

    def step(call: str | None, target: str) -> Expr:
        onward = RuleRef(names[target])
        return onward if call is None else Seq((OneCall(places[numbers[call]]), onward))

    rules: dict[str, Expr] = {}
    for key in sorted(kept):
        ways: list[Expr] = [Empty()] if key in machine.goals else []
        ways += [step(call, target) for call, target in machine.steps[key] if target in kept]
        rules[names[key]] = _any_of(ways)
    plan = _any_of([step(call, key) for call, key in starts])
    rules = {name: rules[name] for name in sorted(rules)}
    return replace(core, patterns=tuple(patterns), rules=rules, plan=plan)


def _entry(machine: _Machine, key: str) -> str | None:
    """Return the call that is made on entering a start; None in a graph of states."""
    return None if machine.on_nodes is None else machine.on_nodes[key]


def _any_of(ways: list[Expr]) -> Expr:
    return ways[0] if len(ways) == 1 else Alt(tuple(ways))


def read_graph(path: Path, check_time: Callable[[], None] | None = None) -> Compiled:
    """Return the front end's result for a graph file: ``.json`` as node-link, others as GraphML."""
    data = read_bytes(path)
    text = data if isinstance(data, Unreadable) else decode(data)
    if isinstance(text, Unreadable):
        return unreadable(str(path), text)
    source = source_of(text, str(path), path)
    reader = graphs.read_node_link if path.suffix.lower() == ".json" else graphs.read_graphml
    return _read(source, lambda: reader(text), _identifier(path.stem), check_time)


def read_networkx(
    graph: nx.Graph[Any], name: str = "graph", check_time: Callable[[], None] | None = None
) -> Compiled:
    """Return the front end's result for a networkx graph; `name` is used if it has none."""
    source = source_of("", f"<{name}>")
    return _read(source, lambda: graphs.graph_of_networkx(graph), _identifier(name), check_time)


def _read(
    source: Source,
    read: Callable[[], graphs.Graph],
    name: str,
    check_time: Callable[[], None] | None = None,
) -> Compiled:
    report = Report([source], check_time)
    try:
        graph = read()
        if check_time is not None:  # the parsers read no clock, so check after them
            check_time()
        grammar = grammar_of(graph, name, report)
    except graphs.GraphRefused as refusal:
        at = Region(0, refusal.offset, refusal.offset)
        report.error(refusal.code, at, refusal.message)
        grammar = None
    found = {source.name: source}
    if grammar is None or report.failed:
        return Compiled(core=None, diagnostics=report.diagnostics(), sources=found)
    return Compiled(core=grammar, diagnostics=(), sources=found)


def _identifier(text: str) -> str:
    """Return an identifier made from a file name; other characters become ``_``."""
    made = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return made if made and not made[0].isdigit() else f"_{made}"
