"""The statement of a question, read from its text: what language 1.1 says of calls.

Normative text: docs/spec/proof.md, section 2.  The compiler reads it by another grammar;
tests/exact compares what follows.  Cost: linear in the text, and in the calls for each pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tcc_certs.core import model
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json, decode, parse_decimal
from tcc_certs.proof.atoms import sort_of
from tcc_certs.values.declared import NumberType, json_of, text_of

# The question's statement.

_TOKEN = re.compile(
    r'\s*(?:(?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")|(?P<name>[A-Za-z_][A-Za-z0-9_]*)'
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<mark><=|>=|.))",
    re.DOTALL,
)
MAX_NAMED = 1 << 24  # calls, by all patterns of a statement together
_UNITS = {"depth": 1, "price": 1, "latency": 1, "cost": 10**9, "epsilon": 10**9}


class _Reader:
    """A statement about the tools of a core: ``never``, ``forbid``, ``require`` or ``limit``."""

    def __init__(self, core: model.Core, text: str) -> None:
        self._core = core
        self._tokens: list[tuple[str, str]] = []
        self._at = self._named = 0
        self._patterns: list[model.CallSet] = []
        end = len(text.rstrip())
        ensure(end <= 1 << 16, Code.LIMIT, "question", "a statement of 65536 characters", end)
        for found in _TOKEN.finditer(text, 0, end):  # any character is a mark at least
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
        self._of: dict[int, list[int]] = {}
        for number, call in enumerate(core.calls):
            self._of.setdefault(call.tool, []).append(number)

    @staticmethod
    def _fault(expected: str, found: object) -> Rejected:
        return Rejected(Code.PROOF_QUESTION, "question", expected, found)

    # Tokens.

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ("end", "")

    def _take(self, *words: str) -> str | None:
        text = self._peek()[1]  # with its quotes, where it is a text
        if text in words:
            self._at += 1
            return text
        return None

    def _must(self, *words: str) -> str:
        found = self._take(*words)
        if found is None:
            raise self._fault(" or ".join(words), self._peek()[1])
        return found

    def _name(self) -> str:
        kind, text = self._next()
        if kind == "text":
            value = decode(text.encode("utf-8", "surrogatepass"), "question")
            return str(value)
        if kind != "name":
            raise self._fault("a name", text)
        return text

    # Statements.

    def read(self) -> model.Core:
        """The core that has the statement, and the tools and calls of the other, and no more."""
        word = self._must("never", "forbid", "require", "limit")
        bare = _bare(self._core)
        made: dict[str, Any]
        if word == "limit":
            made = self._limit()
        elif word == "require":
            made = self._require()
        else:
            made = self._forbid(turned=word == "never")
        if self._peek()[0] != "end":
            raise self._fault("the end of the statement", self._peek()[1])
        return replace(bare, **made, patterns=tuple(self._patterns))

    def _forbid(self, *, turned: bool) -> dict[str, Any]:
        places = [self._at]
        sets = [self._set()]
        ends = [self._at]
        while self._peek()[0] != "end" and self._peek()[1] not in ("with", "before", "after"):
            sets.append(self._single())
        if self._peek()[0] == "end":
            return {"forbids": (model.ForbidNext(tuple(map(self._pattern, sets))),)}
        if len(sets) > 1:
            raise self._fault("the end of the statement", self._peek()[1])
        word = self._must(*(("with", "before", "after") if turned else ("with", "before")))
        places.append(self._at)
        sets.append(self._set())
        ends.append(self._at)
        if self._take("same"):
            pairs = self._same()
            if word == "after":
                places.reverse()
                ends.reverse()
                pairs = [(b, a) for a, b in pairs]
            order = "with" if word == "with" else "before"
            return {"monitors": (self._order("forbid", order, places, ends, pairs),)}
        if word == "after":
            sets.reverse()
        one, other = map(self._pattern, sets)
        kind: type[model.ForbidWith] | type[model.ForbidBefore] = (
            model.ForbidWith if word == "with" else model.ForbidBefore
        )
        found: model.Forbid = kind(one, other)
        return {"forbids": (found,)}

    def _require(self) -> dict[str, Any]:
        places = [self._at]
        sets = [self._set()]
        ends = [self._at]
        word = self._must("before", "after")
        if word == "before" and self._take("each"):
            word = "each"
        places.append(self._at)
        sets.append(self._set())
        ends.append(self._at)
        if self._take("same"):
            if word == "after":
                raise self._fault("before", word)
            return {"monitors": (self._order("require", word, places, ends, self._same()),)}
        one, other = map(self._pattern, sets)
        return {"requires": (model.Require(word, one, other),)}  # type: ignore[arg-type]

    def _limit(self) -> dict[str, Any]:
        kind = self._must("uses", "sum", *_UNITS)
        if kind in _UNITS:
            self._must("<=")
            limit = model.Limit(kind=kind, value=self._amount(kind), text="")  # type: ignore[arg-type]
            return {"limits": (limit,)}
        self._must("(")
        if kind == "sum":
            tool, _, name = self._tool(), self._must("."), self._name()
            self._must(")")
            self._must("<=")
            value = self._decimal()
            return self._sum_limit(tool, name, value)
        place, calls, end = self._at, self._set(), self._at
        self._must(")")
        if self._take("per"):
            per = self._name()
            self._must("<=")
            selection = self._selection(place, end)
            if all(
                one.name != per or one.optional for one in self._core.tools[selection.tool].opened
            ):
                raise self._fault("an open parameter of every call", per)
            most = self._whole()
            return {"monitors": (model.UsesMonitor(calls=selection, per=per, value=most, text=""),)}
        least = self._must("<=", ">=") == ">="
        return {
            "limits": (
                model.Limit(kind="uses", value=self._whole(), text="", least=least, calls=calls),
            )
        }

    def _sum_limit(self, tool: int, name: str, value: str) -> dict[str, Any]:
        of = self._core.tools[tool]
        for opened in of.opened:
            if opened.name == name:
                low = opened.type.low if isinstance(opened.type, NumberType) else None
                if low is None or low.startswith("-") or opened.optional:
                    raise self._fault("a number of at least 0", name)
                return {
                    "monitors": (model.SumMonitor(tool=tool, parameter=name, value=value, text=""),)
                }
        for at, param in enumerate(of.parameters):
            if param.name == name:
                number, places = parse_decimal(value, "question", Code.PROOF_QUESTION)
                if places > 9:
                    raise self._fault("nine decimals", value)
                nano = number * 10 ** (9 - places)
                limit = model.Limit(kind="sum", value=nano, text="", parameter=(tool, at))
                if any(text and _negative(text) for text in param.values):
                    raise self._fault("numbers of at least 0", name)
                return {"limits": (limit,)}
        raise self._fault(f"a parameter of {of.name}", name)

    def _order(
        self,
        kind: str,
        order: str,
        places: Sequence[int],
        ends: Sequence[int],
        pairs: Sequence[tuple[str, str]],
    ) -> model.OrderMonitor:
        one, other = map(self._selection, places, ends)
        tools = self._core.tools
        some = False
        for left, right in pairs:
            sorts = [_sort_in(tools[of.tool], name) for of, name in ((one, left), (other, right))]
            if sorts[0] != sorts[1] or sorts[0] is None:
                raise self._fault("parameters that can be compared", f"{left} = {right}")
            some = some or sorts[0] != "listed"
        if not some:
            raise self._fault("a pair of open parameters", "none")
        last = [one, other] if order == "with" else [other]
        if any(tools[of.tool].parameters[at].observed for of in last for at, _ in of.where):
            raise self._fault("what its caller chooses", "an answer")
        return model.OrderMonitor(
            kind=kind,  # type: ignore[arg-type]
            order=order,  # type: ignore[arg-type]
            first=one,
            second=other,
            same=tuple(sorted(set(pairs))),
            text="",
        )

    def _same(self) -> list[tuple[str, str]]:
        pairs = []
        while True:
            one = self._name()
            pairs.append((one, self._name() if self._take("=") else one))
            if not self._take(","):
                return pairs

    # Sets of calls.

    def _set(self) -> model.CallSet:
        found = self._calls()
        while self._take("-"):
            found = _without(found, self._calls())
        return found

    def _calls(self) -> model.CallSet:
        found = self._single()
        while self._take("|"):
            found = _union(found, self._single())
        return found

    def _single(self) -> model.CallSet:
        self._named += len(self._core.calls)
        ensure(self._named <= MAX_NAMED, Code.LIMIT, "question", "fewer patterns", "more")
        if self._peek() == ("name", "any"):
            self._at += 1
            return ((0, len(self._core.calls)),) if self._core.calls else ()
        if self._peek() == ("mark", "("):
            if sum(token == ("mark", "(") for token in self._tokens) > 100:
                raise Rejected(Code.LIMIT, "question", "100 parentheses", "more")
            self._at += 1
            found = self._set()
            self._must(")")
            return found
        of = self._selection(self._at)
        where = [(at, frozenset(some)) for at, some in of.where]
        return _ranges(
            [
                number
                for number in self._of.get(of.tool, ())
                if all(self._core.calls[number].values[at] in some for at, some in where)
            ]
        )

    def _tool(self) -> int:
        if self._peek() == ("name", "any"):  # every tool; one of that name is in quotes
            raise self._fault("a tool", "any")
        name = self._name()
        for at, tool in enumerate(self._core.tools):
            if tool.name == name:
                return at
        raise self._fault("a tool", name)

    def _selection(self, place: int, end: int | None = None) -> model.Selection:
        """The pattern at a place; of one that has been read before it has to be all up to `end`."""
        kept, self._at = self._at, place
        tool = self._tool()
        parameters = self._core.tools[tool].parameters
        where: dict[int, tuple[int, ...]] = {}
        if self._take("("):
            while True:
                name = self._name()
                at = next((i for i, p in enumerate(parameters) if p.name == name), None)
                if at is None or at in where:
                    raise self._fault("a listed parameter, once", name)
                self._must("=")
                values = [self._value(parameters[at].values, name)]
                while self._take("|"):
                    values.append(self._value(parameters[at].values, name))
                where[at] = tuple(sorted(set(values)))
                if not self._take(","):
                    break
            self._must(")")
        if end is not None:
            if self._at != end:
                raise self._fault("one pattern beside same or per", "a set")
            self._at = kept
        return model.Selection(tool=tool, where=tuple(sorted(where.items())))

    def _value(self, values: Sequence[str], name: str) -> int:
        sign = self._take("-", "+")
        kind, text = self._next()
        value: str | None = text
        if kind == "number":
            value = text_of(Decimal(("-" if sign == "-" else "") + text))
        elif kind == "text" and sign is None:
            value = text_of(decode(text.encode("utf-8", "surrogatepass"), "question"))
        elif kind != "name" or sign is not None:
            raise self._fault("a value", text)
        if value not in values:  # no canonical text is that of a value left out
            raise self._fault(f"a value of {name}", text)
        return values.index(value)

    def _whole(self) -> int:
        kind, text = self._next()
        if kind != "number" or "." in text or len(text) > 18:
            raise self._fault("a whole number", text)
        return int(text)

    def _amount(self, kind: str) -> int:
        """A number of calls, cents, milliseconds or nano-units."""
        found, text = self._next()
        if found != "number" or len(text) > 60:
            raise self._fault("a number", text)
        seconds = kind == "latency" and self._must("ms", "s") == "s"
        value = Fraction(text) * _UNITS[kind] * (1000 if seconds else 1)
        if value.denominator != 1 or value >= 1 << 63:
            raise self._fault("a whole number of units", text)
        return value.numerator

    def _decimal(self) -> str:
        kind, text = self._next()
        if kind != "number" or len(text) > 60:
            raise self._fault("a number", text)
        return str(text_of(Decimal(text)))

    def _pattern(self, calls: model.CallSet) -> int:
        self._patterns.append(calls)
        return len(self._patterns) - 1


def _negative(text: str) -> bool:
    value = json_of(text)
    return isinstance(value, (str, bool)) or value is None or value < 0


def _sort_in(tool: model.Tool, name: str) -> str | None:
    """What the values of a parameter of every call can be compared with; None: with nothing."""
    for param in tool.parameters:
        if param.name == name:
            return None if param.optional or param.observed else "listed"
    for opened in tool.opened:
        if opened.name == name and not opened.optional:
            sort = sort_of(opened.type)
            return None if sort == "json" else sort
    return None


def _members(calls: model.CallSet) -> set[int]:
    return {number for low, high in calls for number in range(low, high)}


def _union(one: model.CallSet, other: model.CallSet) -> model.CallSet:
    return _ranges(sorted(_members(one) | _members(other)))


def _without(one: model.CallSet, other: model.CallSet) -> model.CallSet:
    return _ranges(sorted(_members(one) - _members(other)))


def _ranges(numbers: Iterable[int]) -> model.CallSet:
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = found[-1][0], number + 1
        else:
            found.append((number, number + 1))
    return tuple(found)


def statement_core(
    core: model.Core, kind: str, text: str, policy: Json | None = None
) -> model.Core:
    """The core of a question's statement; that of ``reachable`` forbids its pattern.

    Args:
        policy: of a statement of version 1.2 its JSON, whose words the text has to be.

    Raises:
        Rejected: T102 it is no statement about the tools of the core; D101 the kernel reads none of
            its kind.
    """
    if policy is not None:
        return _later_core(core, text, policy)
    found = _Reader(core, text if kind == "statement" else f"forbid {text}").read()
    if kind == "reachable":
        alone = len(found.patterns) == 1
        ensure(alone, Code.PROOF_QUESTION, "question", "a pattern", "a statement")
    return found


def _later_core(core: model.Core, text: str, policy: Json) -> model.Core:
    """The core of a statement of version 1.2."""
    from tcc_certs.core.opened import fields_of
    from tcc_certs.core.policies import Fields, read_policy
    from tcc_certs.core.wording import Wording

    looks = {one.name: one for one in core.looks}
    names = {one.name for one in core.given} | {one.name for one in core.lets}
    tools = tuple(map(fields_of, core.tools))
    fields = Fields(tools=tools, session=frozenset(names), looks=looks)
    found = read_policy(policy, "question.policy", Code.PROOF_QUESTION, fields)
    words = Wording([tool.name for tool in core.tools]).of(found)
    require(words, text, Code.PROOF_QUESTION, "question.text")
    return replace(
        _bare(core),
        monitors=(model.PolicyMonitor(policy=found, text=words),),
        given=core.given,
        lets=core.lets,
        looks=core.looks,
    )


def _bare(core: model.Core) -> model.Core:
    """The tools and calls of a core, and no more."""
    return replace(
        core,
        limits=(),
        requires=(),
        forbids=(),
        monitors=(),
        patterns=(),
        start=None,
        goals=(),
        given=(),
        lets=(),
        looks=(),
    )
