"""Random cores of version 1.1: listed, optional, numeric and observed parameters, strict tools, and
the statements that speak of them.

The shape of a core is that of one over letters (:mod:`tests.oracle.cores`); its calls are then
those of other tools.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

from tcc_certs.core.model import Call, Core, Parameter, Tool
from tcc_certs.core.reader import read_core
from tcc_certs.errors import Rejected
from tests.oracle.cores import _calls, _expression, _pattern, call, depth, make_core

# name -> (listed parameters, observed parameters, optional ones); values in declared order.
SHAPES: dict[str, tuple[dict[str, list[str]], dict[str, list[str]]]] = {
    "a": ({}, {}),
    "get": ({"n": ["1", "2.5", "0"]}, {}),
    "opt": ({"x": ["", "2", "0.000000001"]}, {}),
    "run": ({"k": ["u", "v"]}, {"r": ["p", "f"]}),
    "see": ({}, {"w": ["1", "3"]}),
    "two": ({}, {"y": ["no", "yes"], "z": ["0", "7"]}),
}


def tools_and_calls(names: Iterable[str], strict: set[str]) -> tuple[list[Tool], list[Call]]:
    """The tools of those names, and all their calls by text."""
    tools, calls = [], []
    for at, name in enumerate(sorted(names)):
        listed, observed = SHAPES[name]
        parameters = [Parameter(name=n, values=tuple(v)) for n, v in listed.items()]
        parameters += [
            Parameter(name=n, values=tuple(v), observed=True) for n, v in observed.items()
        ]
        tools.append(Tool(name=name, parameters=tuple(parameters), strict=name in strict))
        for values in product(*(range(len(p.values)) for p in parameters)):
            pairs = [
                f"{p.name}={p.values[v]}"
                for p, v in zip(parameters, values, strict=True)
                if p.values[v]
            ]
            text = f"{name}({','.join(pairs)})" if pairs else name
            calls.append(
                Call(
                    text=text, tool=at, values=values, cost_low=0, cost_high=0,
                    price=0, latency=0, epsilon=0,
                )
            )  # fmt: skip
    return tools, sorted(calls, key=lambda call: call.text.encode())


def as_json(tool: Tool) -> dict[str, Any]:
    """A tool as a core has it."""
    params = [
        {"name": p.name, "values": list(p.values), **({"observed": True} if p.observed else {})}
        for p in tool.parameters
    ]
    return {
        "name": tool.name,
        "params": params,
        **({"strict": True} if tool.strict else {}),
    }


def random_observing(
    rng: random.Random, most: int = 3, *, strict: float = 0.5, statements: float = 0.5
) -> tuple[bytes, Core]:
    """A random core whose plans have at most `most` calls; it may have no plan at all.

    Args:
        strict: how likely a tool with observed parameters is strict.
        statements: how likely there is one more of a kind.
    """
    while True:
        try:
            data = _draw(rng, most, strict, statements)
            return data, read_core(data)
        except Rejected:
            continue  # left-recursive, or a rule that is not reached


def _draw(rng: random.Random, most: int, strict: float, statements: float) -> bytes:
    names = set(rng.sample(sorted(SHAPES), rng.randint(1, 3)))
    watched = {name for name in sorted(names) if SHAPES[name][1] and rng.random() < strict}
    tools, calls = tools_and_calls(names, watched)
    size = len(calls)
    plan: Any = _expression(rng, size, ["r"], 3)
    if rng.random() < 0.3:
        plan = ["repeat", ["call", set(range(size))], 0]
    costs = (0, 250_000_000, 10**9)
    return make_core(
        tools=[as_json(tool) for tool in tools],
        calls=[call(c.tool, c.values, rng.choice(costs), price=rng.randint(0, 2)) for c in calls],
        plan=["alt", [["seq", [_pattern(rng, size), ["rule", "r"]]], plan]],
        rules={"r": _expression(rng, size, [], 2)},
        limits=sorted(
            [depth(most), *_sums(rng, tools, statements)], key=lambda limit: _text(tools, limit)
        ),
        requires=[
            [rng.choice(("before", "after", "each", "each")), _calls(rng, size), _calls(rng, size)]
            for _ in range(_times(rng, statements))
        ],
        forbids=[
            [rng.choice(("with", "before", "before")), _calls(rng, size), _calls(rng, size)]
            for _ in range(_times(rng, statements))
        ],
    )


def _times(rng: random.Random, likely: float) -> int:
    times = 0
    while rng.random() < likely:
        times += 1
    return times


def _text(tools: list[Tool], limit: dict[str, Any]) -> bytes:
    if limit["kind"] == "depth":
        return f"depth<={limit['value']}".encode()
    tool = tools[limit["of"]["tool"]]
    name = f"{tool.name}.{tool.parameters[limit['of']['param']].name}"
    return f"sum({name})<={_shown(limit['value'])}".encode()


def _shown(nano: int) -> str:
    return f"{nano // 10**9}.{nano % 10**9:09}".rstrip("0").rstrip(".")


def total(tool: int, place: int, most: int) -> dict[str, Any]:
    """A limit on the sum of a parameter, nano-units."""
    return {"kind": "sum", "of": {"tool": tool, "param": place}, "op": "<=", "value": most}


def _sums(rng: random.Random, tools: list[Tool], likely: float) -> list[dict[str, Any]]:
    found = {}
    for at, tool in enumerate(tools):
        for place, parameter in enumerate(tool.parameters):
            if not all(text == "" or text[0].isdigit() for text in parameter.values):
                continue
            for _ in range(_times(rng, likely)):
                nano = rng.choice((0, 1, 10**9, 2 * 10**9, 25 * 10**8, 45 * 10**8, 7 * 10**9))
                found[at, place, nano] = total(at, place, nano)
    return list(found.values())


def without_strict(core: Core) -> Core:
    """The core with no tool strict."""
    return replace(core, tools=tuple([replace(tool, strict=False) for tool in core.tools]))


def sisters(core: Core, number: int) -> list[int]:
    """The calls that differ from `number` in observed values alone; -1 where there is none."""
    call = core.calls[number]
    parameters = core.tools[call.tool].parameters
    ways = product(
        *(
            range(len(p.values)) if p.observed else [value]
            for p, value in zip(parameters, call.values, strict=True)
        )
    )
    known = {(other.tool, other.values): at for at, other in enumerate(core.calls)}
    return [known.get((call.tool, values), -1) for values in ways]
