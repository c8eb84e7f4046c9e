"""Statements and expressions of a core in the words of the language, whole.

What is written parses as that statement.  A call set that no pattern of the language stands for,
which only a core from elsewhere has, is written as a choice.  Cost: linear in the call sets.
"""

from __future__ import annotations

from tcc_certs.core.model import (
    Alt,
    Both,
    CallSet,
    Core,
    Diff,
    Empty,
    Expr,
    Forbid,
    ForbidBefore,
    ForbidNext,
    ForbidWith,
    Limit,
    OneCall,
    Repeat,
    Require,
    RuleRef,
    Selection,
    Seq,
    members,
)
from tcc_certs.core.selections import Owned, selection_text
from tcc_certs.formats.names import written


class Texts:
    """Texts of one core; each call set is written once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._owned = Owned(core.tools, core.calls)
        self._patterns: dict[int, str] = {}

    def selected(self, selection: Selection) -> CallSet:
        """The calls that a selection stands for."""
        return self._owned.selected(selection)

    def limit(self, limit: Limit) -> str:
        """A limit; a latency has its unit."""
        head, op, tail = limit.text.rpartition(">=" if limit.least else "<=")
        return f"limit {head} {op} {tail}{' ms' if limit.kind == 'latency' else ''}"

    def require(self, of: Require) -> str:
        """A `require`; of calls that there are not nothing can be asked, so none may need them."""
        if not self._core.patterns[of.first]:
            return f"limit uses({self.pattern(of.second)}) <= 0"
        order = "before each" if of.order == "each" else of.order
        return f"require {self.pattern(of.first)} {order} {self.pattern(of.second)}"

    def forbid(self, of: Forbid) -> str:
        """A `forbid`."""
        match of:
            case ForbidNext(patterns):
                return f"forbid {' '.join(map(self.pattern, patterns))}"
            case ForbidBefore(first, second):
                return f"forbid {self.pattern(first)} before {self.pattern(second)}"
            case ForbidWith(first, second):
                return f"forbid {self.pattern(first)} with {self.pattern(second)}"

    def pattern(self, number: int) -> str:
        """A call set as a pattern."""
        found = self._patterns.get(number)
        if found is None:
            found = self._patterns[number] = self._pattern(self._core.patterns[number])
        return found

    def _pattern(self, calls: CallSet) -> str:
        found = [self._core.calls[index] for index in members(calls)]
        tools = {call.tool for call in found}
        if len(tools) == 1:
            (tool,) = tools
            parameters = self._core.tools[tool].parameters
            columns = zip(*(call.values for call in found), strict=True)
            chosen = [tuple(sorted(set(column))) for column in columns]
            where = tuple(
                (place, values)
                for place, (values, parameter) in enumerate(zip(chosen, parameters, strict=True))
                if len(values) < len(parameter.values)
            )
            selection = Selection(tool=tool, where=where)
            if self._owned.selected(selection) == calls:
                return selection_text(selection, self._core.tools)
        return " | ".join(call.text for call in found) or "(no call)"

    def expression(self, of: Expr) -> str:
        """An expression; parentheses around every operand that is not an atom."""
        done: dict[int, str] = {}
        todo: list[tuple[Expr, bool]] = [(of, False)]
        while todo:
            part, ready = todo.pop()
            if not ready:
                todo.append((part, True))
                todo += [(inner, False) for inner in _inside(part)]
            else:
                done[id(part)] = self._written(part, done)
        return done[id(of)]

    def _written(self, of: Expr, done: dict[int, str]) -> str:
        inner = [_atom(part, done[id(part)]) for part in _inside(of)]
        match of:
            case Empty():
                return "()"
            case OneCall(pattern):
                if self._core.patterns[pattern] == ((0, len(self._core.calls)),):
                    return "any"
                return self.pattern(pattern)
            case RuleRef(name):
                return written(name)
            case Seq():
                return " ".join(inner)
            case Alt():
                return " | ".join(inner)
            case Both():
                return " & ".join(inner)
            case Diff():
                return " - ".join(inner)
            case Repeat(low=low, high=high):
                return f"{inner[0]}{_times(low, high)}"


def _inside(of: Expr) -> tuple[Expr, ...]:
    match of:
        case Seq(items) | Alt(items) | Both(items):
            return items
        case Diff(base, minus):
            return (base, *minus)
        case Repeat(body):
            return (body,)
    return ()


def _atom(of: Expr, text: str) -> str:
    """An operand: in parentheses, but for what needs none."""
    bare = isinstance(of, Empty | RuleRef) or (isinstance(of, OneCall) and " | " not in text)
    return text if bare else f"({text})"


def _times(low: int, high: int | None) -> str:
    short = {(0, 1): "?", (0, None): "*", (1, None): "+"}
    return short.get((low, high)) or f"{{{low},{'' if high is None else high}}}"
