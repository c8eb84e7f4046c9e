"""From a graph to the core of a grammar: right-linear rules, one for each node.

A graph of states has calls on its edges, a graph of tools has them on its nodes. Nodes on no path
from a start to a goal are left out.
Specification: docs/spec/language.md, section 11. Cost: linear in the graph.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcc_certs.core.model import CallSet
from tcc_certs.formats.codec import Json
from tcc_compiler.frontend import Frontend, failed, unreadable
from tcc_compiler.frozen import frozen
from tcc_compiler.imports.graph_grammar import (
    WHOLE_FILE,
    GraphCall,
    amounts_in,
    flag,
    number_of,
    parse_call,
    tools_of,
)
from tcc_compiler.imports.graphs import (
    Graph,
    GraphRefused,
    graph_of_networkx,
    read_graphml,
    read_node_link,
)
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.source import Region, Source, Unreadable, decode, read_bytes, source_of
from tcc_compiler.resolve.amounts import Amounts
from tcc_compiler.resolve.calls import Call, CallList
from tcc_compiler.resolve.core import Resolved, core_bytes
from tcc_compiler.resolve.limits import MAX_LIMIT, ResolvedLimit
from tcc_compiler.resolve.program import version_fault
from tcc_compiler.resolve.tools import Tool

if TYPE_CHECKING:
    import networkx as nx

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@frozen
class _Machine:
    """A graph read as an automaton over calls.

    Attributes:
        steps: for each node the calls that lead on, with the node they lead to, in order.
        starts, goals: nodes, in order.
        on_nodes: the call of a node is made on entering it (a graph of tools).
    """

    steps: Mapping[str, Sequence[tuple[str, str]]]
    starts: Sequence[str]
    goals: frozenset[str]
    on_nodes: Mapping[str, str] | None


def grammar_of(graph: Graph, default_name: str, report: Report) -> Resolved | None:
    """The grammar of a graph, None after an error.

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
        raise GraphRefused("TCC605", "no path leads from a start to a goal")
    call_list = _call_list(calls)
    numbers = {call.text: index for index, call in enumerate(call_list.calls)}
    return _resolved(machine, kept, call_list, numbers, name, version, limits)


def _machine(graph: Graph, calls: dict[str, tuple[GraphCall, Amounts]], report: Report) -> _Machine:
    starts = [key for key, node in graph.nodes.items() if flag(node, "start", key, report)]
    goals = []
    for key, node in graph.nodes.items():
        report.tick()
        # Both flags are read, so that both are checked.
        if flag(node, "goal", key, report) | flag(node, "accept", key, report):
            goals.append(key)
    if not starts or not goals:
        missing = '"start"' if not starts else '"goal"'
        raise GraphRefused("TCC605", f"no node is marked {missing}: true")
    labelled = [edge for edge in graph.edges if "call" in edge.attributes]
    steps: dict[str, list[tuple[str, str]]] = {key: [] for key in graph.nodes}
    on_nodes = None
    if labelled and len(labelled) < len(graph.edges):
        bare = next(edge for edge in graph.edges if "call" not in edge.attributes)
        raise GraphRefused(
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
    """The canonical text of a call; the call and its amounts join `calls`."""
    if not isinstance(text, str):
        raise GraphRefused("TCC606", f"the call of {where} is not a text")
    call = parse_call(text)
    amounts = amounts_in(attributes, where, report)
    known = calls.setdefault(call.text, (call, amounts))
    if known[1] != amounts:
        message = f"the call {quote(call.text)} has other amounts at {where} than elsewhere"
        report.error("TCC608", WHOLE_FILE, message)
    return call.text


def _heading(graph: Graph, default_name: str, report: Report) -> tuple[str, str]:
    name = graph.attributes.get("name") or default_name
    version = graph.attributes.get("version", "1")
    if not isinstance(name, str) or _IDENTIFIER.fullmatch(name) is None:
        report.error("TCC604", WHOLE_FILE, "the graph's name is not an identifier")
    if not isinstance(version, str):
        report.error("TCC604", WHOLE_FILE, "the graph's version is not a text")
    elif (fault := version_fault(version)) is not None:
        report.error("TCC315", WHOLE_FILE, *fault)
    return str(name), str(version)


def _limits(graph: Graph, report: Report) -> list[ResolvedLimit]:
    if "depth" not in graph.attributes:
        return []
    depth = number_of(graph.attributes["depth"])
    if depth is None or depth.denominator != 1 or not 0 <= depth <= MAX_LIMIT:
        report.error("TCC604", WHOLE_FILE, "the graph's depth is not a whole number, zero or more")
        return []
    return [ResolvedLimit(kind="depth", op="<=", value=depth.numerator)]


def _useful(machine: _Machine) -> frozenset[str]:
    """The nodes on some path from a start to a goal."""
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


def _call_list(calls: Mapping[str, tuple[GraphCall, Amounts]]) -> CallList:
    """The calls of the graph, and the tools that they add up to.

    Raises:
        GraphRefused: TCC606 where calls of one tool have their parameters in different orders.
    """
    tools = tools_of([calls[text][0] for text in sorted(calls)])
    listed = [_listed_call(call, tools[call.tool], amounts) for call, amounts in calls.values()]
    listed.sort(key=lambda call: call.text.encode())
    return CallList(tools=tools, calls=listed, places={})


def _listed_call(call: GraphCall, tool: Tool, amounts: Amounts) -> Call:
    given = dict(call.arguments)
    values = tuple(
        parameter.index[given[parameter.name]] if parameter.name in given else 0
        for parameter in tool.parameters
    )
    return Call(call.text, call.tool, values, amounts)


def _resolved(
    machine: _Machine,
    kept: frozenset[str],
    call_list: CallList,
    numbers: Mapping[str, int],
    name: str,
    version: str,
    limits: Sequence[ResolvedLimit],
) -> Resolved:
    names = {key: f"node_{i}" for i, key in enumerate(sorted(kept))}
    starts = [(_entry(machine, key), key) for key in machine.starts if key in kept]
    used = {call for call, _ in starts if call is not None}
    used.update(call for key in kept for call, target in machine.steps[key] if target in kept)
    patterns: list[CallSet] = sorted(((numbers[call], numbers[call] + 1),) for call in used)
    places = {pattern[0][0]: place for place, pattern in enumerate(patterns)}

    def step(call: str | None, target: str) -> Json:
        onward: Json = ["rule", names[target]]
        return onward if call is None else ["seq", [["call", places[numbers[call]]], onward]]

    rules: dict[str, Json] = {}
    for key in sorted(kept):
        ways: list[Json] = [["empty"]] if key in machine.goals else []
        ways += [step(call, target) for call, target in machine.steps[key] if target in kept]
        rules[names[key]] = _any_of(ways)
    return Resolved(
        name=name,
        version=version,
        call_list=call_list,
        patterns=patterns,
        rules=rules,
        plan=_any_of([step(call, key) for call, key in starts]),
        start=None,
        goals=(),
        limits=limits,
        requires=(),
        forbids=(),
    )


def _entry(machine: _Machine, key: str) -> str | None:
    """The call that is made on entering a start: its own in a graph of tools, else none."""
    return None if machine.on_nodes is None else machine.on_nodes[key]


def _any_of(ways: list[Json]) -> Json:
    return ways[0] if len(ways) == 1 else ["alt", ways]


def read_graph(path: Path, check_time: Callable[[], None] | None = None) -> Frontend:
    """The front end's result for a graph file: node-link ``.json``, or else GraphML."""
    data = read_bytes(path)
    text = data if isinstance(data, Unreadable) else decode(data)
    if isinstance(text, Unreadable):
        return unreadable(str(path), text)
    source = source_of(text, str(path), path)
    reader = read_node_link if path.suffix.lower() == ".json" else read_graphml
    return _read(source, lambda: reader(text), _identifier(path.stem), check_time)


def read_networkx(
    graph: nx.Graph[Any], name: str = "graph", check_time: Callable[[], None] | None = None
) -> Frontend:
    """The front end's result for a networkx graph, called `name` where it has no name."""
    source = source_of("", f"<{name}>")
    return _read(source, lambda: graph_of_networkx(graph), _identifier(name), check_time)


def _read(
    source: Source,
    read: Callable[[], Graph],
    name: str,
    check_time: Callable[[], None] | None = None,
) -> Frontend:
    report = Report([source], check_time)
    try:
        graph = read()
        if check_time is not None:  # the parsers look at no clock: when they are done
            check_time()
        grammar = grammar_of(graph, name, report)
    except GraphRefused as refusal:
        at = Region(0, refusal.offset, refusal.offset)
        report.error(refusal.code, at, refusal.message)
        grammar = None
    if grammar is None or report.failed:
        return failed(report, [source])
    return Frontend(
        diagnostics=(),
        core=core_bytes(grammar),
        examples=(),
        expects=(),
        sources={source.name: source},
        places={},
    )


def _identifier(text: str) -> str:
    """An identifier from the name of a file: other characters become ``_``."""
    made = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return made if made and not made[0].isdigit() else f"_{made}"
