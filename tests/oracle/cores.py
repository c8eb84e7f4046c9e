"""Cores for tests: written by hand with call sets in place, or drawn at random.

An expression is the JSON of docs/spec/core.md, with a set of call indices where the core has the
number of a pattern.  A statement is its JSON, or one of these short forms over sets of calls:

    ["before", A, B]        before B require A
    ["each", A, B]          before B require A since B
    ["after", A, B]         after B owe A
    ["never before", A, B]  before B require no A
    ["never with", A, B]    before A require no B, and before B require no A
    ["never next", A, B]    before B require no A since any - A
    ["never", A]            forbid A
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode, format_decimal, large
from tcc_certs.policy.core import Core
from tcc_certs.policy.reader import read_core

NANO = 9  # places of costs and epsilons


def ranges(calls: Iterable[int]) -> list[list[int]]:
    """A set of call indices as half-open ranges."""
    found: list[list[int]] = []
    for call in sorted(calls):
        if found and found[-1][1] == call:
            found[-1][1] += 1
        else:
            found.append([call, call + 1])
    return found


def call(tool: int, values: Sequence[int] = (), cost: int = 0, **amounts: int) -> list[Any]:
    """A call of a core; `amounts`: high, price, latency, epsilon."""
    numbers = [cost, amounts.get("high", cost)]
    numbers += [amounts.get(name, 0) for name in ("price", "latency", "epsilon")]
    return [tool, list(values), *map(large, numbers)]


def letters(count: int, **amounts: Sequence[int]) -> dict[str, Any]:
    """Tools a, b, c .. without fields and their calls; `amounts` by call, cost included."""
    names = [chr(ord("a") + i) for i in range(count)]
    return {
        "tools": [{"name": name} for name in names],
        "calls": [
            call(i, **{key: values[i] for key, values in amounts.items()}) for i in range(count)
        ],
    }


def make_core(
    *,
    tools: Sequence[Mapping[str, Any]],
    calls: Sequence[Any],
    plan: Any,
    rules: dict[str, Any] | None = None,
    statements: Sequence[Any] = (),
    name: str = "g",
    version: str = "1",
    **members: Any,
) -> bytes:
    """The canonical bytes of a core; sets of call indices are patterns, or sets of calls."""
    found: list[list[list[int]]] = []
    body = {"plan": plan, "rules": rules or {}}
    _map_sets(body, lambda s: found.append(ranges(s)))
    patterns = sorted({str(p): p for p in found}.values())
    numbered = _map_sets(body, lambda s: patterns.index(ranges(s)))
    every = set(range(len(calls)))
    named = [
        made
        for statement in statements
        for made in ([statement] if isinstance(statement, dict) else _stated(every, *statement))
    ]
    sets = _Sets(tools, calls)
    document = {
        "schema": "tcc.core/2",
        "grammar": {"name": name, "version": version},
        "tools": [dict(tool) for tool in tools],
        "calls": list(calls),
        "patterns": patterns,
        "rules": [[key, numbered["rules"][key]] for key in sorted(numbered["rules"])],
        "plan": numbered["plan"],
        "statements": [_map_sets(statement, sets.node) for statement in named],
        **members,
    }
    return encode(document)


def _stated(every: set[int], form: str, first: Any, second: Any = None) -> list[dict[str, Any]]:
    """The statements of a short form."""

    def before(on: Any, then: Any) -> dict[str, Any]:
        return {"kind": "require", "on": on, "lets": [], "then": then}

    neighbours = first if first == every else ["since", first, ["-", ["any"], first]]
    return {
        "before": [before(second, first)],
        "each": [before(second, ["since", first, second])],
        "after": [{"kind": "owe", "after": second, "calls": first}],
        "never before": [before(second, ["no", first])],
        "never with": [before(first, ["no", second]), before(second, ["no", first])],
        "never next": [before(second, ["no", neighbours])],
        "never": [{"kind": "forbid", "on": first}],
    }[form]


class _Sets:
    """Sets of call indices as nodes: unions of whole tools."""

    def __init__(self, tools: Sequence[Mapping[str, Any]], calls: Sequence[Any]) -> None:
        self._names = [tool["name"] for tool in tools]
        self._calls: dict[int, set[int]] = {}
        for index, (tool, *_) in enumerate(calls):
            self._calls.setdefault(tool, set()).add(index)

    def node(self, calls: Collection[int]) -> list[Any]:
        """The node of a set."""
        tools = sorted(tool for tool, own in self._calls.items() if own & set(calls))
        whole = set().union(*(self._calls[tool] for tool in tools))
        assert whole == set(calls), "statements of these cores are about whole tools"
        nodes = [["name", self._names[tool]] for tool in tools]
        return nodes[0] if len(nodes) == 1 else ["|", *nodes]


def _map_sets(value: Any, change: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return change(value)
    if isinstance(value, dict):
        return {key: _map_sets(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_sets(item, change) for item in value]
    return value


def depth(most: int) -> dict[str, Any]:
    """``limit depth <= most``."""
    return at_most("depth", most)


def at_most(what: str, value: int) -> dict[str, Any]:
    """A total: calls, cents, milliseconds; nano-units of cost and epsilon."""
    text = format_decimal(value, NANO if what in ("cost", "epsilon") else 0)
    whole = "." not in text and len(text) <= 15
    return {"kind": "total", "what": what, "most": int(text) if whole else text}


def count_at_most(calls: Any, value: int) -> dict[str, Any]:
    """``limit count(calls) <= value``."""
    return {"kind": "limit", "of": calls, "per": [], "most": ["n", str(value)]}


def sum_at_most(tool: str, field: str, value: str) -> dict[str, Any]:
    """``limit sum(tool.field) <= value``."""
    of = ["name", tool]
    return {"kind": "limit", "of": of, "field": field, "per": [], "most": ["n", value]}


def count_at_least(calls: Any, value: int) -> dict[str, Any]:
    """``finally require count(calls) >= value``; `value` is above 0."""
    then = ["compare", ">=", ["call", "count", calls], ["n", str(value)]]
    return {"kind": "require", "on": "end", "lets": [], "then": then}


def random_core(rng: random.Random, most: int = 4) -> tuple[bytes, Core]:
    """A random core whose plans have at most `most` calls; it may have no plan at all."""
    while True:
        try:
            data = _draw(rng, most)
            return data, read_core(data)
        except Rejected:
            continue  # left-recursive, or a rule that is not reached


def _draw(rng: random.Random, most: int) -> bytes:
    size = rng.randint(1, 4)
    amounts = {
        "cost": [rng.choice((0, 250_000_000, 10**9, -(10**8))) for _ in range(size)],
        "price": [rng.randint(0, 2) for _ in range(size)],
        "latency": [rng.choice((0, 5)) for _ in range(size)],
        "epsilon": [rng.choice((0, 10**8)) for _ in range(size)],
    }
    parts = letters(size, **amounts)
    names = [f"r{i}" for i in range(rng.randint(0, 2))]
    rules = {name: _expression(rng, size, names, 3) for name in names}
    plan = _expression(rng, size, names, 4)
    for name in names:  # every rule is reached
        plan = ["alt", [["rule", name], ["seq", [_pattern(rng, size), plan]]]]
    ends = {}
    if rng.random() < 0.3:
        for tool in parts["tools"]:
            if rng.random() < 0.7:
                tool["in"], tool["out"] = rng.choice("xy"), rng.choice("xy")
        ends = {"start": "x", "goals": rng.choice((["x"], ["x", "y"], ["y"]))}
    sets = [{number} for number in range(size)]
    statements = random_statements(rng, sets, most)
    return make_core(**parts, plan=plan, rules=rules, statements=statements, **ends)


def random_statements(rng: random.Random, tools: Sequence[Collection[int]], most: int) -> list[Any]:
    """Random statements over the calls of these tools, with a limit on depth."""

    def some() -> set[int]:
        chosen = rng.sample(range(len(tools)), rng.randint(1, len(tools)))
        return set().union(*(tools[at] for at in chosen))

    found: list[Any] = [depth(most)]
    for what, value in (("price", 3), ("latency", 10), ("epsilon", 2 * 10**8), ("cost", 10**9)):
        if rng.random() < 0.15:
            found.append(at_most(what, value))
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        one, value = set(rng.choice(tools)), rng.randint(0, 2)
        least = value > 0 and rng.random() < 0.5
        found.append(count_at_least(one, value) if least else count_at_most(one, value))
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        found.append([rng.choice(("before", "after", "each")), some(), some()])
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        form = rng.choice(("never next", "never next", "never with", "never before", "never"))
        found.append([form, some(), some()])
    rng.shuffle(found)
    return found


def calls_of(rng: random.Random, size: int) -> set[int]:
    """A random set of calls."""
    return set(rng.sample(range(size), rng.randint(1, size)))


def _pattern(rng: random.Random, size: int) -> list[Any]:
    return ["call", calls_of(rng, size)]


def _expression(rng: random.Random, size: int, names: Sequence[str], deep: int) -> list[Any]:
    if deep == 0 or rng.random() < 0.2:
        kind = rng.random()
        if names and kind < 0.3:
            return ["rule", rng.choice(names)]
        return ["empty"] if kind > 0.93 else _pattern(rng, size)

    def part(*avoid: str) -> list[Any]:
        while True:
            found = _expression(rng, size, names, deep - 1)
            if found[0] not in avoid:
                return found

    match rng.choice(("seq", "seq", "seq", "alt", "alt", "and", "diff", "repeat", "repeat")):
        case "diff":
            return ["diff", part("diff"), [part() for _ in range(rng.randint(1, 2))]]
        case "repeat":
            low = rng.randint(0, 2)
            bounds = [low] if rng.random() < 0.5 else [low, low + rng.randint(0, 2)]
            return ["repeat", part(), *bounds]
        case kind:
            return [kind, [part(kind) for _ in range(rng.randint(2, 3))]]


# Tools with listed arguments and answers.

# name -> (arguments, answers): values in declared order, with "" first if the field is optional.
SHAPES: dict[str, tuple[dict[str, list[str]], dict[str, list[str]]]] = {
    "a": ({}, {}),
    "b-b": ({"n": ["1", "2.5", "0"]}, {}),
    "opt": ({"x": ["", "2", "0.000000001"]}, {}),
    "run": ({"k": ["u", "v"]}, {"r": ["p", "f"]}),
    "see": ({}, {"w": ["1", "3"]}),
    "two": ({}, {"y": ["no", "yes"], "z": ["0", "7"]}),
}


def shaped_tool(name: str, *, strict: bool = False) -> dict[str, Any]:
    """The JSON of a tool of `SHAPES`."""
    arguments, answers = SHAPES[name]
    found: dict[str, Any] = {"name": name}
    for member, fields in (("fields", arguments), ("gives", answers)):
        if fields:
            found[member] = [_field(*field) for field in fields.items()]
    return found | ({"strict": True} if strict else {})


def _field(name: str, values: Sequence[str]) -> dict[str, Any]:
    optional = {"optional": True} if values[0] == "" else {}
    return {"name": name, "values": [value for value in values if value], **optional}


def shaped_calls(tools: Sequence[Mapping[str, Any]]) -> list[tuple[int, tuple[int, ...]]]:
    """The calls of tools of `SHAPES` in the order of their texts: tool, and indices of values."""
    found = []
    for number, tool in enumerate(tools):
        arguments, answers = SHAPES[tool["name"]]
        fields = [*arguments.items(), *answers.items()]
        for values in product(*(range(len(texts)) for _, texts in fields)):
            pairs = [
                f"{name}={texts[at]}"
                for (name, texts), at in zip(fields, values, strict=True)
                if texts[at]
            ]
            name = '"b-b"' if tool["name"] == "b-b" else tool["name"]
            text = f"{name}({','.join(pairs)})" if pairs else name
            found.append((text.encode(), number, values))
    return [(number, values) for _, number, values in sorted(found)]


def random_later_core(
    rng: random.Random, most: int = 3, *, strict: float = 0.6, statements: float = 0.5
) -> tuple[bytes, Core]:
    """A random core with listed arguments and answers and strict tools; it may have no plan.

    Args:
        most: calls of a plan.
        strict: how likely a tool with listed answers is strict.
        statements: how likely the core has one more statement about listed values.
    """
    while True:
        try:
            data = _draw_later(rng, most, strict, statements)
            return data, read_core(data)
        except Rejected:
            continue  # left-recursive


def _draw_later(rng: random.Random, most: int, strict: float, statements: float) -> bytes:
    names = sorted(rng.sample(sorted(SHAPES), rng.randint(1, 3)))
    tools = [
        shaped_tool(name, strict=bool(SHAPES[name][1]) and rng.random() < strict) for name in names
    ]
    listed = shaped_calls(tools)
    if len(listed) > 2 and rng.random() < 0.1:
        listed.pop(rng.randrange(len(listed)))  # an answer may be no call of the core
    size, costs = len(listed), (0, 250_000_000, 10**9)
    plan: Any = _expression(rng, size, ["r"], 3)
    if rng.random() < 0.4:
        plan = ["repeat", ["call", set(range(size))], 0]
    own = [{at for at, (tool, _) in enumerate(listed) if tool == one} for one in range(len(tools))]
    found = random_statements(rng, [calls for calls in own if calls], most)
    while rng.random() < statements:
        found.append(random_about_values(rng, names))
    return make_core(
        tools=tools,
        calls=[call(t, v, rng.choice(costs), price=rng.randint(0, 2)) for t, v in listed],
        plan=["alt", [["seq", [_pattern(rng, size), ["rule", "r"]]], plan]],
        rules={"r": _expression(rng, size, [], 2)},
        statements=found,
    )


def random_about_values(rng: random.Random, names: Sequence[str]) -> dict[str, Any]:
    """A statement that compares listed fields."""
    if "b-b" in names and rng.random() < 0.3:
        return sum_at_most("b-b", "n", str(Fraction(rng.randint(0, 4))))
    on, condition = _filtered(rng, names, answers=False)
    other, filters = _filtered(rng, names, answers=True)
    source = ["where", other, *filters] if filters else other
    then = rng.choice((source, ["no", source], ["since", source, ["name", rng.choice(names)]]))
    if filters and rng.random() < 0.3:
        _, sign, field, value = filters[0]
        then = ["compare", sign, ["get", ["call", "last", other], field[1]], value]
    where = {"if": condition} if condition else {}
    return {"kind": "require", "on": on, **where, "lets": [], "then": then}


def _filtered(rng: random.Random, names: Sequence[str], *, answers: bool) -> tuple[Any, list[Any]]:
    """A tool, and at most one condition on a field of it."""
    name = rng.choice(names)
    fields = SHAPES[name][0] | (SHAPES[name][1] if answers else {})
    if not fields or rng.random() < 0.3:
        return ["name", name], []
    field = rng.choice(sorted(fields))
    value = rng.choice([text for text in fields[field] if text])
    constant = ["n", value] if value[0].isdigit() else ["name", value]
    sign = rng.choice(("=", "!=")) if constant[0] == "name" else rng.choice(("=", "<", ">="))
    return ["name", name], [["compare", sign, ["name", field], constant]]
