"""Letters: the coarsest classes of calls that no statement of the core distinguishes.

Automata read letters; calls return when the artifact is written. Two calls have the same letter if
they belong to the same patterns (of those in use) and the same `uses` limits, have the same
signature, and add equal amounts to each sum that a limit bounds. Calls of a strict tool also need
answers of the same letters: then both stay or both go.
Specification: docs/spec/core.md, sections 2, 4 and 5.
Cost: linear in the calls, the expressions and the members of the patterns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from tcc_certs.core import model
from tcc_certs.core.expressions import parts, walk
from tcc_certs.formats.codec import nano_of
from tcc_certs.limits import MAX_CALLS
from tcc_compiler.frozen import frozen


@frozen
class Letters:
    """The letters of a core, numbered by their first call.

    Attributes:
        calls: [letters], the calls of each letter, increasing.
        letter: [calls], the letter of each call.
        patterns: [patterns of the core], the letters of each pattern, increasing; of a pattern that
            is not used, the letters with at least one call of it.
    """

    calls: tuple[tuple[int, ...], ...]
    letter: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]

    def of(self, calls: model.CallSet) -> frozenset[int]:
        """The letters of a call set that is a union of letters."""
        return frozenset(self.letter[call] for call in model.members(calls))


def partition(core: model.Core) -> Letters:
    """The letters of `core`."""
    classes = [0] * len(core.calls)
    for calls in _sets(core):
        _split(classes, ((call, True) for call in model.members(calls)))
    if core.start is not None:
        ends = [(core.tools[call.tool].takes, core.tools[call.tool].gives) for call in core.calls]
        _split(classes, enumerate(ends))
    _split_sums(core, classes)
    _split_answers(core, classes)
    return _number(core, classes)


def _split_sums(core: model.Core, classes: list[int]) -> None:
    """Part the calls by what they add to each sum that is limited."""
    added = [limit for limit in core.limits if limit.kind not in ("depth", "uses")]
    sums = {(limit.kind, limit.parameter): limit for limit in added}
    owned: dict[int, list[int]] = {limit.parameter[0]: [] for limit in added if limit.parameter}
    for number, call in enumerate(core.calls):
        if call.tool in owned:
            owned[call.tool].append(number)
    for (_, parameter), limit in sums.items():
        chosen = range(len(core.calls)) if parameter is None else owned[parameter[0]]
        marks = zip(chosen, call_amounts(core, limit, chosen), strict=True)
        # What adds nothing stays with the calls of other tools.
        _split(classes, (mark for mark in marks if parameter is None or mark[1]))


def _split_answers(core: model.Core, classes: list[int]) -> None:
    """Part the calls of strict tools by the classes that their possible answers have.

    Then the answers to a call of one letter have the same letters as those to any other of it.
    """
    marks = []
    for tool, groups in answers_of(core, strict=True).items():
        whole = possible_answers(core.tools[tool])
        for calls in groups:
            mark = frozenset([classes[call] for call in calls]), len(calls) == whole
            marks += [(call, mark) for call in calls]
    _split(classes, marks)


def _sets(core: model.Core) -> Iterable[model.CallSet]:
    """The call sets that distinguish calls: the patterns that are used, and those of limits."""
    used = {
        part.pattern
        for expr in (core.plan, *core.rules.values())
        for part in walk(expr)
        if isinstance(part, model.OneCall)
    }
    for require in core.requires:
        used |= {require.first, require.second}
    for forbid in core.forbids:
        used |= (
            {*forbid.patterns}
            if isinstance(forbid, model.ForbidNext)
            else {forbid.first, forbid.second}
        )
    yield from (core.patterns[pattern] for pattern in sorted(used))
    for limit in core.limits:
        if limit.calls is not None:
            yield limit.calls


def _split(classes: list[int], marks: Iterable[tuple[int, Hashable]]) -> None:
    """Give the marked calls new classes, one for each old class and mark."""
    fresh: dict[tuple[int, Hashable], int] = {}
    first = len(classes) + max(classes, default=0)
    for call, mark in marks:
        classes[call] = fresh.setdefault((classes[call], mark), first + len(fresh))


def _number(core: model.Core, classes: list[int]) -> Letters:
    numbers: dict[int, int] = {}
    letter = tuple(numbers.setdefault(name, len(numbers)) for name in classes)
    calls: list[list[int]] = [[] for _ in numbers]
    for call, number in enumerate(letter):
        calls[number].append(call)
    patterns = tuple(
        tuple(sorted({letter[call] for call in model.members(pattern)}))
        for pattern in core.patterns
    )
    return Letters(calls=tuple(tuple(group) for group in calls), letter=letter, patterns=patterns)


def letter_amounts(core: model.Core, letters: Letters, limit: model.Limit) -> list[int]:
    """What each letter adds to `limit`."""
    if limit.calls is not None:
        counted = letters.of(limit.calls)
        return [1 if letter in counted else 0 for letter in range(len(letters.calls))]
    return call_amounts(core, limit, [group[0] for group in letters.calls])


# Amounts that calls add to the sum of a limit, in the limit's unit.


def call_amounts(core: model.Core, limit: model.Limit, chosen: Iterable[int]) -> list[int]:
    """What each of the `chosen` calls adds to the sum of `limit`; 1 for depth and uses."""
    calls = [core.calls[index] for index in chosen]
    match limit.kind:
        case "price":
            return [call.price for call in calls]
        case "latency":
            return [call.latency for call in calls]
        case "epsilon":
            return [call.epsilon for call in calls]
        case "cost":
            return [call.cost_high for call in calls]
        case "sum" if limit.parameter is not None:
            tool, place = limit.parameter
            values = value_amounts(core.tools[tool].parameters[place]) or []
            return [values[call.values[place]] if call.tool == tool else 0 for call in calls]
        case _:
            return [1] * len(calls)


def value_amounts(parameter: model.Parameter) -> list[int] | None:
    """The number that each value of a parameter is, in nano-units; absent is 0.

    Returns:
        None where some value is no number, is below 0, or has more than nine decimal places: then
        nothing is added up.
    """
    amounts = [0 if text == "" else nano_of(text) for text in parameter.values]
    known = [amount for amount in amounts if amount is not None]
    return known if len(known) == len(amounts) else None


# Answer groups. A tool with observed parameters is called with its other values, and the world
# answers with one value for each observed parameter. The calls that stand for the answers to one
# question form a group.


def is_observed(tool: model.Tool) -> bool:
    """Whether the world chooses some value of a call of `tool`."""
    return any(parameter.observed for parameter in tool.parameters)


def possible_answers(tool: model.Tool) -> int:
    """How many answers a call of `tool` may get; past MAX_CALLS only that there are too many."""
    found = 1
    for parameter in tool.parameters:
        if parameter.observed and found <= MAX_CALLS:
            found *= len(parameter.values)
    return found


def unobserved_values(tool: model.Tool, call: model.Call) -> tuple[int, ...]:
    """The values of `call` that are not observed."""
    pairs = zip(tool.parameters, call.values, strict=True)
    return tuple([value for parameter, value in pairs if not parameter.observed])


def answers_of(core: model.Core, *, strict: bool) -> dict[int, list[list[int]]]:
    """For each tool with observed parameters its groups of calls, by first calls; calls increase.

    Args:
        strict: True leaves out the tools that are not strict.
    """
    asked = {
        at
        for at, tool in enumerate(core.tools)
        if is_observed(tool) and (tool.strict or not strict)
    }
    groups: dict[int, dict[tuple[int, ...], list[int]]] = {}
    if asked:
        for number, call in enumerate(core.calls):
            if call.tool in asked:
                key = unobserved_values(core.tools[call.tool], call)
                groups.setdefault(call.tool, {}).setdefault(key, []).append(number)
    return {tool: list(found.values()) for tool, found in groups.items()}


# Joint patterns: alternatives that are single calls, `a | b | c`, become one call of one pattern.
# Words and derivations stay the same, and calls that are always named as alternatives of each other
# share a letter: three hundred tools may have a dozen letters.


def join_calls(core: model.Core) -> model.Core:
    """`core` with joint patterns; they follow its own patterns, which keep their numbers."""
    sets = _Sets(core.patterns)
    rules = {name: _join(expr, sets) for name, expr in core.rules.items()}
    plan = _join(core.plan, sets)
    return replace(core, patterns=tuple(sets.number), rules=rules, plan=plan)


class _Sets:
    """Call sets by number."""

    def __init__(self, patterns: Sequence[model.CallSet]) -> None:
        self.number = {pattern: at for at, pattern in enumerate(patterns)}
        self._patterns = list(patterns)

    def join(self, patterns: Sequence[int]) -> int:
        """The number of the union."""
        pairs = sorted(pair for pattern in patterns for pair in self._patterns[pattern])
        joint: list[tuple[int, int]] = []
        for low, high in pairs:
            if joint and low <= joint[-1][1]:
                joint[-1] = (joint[-1][0], max(high, joint[-1][1]))
            else:
                joint.append((low, high))
        union = tuple(joint)
        if union not in self.number:
            self.number[union] = len(self._patterns)
            self._patterns.append(union)
        return self.number[union]


def _join(expr: model.Expr, sets: _Sets) -> model.Expr:
    """`expr`, its parts first, with a stack of our own."""
    done: list[model.Expr] = []
    todo: list[tuple[model.Expr, bool]] = [(expr, False)]
    while todo:
        item, ready = todo.pop()
        inner = parts(item)
        if inner and not ready:
            todo.append((item, True))
            todo.extend((part, False) for part in reversed(inner))
            continue
        first = len(done) - len(inner)
        done[first:] = [_with_parts(item, tuple(done[first:]), sets)]
    return done[0]


def _with_parts(expr: model.Expr, inner: tuple[model.Expr, ...], sets: _Sets) -> model.Expr:
    match expr:
        case model.Alt():
            return _joined(inner, sets)
        case model.Seq() | model.Both():
            return replace(expr, items=inner)
        case model.Diff():
            return replace(expr, base=inner[0], minus=inner[1:])
        case model.Repeat():
            return replace(expr, body=inner[0])
        case _:
            return expr


def _joined(items: tuple[model.Expr, ...], sets: _Sets) -> model.Expr:
    """The alternatives, with one call in place of all single calls."""
    calls = [item.pattern for item in items if isinstance(item, model.OneCall)]
    if len(calls) < 2:
        return model.Alt(items)
    others = tuple(item for item in items if not isinstance(item, model.OneCall))
    joint = model.OneCall(sets.join(calls))
    return model.Alt((joint, *others)) if others else joint
