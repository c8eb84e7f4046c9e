"""Policy statements as English sentences, which editors show on hover.

A sentence contains each part of the statement, in the same order. Names and constants are in
backticks. The sentence is only an explanation: docs/spec/language.md defines the statement.
Cost: linear in the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tcc_certs.policy import nodes as n
from tcc_certs.values.fields import ListType
from tcc_compiler.editing.words import Meaning

_Meanings = Callable[[int], Iterable[Meaning]]

_COMPARED: Mapping[str, str] = {
    "=": "is", "!=": "is not", "<": "is less than", "<=": "is at most", ">": "is more than",
    ">=": "is at least", "~": "matches", "!~": "does not match", "in": "is in",
    "not in": "is not in", "under": "is under", "not under": "is not under",
}  # fmt: skip
_AGGREGATES: Mapping[str, str] = {
    "count": "the number of", "sum": "the sum of", "min": "the least of", "max": "the greatest of",
    "distinct": "the different values of", "last": "the last",
}  # fmt: skip
_CLOCK: Mapping[str, str] = {
    "hour": "the hour of", "weekday": "the day of the week (1 is Monday) of", "day": "the date of",
    "host": "the host of",
}  # fmt: skip
_UNITS = {"ms": "ms", "s": "s", "m": "min", "h": "h", "d": "days"}
_TOTALS: Mapping[str, str] = {
    "depth": "A plan or session has at most {} calls.",
    "price": "The prices of the calls add up to at most {}.",
    "cost": "The costs of the calls add up to at most {}.",
    "latency": "The latencies of the calls add up to at most {} ms.",
    "epsilon": "The privacy losses of the calls add up to at most epsilon {}.",
}


def sentence(statement: n.Statement, meanings: _Meanings) -> str:
    """Return a statement as an English sentence.

    Args:
        meanings: returns the meanings of the word of a node, given the node's id.
    """
    says = _Sayer(meanings)
    match statement:
        case n.Require(on=None):
            return f"A session may end only if {says.condition(statement.then)}."
        case n.Require():
            calls = says.calls(statement.on or n.AnyTool(), statement.where)
            where = "".join(f" Here `{let.name}` is {says.term(let.body)}."
                            for let in statement.lets if not let.parameters)  # fmt: skip
            return f"{calls} is allowed only if {says.condition(statement.then)}.{where}"
        case n.Ask():
            calls = says.calls(statement.on, statement.where)
            span = "" if statement.within is None else f" at most {_span(statement.within)} before"
            return (
                f"{calls} is allowed once `{statement.who}` has approved exactly this call{span}; "
                "an approval serves one call."
            )
        case n.Forbid():
            return f"{says.calls(statement.on, statement.where)} is refused."
        case n.Owe():
            first = says.calls(statement.after, statement.where, "a call")
            then = (
                says.set(n.Where(statement.calls, statement.pays))
                if statement.pays
                else (says.set(statement.calls))
            )
            late = ""
            if statement.within is not None:
                late = f" It is overdue after {_span(statement.within)}."
            return f"After {first} the session may end only after a later call of {then}.{late}"
        case n.Limit():
            return says.limit(statement)
        case n.Total():
            return _TOTALS[statement.what].format(f"`{statement.most}`")
    raise TypeError(statement)


def _span(span: n.Duration | n.Within) -> str:
    unit = _UNITS[span.unit]
    return f"{span.amount} {'day' if unit == 'days' and span.amount == '1' else unit}"


class _Sayer:
    """Turns nodes into parts of sentences."""

    def __init__(self, meanings: _Meanings) -> None:
        self._meanings = meanings

    def calls(self, on: n.Node, where: Sequence[n.Node], noun: str = "A call") -> str:
        """Return the calls that a statement restricts, such as "A call of `pay`"."""
        matching = f"{self._matching(where)}, surely or perhaps," if where else ""
        return f"{noun} of {self.set(on)}{matching}"

    def limit(self, limit: n.Limit) -> str:
        """Return the sentence of a limit on a number of calls or on a sum."""
        calls = self.set(limit.of)
        calls += self._matching(limit.where)
        calls += f" in the last {_span(limit.within)}" if limit.within is not None else ""
        keys = [self.term(one) for one in limit.per]
        each = f"For each value of {_listed(keys)}: " if keys else ""
        over = "over all sessions" if limit.scope == "across" else "in a session"
        most = self.term(limit.most)
        if limit.field is None:
            said = f"there are at most {most} calls of {calls}, {over}."
        else:
            said = f"the sum of `{limit.field}` over {calls} is at most {most}, {over}."
        said = each + said
        return said[0].upper() + said[1:]

    # Sets and collections.

    def set(self, node: n.Node) -> str:
        """Return a set of calls, such as "`get` or `list`"."""
        match node:
            case n.AnyTool():
                return "any tool"
            case n.Union(parts):
                return _listed([self.set(part) for part in parts], "or")
            case n.Minus(left, right):
                return f"{self.set(left)} except {self.set(right)}"
            case n.Where(of, conditions):
                return f"{self.set(of)}{self._matching(conditions)}"
        return _code(node)

    def source(self, node: n.Node, plural: bool = False) -> str:
        """Return the elements of a source, such as "an earlier call of `get`"."""
        article = "" if plural else "an "
        match node:
            case n.Where(of, conditions) if not self._is_let(of):
                return f"{self.source(of, plural)}{self._matching(conditions)}"
            case n.Within(of):
                return f"{self.source(of, plural)} in the last {_span(node)}"
            case n.Since(of, mark):
                return f"{self.source(of, plural)} since the last {self.set(mark)}"
            case n.Get(of, name) if not (
                isinstance(of, n.This | n.It | n.Apply) or self._is_single(of)
            ):  # fmt: skip
                values = "the values" if plural else "a value"
                return f"{values} `{name}` of {self.source(of, True)}"
            case n.Union(parts):
                return _listed([self.source(part, plural) for part in parts], "or")
            case n.AnyTool() | n.Minus():
                return f"{article}earlier call{'s' * plural} of {self.set(node)}"
            case n.Word() if self._means(node) in ("tool", "let") and self._is_set(node):
                return f"{article}earlier call{'s' * plural} of `{node.name}`"
            case n.Apply("pairs", (left, right)):
                pairs = "the pairs" if plural else "a pair"
                return f"{pairs} of {self.term(left)} and {self.term(right)}"
        return (
            f"the elements of {self.term(node)}" if plural else f"an element of {self.term(node)}"
        )

    def _is_single(self, node: n.Node) -> bool:
        """Return whether a word is a field that is no list."""
        fields = [meaning.field for meaning in self._meanings(id(node))]
        return bool(fields) and all(
            one is not None and not isinstance(one.type, ListType) for one in fields
        )

    def _is_let(self, node: n.Node) -> bool:
        return isinstance(node, n.Word) and self._means(node) in ("let", "local")

    def _is_set(self, node: n.Word) -> bool:
        return self._means(node) == "tool"

    def _means(self, node: n.Node) -> str:
        return next((meaning.what for meaning in self._meanings(id(node))), "")

    def _matching(self, conditions: Sequence[n.Node]) -> str:
        """Return a filter, as it follows the calls that it filters."""
        same = [name for one in conditions if isinstance(one, n.Same) for name in one.names]
        rest = [one for one in conditions if not isinstance(one, n.Same)]
        shared = f" with the same {_listed([f'`{name}`' for name in same])}" if same else ""
        return f"{shared} where {self._filters(rest)}" if rest else shared

    def _filters(self, conditions: Sequence[n.Node]) -> str:
        return " and ".join([self.condition(one) for one in conditions])

    # Conditions.

    def condition(self, node: n.Node) -> str:
        """Return a condition as a clause."""
        match node:
            case n.Same(names):
                return f"the same {_listed([f'`{name}`' for name in names])}"
            case n.Not(of):
                return f"it is not so that {self.condition(of)}"
            case n.No(of):
                return f"there is no {self._one(of)}"
            case n.Every(n.Where(of, conditions)):
                return f"for each {self._one(of)}: {self._filters(conditions)}"
            case n.Every(of):
                if isinstance(of, n.Since | n.Within) and isinstance(of.of, n.Where):
                    around = n.with_parts(of, (of.of.of, *n.parts_of(of)[1:]))
                    return f"for each {self._one(around)}: {self._filters(of.of.conditions)}"
                return _code(node)
            case n.Unused(of):
                return f"there is {self.source(of)}, which no earlier call has used"
            case n.And(parts):
                return _joined([self._nested(part) for part in parts], "and")
            case n.Or(parts):
                return _joined([self._nested(part) for part in parts], "or")
            case n.Compare(operator, left, right):
                return f"{self.term(left)} {_COMPARED[operator]} {self._right(operator, right)}"
            case n.Between(operator, of, low, high):
                word = "is" if operator == "in" else "is not"
                return f"{self.term(of)} {word} between {self.term(low)} and {self.term(high)}"
            case n.Where(of) if self._is_let(of):
                return f"{self.term(node)} holds"
            case n.Word() if self._means(node) in ("field", "local", "let"):
                return f"`{node.name}` holds"
            case (
                n.Word() | n.Where() | n.Within() | n.Since() | n.AnyTool() | n.Union() | n.Minus()
            ):
                return f"there is {self.source(node)}"
        return f"{self.term(node)} holds"

    def _nested(self, node: n.Node) -> str:
        said = self.condition(node)
        return f"({said})" if isinstance(node, n.And | n.Or) else said

    def _right(self, operator: str, node: n.Node) -> str:
        if isinstance(node, n.Union):
            parts = [self.term(part) for part in node.parts]
            return f"{'one of ' if operator == '=' else 'any of '}{_listed(parts, 'or')}"
        return self.term(node)

    # Terms.

    def term(self, node: n.Node) -> str:
        """Return a term as a noun phrase."""
        match node:
            case n.Get(n.This(), name):
                return f"`{name}` of this call"
            case n.Get(n.It(), name):
                return f"`{name}` of the element"
            case n.Get(n.Apply("last", (of,)), name):
                return f"`{name}` of the last {self._bare(of)}"
            case n.Get(of, name):
                return f"`{name}` of {self.term(of)}"
            case n.Session(name):
                return f"the session's `{name}`"
            case n.It():
                return "the element"
            case n.This():
                return "this call"
            case n.Now():
                return "the present time"
            case n.Apply("last", (of,)):
                return f"the last {self._bare(of)}"
            case n.Apply("count", (n.Apply("distinct", (of,)),)):
                return f"the number of different values of {self.source(of, True)}"
            case n.Apply("sum", (of, each)):
                return f"the sum of {self.term(each)} over {self.source(of, True)}"
            case n.Apply(name, (one, other)) if name in ("min", "max"):
                which = "lesser" if name == "min" else "greater"
                return f"the {which} of {self.term(one)} and {self.term(other)}"
            case n.Apply(name, (of,)) if name in _AGGREGATES:
                return f"{_AGGREGATES[name]} {self.source(of, True)}"
            case n.Apply(name, arguments) if name in _CLOCK:
                zone = f" in zone {self.term(arguments[1])}" if len(arguments) > 1 else ""
                return f"{_CLOCK[name]} {self.term(arguments[0])}{zone}"
            case n.Add(left, right):
                return f"{self.term(left)} + {self.term(right)}"
            case n.Minus(left, right):
                return f"{self.term(left)} - {self.term(right)}"
            case n.Times(left, right):
                return f"{self.term(left)} * {self.term(right)}"
        return _code(node)

    def _one(self, of: n.Node) -> str:
        """Return an element of a source, without its article."""
        return self.source(of).removeprefix("an ").removeprefix("a ")

    def _bare(self, of: n.Node) -> str:
        said = self.source(of)
        for article in ("an earlier ", "an ", "a "):
            said = said.removeprefix(article)
        return said


def _code(node: n.Node) -> str:
    """Return the text of a node in backticks."""
    text = node.name if isinstance(node, n.Word) else n.text_of(node)
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _listed(parts: Sequence[str], word: str = "and") -> str:
    """Return the parts as a list in prose: ``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def _joined(parts: Sequence[str], word: str) -> str:
    return f", {word} ".join(parts)
