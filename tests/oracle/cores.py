"""Cores for tests: written by hand with call sets in place, or drawn at random.

An expression here is the JSON of docs/spec/core.md, with a set of call indices where the core has
the number of a pattern; :func:`make_core` collects, sorts and numbers the sets.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from tcc_certs.core.model import Core
from tcc_certs.core.reader import read_core
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode, large


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
    """Tools a, b, c .. without parameters and their calls; `amounts` by call, cost included."""
    names = [chr(ord("a") + i) for i in range(count)]
    return {
        "tools": [{"name": name, "params": []} for name in names],
        "calls": [
            call(i, **{key: values[i] for key, values in amounts.items()}) for i in range(count)
        ],
    }


def make_core(
    *,
    tools: Sequence[Any],
    calls: Sequence[Any],
    plan: Any,
    rules: dict[str, Any] | None = None,
    limits: Sequence[Any] = (),
    requires: Sequence[Any] = (),
    forbids: Sequence[Any] = (),
    name: str = "g",
    version: str = "1",
    **ends: Any,
) -> bytes:
    """The canonical bytes of a core; sets of call indices stand for patterns."""
    found: list[list[list[int]]] = []
    body = {"plan": plan, "rules": rules or {}, "requires": requires, "forbids": forbids}
    _map_sets(body, lambda s: found.append(ranges(s)))
    patterns = sorted({str(p): p for p in found}.values())
    numbered = _map_sets(body, lambda s: patterns.index(ranges(s)))
    document = {
        "format": "tcc.core",
        "version": [1, 0],
        "grammar": {"name": name, "version": version},
        "tools": list(tools),
        "calls": list(calls),
        "patterns": patterns,
        "rules": [[key, numbered["rules"][key]] for key in sorted(numbered["rules"])],
        "plan": numbered["plan"],
        "limits": list(limits),
        "requires": _unique(numbered["requires"]),
        "forbids": _unique([_ordered(forbid) for forbid in numbered["forbids"]]),
        **ends,
    }
    return encode({**document, "version": [1, int(is_new(document))]})


WORDS = frozenset(
    (
        "grammar", "use", "tool", "rule", "plan", "start", "goal", "limit", "require", "forbid",
        "accept", "reject", "expect", "version", "any", "when", "before", "after", "with",
    )
)  # fmt: skip


def is_new(document: dict[str, Any]) -> bool:
    """Whether a core has something that version 1.0 does not know."""
    tools = document["tools"]
    params = [param for tool in tools for param in tool["params"]]
    names = [item["name"] for item in (*tools, *params)]
    return (
        "monitors" in document
        or any({"open", "strict", "errors"} & set(tool) for tool in tools)
        or any("observed" in param or param["values"][0] == "" for param in params)
        or any(name in WORDS or not (name.isascii() and name.isidentifier()) for name in names)
        or any(limit["kind"] == "sum" for limit in document["limits"])
        or any(require[0] == "each" for require in document["requires"])
        or any(forbid[0] == "before" for forbid in document["forbids"])
    )


def _map_sets(value: Any, change: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return change(value)
    if isinstance(value, dict):
        return {key: _map_sets(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_sets(item, change) for item in value]
    return value


def _ordered(forbid: list[Any]) -> list[Any]:
    return ["with", *sorted(forbid[1:])] if forbid[0] == "with" else forbid


def _unique(statements: list[Any]) -> list[Any]:
    return sorted({str(s): s for s in statements}.values())


def depth(most: int) -> dict[str, Any]:
    """``limit depth <= most``."""
    return {"kind": "depth", "op": "<=", "value": most}


def at_most(kind: str, value: int) -> dict[str, Any]:
    """A limit on price, latency, cost or epsilon."""
    return {"kind": kind, "op": "<=", "value": value}


def uses(tool: int, op: str, value: int) -> dict[str, Any]:
    """A limit on the calls of a tool."""
    return {"kind": "uses", "of": {"tool": tool, "where": []}, "op": op, "value": value}


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
    return make_core(**parts, plan=plan, rules=rules, **_statements(rng, size, most), **ends)


def _statements(rng: random.Random, size: int, most: int) -> dict[str, Any]:
    limits = [depth(most)]
    for kind, value in (("price", 3), ("latency", 10), ("epsilon", 2 * 10**8), ("cost", 10**9)):
        if rng.random() < 0.15:
            limits.append(at_most(kind, value))
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        limits.append(uses(rng.randrange(size), rng.choice(("<=", ">=")), rng.randint(0, 2)))
    unique = {_limit_text(limit): limit for limit in limits}
    some = [0, 0, 0, 1, 2]
    requires = [
        [rng.choice(("before", "after")), _calls(rng, size), _calls(rng, size)]
        for _ in range(rng.choice(some))
    ]
    forbids = [
        ["next", [_calls(rng, size) for _ in range(rng.randint(1, 3))]]
        if rng.random() < 0.6
        else ["with", _calls(rng, size), _calls(rng, size)]
        for _ in range(rng.choice(some))
    ]
    return {
        "limits": [unique[text] for text in sorted(unique)],
        "requires": requires,
        "forbids": forbids,
    }


def _limit_text(limit: dict[str, Any]) -> str:
    of = f"uses({chr(ord('a') + limit['of']['tool'])})" if "of" in limit else limit["kind"]
    return f"{of}{limit['op']}{limit['value']}"


def _calls(rng: random.Random, size: int) -> set[int]:
    return set(rng.sample(range(size), rng.randint(1, size)))


def _pattern(rng: random.Random, size: int) -> list[Any]:
    return ["call", _calls(rng, size)]


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


def random_later_core(rng: random.Random, most: int = 3) -> tuple[bytes, Core]:
    """A random core of version 1.1, of at most `most` calls a plan; it may have no plan at all.

    Some tools are strict, some parameters observed or optional, some statements those of 1.1.
    """
    while True:
        try:
            data = _draw_later(rng, most)
            return data, read_core(data)
        except Rejected:
            continue  # left-recursive, or nothing of 1.1 is left


def _draw_later(rng: random.Random, most: int) -> bytes:
    tools = [_later_tool(rng, name) for name in ("a", "b-b", "c")[: rng.randint(1, 3)]]
    calls = [
        call(number, values, cost=rng.choice((0, 10**9)), price=rng.randint(0, 1))
        for number, tool in enumerate(tools)
        for values in product(*(range(len(param["values"])) for param in tool["params"]))
    ]
    if len(calls) > 2 and rng.random() < 0.1:
        calls.pop(rng.randrange(len(calls)))  # of a strict call one answer may be no call at all
    calls.sort(key=lambda made: _later_text(tools, made).encode())
    size = len(calls)
    plan = _expression(rng, size, (), 3)
    if rng.random() < 0.5:
        plan = ["alt", [["repeat", ["call", set(range(size))], 0], ["seq", [plan, plan]]]]
        if plan[1][1][1][0][0] == "seq":
            plan = plan[1][0]
    found = _statements(rng, size, most)
    found["limits"] = [limit for limit in found["limits"] if limit["kind"] != "uses"]
    for number, tool in enumerate(tools):
        for place, param in enumerate(tool["params"]):
            if param["name"] == "n" and rng.random() < 0.7:
                of = {"tool": number, "param": place}
                value = rng.choice((0, 10**9, 25 * 10**8))
                found["limits"].append({"kind": "sum", "of": of, "op": "<=", "value": value})
    found["limits"].sort(key=lambda limit: _later_limit_text(tools, limit))
    for _ in range(rng.choice((0, 0, 1, 2))):
        found["requires"].append(["each", _calls(rng, size), _calls(rng, size)])
    for _ in range(rng.choice((0, 0, 1, 2))):
        found["forbids"].append(["before", _calls(rng, size), _calls(rng, size)])
    return make_core(tools=tools, calls=calls, plan=plan, **found)


def _later_tool(rng: random.Random, name: str) -> dict[str, Any]:
    params: list[dict[str, Any]] = []
    if rng.random() < 0.4:
        params.append(
            {"name": "n", "values": rng.choice((["", "1"], ["0.5", "2"], ["", "1", "2"]))}
        )
    tool: dict[str, Any] = {"name": name, "params": params}
    if rng.random() < 0.7:
        values = ["x", "y"] if rng.random() < 0.8 else ["x", "y", "z"]
        params.append({"name": "o", "observed": True, "values": values})
        if rng.random() < 0.7:
            tool["strict"] = True
    return tool


def _later_text(tools: Sequence[Any], made: Sequence[Any]) -> str:
    tool = tools[made[0]]
    pairs = zip(tool["params"], made[1], strict=True)
    inside = ",".join(f"{p['name']}={p['values'][v]}" for p, v in pairs if p["values"][v])
    name = '"b-b"' if tool["name"] == "b-b" else tool["name"]
    return f"{name}({inside})" if inside else name


def _later_limit_text(tools: Sequence[Any], limit: dict[str, Any]) -> str:
    if limit["kind"] != "sum":
        return _limit_text(limit)
    name = tools[limit["of"]["tool"]]["name"]
    return f'sum("{name}".n' if name == "b-b" else f"sum({name}.n"
