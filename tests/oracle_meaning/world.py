"""One world: a condition is true, false or unsure where every outcome and answer is known.

`Oracle` evaluates nodes, and shares no code with `tcc_certs.policy.meaning`.  It asks `choose` for
everything that the history does not know: the outcome of a call, an answer, and whether an element
whose filter is unsure is in a collection.  `tests.oracle_meaning.worlds` runs it once for each way
to choose, so its results are the results of all worlds.

The generator of :mod:`tests.oracle_meaning.drawn` names things by their kind, so a word needs no
scopes here: the first letter says whether it is a field, a member, a tool, a `let`, a parameter or
a value, and the second letter of a field says its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

from tcc_certs.policy import forms, nodes as n
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, Call
from tcc_certs.policy.kinds import Kinds, walk

Choose = Callable[[Sequence[Any]], Any]
Truth = bool | None


class Special:
    """A value that is none."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


ABSENT = Special("absent")  # an optional field that was left out
MISSING = Special("missing")  # a field of the last element of nothing
NOTHING = Special("nothing")  # a term without a known value
NULL = Special("null")  # the JSON value
_VALUELESS = (ABSENT, MISSING, NOTHING)
DAY = 86_400_000


@dataclass(frozen=True)
class Moment:
    """A time or date, UTC milliseconds."""

    ms: int


@dataclass(frozen=True)
class Located:
    """A path in normal form."""

    text: str

    def is_under(self, other: Located) -> bool:
        own, around = ([name for name in one.text.split("/") if name] for one in (self, other))
        return own[: len(around)] == around


@dataclass(frozen=True)
class Record:
    """A record with all declared members."""

    members: tuple[tuple[str, Any], ...]

    def get(self, name: str) -> Any:
        return dict(self.members).get(name, NOTHING)


@dataclass(eq=False)
class Item:
    """An element of a collection.

    Attributes:
        call: the call that it is, or that it is a row of; None: an element of a list.
        value: of a row or an element of a list.
        is_call: whether it is a call.
        ghost: whether it is an error that was read, which only blocks.
        answers: the answers that were chosen for a ghost.
    """

    call: Call | None
    value: Any = None
    is_call: bool = False
    ghost: bool = False
    answers: dict[str, Any] = field(default_factory=dict)


@dataclass
class Collection:
    """Elements in order; `missing`: they are those of a missing list."""

    items: list[Item]
    missing: bool = False


@dataclass(frozen=True)
class Env:
    """What words mean at a place.

    Attributes:
        this: the call being decided.
        it: the element of the innermost filter.
        bare: the element whose fields bare names are.
        names: parameters and `let`s of the block, each with the place where its body is read.
    """

    this: Item | None = None
    it: Item | None = None
    bare: Item | None = None
    names: Mapping[str, tuple[n.Definition, Env]] = field(default_factory=dict)


class Lacks(Exception):
    """A tool lacks a field that a filter of `any` names."""


def conjunction(truths: Iterable[Truth]) -> Truth:
    found = list(truths)
    return False if False in found else None if None in found else True


def disjunction(truths: Iterable[Truth]) -> Truth:
    found = list(truths)
    return True if True in found else None if None in found else False


def negation(truth: Truth) -> Truth:
    return None if truth is None else not truth


class Oracle:
    """A world of a history.

    Args:
        pool: the values that an unknown field of a name may have.
        given: the states of the attributes of the session that are known.
    """

    def __init__(
        self,
        core: Core,
        calls: Sequence[Call],
        given: Mapping[str, Any],
        now: int,
        choose: Choose,
        pool: Callable[[str], Sequence[Any]],
    ) -> None:
        self._core = core
        self._calls = calls
        self._given = given
        self._now = now
        self._choose = choose
        self._pool = pool
        self._lets = {let.name: let for let in core.lets}
        self._fates: dict[int, str] = {}
        self._answers: dict[tuple[int, str], Any] = {}
        self._attributes: dict[str, Any] = {}
        self._restricted: tuple[n.Node, tuple[n.Node, ...]] | None = None

    # What the world decides.

    def fate(self, call: Call) -> str:
        """``done``, ``failed`` or ``ghost``: an error that the agent reads."""
        if call.outcome in (DONE, FAILED, ANSWERED):
            return {DONE: "done", FAILED: "failed", ANSWERED: "ghost"}[call.outcome]
        if call.at not in self._fates:
            self._fates[call.at] = self._choose(("done", "failed", "ghost"))
        return self._fates[call.at]

    def _field_of_call(self, item: Item, name: str) -> Any:
        call = item.call
        assert call is not None
        if name in call.arguments:
            return self._chosen(value_of(call.arguments[name]), name)
        tool = self._core.tool_of[call.tool]
        if name not in [answer.name for answer in tool.answers]:
            raise Lacks
        if item.ghost:
            if name not in item.answers:
                item.answers[name] = self._choose(self._pool(name))
            return item.answers[name]
        key = (call.at, name)
        if key not in self._answers:
            state = call.answers.get(name, ("unknown", None)) if call.outcome == DONE else None
            known = value_of(state) if state is not None else UNKNOWN
            self._answers[key] = self._chosen(known, name)
        return self._answers[key]

    def _chosen(self, value: Any, name: str) -> Any:
        if value is UNKNOWN:
            return self._choose(self._pool(name))
        return self._choose(REST_VALUES) if value is REST else value

    def attribute(self, name: str) -> Any:
        if name not in self._attributes:
            learned = name not in [one.name for one in self._core.given if hasattr(one, "steps")]
            state = self._given.get(name, ("unknown" if learned else "none", None))
            self._attributes[name] = self._chosen(value_of(state), name)
        return self._attributes[name]

    # Statements.

    def allows(self, statement: n.Statement, call: Call) -> bool:
        """Whether a `require` or `forbid` lets a call through."""
        assert isinstance(statement, n.Require | n.Forbid)
        this = Item(call, is_call=True)
        applies = self.applies(statement.where, this)
        if applies is False:
            return True
        if isinstance(statement, n.Forbid):
            return False
        return self.clause(statement, call) is True

    def clause(self, statement: n.Require, call: Call) -> Truth:
        """The truth of the condition of a `require`, without its filter."""
        assert statement.on is not None
        this = Item(call, is_call=True)
        self._restricted = (statement.on, statement.where)
        env = self._block(Env(this=this, bare=this), statement.lets)
        return self.truth(statement.then, env, False)

    def applies_to(self, where: Sequence[n.Node], call: Call) -> Truth:
        """Whether a filter of a statement is true of a call."""
        return self.applies(where, Item(call, is_call=True))

    def applies(self, where: Sequence[n.Node], this: Item) -> Truth:
        """Whether a filter of a statement is true."""
        env = Env(this=this, it=this, bare=this)
        return self._filtered(where, env, True)

    def may_finish(self, statement: n.Require) -> bool:
        """Whether the condition of a `finally` is true."""
        return self.truth(statement.then, self._block(Env(), statement.lets), False) is True

    def unpaid(self, owe: n.Owe) -> list[Call]:
        """The calls whose obligation is open."""
        found = []
        for call in self._in_set(owe.after):
            first = Item(call, is_call=True)
            if self.fate(call) != "done" or self.applies(owe.where, first) is False:
                continue
            if not any(
                later.at > call.at
                and self.fate(later) == "done"
                and self._pays(owe.pays, first, Item(later, is_call=True))
                for later in self._in_set(owe.calls)
            ):
                found.append(call)
        return found

    def _pays(self, pays: Sequence[n.Node], first: Item, later: Item) -> bool:
        return self._filtered(pays, Env(this=first, it=later, bare=later), False) is True

    def value(self, node: n.Node, call: Call) -> Any:
        """A term over the call being decided."""
        this = Item(call, is_call=True)
        return self.term(node, Env(this=this, bare=this))

    def _in_set(self, node: n.Node) -> list[Call]:
        tools = self.tools(node)
        return [call for call in self._calls if call.tool in tools]

    def tools(self, node: n.Node) -> set[str]:
        """The tools of a set without filters."""
        match node:
            case n.AnyTool():
                return {tool.name for tool in self._core.tools}
            case n.Union(parts):
                return {tool for part in parts for tool in self.tools(part)}
            case n.Minus(left, right):
                return self.tools(left) - self.tools(right)
            case n.Word(name) if name in self._lets:
                return self.tools(self._lets[name].body)
            case n.Word(name):
                return {name}
        raise AssertionError(node)

    def _block(self, env: Env, lets: Sequence[n.Definition]) -> Env:
        for let in lets:
            env = replace(env, names={**env.names, let.name: (let, env)})
        return env

    # Conditions.

    def truth(self, node: n.Node, env: Env, neg: bool) -> Truth:
        """Whether a condition is true; `neg`: under an odd number of `not` and `no`."""
        match node:
            case n.Not(of):
                return negation(self.truth(of, env, not neg))
            case n.No(of):
                return negation(self._some(self.collection(of, env, not neg)))
            case n.And(parts):
                return conjunction([self.truth(part, env, neg) for part in parts])
            case n.Or(parts):
                return disjunction([self.truth(part, env, neg) for part in parts])
            case n.Every(of):
                return self._every(of, env, neg)
            case n.Unused(of):
                return self._unused(of, env, neg)
            case n.Same(names):
                assert env.it is not None and env.this is not None
                it, this = env.it, env.this
                return conjunction([self._same(name, it, this) for name in names])
            case n.Compare():
                return self._comparison(node, env, neg)
            case n.Between(operator, of, low, high):
                value = self.term(of, env)
                ends = [
                    compare(">=", value, self.term(low, env)),
                    compare("<=", value, self.term(high, env)),
                ]
                return conjunction(ends) if operator == "in" else negation(conjunction(ends))
            case n.Flag(value):
                return value
        opened = self._opened(node, env)
        if opened is not None:
            return self.truth(*opened, neg)
        if not self._is_plural(node, env):
            value = self.term(node, env)
            return None if value in _VALUELESS else value is True
        return self._some(self.collection(node, env, neg))

    def _same(self, name: str, it: Item, this: Item) -> Truth:
        one, other = self._field(it, name), self._field(this, name)
        if one is ABSENT or other is ABSENT:
            rest = other if one is ABSENT else one
            return None if rest in (MISSING, NOTHING) else rest is ABSENT
        return compare("=", one, other)

    def _some(self, found: Collection) -> Truth:
        return None if found.missing else bool(found.items)

    def _every(self, of: n.Node, env: Env, neg: bool) -> Truth:
        base, conditions, inside, change = self._split(of, env, not neg)
        found = self.collection(base, inside, not neg)
        found.items = change(found.items)
        if found.missing:
            return None
        return conjunction(
            [self._filter_of(base, conditions, inside, item, neg) for item in found.items]
        )

    def _split(
        self, node: n.Node, env: Env, neg: bool
    ) -> tuple[n.Node, Sequence[n.Node], Env, Any]:
        """The collection of an `every`, its last filter, and its modifiers."""
        opened = self._opened(node, env)
        if opened is not None:
            return self._split(*opened, neg)
        if isinstance(node, n.Where):
            return node.of, node.conditions, env, lambda items: items
        assert isinstance(node, n.Within | n.Since), node
        base, conditions, inside, change = self._split(node.of, env, neg)
        return base, conditions, inside, lambda items: self._modified(node, change(items), env, neg)

    def _unused(self, of: n.Node, env: Env, neg: bool) -> Truth:
        found = self.collection(of, env, neg)
        assert self._restricted is not None and env.this is not None
        on, where = self._restricted
        tools = self.tools(on)
        where = tuple([one for one in where if not self._may_change(on, one)])
        last = -1
        for call in self._calls:
            other = Item(call, is_call=True)
            if call.tool not in tools or self.fate(call) != "done":
                continue
            inside = Env(this=other, it=other, bare=other)
            truths = [self._filtered(where, inside, neg)]
            truths += [self._same(key, other, env.this) for key in self._keys(of, env)]
            if self._is_in(conjunction(truths)):
                last = max(last, call.at)
        items = [item for item in found.items if item.call is not None and item.call.at > last]
        return self._some(Collection(items))

    def _may_change(self, on: n.Node, condition: n.Node) -> bool:
        """Whether a condition of the filter uses calls, lists, `now` or a learned attribute."""
        kinds = Kinds(self._core)
        learned = {one.name for one in self._core.given if isinstance(one, Learned)}
        return any(
            isinstance(form, forms.Source | forms.Now)
            or (isinstance(form, forms.Attribute) and form.name in learned)
            for part in kinds.rule(n.Forbid(on=on, where=(condition,))).where
            for form in walk(part)
        )

    def _keys(self, node: n.Node, env: Env) -> list[str]:
        """The fields of the call being decided that a filter compares with the element's."""
        opened = self._opened(node, env)
        if opened is not None:
            return self._keys(*opened)
        match node:
            case n.Within(of=of) | n.Since(of=of):
                return self._keys(of, env)
            case n.Where(of, conditions):
                return self._keys(of, env) + [k for c in conditions for k in self._keys(c, env)]
            case n.And(parts):
                return [key for part in parts for key in self._keys(part, env)]
            case n.Same(names):
                return list(names)
            case n.Compare("=", n.Word(name), n.Get(n.This(), key)) if name[0] == "f":
                return [key]
            case n.Compare("=", n.Get(n.This(), key), n.Word(name)) if name[0] == "f":
                return [key]
        return []

    def _comparison(self, node: n.Compare, env: Env, neg: bool) -> Truth:
        operator, left, right = node.operator, node.left, node.right
        if operator in ("in", "not in"):
            # `not in` is a `not`: an error that was read can block it.
            found = self.collection(right, env, neg == (operator == "in"))
            among = self._among(self.term(left, env), found)
            return among if operator == "in" else negation(among)
        if isinstance(left, n.Null):
            left, right = right, left
        value = self.term(left, env)
        if operator in ("under", "not under"):
            around = _read(self.term(right, env))
            if not (isinstance(value, Located) and isinstance(around, Located)):
                return None
            return value.is_under(around) == (operator == "under")
        if operator in ("~", "!~"):
            assert isinstance(right, n.Text)
            if not isinstance(value, str):
                return None
            found = re.fullmatch(right.value, value, re.DOTALL) is not None
            return found == (operator == "~")
        if operator in ("=", "!="):
            equal = disjunction(
                [self._equals(value, one, env) for one in self._options(right, env)]
            )
            return equal if operator == "=" else negation(equal)
        return compare(operator, value, self.term(right, env))

    def _options(self, node: n.Node, env: Env) -> list[tuple[n.Node, Env]]:
        opened = self._opened(node, env)
        if opened is not None:
            return self._options(*opened)
        if isinstance(node, n.Union):
            return [one for part in node.parts for one in self._options(part, env)]
        return [(node, env)]

    def _equals(self, value: Any, option: tuple[n.Node, Env], env: Env) -> Truth:
        node, inside = option
        if isinstance(node, n.Null):
            if value is ABSENT:
                return True
            return None if value in _VALUELESS else value is NULL
        return compare("=", value, self.term(node, inside))

    def _among(self, value: Any, found: Collection) -> Truth:
        if value in _VALUELESS or found.missing:
            return None
        return disjunction([compare("=", value, item.value) for item in found.items])

    # Collections.

    def collection(self, node: n.Node, env: Env, neg: bool, term: bool = False) -> Collection:
        """The elements of a collection.

        Args:
            neg: whether an error that was read may be in it.
            term: whether it is the source of a term or a mark, which no such error is in.
        """
        opened = self._opened(node, env)
        if opened is not None:
            return self.collection(*opened, neg, term)
        match node:
            case n.Where(of, conditions):
                found = self.collection(of, env, neg, term)
                kept = [
                    item
                    for item in found.items
                    if self._is_in(self._filter_of(of, conditions, env, item, neg))
                ]
                return Collection(kept, found.missing)
            case n.Within(of=of) | n.Since(of=of):
                found = self.collection(of, env, neg, term)
                return Collection(self._modified(node, found.items, env, neg), found.missing)
            case n.Get(of, name) if not isinstance(of, n.This | n.It | n.Session):
                base = self._base(of, env, neg, term)
                if isinstance(base, Collection):
                    return self._rows(base, name)
                return self._listed(self._member(base, name))
            case n.Union(parts) if not self._is_set(node, env):
                merged = [
                    item for part in parts for item in self.collection(part, env, neg, term).items
                ]
                return Collection(sorted(merged, key=lambda item: item.call.at))  # type: ignore[union-attr]
            case n.Minus(left, right) if not self._is_set(right, env):
                found = self.collection(left, env, neg, term)
                right = self._where_of(right, env)
                tools = self.tools(right[0])
                kept = [
                    item
                    for item in found.items
                    if item.call is None
                    or item.call.tool not in tools
                    or self._is_in(
                        negation(self._filter_of(right[0], right[1], right[2], item, not neg))
                    )
                ]
                return Collection(kept)
            case n.Apply("pairs", (left, right)):
                return self._pairs(self.term(left, env), self.term(right, env))
            case n.AnyTool() | n.Union() | n.Minus():
                return self._calls_of(self.tools(node), neg and not term)
            case n.Word(name) if name[0] == "t":
                return self._calls_of({name}, neg and not term)
        return self._listed(self.term(node, env))

    def _where_of(self, node: n.Node, env: Env) -> tuple[n.Node, Sequence[n.Node], Env]:
        opened = self._opened(node, env)
        if opened is not None:
            return self._where_of(*opened)
        assert isinstance(node, n.Where)
        return node.of, node.conditions, env

    def _is_set(self, node: n.Node, env: Env) -> bool:
        opened = self._opened(node, env)
        if opened is not None:
            return self._is_set(*opened)
        match node:
            case n.Union(parts):
                return all(self._is_set(part, env) for part in parts)
            case n.Minus(left, right):
                return self._is_set(left, env) and self._is_set(right, env)
            case n.Word(name):
                return name[0] == "t"
        return isinstance(node, n.AnyTool)

    def _calls_of(self, tools: set[str], ghosts: bool) -> Collection:
        found = []
        for call in self._calls:
            if call.tool not in tools:
                continue
            fate = self.fate(call)
            if fate == "done":
                found.append(Item(call, is_call=True))
            elif fate == "ghost" and ghosts and self._choose((True, False)):
                found.append(Item(call, is_call=True, ghost=True))
        return Collection(found)

    def _is_in(self, truth: Truth) -> bool:
        """Whether an element is in a collection; unsure: both are possible."""
        return self._choose((True, False)) if truth is None else truth

    def _filter_of(
        self, of: n.Node, conditions: Sequence[n.Node], env: Env, item: Item, neg: bool
    ) -> Truth:  # fmt: skip
        return self._filtered(conditions, replace(env, it=item, bare=item), neg)

    def _filtered(self, conditions: Sequence[n.Node], env: Env, neg: bool) -> Truth:
        try:
            return conjunction([self.truth(one, env, neg) for one in conditions])
        except Lacks:
            return False

    def _modified(
        self, node: n.Within | n.Since, items: list[Item], env: Env, neg: bool
    ) -> list[Item]:
        if isinstance(node, n.Within):
            first = self._now - Fraction(node.amount) * n.UNITS[node.unit]
            return [item for item in items if item.call is not None and item.call.at_ms >= first]
        marks = self.collection(node.mark, env, neg, True)
        last = max([item.call.at for item in marks.items if item.call is not None], default=-1)
        return [item for item in items if item.call is not None and item.call.at > last]

    def _rows(self, base: Collection, name: str) -> Collection:
        found = []
        for item in base.items:
            value = self._field(item, name)
            if is_list(name):
                rows = self._listed(value)
                found += [Item(item.call, row.value, ghost=item.ghost) for row in rows.items]
            elif value is not ABSENT:
                found.append(Item(item.call, value, ghost=item.ghost))
        return Collection(found, base.missing)

    def _listed(self, value: Any) -> Collection:
        if value is MISSING:
            return Collection([], True)
        if value is ABSENT:
            return Collection([])
        if not isinstance(value, tuple):  # a member of what is no record
            value = self._choose(LIST_VALUES)
        return Collection([Item(None, one) for one in value])

    def _pairs(self, left: Any, right: Any) -> Collection:
        lists = [() if one is ABSENT else one for one in (left, right)]
        lists = [self._choose(LIST_VALUES) if one is NOTHING else one for one in lists]
        if MISSING in lists or len(lists[0]) != len(lists[1]):
            return Collection([], True)
        both = zip(*lists, strict=True)
        return Collection([Item(None, Record((("left", a), ("right", b)))) for a, b in both])

    # Terms.

    def term(self, node: n.Node, env: Env) -> Any:
        """The value of a term."""
        opened = self._opened(node, env)
        if opened is not None:
            return self.term(*opened)
        match node:
            case n.Text(value):
                return value
            case n.Number(value):
                return Fraction(value)
            case n.Duration(amount, unit):
                return Fraction(amount) * n.UNITS[unit]
            case n.Flag(value):
                return value
            case n.Null():
                return NULL
            case n.Now():
                return Moment(self._now)
            case n.Session(name):
                return self.attribute(name)
            case n.It():
                assert env.it is not None
                return env.it.value
            case n.Word(name) if name[0] in "fmlr":
                assert env.bare is not None, name
                return self._field(env.bare, name)
            case n.Word(name):
                return name
            case n.Get(of, name):
                return self._member(self._base(of, env, False, True), name)
            case n.Add(left, right) | n.Minus(left, right) | n.Times(left, right):
                return arithmetic(node.TAG, self.term(left, env), self.term(right, env))
            case n.Negative(of):
                return arithmetic("-", Fraction(0), self.term(of, env))
            case n.Match():
                return self._match(node, env)
            case n.Apply("min" | "max" as name, (left, right)):
                one, other = self.term(left, env), self.term(right, env)
                return _extreme(name, [one, other]) if _ordered(one, other) else NOTHING
            case n.Apply("hour" | "weekday" | "day" as name, arguments):
                zone = arguments[1].value if len(arguments) == 2 else "utc"  # type: ignore[attr-defined]
                return clock(name, self.term(arguments[0], env), zone)
            case n.Apply("last", (of,)):
                item = self._last(of, env)
                return item if item is MISSING else item.value
            case n.Apply("count", (n.Apply("distinct", (of,)),)):
                found = self.collection(of, env, False, True)
                return MISSING if found.missing else Fraction(len({i.value for i in found.items}))
            case n.Apply("count", (of,)):
                found = self.collection(of, env, False, True)
                return MISSING if found.missing else Fraction(len(found.items))
            case n.Apply("sum", (of, *rest)):
                return self._sum(of, rest, env)
            case n.Apply("min" | "max" as name, (of,)):
                return self._extreme_of(name, of, env)
        raise AssertionError(node)

    def _last(self, of: n.Node, env: Env) -> Any:
        found = self.collection(of, env, False, True)
        return MISSING if found.missing or not found.items else found.items[-1]

    def _sum(self, of: n.Node, rest: Sequence[n.Node], env: Env) -> Any:
        found = self.collection(of, env, False, True)
        if found.missing:
            return MISSING
        values = [
            self.term(rest[0], replace(env, it=item, bare=item)) if rest else item.value
            for item in found.items
        ]
        return sum(values, Fraction(0)) if all(map(_is_number, values)) else NOTHING

    def _extreme_of(self, name: str, of: n.Node, env: Env) -> Any:
        found = self.collection(of, env, False, True)
        if found.missing or not found.items:
            return MISSING
        values = [item.value for item in found.items]
        times = self._name_of(of, env)[1] in "td"
        pool = [Moment(-DAY), Moment(1 << 45)] if times else [Fraction(-9), Fraction(99)]
        pool += self._pool("ft1" if times else "fn1")
        numbers = [one for one in pool if isinstance(one, Moment if times else Fraction)]
        kind = Moment if times else Fraction
        values = [one if isinstance(one, kind) else self._choose(numbers) for one in values]
        return _extreme(name, values)

    def _name_of(self, node: n.Node, env: Env) -> str:
        """The field whose values a collection has."""
        opened = self._opened(node, env)
        if opened is not None:
            return self._name_of(*opened)
        match node:
            case n.Where(of=of) | n.Within(of=of) | n.Since(of=of):
                return self._name_of(of, env)
            case n.Union(parts):
                return self._name_of(parts[0], env)
        return node.name  # type: ignore[attr-defined, no-any-return]

    def _match(self, node: n.Match, env: Env) -> Any:
        value = self.term(node.of, env)
        if value in _VALUELESS:
            return value
        for arm in node.arms:
            if isinstance(arm, n.Else):
                return self.term(arm.term, env)
            assert isinstance(arm, n.Arm)
            if any(compare("=", value, self.term(one, env)) for one in arm.values):
                return self.term(arm.term, env)
        return NOTHING  # a value that nobody declared

    def _base(self, of: n.Node, env: Env, neg: bool, term: bool) -> Any:
        """An item, a value or a collection whose field is asked for."""
        opened = self._opened(of, env)
        if opened is not None:
            return self._base(*opened, neg, term)
        match of:
            case n.This():
                return env.this
            case n.It():
                return env.it
            case n.Apply("last", (source,)):
                return self._last(source, env)
            case n.Get(inner, name):
                base = self._base(inner, env, neg, term)
                if isinstance(base, Collection):
                    return self._rows(base, name)
                value = self._member(base, name)
                return self._listed(value) if is_list(name) else value
            case n.Word(name) if name[0] == "f" and not is_list(name):
                return self.term(of, env)
        return self.collection(of, env, neg, term)

    def _member(self, base: Any, name: str) -> Any:
        if isinstance(base, Item):
            return self._field(base, name)
        if isinstance(base, Record):
            return base.get(name)
        return base if base in (ABSENT, MISSING) else NOTHING

    def _field(self, item: Item, name: str) -> Any:
        if item.is_call:
            return self._field_of_call(item, name)
        if isinstance(item.value, Record) and name in dict(item.value.members):
            return item.value.get(name)
        if name[0] in "mlr":
            return NOTHING  # a member of a value that is no record
        assert item.call is not None
        return self._field_of_call(
            Item(item.call, is_call=True, ghost=item.ghost, answers=item.answers), name
        )

    def _is_plural(self, node: n.Node, env: Env) -> bool:
        """Whether a node is a collection."""
        opened = self._opened(node, env)
        if opened is not None:
            return self._is_plural(*opened)
        match node:
            case n.Word(name) | n.Session(name):
                return name[0] == "t" or is_list(name)
            case n.Get(of, name):
                return is_list(name) or self._is_plural(of, env)
            case n.Apply(function):
                return function == "pairs"
        return isinstance(node, n.Where | n.Union | n.Minus | n.AnyTool | n.Since | n.Within)

    def _opened(self, node: n.Node, env: Env) -> tuple[n.Node, Env] | None:
        """The body of a `let` or parameter, and the place where it is read."""
        arguments: Sequence[n.Node] = ()
        word = node
        if isinstance(node, n.Where) and isinstance(node.of, n.Word):
            name = node.of.name
            known = env.names[name][0] if name in env.names else self._lets.get(name)
            if known is not None and known.parameters:
                word, arguments = node.of, node.conditions
        if not isinstance(word, n.Word):
            return None
        if word.name in env.names:
            let, outside = env.names[word.name]
            if let.name == "":  # an argument is read where it was written
                return let.body, outside
            inside = replace(outside, this=env.this if outside.this is None else outside.this)
        elif word.name in self._lets:
            let, inside = self._lets[word.name], Env(this=env.this)
        else:
            return None
        names = dict(inside.names)
        for name, argument in zip(let.parameters, arguments, strict=True):
            names[name] = (n.Definition(name="", body=argument), env)
        return let.body, replace(inside, names=names)


# Values.


class _Marker(Special):
    pass


UNKNOWN = _Marker("unknown")
REST = _Marker("rest")
LIST_VALUES: Sequence[Any] = ((), ("a",), (Fraction(1), "b"))
REST_VALUES = ("zz", Fraction(7), True, NULL)  # values that no listed field of the tests declares


def value_of(state: tuple[str, Any]) -> Any:
    """The value of a state."""
    kind, value = state
    match kind:
        case "none":
            return ABSENT
        case "unknown":
            return UNKNOWN
        case "*":
            return REST
        case "z":
            return NULL
        case "n":
            return Fraction(value)
        case "t":
            return Moment(value)
        case "p":
            return Located(value)
        case "l":
            return tuple([value_of(one) for one in value])
        case "r":
            return Record(tuple([(name, value_of(one)) for name, one in value]))
    return value


def is_list(name: str) -> bool:
    """Whether a field is a list."""
    return name[1] == "l"


def _is_number(value: Any) -> bool:
    return isinstance(value, Fraction)


def _ordered(one: Any, other: Any) -> bool:
    return (_is_number(one) and _is_number(other)) or (
        isinstance(one, Moment) and isinstance(other, Moment)
    )


def compare(operator: str, one: Any, other: Any) -> Truth:
    """A comparison of two values."""
    if one in _VALUELESS or other in _VALUELESS:
        return None
    if isinstance(other, Moment | Located):
        one = _read(one)
    elif isinstance(one, Moment | Located):
        other = _read(other)
    if operator == "=":
        return type(one) is type(other) and one == other
    if not _ordered(one, other):
        return None
    a, b = (one.ms, other.ms) if isinstance(one, Moment) else (one, other)
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]


def _read(value: Any) -> Any:
    """A constant text beside a time or path is read as one; other values of the tests cannot be."""
    if isinstance(value, str) and value.startswith("/"):
        return Located(value)
    if not isinstance(value, str) or not value.startswith("20"):
        return value
    when = datetime.fromisoformat(value)
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return Moment(round(when.timestamp() * 1000))


def _extreme(name: str, values: Sequence[Any]) -> Any:
    return (min if name == "min" else max)(
        values, key=lambda value: value.ms if isinstance(value, Moment) else value
    )


def arithmetic(operator: str, one: Any, other: Any) -> Any:
    """A sum, difference or product."""
    if MISSING in (one, other):
        return MISSING
    if _is_number(one) and _is_number(other):
        return {"+": one + other, "-": one - other, "*": one * other}[operator]
    match operator, one, other:
        case ("+", Moment(ms), Fraction() as span) | ("+", Fraction() as span, Moment(ms)):
            return Moment(ms + span)
        case "-", Moment(ms), Fraction():
            return Moment(ms - other)
        case "-", Moment(ms), Moment(less):
            return Fraction(ms - less)
    return NOTHING


def clock(name: str, value: Any, zone: str) -> Any:
    """``hour``, ``weekday`` or ``day``."""
    if not isinstance(value, Moment):
        return MISSING if value is MISSING else NOTHING
    offset = timedelta()
    if zone != "utc":
        sign = -1 if zone[0] == "-" else 1
        offset = sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    when = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(value.ms))
    local = when.astimezone(timezone(offset))
    if name == "hour":
        return Fraction(local.hour)
    if name == "weekday":
        return Fraction(local.isoweekday())
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return Moment(round(midnight.timestamp() * 1000))
