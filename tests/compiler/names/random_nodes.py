"""Random trees of conditions, terms, collections and statements, with any names."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tcc_certs.policy import nodes as n

NAMES = (
    "a", "order", "x1", "no", "not", "every", "unused", "same", "match", "this", "it", "session",
    "now", "any", "null", "true", "false", "count", "last", "sum", "distinct", "min", "max", "day",
    "before", "after", "start", "plan", "limit", "let", "in", "under", "or", "and", "within",
    "since", "because", "per", "text", "list", "d", "ms", "create-issue", "naïve", "a b", "1st",
    "%", "depth", "require", "across", "else", "owe",
)  # fmt: skip
TEXTS = (
    "", "a", 'say "no"', "\\", "\\\\", "\\d+", "a\\", "\\n", "\n", "\t", "\\u00", "\\u0041", "é",
    "\x7f", "\u2028", "#", "a # b", "`", "\\\\\"", "😀", "/", "\\/", "\\b",
)  # fmt: skip
NUMBERS = ("0", "1", "3.5", "-1", "-0.25", "1000000000000000000000")
SIMPLE = (n.This, n.It, n.Now, n.AnyTool, n.Null)


def node(rng: random.Random, depth: int) -> n.Node:
    """A tree of at most this depth."""
    if depth <= 0 or rng.random() < 0.15:
        return leaf(rng)
    return rng.choice(FORMS)(rng, depth - 1)


def leaf(rng: random.Random) -> n.Node:
    """A word or a constant."""
    kind = rng.randrange(8)
    if kind < 3:
        return n.Word(rng.choice(NAMES))
    if kind == 3:
        return n.Text(rng.choice(TEXTS))
    if kind == 4:
        return n.Number(rng.choice(NUMBERS))
    if kind == 5:
        return n.Duration(*span(rng))
    if kind == 6:
        return n.Session(rng.choice(NAMES))
    return rng.choice(SIMPLE)() if rng.random() < 0.8 else n.Flag(rng.random() < 0.5)


def span(rng: random.Random) -> tuple[str, str]:
    """A whole number of milliseconds, with its unit."""
    unit = rng.choice(tuple(n.UNITS))
    return rng.choice(("1", "30") if unit == "ms" else ("1", "0.5", "2.25")), unit


def some(rng: random.Random, depth: int, least: int) -> tuple[n.Node, ...]:
    """Several trees."""
    return tuple([node(rng, depth) for _ in range(rng.randint(least, 3))])


def arguments(rng: random.Random, depth: int, count: int) -> tuple[n.Node, ...]:
    """What is in the brackets of a filter."""
    same = n.Same(tuple([rng.choice(NAMES) for _ in range(rng.randint(1, 3))]))
    return tuple([same if rng.random() < 0.2 else node(rng, depth) for _ in range(count)])


def value(rng: random.Random) -> n.Node:
    """A value of an arm of `match`."""
    return rng.choice(
        (
            n.Word(rng.choice(NAMES)), n.Text(rng.choice(TEXTS)), n.Number(rng.choice(NUMBERS)),
            n.Null(), n.Flag(True),
        )
    )  # fmt: skip


def _match(rng: random.Random, depth: int) -> n.Node:
    arms: list[n.Node] = []
    for _ in range(rng.randint(1, 3)):
        values = tuple([value(rng) for _ in range(rng.randint(1, 2))])
        arms.append(n.Arm(node(rng, depth), values))
    if rng.random() < 0.5:
        arms.append(n.Else(node(rng, depth)))
    return n.Match(node(rng, depth), tuple(arms))


def _apply(rng: random.Random, depth: int) -> n.Node:
    name = rng.choice(tuple(n.FUNCTIONS))
    return n.Apply(name, arguments(rng, depth, rng.randint(*n.FUNCTIONS[name])))


def _negative(rng: random.Random, depth: int) -> n.Node:
    of = node(rng, depth)
    folds = isinstance(of, n.Number) and of.value[:1] != "-"
    return of if folds else n.Negative(of)


def _window(rng: random.Random, depth: int) -> n.Node:
    return n.Within(node(rng, depth), *span(rng))


def _compare(rng: random.Random, depth: int) -> n.Node:
    return n.Compare(rng.choice(n.COMPARISONS), node(rng, depth), node(rng, depth))


def _between(rng: random.Random, depth: int) -> n.Node:
    ends = node(rng, depth), node(rng, depth)
    return n.Between(rng.choice(("in", "not in")), node(rng, depth), *ends)


FORMS: Sequence[Callable[[random.Random, int], n.Node]] = (
    lambda r, d: n.Get(node(r, d), r.choice(NAMES)),
    lambda r, d: n.Where(node(r, d), arguments(r, d, r.randint(1, 3))),
    _apply,
    _window,
    lambda r, d: n.Since(node(r, d), node(r, d)),
    lambda r, d: n.Unused(node(r, d)),
    lambda r, d: n.No(node(r, d)),
    lambda r, d: n.Every(node(r, d)),
    lambda r, d: n.Not(node(r, d)),
    lambda r, d: n.And(some(r, d, 2)),
    lambda r, d: n.Or(some(r, d, 2)),
    _compare,
    _compare,
    _between,
    lambda r, d: n.Union(some(r, d, 2)),
    lambda r, d: n.Add(node(r, d), node(r, d)),
    lambda r, d: n.Minus(node(r, d), node(r, d)),
    lambda r, d: n.Times(node(r, d), node(r, d)),
    _negative,
    _match,
)


def definition(rng: random.Random, depth: int, name: str) -> n.Definition:
    """A `let`."""
    names = rng.sample(NAMES, rng.randint(0, 2))
    return n.Definition(name=name, parameters=tuple(names), body=node(rng, depth))


def _calls(rng: random.Random, depth: int) -> dict[str, Any]:
    """The set of a statement and its filter; a filter is never part of the set."""
    on = node(rng, depth)
    while isinstance(on, n.Where | n.Apply | n.Within | n.Since | n.Get):
        on = node(rng, depth)
    return {"on": on, "where": arguments(rng, depth, rng.randint(0, 2))}


def _because(rng: random.Random) -> str | None:
    return rng.choice(TEXTS) if rng.random() < 0.3 else None


def _duration(rng: random.Random) -> n.Duration | None:
    return n.Duration("2", rng.choice(tuple(n.UNITS))) if rng.random() < 0.5 else None


def _limit(rng: random.Random, depth: int) -> n.Limit:
    most = node(rng, depth)
    while isinstance(most, n.Within):
        most = node(rng, depth)
    calls = _calls(rng, depth)
    return n.Limit(
        of=calls["on"], where=calls["where"], field=rng.choice((None, *NAMES)),
        per=some(rng, depth, 0), within=_duration(rng), most=most,
        scope=rng.choice(("session", "across")), because=_because(rng),
    )  # fmt: skip


def statement(rng: random.Random, depth: int) -> n.Statement:
    """A statement."""
    match rng.randrange(6):
        case 0:
            names = rng.sample(NAMES, rng.randint(0, 2))
            lets = tuple([definition(rng, depth, name) for name in names])
            used = [n.Word(name) for name in names]
            then = n.And((node(rng, depth), node(rng, depth), *used))
            calls = _calls(rng, depth) if rng.random() < 0.8 else {"on": None}
            return n.Require(**calls, lets=lets, then=then, because=_because(rng))
        case 1:
            return n.Forbid(**_calls(rng, depth), because=_because(rng))
        case 2:
            first, then_ = _calls(rng, depth), _calls(rng, depth)
            return n.Owe(
                after=first["on"], where=first["where"], calls=then_["on"], pays=then_["where"],
                within=_duration(rng), because=_because(rng),
            )  # fmt: skip
        case 3:
            return n.Total(
                what=rng.choice(n.TOTALS), most=rng.choice(("0", "3", "400")), because=_because(rng)
            )
        case _:
            return _limit(rng, depth)


def from_json(value: Any) -> n.Node:
    """The node that :func:`tcc_certs.policy.nodes.json_of` wrote."""
    tag, *members = value
    kind = n.NODES[tag]
    values: list[Any] = []
    for letter in kind.SHAPE:
        if letter == "n":
            values.append(from_json(members.pop(0)))
        elif letter in "NM":
            values.append(tuple([from_json(one) for one in members]))
            members = []
        elif letter == "S":
            values.append(tuple(members))
            members = []
        else:
            values.append(members.pop(0))
    assert not members
    return kind(*values)
