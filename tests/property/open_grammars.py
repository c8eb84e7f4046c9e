"""Random grammars of version 1.1 as text, from a seed, with what each statement says beside it.

Names are odd ones as often as not, and stand in quotes where they must and sometimes where they
need not.  The same seed gives the same text on every platform.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tcc_certs.formats.codec import is_bare, written

TOOLS = (
    "pay",
    "create-issue",
    "limit",
    "each",
    "same",
    "a.b",
    "gr\u00fc\u00dfe",
    "x y",
    'q"q',
    "per",
    "sum",
)
PARAMETERS = ("k", "limit", "after", "per-page", "min", "text", "same", "model", "gives", "strict")
VALUES = ("a", "b", '"b c"', "5", "0.5", "true", '"true"', '"5"', "null", '"goal"', '""', "each")
NUMBERS = ("0", "1", "2.5", "4")
BLOCK = ("model",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A parameter that is part of a call."""

    name: str
    values: tuple[str, ...]
    optional: bool = False
    observed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool, its listed and then its observed parameters, and the types of its open ones."""

    name: str
    listed: tuple[Listed, ...]
    opened: tuple[tuple[str, str], ...] = ()

    def parameter(self, name: str) -> Listed:
        """The listed parameter of a name."""
        return next(parameter for parameter in self.listed if parameter.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A tool, and for each parameter that is named the values."""

    tool: Tool
    where: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A statement about listed parameters alone.

    Attributes:
        kind: ``before``, ``each``, ``with``, ``never`` (`forbid A before B`), ``per`` or ``sum``.
    """

    kind: str
    first: Pattern
    second: Pattern | None = None
    same: tuple[tuple[str, str], ...] = ()
    per: str = ""
    most: float = 0


@dataclass(slots=True, kw_only=True)
class Grammar:
    """A text, its tools, and its statements about listed parameters."""

    text: str
    tools: list[Tool]
    said: list[Said] = field(default_factory=list)


def random_open_grammar(seed: int, *, strict: bool = True) -> Grammar:
    """A grammar of version 1.1.

    Args:
        strict: whether tools may be strict, which takes plans away.
    """
    return _Writer(random.Random(seed), strict).grammar()


class _Writer:
    def __init__(self, rng: random.Random, strict: bool) -> None:
        self.rng = rng
        self.strict = strict
        self.tools: list[Tool] = []
        self.said: list[Said] = []

    def grammar(self) -> Grammar:
        names = self.rng.sample(TOOLS, self.rng.randint(2, 3))
        lines = ['grammar g version "1"', *map(self._tool, names)]
        lines += [self._statement() for _ in range(self.rng.randint(1, 4))]
        if self.rng.random() < 0.3:
            lines.insert(self.rng.randint(1, len(lines)), 'currency "EUR/1000"')
        return Grammar(text="\n".join(lines) + "\n", tools=self.tools, said=self.said)

    def _name(self, name: str) -> str:
        if is_bare(name) and name not in BLOCK and self.rng.random() < 0.7:
            return name
        return json.dumps(name, ensure_ascii=self.rng.random() < 0.5)

    def _value(self, text: str) -> str:
        spelled = is_bare(text) and text not in ("true", "null") and self.rng.random() < 0.2
        return f'"{text}"' if spelled else text

    def _tool(self, name: str) -> str:
        names = self.rng.sample(PARAMETERS, 5)
        count = self.rng.choice((1, 1, 2))
        listed = [self._listed(names[i]) for i in range(count)]
        observed = [
            Listed(name=names[2], values=self._values(), observed=True)
            for _ in range(self.rng.random() < 0.4)
        ]
        opened = [
            (name, self.rng.choice(("text", "integer", "number", "flag", "json")))
            for name in names[3 : 3 + self.rng.choice((0, 1, 2))]
        ]
        self.tools.append(Tool(name=name, listed=(*listed, *observed), opened=tuple(opened)))
        inside = ", ".join(map(self._written, listed))
        if opened:
            inside += "; " + ", ".join(self._opened(*item) for item in opened)
        text = f"tool {self._name(name)}({inside})"
        if observed:
            text += f" gives ({', '.join(map(self._written, observed))})"
        block = ["errors mean failed"] * (self.rng.random() < 0.2)
        block += ["strict"] * bool(observed and self.rng.random() < 0.3 and self.strict)
        block += ["price 2"] * (self.rng.random() < 0.5)
        return f"{text} {{ {' '.join(block)} }}" if block else text

    def _values(self) -> tuple[str, ...]:
        pool = NUMBERS if self.rng.random() < 0.4 else VALUES
        return tuple(self.rng.sample(pool, self.rng.randint(1, 3)))

    def _listed(self, name: str) -> Listed:
        return Listed(name=name, values=self._values(), optional=self.rng.random() < 0.3)

    def _written(self, parameter: Listed) -> str:
        values = " | ".join(map(self._value, parameter.values))
        return f"{self._name(parameter.name)}{'?' * parameter.optional}: {values}"

    def _opened(self, name: str, kind: str) -> str:
        limits = {
            "text": ("", " max 9", ' ~ "[a-z]{1,8}" min 1', " min 2 max 2"),
            "integer": ("", " 0 .. 5", " -5 .. 5.0"),
            "number": ("", " 0 .. 2.5", " 0.0 .. 1"),
            "flag": ("",),
            "json": ("", " max 64"),
        }[kind]
        return f"{self._name(name)}: {kind}{self.rng.choice(limits)}"

    def _pattern(self, *, observed: bool = True) -> tuple[Pattern, str]:
        tool = self.rng.choice(self.tools)
        where = {}
        for parameter in tool.listed:
            if self.rng.random() < 0.3 and (observed or not parameter.observed):
                size = self.rng.randint(1, len(parameter.values))
                where[parameter.name] = tuple(self.rng.sample(parameter.values, size))
        items = [
            f"{self._name(name)} = {' | '.join(map(self._value, values))}"
            for name, values in where.items()
        ]
        head = self._name(tool.name)
        text = f"{head}({', '.join(items)})" if items else head
        return Pattern(tool=tool, where=where), text

    def _statement(self) -> str:
        kind = self.rng.choice(("before", "each", "with", "never", "per", "sum"))
        if kind == "sum":
            return self._sum()
        if kind == "per":
            return self._per()
        order = {"before": "before", "each": "before each", "with": "with", "never": "before"}[kind]
        verb = "require" if kind in ("before", "each") else "forbid"
        first, one = self._pattern(observed=verb == "require")
        second, other = self._pattern(observed=False)
        text = f"{verb} {one} {order} {other}"
        pairs, opened = self._pairs(first.tool, second.tool)
        if pairs:
            shown = [self._pair(*pair) for pair in pairs]
            text += f" same {', '.join(shown)}"
        if not opened:
            self.said.append(Said(kind=kind, first=first, second=second, same=tuple(pairs)))
        elif verb == "require":
            self.said.append(Said(kind="before", first=first, second=second))
        return text

    def _pair(self, one: str, other: str) -> str:
        if one == other and self.rng.random() < 0.7:
            return self._name(one)
        return f"{self._name(one)} = {self._name(other)}"

    def _pairs(self, first: Tool, second: Tool) -> tuple[list[tuple[str, str]], bool]:
        """Some pairs, and whether one is of open parameters."""
        listed = [
            (a.name, b.name)
            for a in first.listed
            for b in second.listed
            if not (a.optional or b.optional or a.observed or b.observed)
        ]
        numbers = ("integer", "number")
        opened = [
            (a, b)
            for a, kind in first.opened
            for b, other in second.opened
            if kind != "json" and (kind == other or (kind in numbers and other in numbers))
        ]
        pool: Sequence[tuple[str, str]] = [*listed, *opened]
        chosen = self.rng.sample(pool, min(len(pool), self.rng.choice((0, 1, 1, 2))))
        return chosen, any(pair in opened for pair in chosen)

    def _per(self) -> str:
        of, text = self._pattern(observed=False)
        listed = [p.name for p in of.tool.listed if not p.optional]
        opened = [name for name, kind in of.tool.opened if kind != "json"]
        most = self.rng.randint(0, 2)
        if not listed and not opened:
            return f"limit count({text}) <= 9"
        per = self.rng.choice([*listed, *opened])
        if per in listed:
            self.said.append(Said(kind="per", first=of, per=per, most=most))
        return f"limit uses({text}) per {self._name(per)} <= {most}"

    def _sum(self) -> str:
        choices = [
            (tool, parameter.name)
            for tool in self.tools
            for parameter in tool.listed
            if set(parameter.values) <= set(NUMBERS) | {"5", "0.5"}
        ]
        if not choices:
            return "limit price <= 9"
        tool, name = self.rng.choice(choices)
        most = self.rng.choice((0, 1.5, 4, 5.25))
        of = Pattern(tool=tool, where={})
        self.said.append(Said(kind="sum", first=of, per=name, most=most))
        return f"limit sum({self._name(tool.name)}.{self._name(name)}) <= {most}"


def call_text(tool: str, arguments: dict[str, str]) -> str:
    """The canonical text of a call."""
    inside = ",".join(f"{written(name)}={value}" for name, value in arguments.items())
    return f"{written(tool)}({inside})" if inside else written(tool)
