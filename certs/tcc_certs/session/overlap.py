"""The pairs of tools whose calls may be under way together.

Calls of two tools may be under way together if the order of their decisions makes no difference.
Both orders lead to the same states of the automaton, and no statement and no learned attribute
depends on the order.  This follows from the automaton and the core, so an artifact does not claim
it.

Normative text: docs/spec/session.md, section 9.

Cost: the edges and the paths of two calls of parallel tools, at most `MAX_PATHS`.  Then each pair
of consecutive tools times each pair of sets that a statement orders, at most `MAX_COMPARED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tcc_certs.policy import forms
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.forms import Rule, Source, Tools
from tcc_certs.policy.kinds import walk

MAX_PATHS = 1 << 21  # most edges, and paths of two calls
MAX_COMPARED = 1 << 24  # most pairs of tools times pairs of sets

Pair: TypeAlias = "tuple[int, int]"  # indices of tools, the smaller first
Rows: TypeAlias = "Callable[[int], Mapping[int, Sequence[int]]]"
Sides: TypeAlias = "tuple[Tools, Tools]"


def commuting(
    core: Core, rules: Sequence[Rule], rows: Rows, tools: Sequence[int], states: int
) -> frozenset[Pair]:
    """Return the pairs of tools that commute and have calls that follow each other in some plan.

    Args:
        rules: the rules of the core's statements.
        rows: returns the targets of each call from a state, by the call of the artifact.
        tools: the tool of each call of the artifact.
        states: the number of states of the automaton.
    """
    parallel = {at for at, tool in enumerate(core.tools) if tool.parallel}
    if not parallel or _has_many_paths(parallel, rows, tools, states):
        return frozenset()
    met, differ = set[Pair](), set[Pair]()
    for state in range(states):
        after: dict[tuple[int, int], set[int]] = {}
        for one, middle in _edges(parallel, tools, rows(state)):
            for between in middle:
                for other, targets in _edges(parallel, tools, rows(between)):
                    after.setdefault((one, other), set()).update(targets)
        for (one, other), reached in after.items():
            pair = _pair(tools[one], tools[other])
            met.add(pair)
            if after.get((other, one)) != reached:
                differ.add(pair)
    sides = list(dict.fromkeys(side for rule in rules for side in _ordered(core, rule)))
    sides += _learned(core.given)
    if len(met) * len(sides) > MAX_COMPARED:
        return frozenset()
    names = [tool.name for tool in core.tools]
    return frozenset(
        [
            (one, other)
            for one, other in met - differ
            if not any(_orders(side, names[one], names[other]) for side in sides)
        ]
    )


def _has_many_paths(parallel: set[int], rows: Rows, tools: Sequence[int], states: int) -> bool:
    paths = 0
    for state in range(states):
        row = rows(state)
        paths += len(row)
        for _, middle in _edges(parallel, tools, row):
            paths += sum([len(rows(between)) + 1 for between in middle])
        if paths > MAX_PATHS:
            return True
    return False


def _edges(
    parallel: set[int], tools: Sequence[int], row: Mapping[int, Sequence[int]]
) -> list[tuple[int, Sequence[int]]]:
    """Return the edges whose calls are of parallel tools."""
    return [(call, targets) for call, targets in row.items() if tools[call] in parallel]


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one <= other else (other, one)


def _orders(sides: Sides, one: str, other: str) -> bool:
    first, second = sides
    return (one in first and other in second) or (other in first and one in second)


def _learned(given: Iterable[Any]) -> Iterator[Sides]:
    """Yield, for each learned attribute, its source tools twice: the first known field decides."""
    for one in given:
        if isinstance(one, Learned):
            tools = frozenset([tool for tool, _ in one.sources])
            yield tools, tools


def _ordered(core: Core, rule: Rule) -> Iterator[Sides]:
    """Yield pairs of sets: the statement orders each tool of one with each tool of the other."""
    parts = (*rule.where, *rule.paying, *rule.per, rule.then, rule.most)
    over: Tools = frozenset() if rule.tools is None else rule.tools
    learned = {one.name: one for one in core.given if isinstance(one, Learned)}
    for form in walk(parts):
        match form:
            case forms.Attribute(name) if name in learned:
                yield over, frozenset([tool for tool, _ in learned[name].sources])
            case forms.Last(of):
                for one in _tools_of(of):
                    for other in _tools_of(of):
                        yield one, other
            case Source():
                for tools in _own_tools(form):
                    yield over, tools
                for mark in form.marks:
                    for tools in _tools_of(form):
                        for other in _reads(mark):
                            yield tools, other
    if rule.kind == "owe":
        yield over, rule.pays
    if rule.kind == "limit" and _uses_the_call(rule.most):
        yield over, over


def _uses_the_call(most: Any) -> bool:
    """Return whether two calls that a limit counts may have different bounds.

    A source in the bound is handled separately: if it reads a tool of the limit, it orders this
    tool with every tool of the limit.
    """
    return any(form == forms.Element(0) for form in walk((most,)))


def _own_tools(source: Source) -> list[Tools]:
    """Return the set of tools whose calls a source takes directly; empty for other bases."""
    return [source.base.tools] if isinstance(source.base, forms.Calls) else []


def _tools_of(source: Source) -> list[Tools]:
    """Return the sets of tools of a source: of its calls, or of its underlying collections."""
    match source.base:
        case forms.Calls(tools):
            return [tools]
        case forms.Rows(of):
            return _tools_of(of)
        case forms.Merged(parts):
            return [tools for part in parts for tools in _tools_of(part)]
        case forms.Items(of):
            return _tools_in(of)
        case forms.Pairs(left, right):
            return [*_tools_in(left), *_tools_in(right)]
    raise TypeError(source.base)


def _tools_in(term: forms.Term) -> list[Tools]:
    """Return the sets of tools of the collections that a list comes from."""
    match term:
        case forms.Get(of) | forms.CallOf(of):
            return _tools_in(of)
        case forms.Last(of):
            return _tools_of(of)
        case forms.Choose(_, arms, otherwise):
            results = [then for _, then in arms] + ([] if otherwise is None else [otherwise])
            return [tools for then in results for tools in _tools_in(then)]
    return []


def _reads(source: Source) -> list[Tools]:
    """Return the sets of tools that a source reads, also in its filters and after its `since`."""
    return [
        tools for form in walk(source) if isinstance(form, Source) for tools in _own_tools(form)
    ]
