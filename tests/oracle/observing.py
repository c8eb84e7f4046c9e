"""Random cores of version 1.1: listed, optional, numeric and observed parameters, strict tools, and
the statements that speak of them; and what is left of a set of plans where tools are strict.

The shape of a core is that of one over letters (:mod:`tests.oracle.cores`); its calls are then
those of other tools.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

from tcc_certs.core.model import (
    Call,
    Core,
    ForbidBefore,
    Limit,
    Parameter,
    Require,
    Tool,
)
from tcc_certs.core.reader import read_core
from tcc_certs.errors import Rejected
from tests.oracle.cores import _expression, _pattern, depth, letters, make_core
from tests.oracle.plans import Word

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


def random_observing(
    rng: random.Random, most: int = 3, *, strict: float = 0.5, statements: float = 0.5
) -> Core:
    """A random core whose plans have at most `most` calls; it may have no plan at all.

    Args:
        strict: how likely a tool with observed parameters is strict.
        statements: how likely there is one more of a kind.
    """
    while True:
        try:
            return _draw(rng, most, strict, statements)
        except Rejected:
            continue  # left-recursive, or a rule that is not reached


def _draw(rng: random.Random, most: int, strict: float, statements: float) -> Core:
    names = set(rng.sample(sorted(SHAPES), rng.randint(1, 3)))
    watched = {name for name in sorted(names) if SHAPES[name][1] and rng.random() < strict}
    tools, calls = tools_and_calls(names, watched)
    size = len(calls)
    plan: Any = _expression(rng, size, ["r"], 3)
    if rng.random() < 0.3:
        plan = ["repeat", ["call", set(range(size))], 0]
    plan = ["alt", [["seq", [_pattern(rng, size), ["rule", "r"]]], plan]]
    some = {f"x{n}": ["call", _members(rng, size)] for n in range(4)}
    unused = ["seq", [["empty"], *some.values()]]  # so that the core has these patterns
    base = read_core(
        make_core(
            **letters(size),
            plan=plan,
            rules={"r": ["alt", [_expression(rng, size, [], 2), unused]]},
            limits=[depth(most)] if rng.random() < 0.9 else [],
        )
    )
    return replace(
        base,
        tools=tuple(tools),
        calls=tuple(calls),
        limits=tuple(sorted([*base.limits, *_sums(rng, tools, statements)], key=_text)),
        requires=tuple(sorted(_requires(rng, base, statements), key=_require_key)),
        forbids=tuple(sorted(_forbids(rng, base, statements), key=_forbid_key)),
    )


def _members(rng: random.Random, size: int) -> set[int]:
    return set(rng.sample(range(size), rng.randint(1, size)))


def _text(limit: Limit) -> bytes:
    return limit.text.encode()


def _require_key(require: Require) -> tuple[Any, ...]:
    return require.order, require.first, require.second


def _forbid_key(forbid: ForbidBefore) -> tuple[Any, ...]:
    return forbid.first, forbid.second


def _sums(rng: random.Random, tools: list[Tool], likely: float) -> list[Limit]:
    found = {}
    for at, tool in enumerate(tools):
        for place, parameter in enumerate(tool.parameters):
            if not all(text == "" or text[0].isdigit() for text in parameter.values):
                continue
            while rng.random() < likely:
                nano = rng.choice((0, 1, 10**9, 2 * 10**9, 25 * 10**8, 45 * 10**8, 7 * 10**9))
                shown = f"{nano // 10**9}.{nano % 10**9:09}".rstrip("0").rstrip(".")
                text = f"sum({tool.name}.{parameter.name})<={shown}"
                found[text] = Limit(kind="sum", value=nano, text=text, parameter=(at, place))
    return list(found.values())


def _requires(rng: random.Random, core: Core, likely: float) -> set[Require]:
    found = set()
    while rng.random() < likely:
        order = rng.choice(("before", "after", "each", "each"))
        found.add(Require(order, *_two(rng, core)))
    return found


def _forbids(rng: random.Random, core: Core, likely: float) -> set[ForbidBefore]:
    found = set()
    while rng.random() < likely:
        found.add(ForbidBefore(*_two(rng, core)))
    return found


def _two(rng: random.Random, core: Core) -> tuple[int, int]:
    return rng.randrange(len(core.patterns)), rng.randrange(len(core.patterns))


def without_strict(core: Core) -> Core:
    """The core with no tool strict."""
    return replace(core, tools=tuple([replace(tool, strict=False) for tool in core.tools]))


def strict_part(core: Core, plans: Iterable[Word]) -> frozenset[Word]:
    """The largest set of `plans` in which after every prefix a strict call has all its sisters.

    The greatest fixpoint of leaving out the plans that pass a call with a sister that leads to no
    plan that is left.
    """
    left = frozenset(plans)
    while True:
        prefixes = {plan[:at] for plan in left for at in range(len(plan) + 1)}
        fine = frozenset(plan for plan in left if _is_answered(core, plan, prefixes))
        if fine == left:
            return left
        left = fine


def _is_answered(core: Core, plan: Word, prefixes: set[Word]) -> bool:
    for at, number in enumerate(plan):
        tool = core.tools[core.calls[number].tool]
        if tool.strict and not all(
            (*plan[:at], sister) in prefixes for sister in sisters(core, number)
        ):
            return False
    return True


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
