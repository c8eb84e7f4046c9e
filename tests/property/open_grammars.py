"""Random grammars over open fields as text, from a seed.

Half of the names are odd ones, in backticks.  The same seed gives the same text on every platform.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

TOOLS = (
    "pay",
    "create-issue",
    "limit",
    "each",
    "a.b",
    "gr\u00fc\u00dfe",
    "x y",
    'q"q',
    "per",
    "sum",
)
FIELDS = ("k", "limit", "after", "per-page", "min", "text", "same", "model", "gives", "strict")
VALUES = ("a", "b", '"b c"', "5", "0.5", "true", '"true"', '"5"', "null", '"goal"', '""')
NUMBERS = ("0", "1", "2.5", "4")
PLAIN = ("k", "pay")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A listed field."""

    name: str
    values: tuple[str, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool with its listed arguments, listed answers, and open arguments with their types."""

    name: str
    listed: tuple[Listed, ...]
    answers: tuple[Listed, ...] = ()
    opened: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, kw_only=True)
class Grammar:
    """A text and its tools."""

    text: str
    tools: list[Tool]


def random_open_grammar(seed: int, *, strict: bool = True) -> Grammar:
    """Return a grammar without a plan.

    Args:
        strict: whether tools may be strict, which takes plans away.
    """
    return _Writer(random.Random(seed), strict).grammar()


def written(name: str) -> str:
    """A name as a grammar writes it."""
    return name if name in PLAIN else f"`{name}`"


class _Writer:
    def __init__(self, rng: random.Random, strict: bool) -> None:
        self.rng = rng
        self.strict = strict
        self.tools: list[Tool] = []

    def grammar(self) -> Grammar:
        names = self.rng.sample(TOOLS, self.rng.randint(2, 3))
        lines = ['grammar g version "1"', *map(self._tool, names)]
        lines += [self._statement() for _ in range(self.rng.randint(1, 4))]
        if self.rng.random() < 0.3:
            lines.insert(1, 'currency "EUR/1000"')
        return Grammar(text="\n".join(lines) + "\n", tools=self.tools)

    # Tools.

    def _tool(self, name: str) -> str:
        names = self.rng.sample(FIELDS, 5)
        listed = [self._field(names[at]) for at in range(self.rng.choice((1, 1, 2)))]
        answers = [Listed(name=names[2], values=self._values())] * (self.rng.random() < 0.4)
        opened = [
            (name, self.rng.choice(("text", "integer", "number", "flag", "json")))
            for name in names[3 : 3 + self.rng.choice((0, 1, 2))]
        ]
        self.tools.append(
            Tool(name=name, listed=tuple(listed), answers=tuple(answers), opened=tuple(opened))
        )
        inside = [*map(self._written, listed), *[self._opened(*one) for one in opened]]
        text = f"tool {written(name)}({', '.join(inside)})"
        if answers:
            text += f" gives ({', '.join(map(self._written, answers))})"
        block = ["errors mean failed"] * (self.rng.random() < 0.2)
        block += ["strict"] * bool(answers and self.rng.random() < 0.3 and self.strict)
        block += ["price 2"] * (self.rng.random() < 0.5)
        return f"{text} {{ {' '.join(block)} }}" if block else text

    def _values(self) -> tuple[str, ...]:
        pool = NUMBERS if self.rng.random() < 0.4 else VALUES
        return tuple(self.rng.sample(pool, self.rng.randint(2, 3)))

    def _field(self, name: str) -> Listed:
        return Listed(name=name, values=self._values(), optional=self.rng.random() < 0.3)

    def _written(self, field: Listed) -> str:
        return f"{written(field.name)}{'?' * field.optional}: {' | '.join(field.values)}"

    def _opened(self, name: str, kind: str) -> str:
        limits = {
            "text": ("", " max 9", ' ~ "[a-z]{1,8}" min 1', " min 2 max 2"),
            "integer": ("", " 0 .. 5", " -5 .. 5"),
            "number": ("", " 0 .. 2.5", " 0 .. 1"),
            "flag": ("",),
            "json": ("", " max 64"),
        }[kind]
        return f"{written(name)}: {kind}{self.rng.choice(limits)}"

    # Statements.

    def _statement(self) -> str:
        kind = self.rng.choice(("require", "unused", "no", "owe", "count", "sum"))
        if kind == "sum":
            return self._sum()
        if kind == "count":
            return self._count()
        first, second = self.rng.choice(self.tools), self.rng.choice(self.tools)
        keys = self._keys(first, second)
        on, earlier = self._set(second), self._set(first, keys, answers=True)
        if kind == "owe":
            return f"after {on} owe {self._set(first, keys)}"
        word = f"{kind} " if kind == "no" or (kind == "unused" and keys) else ""
        return f"before {on} require {word}{earlier}"

    def _set(self, tool: Tool, keys: Sequence[str] = (), *, answers: bool = False) -> str:
        """A set of calls of a tool, with the keys as conditions of its filter."""
        conditions = []
        for field in (*tool.listed, *(tool.answers if answers else ())):
            if self.rng.random() < 0.3:
                chosen = self.rng.sample(field.values, self.rng.randint(1, len(field.values)))
                values = [value for value in chosen if value != "null"]
                if values:
                    conditions.append(f"{written(field.name)} = {' | '.join(values)}")
        conditions += keys
        return (
            f"{written(tool.name)}({', '.join(conditions)})" if conditions else written(tool.name)
        )

    def _keys(self, first: Tool, second: Tool) -> list[str]:
        """Conditions that fields of both tools are equal."""
        numbers = ("integer", "number")
        pool = [
            (one, other)
            for one, kind in first.opened
            for other, beside in second.opened
            if kind != "json" and (kind == beside or (kind in numbers and beside in numbers))
        ]
        chosen = self.rng.sample(pool, min(len(pool), self.rng.choice((0, 1, 1, 2))))
        return [
            f"same {written(one)}"
            if one == other and self.rng.random() < 0.7
            else f"{written(one)} = this.{written(other)}"
            for one, other in chosen
        ]

    def _count(self) -> str:
        tool = self.rng.choice(self.tools)
        keys = [field.name for field in tool.listed]
        keys += [name for name, kind in tool.opened if kind != "json"]
        key = written(self.rng.choice(keys))
        return f"limit count({self._set(tool)}) per {key} <= {self.rng.randint(0, 2)} in session"

    def _sum(self) -> str:
        choices = [
            (tool, field.name)
            for tool in self.tools
            for field in tool.listed
            if not field.optional and set(field.values) <= {*NUMBERS, "5", "0.5"}
        ]
        if not choices:
            return "limit price <= 9"
        tool, name = self.rng.choice(choices)
        most = self.rng.choice((0, 1.5, 4, 5.25))
        return f"limit sum({written(tool.name)}.{written(name)}) <= {most}"
