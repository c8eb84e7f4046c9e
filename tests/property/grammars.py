"""Random small grammars as text, from a seed: every operator and every statement.

Most of them are finite and not empty; what they mean is for the tests that use them.  The same seed
and shape give the same text on every platform.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

STATES = ("raw", "text", "table")
WORDS = ("fast", "full", "brief", '"a b"', '"x"', "1.5", "-2", "7")
LIMIT_KINDS = ("count", "least", "price", "latency", "cost", "epsilon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large and how varied the grammars are.

    Attributes:
        tools: most tools.
        parameters: most parameters of one tool.
        values: most values of one parameter.
        rules: most rules beside the plan.
        depth: how deeply an expression is nested.
        limit: ``limit depth`` is drawn from 2 (or this, where it is less) to this.
        limits, requires, forbids: most statements of each.
        kinds: the kinds of limits to draw from.
        recursion: chance that a rule calls itself, or a later one, behind a call.
        signatures: chance of states with start and goal.
        negative: chance that costs may be negative or intervals.
        plain: chance that there is no plan statement.
    """

    tools: int = 4
    parameters: int = 2
    values: int = 3
    rules: int = 3
    depth: int = 3
    limit: int = 4
    limits: int = 2
    requires: int = 1
    forbids: int = 1
    kinds: Sequence[str] = LIMIT_KINDS
    recursion: float = 0.3
    signatures: float = 0.3
    negative: float = 0.3
    plain: float = 0.1


@dataclass(frozen=True, slots=True)
class _Tool:
    name: str
    parameters: tuple[tuple[str, tuple[str, ...]], ...]
    calls: int


def random_grammar(seed: int, shape: Shape | None = None, **changes: object) -> str:
    """A grammar's text.

    Args:
        seed: any integer.
        shape: knobs; the default is small.
        changes: single knobs by name, such as ``limit=3``.
    """
    knobs = replace(shape or Shape(), **changes)  # type: ignore[arg-type]
    return _Writer(random.Random(seed), knobs).text()


class _Writer:
    def __init__(self, rng: random.Random, shape: Shape) -> None:
        self.rng = rng
        self.shape = shape
        self.tools: list[_Tool] = []
        self.rules = [f"r{i}" for i in range(rng.randint(0, shape.rules))]
        self.signed = rng.random() < shape.signatures

    def text(self) -> str:
        head = f'grammar g{self.rng.randint(0, 9)} version "{self.rng.randint(0, 9)}"'
        statements = [self._tool(i) for i in range(self.rng.randint(1, self.shape.tools))]
        if self.signed:
            goals = self.rng.sample(STATES, self.rng.randint(2, 3))
            statements.append(f"start {self.rng.choice(STATES)}")
            statements.append(f"goal {' | '.join(goals)}")
            # So that every state that is named stands in some signature.
            names = [*STATES, STATES[0]]
            statements += [
                f"tool step{i} : {one} -> {other} {{ cost 0.{i + 1} price 1 }}"
                for i, (one, other) in enumerate(pairwise(names))
            ]
            self.tools += [_Tool(f"step{i}", (), 1) for i in range(3)]
        for place, name in enumerate(self.rules):
            statements.append(f"rule {name} = {self._rule(place)}")
        if self.rng.random() >= self.shape.plain:
            statements.append(f"plan = {self._expression(self.shape.depth, 0)}")
        least = min(2, self.shape.limit)
        statements.append(f"limit depth <= {self.rng.randint(least, self.shape.limit)}")
        statements += [self._limit() for _ in range(self.rng.randint(0, self.shape.limits))]
        statements += [self._require() for _ in range(self.rng.randint(0, self.shape.requires))]
        statements += [self._forbid() for _ in range(self.rng.randint(0, self.shape.forbids))]
        self.rng.shuffle(statements)
        return "\n".join([head, *statements]) + "\n"

    # Tools.

    def _tool(self, number: int) -> str:
        name = f"t{number}"
        parameters = []
        calls = 1
        for place in range(self.rng.choice([0, 0, 1, self.shape.parameters])):
            values, written = self._domain()
            parameters.append((f"p{place}", values, written))
            calls *= len(values)
        self.tools.append(_Tool(name, tuple((p, v) for p, v, _ in parameters), calls))
        inside = ", ".join(f"{p}: {written}" for p, _, written in parameters)
        head = f"tool {name}({inside})" if parameters else f"tool {name}"
        if self.signed and self.rng.random() < 0.4:
            head += f" : {self.rng.choice(STATES)} -> {self.rng.choice(STATES)}"
        block = " ".join(self._attributes([(p, v) for p, v, _ in parameters]))
        return f"{head} {{ {block} }}" if block else head

    def _domain(self) -> tuple[tuple[str, ...], str]:
        size = self.rng.randint(1, self.shape.values)
        kind = self.rng.random()
        if kind < 0.3:
            low = self.rng.randint(-2, 3)
            values = tuple(str(n) for n in range(low, low + size))
            return values, f"{low}..{low + size - 1}"
        pool = ("0.5", "1", "2.25", "-1", "4") if kind < 0.6 else WORDS
        values = tuple(self.rng.sample(pool, min(size, len(pool))))
        return values, " | ".join(values)

    def _attributes(self, parameters: list[tuple[str, tuple[str, ...]]]) -> list[str]:
        found = [self._cost(parameters)]
        for kind, top in (("price", 4), ("latency", 90), ("epsilon", 3)):
            if self.rng.random() < 0.6:
                amount = str(self.rng.randint(0, top))
                if kind == "epsilon" and amount != "0":
                    amount += ".125"
                if kind == "latency":
                    amount += self.rng.choice([" ms", " s"])
                found.append(f"{kind} {amount}")
                if parameters and self.rng.random() < 0.4:
                    unit = " ms" if kind == "latency" else ""
                    found.append(f"{kind} {self.rng.randint(0, 4)}{unit} {self._when(parameters)}")
        if self.rng.random() < 0.2:
            found.append(self.rng.choice(['doc "Text."', "quotes same"]))
        self.rng.shuffle(found)
        return [part for part in found if part]

    def _cost(self, parameters: list[tuple[str, tuple[str, ...]]]) -> str:
        if self.rng.random() < 0.1:
            return ""
        loose = self.rng.random() < self.shape.negative
        amount = f"{self.rng.randint(0, 2)}.{self.rng.randint(0, 99):02d}"
        if loose and self.rng.random() < 0.5:
            amount = f"-({amount} - 1)"
        numeric = [p for p, values in parameters if all(_is_number(v) for v in values)]
        if numeric and self.rng.random() < 0.6:
            amount += f" + 0.1 * {self.rng.choice(numeric)} * {self.rng.choice(numeric)}"
        text = f"cost {amount}"
        if loose and self.rng.random() < 0.4:
            text += f" .. {amount} + 0.5"
        if parameters and self.rng.random() < 0.4:
            text += f" cost 0.7 {self._when(parameters)}"
        return text

    def _when(self, parameters: list[tuple[str, tuple[str, ...]]]) -> str:
        name, values = self.rng.choice(parameters)
        chosen = self.rng.sample(values, self.rng.randint(1, len(values)))
        return f"when {name} = {' | '.join(chosen)}"

    # Patterns and expressions.

    def _pattern(self) -> str:
        tool = self.rng.choice(self.tools)
        bound = [p for p in tool.parameters if self.rng.random() < 0.5]
        parts = []
        for name, values in bound:
            chosen = self.rng.sample(values, self.rng.randint(1, len(values)))
            parts.append(f"{name}={'|'.join(chosen)}")
        return f"{tool.name}({', '.join(parts)})" if parts else tool.name

    def _rule(self, place: int) -> str:
        """A rule names later rules anywhere, and itself or earlier ones behind a call only."""
        body = self._expression(self.shape.depth - 1, place + 1)
        if self.rng.random() >= self.shape.recursion:
            return body
        name = self.rng.choice(self.rules[: place + 1])
        way = self.rng.random()
        if way < 0.5:
            return f"{self._pattern()} {name} | {body}"
        if way < 0.8:
            return f"{self._pattern()} {name}? {self._pattern()} | {body}"
        return f"{self._pattern()} ({name} | {self._pattern()}) | {body}"

    def _expression(self, depth: int, first_rule: int) -> str:
        if depth <= 0 or self.rng.random() < 0.15:
            return self._atom(first_rule)

        def part() -> str:
            return self._expression(depth - 1, first_rule)

        kind = self.rng.random()
        if kind < 0.3:
            return " ".join(f"({part()})" for _ in range(self.rng.randint(2, 3)))
        if kind < 0.55:
            return " | ".join(f"({part()})" for _ in range(self.rng.randint(2, 3)))
        if kind < 0.62:
            return f"(({part()}) | any)* & ({part()})"
        if kind < 0.7:
            return f"({part()}){{0,2}} - ({part()})"
        low = self.rng.randint(0, 2)
        ending = self.rng.choice(
            ["?", "*", "+", f"{{{low}}}", f"{{{low},{low + 1}}}", f"{{{low},}}", "?"]
        )
        return f"({part()}){ending}"

    def _atom(self, first_rule: int) -> str:
        kind = self.rng.random()
        later = self.rules[first_rule:]
        if later and kind < 0.3:
            return self.rng.choice(later)
        if kind < 0.37:
            return "any"
        return "()" if kind > 0.97 else self._pattern()

    # Statements.

    def _limit(self) -> str:
        kind = self.rng.choice(self.shape.kinds)
        if kind == "count":
            return f"limit count({self._set()}) <= {self.rng.randint(0, 2)}"
        if kind == "least":
            bound = self.rng.choice([">= 1", "< 3", "!= 2"])
            return f"finally require count({self._set()}) {bound}"
        if kind == "price":
            return f"limit price <= {self.rng.randint(4, 12)}"
        if kind == "latency":
            return f"limit latency <= {self.rng.choice(['100 ms', '60 s', '90 s', '0.25 s'])}"
        return f"limit {kind} <= {self.rng.choice(['1.75', '3', '4.5', '6.125'])}"

    def _require(self) -> str:
        if self.rng.random() < 0.5:
            return f"before {self._set()} require {self._set()}"
        return f"after {self._set()} owe {self._set()}"

    def _forbid(self) -> str:
        kind = self.rng.random()
        first, second = self._set(), self._set()
        if kind < 0.4:
            return f"before {second} require no {first}"
        # Without one tool there are often no plans, without a pair seldom.
        if kind < 0.5:
            return f"forbid {first}"
        if kind < 0.8 and len(self.tools) > 1:
            return f"before {second} require no {first} since any - {first}"
        return f"before {second} require no {first} since {self._set()}"

    def _set(self) -> str:
        """A set of calls of one tool, with a filter or without."""
        tool = self.rng.choice(self.tools)
        conditions = []
        for name, values in tool.parameters:
            if self.rng.random() < 0.5:
                chosen = self.rng.sample(values, self.rng.randint(1, len(values)))
                conditions.append(f"{name} = {' | '.join(chosen)}")
        return f"{tool.name}({', '.join(conditions)})" if conditions else tool.name


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()
