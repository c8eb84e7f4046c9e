"""Kinds: what each word of a statement means, and whether each node may be where it is.

:class:`Kinds` turns the statements of a core into rules of :mod:`tcc_certs.policy.forms`: words are
resolved, and `let`, `same`, `unused` and `forbid` are expanded.  A mistake raises a
:class:`Fault`, which names the node.  The reader of cores and the compiler both use this module, so
a word has one meaning.  Normative text: docs/spec/core.md, section "Kinds".

Cost: linear in the expanded statement, which has at most `MAX_EXPANDED` nodes.  All statements
together take at most `MAX_WORK` steps, and `WORK_PER_NODE` more for each node of the core.  Sets of
tools are bit masks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import is_identifier
from tcc_certs.policy import forms, nodes
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.forms import Condition, Source, Term, Tools
from tcc_certs.policy.nodes import Definition, Node, Statement, Word
from tcc_certs.values import paths, places, text_syntax, urls
from tcc_certs.values.declared import (
    FlagType,
    JsonType,
    NumberType,
    PathType,
    TextType,
    UrlType,
    text_of,
)
from tcc_certs.values.fields import (
    MOST_ELEMENTS,
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
    zone_of,
)
from tcc_certs.values.places import State
from tcc_certs.values.zones import DAY, Zone

MAX_EXPANDED = 1 << 14  # nodes of a statement once its lets are expanded
MAX_HEIGHT = 80  # nodes around one another, lets expanded
MAX_LEVELS = 2  # sources inside the filter of a source
MAX_OPTIONS = 1 << 12
MAX_KEYS = 8
FEW_TOOLS = 64  # in a set that has its names
MAX_SHOWN = 12  # listed values in a message
MAX_NAMES = 128  # lets of a block, parameters of a let
MAX_WORK = 1 << 18
WORK_PER_NODE = 16

_ORDERS = ("<", "<=", ">", ">=")
_AGGREGATES = ("last", "count", "distinct", "sum", "min", "max")


class Fault(Exception):
    """A statement is wrong.

    Attributes:
        code: TCC code of the mistake, or D201 for a bound of work.
        node: where it is.
        message: what is wrong, a sentence.
        instead: the text to write instead; empty where no text is known.
        known: the names or values that fit at the place, if they were looked for.
        about: for codes of several mistakes, which of them it is, as a word.
    """

    def __init__(
        self, code: str, node: object, message: str, instead: str = "", *,
        known: Iterable[str] = (), about: str = "",
    ) -> None:  # fmt: skip
        super().__init__(f"{code}: {message}")
        self.code, self.node, self.message, self.instead = code, node, message, instead
        self.known, self.about = tuple(known), about


class Listed:
    """The values of a listed field.

    Values are compared by their canonical texts, whose hashes an author cannot choose.

    Attributes:
        texts: canonical texts in declared order, without ``*``.
    """

    __slots__ = ("_hash", "_set", "texts")

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.texts = tuple(texts)
        self._set = frozenset(self.texts)
        self._hash = hash(self.texts)

    def __bool__(self) -> bool:
        return bool(self.texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listed) and self.texts == other.texts

    def __hash__(self) -> int:
        return self._hash

    def __contains__(self, state: State) -> bool:
        return _state_text(state) in self._set


def _state_text(state: State) -> str | None:
    """The canonical text of a constant."""
    name, value = state
    return places.decimal_of(value) if name == "n" else text_of(value)


_NO_VALUES = Listed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a term or an element is.

    Attributes:
        name: ``call``, ``record``, ``list``, or a scalar: ``text``, ``number``, ``flag``,
            ``time``, ``date``, ``path``, ``url``, ``span``, ``json``, ``null``, ``mixed`` (listed
            values of several types), ``union`` (a value of one of several types).
        tools: of a call, the mask of its tools.
        wide: whether the set of a call was written with `any`.
        decided: whether it is the call being decided, whose answers do not exist yet.
        members: of a record.
        choices: of a union, the kinds of its types.
        of, most: of a list: its elements, and how many it has at most.
        listed: the values of a listed field.
        rest: whether a listed field also has values that are not listed.
        minutes: the zone of a time or date without one: minutes ahead of UTC, or of a date a
            recorded zone.
    """

    name: str
    tools: int = 0
    wide: bool = False
    decided: bool = False
    members: tuple[tuple[str, Kind], ...] = ()
    choices: tuple[Kind, ...] = ()
    of: Kind | None = None
    most: int = 0
    listed: Listed = _NO_VALUES
    rest: bool = False
    minutes: int | Zone | None = None


_FLAG = Kind(name="flag")
_NUMBER = Kind(name="number")
_TEXT = Kind(name="text")
_TIME = Kind(name="time")
_SPAN = Kind(name="span")
_NOTHING = Kind(name="nothing")
_PLURAL = {"call": "calls", "list": "lists", "record": "records"}


@dataclass(slots=True, kw_only=True, eq=False)
class _Scope:
    """What the words at a place may mean; it is never changed.

    Attributes:
        elements: by level, the kind of the element and of the call that it is a row of.
        bare, it, this: the levels whose fields bare names are, and that `it` and `this` are.
        names: the lets of the block and the parameters in scope.
        within: the lets whose bodies are around the place.
    """

    elements: tuple[tuple[Kind, Kind | None], ...]
    bare: int | None
    it: int | None
    this: int | None
    names: Mapping[str, _Bound] = field(default_factory=dict)
    within: frozenset[str] = frozenset()

    def inside(
        self, elements: tuple[tuple[Kind, Kind | None], ...], bare: int | None, it: int | None,
        this: int | None,
    ) -> _Scope:  # fmt: skip
        """The scope with other elements."""
        return _Scope(
            elements=elements, bare=bare, it=it, this=this, names=self.names, within=self.within
        )


@dataclass(frozen=True, slots=True)
class _Bound:
    """A `let`, or the argument of a parameter, with the scope that its words are read in."""

    body: Node
    scope: _Scope | None  # None: the file's
    parameters: tuple[str, ...] = ()
    name: str = ""


# Things: what a node is once it is understood.


@dataclass(slots=True)
class _Draft:
    """A source that modifiers may still be added to.

    Attributes:
        filtered: how many conditions its last filter has.
        unfiltered: of calls, the mask of the tools before the last filter.
    """

    base: forms.Base
    level: int
    own: Kind
    call: Kind | None
    conditions: list[Condition] = field(default_factory=list)
    filtered: int = 0
    unfiltered: int = 0
    within: int | None = None
    marks: list[Source] = field(default_factory=list)
    height: int = 0
    wide: bool = False

    @property
    def is_calls(self) -> bool:
        return isinstance(self.base, forms.Calls)

    @property
    def is_plain(self) -> bool:
        """Whether it is a set of calls without filters and modifiers."""
        return self.is_calls and not (self.conditions or self.marks) and self.within is None


@dataclass(slots=True, eq=False)
class _Value:
    """A term, its kind, and the kind of the call that it is a row of."""

    term: Term
    kind: Kind
    call: Kind | None = None


@dataclass(slots=True, eq=False)
class _Options:
    """Several values of which one is compared, and what they are beside."""

    parts: tuple[Node, ...]
    scope: _Scope
    beside: Kind | None


@dataclass(slots=True, eq=False)
class _Truth:
    """A condition."""

    condition: Condition


_Thing: TypeAlias = "_Draft | _Value | _Options | _Truth"


class _Named:
    """The fields of one name, by the index of their tool."""

    def __init__(self) -> None:
        self.of: dict[int, tuple[Field, bool]] = {}  # whether it is an answer

    @cached_property
    def has(self) -> int:
        """The tools that have such a field."""
        return _mask(self.of)

    @cached_property
    def arguments(self) -> int:
        """The tools that have such an argument."""
        return _mask([at for at, (_, answer) in self.of.items() if not answer])

    @cached_property
    def slots(self) -> tuple[tuple[Kind, bool, int], ...]:
        """The different kinds, whether they are answers, and the tools of each."""
        found: dict[tuple[Kind, bool], list[int]] = {}
        for at, (declared, answer) in self.of.items():
            found.setdefault((_kind_of(declared), answer), []).append(at)
        return tuple([(kind, answer, _mask(tools)) for (kind, answer), tools in found.items()])


def _mask(tools: Collection[int]) -> int:
    bits = bytearray(max(tools, default=0) // 8 + 1)
    for at in tools:
        bits[at >> 3] |= 1 << (at & 7)
    return int.from_bytes(bits, "little")


_NOWHERE = _Named()


class Kinds:
    """The kinds of a core.

    Attributes:
        conditions: by the id of a node, the conditions that were made of it; None: not recorded.
        opened: by the id of a word, the `let` that it names; recorded with conditions.
        origins: by the id of a condition or source, the node it was made of; None: not recorded.
    """

    def __init__(self, core: Core) -> None:
        self.conditions: dict[int, list[Condition]] | None = None
        self.origins: dict[int, Node] | None = None
        self.opened: dict[int, Definition] = {}
        self._core = core
        self._places = {tool.name: at for at, tool in enumerate(core.tools)}
        self._masks = {name: 1 << at for name, at in self._places.items()}
        self._names = [tool.name for tool in core.tools]
        self._all = (1 << len(core.tools)) - 1
        self._fields: dict[str, _Named] = {}
        for at, tool in enumerate(core.tools):
            for answer, declared in ((False, tool.arguments), (True, tool.answers)):
                for one in declared:
                    named = self._fields.get(one.name)
                    if named is None:
                        named = self._fields[one.name] = _Named()
                    named.of[at] = (one, answer)
        self._shared: dict[tuple[str, int], Kind] = {}  # by the names and tools of fields
        self._of_field: dict[int, Kind] = {}  # by the ids of fields of the core
        self._lets = {let.name: let for let in core.lets}
        self._learned = {one.name for one in core.given if isinstance(one, Learned)}
        self._shapes: dict[str, str] = {}
        self._sets: dict[int, Tools] = {}
        self._needs: dict[int, int] = {}
        self._patterns: dict[str, Node] = {}  # of the statement or `let`, with the first place
        self._sound: set[str] = set()  # patterns that were read
        self._subject: object = None  # the statement or `let` that is looked at
        self._left = 0
        self._height = 0
        self._work = 0
        self._allowed = MAX_WORK
        self._restricted: tuple[int, Sequence[tuple[Node, _Scope]]] | None = None
        self._bare: set[int] = set()
        self._quoted: set[int] = set()
        self._given: dict[str, Kind] = {}
        for given in core.given:
            self._given[given.name] = (
                self._learned_kind(given) if isinstance(given, Learned) else _kind_of(given)
            )

    @property
    def bare_texts(self) -> frozenset[int]:
        """The ids of text nodes beside listed fields that a bare word would mean, too."""
        return frozenset(self._bare - self._quoted)

    # Work.

    def _begin(self, subject: object) -> None:
        """Begin a statement or a `let`."""
        self._subject = subject
        self._left = MAX_EXPANDED
        self._height = 0
        self._patterns = {}

    def _end(self) -> None:
        """End a statement or a `let`; its patterns are read here, where the stack is short."""
        self._charge(MAX_EXPANDED - self._left)
        for pattern, node in self._patterns.items():
            if pattern in self._sound:
                continue
            try:
                text_syntax.ensure_quick(pattern, 1, "pattern")
            except Rejected as refusal:
                raise Fault("TCC225", node, f"This is no pattern: {refusal.mismatch}.") from None
            self._sound.add(pattern)

    def _charge(self, steps: int) -> None:
        """Count steps of work.

        Raises:
            Fault: D201: all statements together take too many.
        """
        self._work += steps
        if self._work <= self._allowed:
            return
        if self._allowed == MAX_WORK:
            self._allowed += WORK_PER_NODE * _size(self._core)
        if self._work > self._allowed:
            message = "The expanded statements are too large for their core."
            raise Fault("D201", self._subject, message)

    def _step(self, node: Node) -> None:
        self._left -= 1
        if self._left < 0:
            raise Fault("D201", node, f"The expanded statement has more than {MAX_EXPANDED} nodes.")
        if self._height > MAX_HEIGHT:
            raise Fault("D201", node, f"Forms are nested more than {MAX_HEIGHT} deep.")

    # Statements.

    def rule(self, statement: Statement) -> forms.Rule:
        """Return the rule of a statement.

        Raises:
            Fault: it is wrong.
        """
        self._begin(statement)
        self._needs = {}
        self._restricted = None
        found = self._rule(statement)
        self._end()
        return found

    def _rule(self, statement: Statement) -> forms.Rule:
        match statement:
            case nodes.Require(on=None):
                scope = self._block(_no_call(), statement.lets, statement)
                return forms.Rule(kind="require", then=self._condition(statement.then, scope))
            case nodes.Require(on=on) if on is not None:
                tools, where, scope = self._restrict(on, statement.where, statement, decided=True)
                scope = self._block(scope, statement.lets, statement)
                then = self._condition(statement.then, scope)
                return forms.Rule(kind="require", tools=tools, where=where, then=then)
            case nodes.Forbid():
                tools, where, _ = self._restrict(
                    statement.on, statement.where, statement, decided=True
                )
                return forms.Rule(kind="forbid", tools=tools, where=where)
            case nodes.Ask():
                tools, where, scope = self._restrict(
                    statement.on, statement.where, statement, decided=True
                )
                self._block(scope, statement.lets, statement)
                within = None if statement.within is None else _span(statement.within)
                return forms.Rule(
                    kind="ask", tools=tools, where=where, who=statement.who, within=within
                )
            case nodes.Owe():
                return self._owe(statement)
            case nodes.Limit():
                return self._limit(statement)
            case nodes.Total():
                return forms.Rule(kind="total", what=statement.what, total=statement.most)
        raise TypeError(statement)

    def check_lets(self) -> None:
        """Check the lets of the file, whether they are used or not.

        Raises:
            Fault: a `let` is defined by itself, or one without parameters means nothing.
        """
        self._ensure_no_circle()
        for let in self._core.lets:
            if not let.parameters:
                self.check_let(let)

    def check_let(self, let: Definition) -> None:
        """Check a `let` of the file that has no parameters.

        Raises:
            Fault: it means nothing.
        """
        self._begin(let)
        self._needs = {0: self._all}
        self._restricted = (self._all, ())
        own = Kind(name="call", tools=self._all, wide=True)
        scope = _Scope(
            elements=((own, None),), bare=None, it=None, this=0, within=frozenset({let.name})
        )
        self._thing(let.body, scope, "any")
        self._end()

    def _ensure_no_circle(self) -> None:
        mentions = {let.name: self._lets_in(let) for let in self._core.lets}
        done: set[str] = set()
        for let in self._core.lets:
            path: list[tuple[str, int]] = [(let.name, 0)]
            on_path = {let.name}
            while path:
                name, at = path.pop()
                if name in done or at == len(mentions[name]):
                    done.add(name)
                    on_path.discard(name)
                    continue
                path.append((name, at + 1))
                other = mentions[name][at]
                if other in on_path:
                    raise self._circle(let, other)
                if other not in done:
                    path.append((other, 0))
                    on_path.add(other)

    def _circle(self, node: object, name: str) -> Fault:
        return Fault("TCC225", node, f"`{name}` is defined by itself.", about="circle")

    def _lets_in(self, let: Definition) -> list[str]:
        """The lets of the file that the body of a `let` names."""
        applied = {id(node.of) for node in nodes.walk(let.body) if isinstance(node, nodes.Where)}
        found = []
        for node in nodes.walk(let.body):
            other = self._lets.get(node.name) if isinstance(node, Word) else None
            if other is None or other.name in let.parameters:
                continue
            # A word with the name of a `let` with parameters is that `let` only before parentheses.
            if not other.parameters or id(node) in applied:
                found.append(other.name)
        return found

    def _owe(self, owe: nodes.Owe) -> forms.Rule:
        tools, where, scope = self._restrict(owe.after, owe.where, owe, decided=False)
        first = scope.elements[0]
        mask, wide, filters = self._set(owe.calls, _FILE, owe.pays)
        own = Kind(name="call", tools=mask, wide=wide)
        inner = _Scope(elements=(first, (own, None)), bare=1, it=1, this=0)
        paying, mask = self._filter(filters, inner, 1, mask)
        for condition in (*where, *paying):
            for form in walk(condition):
                if isinstance(form, Source | forms.Now):
                    message = "The filters of `owe` use no other calls and no `now`."
                    raise Fault("TCC225", owe, message, about="values")
        within = None if owe.within is None else _span(owe.within)
        draft = _Draft(forms.Calls(self._tools(mask)), 1, replace(own, tools=mask), None)
        draft.conditions += paying
        return forms.Rule(
            kind="owe", tools=tools, where=where, pays=self._tools(mask), paying=paying,
            within=within, keys=self._keys(draft),
        )  # fmt: skip

    def _limit(self, limit: nodes.Limit) -> forms.Rule:
        tools, where, scope = self._restrict(limit.of, limit.where, limit, decided=True)
        across = limit.scope == "across"
        if limit.scope is None and (limit.per or limit.within is not None):
            text = nodes.statement_text(limit)
            raise Fault(
                "TCC230", limit, "A limit with `per` or `within` says where it counts.",
                f"{text} in session",
            )  # fmt: skip
        per = tuple([self._value(term, scope) for term in limit.per])
        for value, node in zip(per, limit.per, strict=True):
            if value.kind.name in ("call", "record", "span", "nothing"):
                raise Fault("TCC225", node, "A limit counts per value: a field or an attribute.")
        counted = (*where, *(value.term for value in per))
        for part in counted:
            for form in walk(part):
                if isinstance(form, Source):
                    message = "The filter and `per` of a limit use no other calls."
                    raise Fault("TCC225", limit, message, about="values")
                learned = isinstance(form, forms.Attribute) and form.name in self._learned
                if across and learned:
                    message = "A limit across sessions counts per attributes of the start."
                    raise Fault("TCC225", limit, message)
        if limit.field is not None:
            self._ensure_summed(tools, limit.field, limit)
        most = self._value(limit.most, scope)
        self._ensure_number(most, limit.most)
        within = None if limit.within is None else _span(limit.within)
        return forms.Rule(
            kind="limit", tools=tools, where=where, field=limit.field, most=most.term,
            per=tuple([value.term for value in per]), within=within, across=across,
        )  # fmt: skip

    def _ensure_summed(self, tools: Tools, name: str, node: object) -> None:
        """The field is a required argument of each tool that is never below 0."""
        fields = self._fields.get(name, _NOWHERE).of
        for tool in sorted(tools):
            found, answer = fields.get(self._masks[tool].bit_length() - 1, (None, True))
            if found is None or answer:
                known = [one.name for one in self._core.tools[self._places[tool]].arguments]
                message = f"`{tool}` has no argument `{name}`."
                raise Fault("TCC204", node, message, known=known)
            if found.optional or not _never_negative(found):
                message = f"`{name}` of `{tool}` is no required number of at least 0."
                raise Fault("TCC225", node, message)

    # Sets of calls that statements restrict.

    def _restrict(
        self, on: Node, where: Sequence[Node], statement: object, *, decided: bool
    ) -> tuple[Tools, tuple[Condition, ...], _Scope]:
        """The tools that a statement restricts, its filter, and the scope of its clauses."""
        mask, wide, filters = self._set(on, _FILE, where)
        own = Kind(name="call", tools=mask, wide=wide, decided=decided)
        inner = _Scope(elements=((own, None),), bare=0, it=0, this=0)
        conditions, mask = self._filter(filters, inner, 0, mask)
        if isinstance(statement, nodes.Require):
            self._restricted = (mask, filters)
        narrow = Kind(name="call", tools=mask, decided=decided)
        scope = _Scope(elements=((narrow, None),), bare=0, it=None, this=0)
        return self._tools(mask), conditions, scope

    def _filter(
        self, filters: Sequence[tuple[Node, _Scope]], inner: _Scope, level: int, mask: int
    ) -> tuple[tuple[Condition, ...], int]:
        """The conditions of a filter, and the tools that have all fields that it names."""
        self._needs[level] = mask
        conditions = []
        for node, outside in filters:
            scope = outside.inside(inner.elements, inner.bare, inner.it, inner.this)
            conditions.append(self._condition(node, scope))
        left = self._needs.pop(level)
        if not left:
            raise self._no_tool_has_all(filters[-1][0])
        return tuple(conditions), left

    def _no_tool_has_all(self, node: Node) -> Fault:
        message = "No tool of this set has all fields that the filter names."
        return Fault("TCC225", node, message, about="no_tool")

    def _set(
        self, node: Node, scope: _Scope, where: Sequence[Node] = (), inside: bool = False
    ) -> tuple[int, bool, list[tuple[Node, _Scope]]]:
        """The tools of a set, whether it was written with `any`, and its filters."""
        self._height += 1
        self._step(node)
        filters: list[tuple[Node, _Scope]] = []
        match node:
            case nodes.AnyTool():
                mask, wide = self._all, True
            case Word(name):
                mask, wide, filters = self._set_named(node, name, scope, inside)
            case nodes.Union(parts):
                mask, wide = 0, False
                for part in parts:
                    more, any_, _ = self._set(part, scope, inside=True)
                    mask, wide = mask | more, wide or any_
            case nodes.Minus(left, right):
                mask, wide, _ = self._set(left, scope, inside=True)
                minus, _, _ = self._set(right, scope, inside=True)
                mask &= ~minus
            case nodes.Where(of, conditions):
                if inside:
                    raise self._filter_inside(node)
                mask, wide, filters = self._set(of, scope)
                filters += [(condition, scope) for condition in conditions]
            case _:
                raise Fault("TCC225", node, "A set of calls belongs here.", about="set")
        if not mask:
            raise Fault("TCC225", node, "This set has no tool.", about="empty")
        self._height -= 1
        return mask, wide, filters + [(condition, scope) for condition in where]

    def _set_named(
        self, node: Word, name: str, scope: _Scope, inside: bool
    ) -> tuple[int, bool, list[tuple[Node, _Scope]]]:
        let = self._lets.get(name)
        is_let = let is not None and self._fits(name, "set")
        if is_let and name in self._masks:
            raise self._two(node, name, "a tool", "a `let`")
        if is_let and let is not None:
            body, inner = self._open(_Bound(let.body, None, let.parameters, name), node, scope)
            mask, wide, filters = self._set(body, inner)
            if filters and inside:
                raise self._filter_inside(node)
            return mask, wide, filters
        if name in self._masks:
            return self._masks[name], False, []
        if let is not None:
            raise Fault("TCC225", node, f"`{name}` is no set of calls.", about="set")
        raise Fault("TCC202", node, f"No tool and no `let` is called `{name}`.")

    def _filter_inside(self, node: Node) -> Fault:
        message = "A filter cannot be inside a union or difference of a statement's set."
        return Fault("TCC241", node, message)

    # Blocks and lets.

    def _block(self, scope: _Scope, lets: Sequence[Definition], node: object) -> _Scope:
        if not lets:
            return scope
        if len(lets) > MAX_NAMES:
            raise Fault("D201", node, f"A block has more than {MAX_NAMES} `let`s.")
        inner = replace(scope, it=None)
        for let in lets:
            if let.name in inner.names:
                raise Fault("TCC201", let, f"`{let.name}` is declared twice in this block.")
            bound = _Bound(let.body, inner, let.parameters, let.name)
            if not let.parameters:
                self._thing(let.body, inner, "any")
            inner = replace(inner, names={**inner.names, let.name: bound})
        return replace(inner, it=scope.it)

    def _open(
        self, bound: _Bound, node: Node, scope: _Scope, arguments: Sequence[Node] = ()
    ) -> tuple[Node, _Scope]:
        """The body of a `let` or argument, and the scope in which its words are read."""
        if len(arguments) != len(bound.parameters):
            count = len(bound.parameters)
            message = f"`{bound.name}` takes {count} argument{'s' if count != 1 else ''}."
            raise Fault("TCC202" if not arguments else "TCC225", node, message)
        if bound.name and bound.name in scope.within:
            raise self._circle(node, bound.name)
        if len(arguments) > MAX_NAMES:
            raise Fault("D201", node, f"A `let` has more than {MAX_NAMES} parameters.")
        if bound.name and self.conditions is not None:
            let = Definition(name=bound.name, parameters=bound.parameters, body=bound.body)
            self.opened[id(node)] = self._lets[bound.name] if bound.scope is None else let
        outside = _FILE if bound.scope is None else bound.scope
        names = dict(outside.names)
        for name, argument in zip(bound.parameters, arguments, strict=True):
            names[name] = _Bound(argument, scope)
        within = scope.within | {bound.name} if bound.name else scope.within
        this = scope.this if bound.scope is None else outside.this
        return bound.body, _Scope(
            elements=scope.elements, bare=outside.bare, it=outside.it, this=this, names=names,
            within=within,
        )  # fmt: skip

    # Words.

    def _word(self, node: Word, scope: _Scope, want: str, beside: Kind | None) -> _Thing:
        """What a word means where a thing of kind `want` belongs."""
        name = node.name
        found: list[tuple[str, Any]] = []
        if name in scope.names and self._bound_fits(scope.names[name], scope, want):
            found.append(("a name of the block", scope.names[name]))
        value = self._bare_field(name, scope)
        if value is not None and _fits_as(value.kind, want):
            found.append(("a field", value))
        if name in self._lets and self._fits(name, want):
            let = self._lets[name]
            found.append(("a `let`", _Bound(let.body, None, let.parameters, name)))
        if name in self._masks and want != "term":
            found.append(("a tool", None))
        if beside is not None and ("s", name) in beside.listed and want in ("term", "any"):
            found.append(("a value", None))
        if len(found) > 1:
            inside = scope.it is not None and scope.it != scope.this
            raise self._two(node, name, found[0][0], found[1][0], inside)
        if not found:
            raise self._unknown(node, scope, want, beside)
        what, meant = found[0]
        if what == "a field":
            return self._field(node, scope)
        if what == "a tool":
            return self._draft(self._masks[name], False, scope)
        if what == "a value":
            return _Value(forms.Constant(("s", name)), _TEXT)
        if what == "a name of the block" and meant.name == "":
            # An argument is read in the scope of its use; levels are those of this place.
            outer = meant.scope or _FILE
            inner = _Scope(
                elements=scope.elements, bare=outer.bare, it=outer.it, this=outer.this,
                names=outer.names, within=outer.within,
            )  # fmt: skip
            return self._thing(meant.body, inner, want, beside)
        body, inner = self._open(meant, node, scope)
        wanted = "any" if isinstance(body, Word) else want
        return self._thing(body, inner, wanted)  # values in the body of a `let` are texts

    def _two(self, node: Node, name: str, one: str, other: str, inside: bool = False) -> Fault:
        """A word with two meanings; `inside`: in the filter of earlier calls."""
        forms = {"a field": f"{'it' if inside else 'this'}.{name}", "a value": f'"{name}"'}
        known = [forms[what] for what in (one, other) if what in forms]
        return Fault("TCC234", node, f"`{name}` is {one} and {other} here.", known=known)

    def _unknown(self, node: Word, scope: _Scope, want: str, beside: Kind | None) -> Fault:
        name = node.name
        if want == "set":
            return Fault("TCC202", node, f"No tool and no `let` is called `{name}`.")
        parameters = self._parameters(name, scope)
        if parameters:
            text = f"{name}({', '.join(parameters)})"
            return Fault("TCC202", node, f"`{name}` is a `let` with parameters.", text)
        level = scope.bare
        if level is not None:
            own = scope.elements[level][0]
            this = None if scope.this is None else scope.elements[scope.this][0]
            lacks = own.name == "call" and name in self._fields
            if lacks and this is not None and level != scope.this and self._has(this, name):
                message = f"The calls of this filter have no field `{name}`."
                return Fault("TCC204", node, message, f"this.{name}")
            if lacks and not self._bare_field(name, scope) and name not in self._masks:
                return self._lacks(node, own.tools, name)
        elif scope is not _FILE and scope.this is None and name in self._fields:
            message = "`finally` has no call, so it has no fields."
            return Fault("TCC225", node, message, about="end")
        elif name in self._fields and scope.this is not None:
            message = "In a `let` of the file, fields are not in scope."
            return Fault("TCC202", node, message, f"this.{name}")
        if beside is not None and beside.listed:
            message = f"`{name}` is none of {_listed_text(beside)}."
            return Fault("TCC205", node, message, known=beside.listed.texts)
        if name in self._masks or name in self._lets or name in scope.names:
            return Fault("TCC225", node, f"`{name}` does not fit here.", about="unfit")
        return Fault("TCC202", node, f"Nothing is called `{name}` here.")

    def _lacks(self, node: Node, tools: int, name: str, who: str = "These calls have") -> Fault:
        """Calls of some tools have no field of a name; `known` are those that they all have."""
        known = self._fields_of(Kind(name="call", tools=tools))
        return Fault("TCC204", node, f"{who} no field `{name}`.", known=known, about="calls")

    def _parameters(self, name: str, scope: _Scope) -> tuple[str, ...]:
        """The parameters of the `let` of a name; empty where it has none or is none."""
        if name in scope.names:
            return scope.names[name].parameters
        return self._lets[name].parameters if name in self._lets else ()

    def _has(self, kind: Kind, name: str) -> bool:
        known = self._fields.get(name, _NOWHERE)
        found = known.arguments if kind.decided else known.has
        return kind.name == "call" and not kind.tools & ~found

    def _bare_field(self, name: str, scope: _Scope) -> _Value | None:
        """The field that a bare name would be, without a look at whether all calls have it."""
        if scope.bare is None:
            return None
        own, call = scope.elements[scope.bare]
        self._charge(len(own.members) // 16)
        for member, kind in own.members:
            if member == name:
                return _Value(forms.Element(scope.bare), kind)
        holder = own if own.name == "call" else call
        if holder is None:
            return None
        common = holder.tools & self._fields.get(name, _NOWHERE).has
        return _Value(forms.Element(scope.bare), self._known(name, common)) if common else None

    def _known(self, name: str, tools: int) -> Kind:
        """The kind of one of the fields of a name in tools that have one."""
        declared, _ = self._fields[name].of[tools.bit_length() - 1]
        return self._declared(declared)

    def _declared(self, declared: Field) -> Kind:
        """The kind of a field of a tool."""
        found = self._of_field.get(id(declared))
        if found is None:
            found = self._of_field[id(declared)] = _kind_of(declared)
        return found

    def _field(self, node: Word, scope: _Scope) -> _Value:
        level = scope.bare
        if level is None:
            raise Fault("TCC202", node, f"Nothing is called `{node.name}` here.")
        own, call = scope.elements[level]
        return self._get(_Value(forms.Element(level), own, call), node.name, node)

    def _get(self, of: _Value, name: str, node: Node) -> _Value:
        """A field of a call, record or row."""
        self._charge(len(of.kind.members) // 16)
        for member, kind in of.kind.members:
            if member == name:
                return _Value(forms.Get(of.term, name), kind)
        if of.kind.name == "call":
            return _Value(forms.Get(of.term, name), self._call_field(of.term, of.kind, name, node))
        if of.call is not None:
            term = forms.CallOf(of.term)
            return _Value(forms.Get(term, name), self._call_field(term, of.call, name, node))
        known = [member for member, _ in of.kind.members]
        message = f"A {of.kind.name} has no field `{name}`."
        raise Fault("TCC204", node, message, known=known)

    def _call_field(self, term: Term, kind: Kind, name: str, node: Node) -> Kind:
        named = self._fields.get(name, _NOWHERE)
        has, lacking = named.has, kind.tools & ~named.has
        if not kind.tools & has:
            raise self._lacks(node, kind.tools, name)
        level = term.level if isinstance(term, forms.Element) else None
        if lacking:
            if not (kind.wide and level is not None and level in self._needs):
                tool = next(iter(self._tools(lacking & -lacking)))
                raise self._lacks(node, kind.tools, name, f"`{tool}` has")
            self._needs[level] &= has
        if kind.decided and kind.tools & has & ~named.arguments:
            message = f"`{name}` is an answer of the call being decided: it does not exist yet."
            instead = self._instead_of_answers(name)
            raise Fault("TCC225", node, message, instead, about="answer")
        if not kind.tools & (kind.tools - 1):
            return self._known(name, kind.tools)
        key = (name, kind.tools)
        if key not in self._shared:
            self._shared[key] = self._common(self._kinds_in(named, kind.tools), node, f"`{name}`")
        return self._shared[key]

    def _kinds_in(self, named: _Named, tools: int) -> list[Kind]:
        """The different kinds of the fields of one name in a set of tools."""
        if "slots" not in named.__dict__:
            self._charge(len(named.of) * (1 + len(self._names) // 512))
        self._charge(len(named.slots) // 8)
        return [kind for kind, _, mask in named.slots if tools & mask]

    def _common(self, kinds: Sequence[Kind], node: object, what: str) -> Kind:
        """What is known of a value that is of one of these kinds.

        Raises:
            Fault: TCC225: they cannot be compared.
        """
        first = kinds[0]
        if all(other == first for other in kinds):
            return first
        self._charge(sum([1 + len(one.members) + len(one.listed.texts) // 8 for one in kinds]))
        for other in kinds[1:]:
            if first.choices or other.choices or not _comparable(first, other):
                message = (
                    f"{what} is {first.name} in one of these tools and {other.name} in another."
                )
                raise Fault("TCC225", node, message)
        listed: dict[str, None] = {}
        if all(other.listed for other in kinds):
            for other in kinds:
                listed |= dict.fromkeys(other.listed.texts)
        members = [dict(other.members) for other in kinds]
        shared = [name for name in members[0] if all(name in other for other in members)]
        elements = [other.of for other in kinds if other.of is not None]
        return replace(
            first, listed=Listed(tuple(listed)), rest=any(other.rest for other in kinds),
            most=max(other.most for other in kinds),
            of=self._common(elements, node, f"An element of {what}") if elements else None,
            members=tuple([
                (name, self._common([other[name] for other in members], node, f"{what}.{name}"))
                for name in shared
            ]),
        )  # fmt: skip

    def _instead_of_answers(self, name: str) -> str:
        """What to write instead of an answer of the call being decided."""
        subject = self._subject
        if not isinstance(subject, nodes.Limit) or not subject.where:
            return ""
        counted = nodes.text_of(nodes.Where(subject.of, subject.where))
        if subject.field is None:
            return f"finally require count({counted}) <= {nodes.text_of(subject.most)}"
        return f"finally require sum({counted}.{subject.field}) <= {nodes.text_of(subject.most)}"

    def _learned_kind(self, learned: Learned) -> Kind:
        found: list[Kind] = []
        for tool, name in learned.sources:
            at = self._masks.get(tool, 0).bit_length() - 1
            of = self._fields.get(name, _NOWHERE).of.get(at)
            if of is None:
                raise Fault("TCC204", learned, f"`{tool}` has no field `{name}`.")
            found.append(self._declared(of[0]))
        return self._common(found, learned, f"`{learned.name}`")

    # What fits where.

    def _fits(self, name: str, want: str) -> bool:
        let = self._lets[name]
        if let.parameters:
            return want == "applied"
        if name not in self._shapes:
            self._shapes[name] = self._shape(let.body, _FILE)
        return _shape_fits(self._shapes[name], want)

    def _bound_fits(self, bound: _Bound, scope: _Scope, want: str) -> bool:
        if bound.parameters:
            return want == "applied"
        if want == "applied":
            return True
        return _shape_fits(self._shape(bound.body, bound.scope or _FILE), want)

    def _shape(self, node: Node, scope: _Scope) -> str:
        """``condition``, ``set``, ``source``, ``term`` or ``any`` of them: what a node can be."""
        passed: list[str] = []  # lets of the file that have the same shape
        shape = ""
        while not shape:
            self._charge(1)
            match node:
                case nodes.Union(parts):
                    node = parts[0]
                case nodes.Minus(left, _):
                    node = left
                case Word(name) if name in scope.names:
                    bound = scope.names[name]
                    node, scope = bound.body, bound.scope or _FILE
                    shape = "any" if bound.parameters else ""
                case Word(name):
                    shape = self._word_shape(name, scope)
                    if not shape:
                        if name in passed:
                            raise self._circle(node, name)
                        passed.append(name)
                        node, scope = self._lets[name].body, _FILE
                case nodes.Where(of=of):
                    let = self._lets.get(of.name) if isinstance(of, Word) else None
                    if let is not None and let.parameters:
                        node, scope = let.body, _FILE
                    elif isinstance(of, Word) and of.name in scope.names:
                        node, scope = scope.names[of.name].body, scope.names[of.name].scope or _FILE
                    else:
                        shape = "set" if self._shape(of, scope) == "set" else "source"
                case nodes.AnyTool():
                    shape = "set"
                case nodes.Since() | nodes.Within():
                    shape = "source"
                case (
                    nodes.Get() | nodes.Session() | nodes.Match() | nodes.Flag() | nodes.This()
                    | nodes.It()
                ):  # fmt: skip
                    shape = "any"
                case nodes.Apply(function=function):
                    shape = {"pairs": "source", "last": "any"}.get(function, "term")
                case (
                    nodes.Compare() | nodes.Between() | nodes.And() | nodes.Or() | nodes.Not()
                    | nodes.No() | nodes.Every() | nodes.Unused() | nodes.Same()
                ):  # fmt: skip
                    shape = "condition"
                case _:
                    shape = "term"
        self._shapes |= dict.fromkeys(passed, shape)
        return shape

    def _word_shape(self, name: str, scope: _Scope) -> str:
        """The shape of a word that is no name of the block; empty: that of the `let`'s body."""
        value = self._bare_field(name, scope)
        if value is not None:
            return "any" if value.kind.name in ("list", "flag", "record") else "term"
        let = self._lets.get(name)
        if let is None or let.parameters:
            return "set" if name in self._masks else "any"
        return self._shapes.get(name, "")

    # Nodes.

    def _thing(self, node: Node, scope: _Scope, want: str, beside: Kind | None = None) -> _Thing:
        """What a node is; words in it are resolved by what fits."""
        self._height += 1
        self._step(node)
        found = self._form(node, scope, want, beside)
        self._height -= 1
        return found

    def _form(self, node: Node, scope: _Scope, want: str, beside: Kind | None) -> _Thing:
        match node:
            case Word():
                return self._word(node, scope, want, beside)
            case nodes.Text() | nodes.Number() | nodes.Flag() | nodes.Null() | nodes.Duration():
                return self._constant(node, scope, want, beside)
            case nodes.This():
                if scope.this is None:
                    raise Fault("TCC225", node, "`this` has no call here.", about="end")
                return _Value(forms.Element(scope.this), *scope.elements[scope.this])
            case nodes.It():
                if scope.it is None:
                    message = "`it` belongs inside the parentheses of a filter."
                    raise Fault("TCC225", node, message, about="it")
                return _Value(forms.Element(scope.it), *scope.elements[scope.it])
            case nodes.Now():
                return _Value(forms.Now(), _TIME)
            case nodes.Session(name):
                if name not in self._given:
                    raise Fault("TCC202", node, f"No `given` declares `{name}`.")
                return _Value(forms.Attribute(name), self._given[name])
            case nodes.AnyTool():
                self._ensure_alone(node, "any", scope, want)
                return self._draft(self._all, True, scope)
            case nodes.Get(of, name):
                return self._member(node, of, name, scope)
            case nodes.Where(of, conditions):
                return self._where(node, of, conditions, scope, want)
            case nodes.Apply():
                return self._apply(node, scope)
            case nodes.Within() | nodes.Since():
                return self._modified(node, scope)
            case nodes.Unused(of):
                return _Truth(self._unused(node, of, scope))
            case nodes.No(of):
                source = self._source(of, scope)
                return _Truth(forms.Not(forms.Some(self._finished(source, of))))
            case nodes.Every(of):
                return _Truth(self._every(node, of, scope))
            case nodes.Not(of):
                thing = self._thing(of, scope, "condition")
                if isinstance(thing, _Draft) or _is_list(thing):
                    text = nodes.text_of(of)
                    message = f"`not` negates a condition, and `{text}` is a collection."
                    raise Fault("TCC232", node, message, nodes.text_of(nodes.No(of)))
                return _Truth(forms.Not(self._truth(thing, of, scope)))
            case nodes.And(parts):
                return _Truth(forms.All(tuple([self._condition(p, scope) for p in parts])))
            case nodes.Or(parts):
                return _Truth(forms.AnyOf(tuple([self._condition(p, scope) for p in parts])))
            case nodes.Compare():
                return _Truth(self._compare(node, scope))
            case nodes.Between(operator, of, low, high):
                return _Truth(self._between(node, operator, of, low, high, scope))
            case nodes.Union(parts):
                return self._union(node, parts, scope, want, beside)
            case nodes.Add(left, right) | nodes.Minus(left, right) | nodes.Times(left, right):
                return self._arithmetic(node, left, right, scope, want)
            case nodes.Negative(of):
                value = self._value(of, scope)
                self._ensure_number(value, of, spans=True)
                zero = forms.Constant(("n", 0))
                return _Value(forms.Arithmetic("-", zero, value.term), value.kind)
            case nodes.Match():
                return self._match(node, scope, beside)
        raise Fault("TCC225", node, "This form does not belong here.")

    def _constant(self, node: Node, scope: _Scope, want: str, beside: Kind | None) -> _Value:
        match node:
            case nodes.Text(value):
                bare = beside is not None and ("s", value) in beside.listed
                bare = bare and is_identifier(value) and self._is_free(value, scope)
                (self._bare if bare else self._quoted).add(id(node))
                return _Value(forms.Constant(("s", value)), _TEXT)
            case nodes.Number(value):
                return _Value(forms.Constant(("n", places.exact_number(value))), _NUMBER)
            case nodes.Flag(value):
                self._ensure_alone(node, "true" if value else "false", scope, want)
                return _Value(forms.Constant(("b", value)), _FLAG)
            case nodes.Duration(amount, unit):
                return _Value(forms.Constant(("n", _milliseconds(amount, unit, node))), _SPAN)
        self._ensure_alone(node, "null", scope, want)
        return _Value(forms.Constant(("z", None)), Kind(name="null"))

    def _is_free(self, name: str, scope: _Scope) -> bool:
        """Whether a bare word would mean the listed value: no term has the name."""
        value = self._bare_field(name, scope)
        if value is not None and _fits_as(value.kind, "term"):
            return False
        if name in scope.names and self._bound_fits(scope.names[name], scope, "term"):
            return False
        return not (name in self._lets and self._fits(name, "term"))

    def _ensure_alone(self, node: Node, name: str, scope: _Scope, want: str) -> None:
        """`any`, `null`, `true` and `false` are read like tools: nothing else of the name fits."""
        value = self._bare_field(name, scope)
        field_fits = value is not None and _fits_as(value.kind, want)
        let_fits = name in self._lets and self._fits(name, want)
        bound = scope.names.get(name)
        if field_fits or let_fits or (bound and self._bound_fits(bound, scope, want)):
            raise self._two(node, name, f"`{name}`", "a name")

    def _draft(self, mask: int, wide: bool, scope: _Scope) -> _Draft:
        own = Kind(name="call", tools=mask, wide=wide)
        base = forms.Calls(self._tools(mask))
        return _Draft(base, len(scope.elements), own, None, wide=wide)

    def _tools(self, mask: int) -> Tools:
        found = self._sets.get(mask)
        if found is None:
            self._charge(1 + mask.bit_length() // 512)
            found = forms.ManyTools(mask, self._places)
            if len(found) <= FEW_TOOLS:
                names, left = [], mask
                while left:
                    names.append(self._names[left.bit_length() - 1])
                    left ^= 1 << left.bit_length() - 1
                found = frozenset(names)
            self._sets[mask] = found
        return found

    def _member(self, node: nodes.Get, of: Node, name: str, scope: _Scope) -> _Thing:
        thing = self._thing(of, scope, "base")
        if isinstance(thing, _Value) and thing.kind.name != "list":
            return self._get(thing, name, node)
        draft = self._as_source(thing, of, scope)
        level = draft.level
        value = self._get(_Value(forms.Element(level), draft.own, draft.call), name, node)
        source = self._finished(draft, of)
        call = draft.own if draft.own.name == "call" else draft.call
        listed = value.kind.name == "list" and value.kind.of is not None
        own = value.kind.of if listed and value.kind.of is not None else value.kind
        base = forms.Rows(source, value.term, value.kind.most if listed else None)
        return _Draft(base, level, own, call, height=source.height)

    def _where(
        self, node: nodes.Where, of: Node, conditions: Sequence[Node], scope: _Scope, want: str
    ) -> _Thing:
        if isinstance(of, Word):
            bound = self._applied(of, scope)
            if bound is not None:
                for argument in conditions:
                    if isinstance(argument, nodes.Same):
                        raise Fault("TCC225", argument, "`same` belongs in a filter.")
                body, inner = self._open(bound, of, scope, conditions)
                return self._thing(body, inner, want)
        draft = self._source(of, scope)
        self._add_filter(draft, conditions, scope)
        return draft

    def _applied(self, word: Word, scope: _Scope) -> _Bound | None:
        """The `let` with parameters that a word before parentheses names."""
        name = word.name
        bound = scope.names.get(name)
        if bound is not None and not bound.parameters:
            bound = None
        let = self._lets.get(name)
        if let is not None and let.parameters:
            if bound is not None:
                raise self._two(word, name, "a `let` of the block", "a `let` of the file")
            bound = _Bound(let.body, None, let.parameters, name)
        if bound is not None:
            value = self._bare_field(name, scope)
            if name in self._masks or (value is not None and value.kind.name == "list"):
                raise self._two(word, name, "a `let` with parameters", "a source")
        return bound

    def _add_filter(self, draft: _Draft, conditions: Sequence[Node], scope: _Scope) -> None:
        level = draft.level
        inner = self._filtering(draft, scope)
        kept = self._needs.get(level)
        narrows = draft.is_calls and draft.own.wide
        draft.unfiltered = draft.own.tools
        if narrows:
            self._needs[level] = draft.own.tools
        found = [self._condition(condition, inner) for condition in conditions]
        if narrows:
            mask = self._needs[level]
            if not mask:
                raise self._no_tool_has_all(conditions[-1])
            draft.base = forms.Calls(self._tools(mask))
            draft.own = replace(draft.own, tools=mask)
        self._needs.pop(level, None)
        if kept is not None:
            self._needs[level] = kept
        draft.filtered = len(found)
        draft.conditions += found

    def _filtering(self, draft: _Draft, scope: _Scope) -> _Scope:
        """The scope of a filter of a source."""
        elements = (*scope.elements, (draft.own, draft.call))
        return scope.inside(elements, draft.level, draft.level, scope.this)

    def _modified(self, node: nodes.Within | nodes.Since, scope: _Scope) -> _Draft:
        draft = self._source(node.of, scope)
        if draft.own.name != "call" and draft.call is None:
            message = "The elements of a list have no time and no order of calls."
            raise Fault("TCC225", node, message, about="list")
        if isinstance(node, nodes.Within):
            span = _milliseconds(node.amount, node.unit, node)
            if draft.is_calls:
                draft.within = span if draft.within is None else min(span, draft.within)
            else:
                draft.base = _windowed(draft.base, span)
            return draft
        thing = self._thing(node.mark, scope, "set")
        mark = thing if isinstance(thing, _Draft) else None
        if mark is None or not mark.is_calls or mark.marks or mark.within is not None:
            message = "`since` takes a set of calls with a filter, without modifiers."
            raise Fault("TCC225", node.mark, message, about="mark")
        draft.marks.append(self._finished(mark, node.mark))
        return draft

    def _every(self, node: nodes.Every, of: Node, scope: _Scope) -> Condition:
        draft = self._source(of, scope)
        if not draft.filtered:
            text = nodes.text_of(of)
            message = "`every` needs a filter: what holds for every element?"
            raise Fault("TCC225", node, message, f"every {text}(..)")
        conditions = tuple(draft.conditions[-draft.filtered :])
        del draft.conditions[-draft.filtered :]
        if draft.is_calls and draft.unfiltered != draft.own.tools:
            # The filter is false for a tool that lacks a field: such a call is no exception.
            has = forms.IsOf(draft.level, self._tools(draft.own.tools))
            conditions = (has, *conditions)
            draft.own = replace(draft.own, tools=draft.unfiltered)
            draft.base = forms.Calls(self._tools(draft.unfiltered))
        source = self._finished(draft, of, conditions)
        return forms.Every(source, conditions)

    def _unused(self, node: nodes.Unused, of: Node, scope: _Scope) -> Condition:
        if self._restricted is None or scope.this != 0:
            message = "`unused` belongs in a clause of `before`."
            raise Fault("TCC225", node, message, about="unused")
        draft = self._source(of, scope)
        if draft.marks:
            message = "`unused` cannot be combined with `since`."
            raise Fault("TCC225", node, message, about="both")
        keys = _keys_of(draft.conditions, draft.level)
        if not keys or not draft.is_calls:
            message = "`unused` needs a key: a filter with `same` or `f = this.g`."
            raise Fault("TCC225", node, message, about="key")
        mask, filters = self._restricted
        level = draft.level
        own = Kind(name="call", tools=mask, decided=True)
        inner = _Scope(
            elements=(*scope.elements, (own, None)), bare=level, it=level, this=level,
            within=scope.within,
        )  # fmt: skip
        conditions, _ = self._filter(filters, inner, level, mask)
        # What these speak of may have changed since the earlier call: it counts as a use.
        conditions = tuple([one for one in conditions if not self._may_change(one)])
        same = [
            forms.Same(forms.Get(forms.Element(level), key), forms.Get(forms.Element(0), key))
            for key in keys
        ]
        mark = _Draft(forms.Calls(self._tools(mask)), level, own, None, [*conditions, *same])
        draft.marks.append(self._finished(mark, of))
        return forms.Some(self._finished(draft, of))

    def _may_change(self, condition: Condition) -> bool:
        """Whether a condition on a call can become another truth later."""
        return any(
            isinstance(form, Source | forms.Now)
            or (isinstance(form, forms.Attribute) and form.name in self._learned)
            for form in walk(condition)
        )

    def _union(
        self, node: Node, parts: Sequence[Node], scope: _Scope, want: str, beside: Kind | None
    ) -> _Thing:
        is_term = want == "any" and self._shape(parts[0], scope) == "term"
        if want == "term" or is_term:
            return _Options(tuple(parts), scope, beside)
        things = [self._thing(part, scope, want) for part in parts]
        drafts = [thing for thing in things if isinstance(thing, _Draft)]
        if len(drafts) < len(things):
            if want == "any":
                return _Options(tuple(parts), scope, beside)
            message = "`|` joins sets of calls, or the values of a comparison."
            raise Fault("TCC225", node, message, about="union")
        if all(draft.is_calls for draft in drafts):
            if not all(draft.is_plain for draft in drafts):
                raise self._filter_inside(node)
            mask = 0
            for draft in drafts:
                mask |= draft.own.tools
            return self._draft(mask, any(draft.wide for draft in drafts), scope)
        if any(draft.call is None for draft in drafts):
            message = "`|` joins sets of calls, or fields of sets of calls."
            raise Fault("TCC225", node, message, about="union")
        kinds = [draft.own for draft in drafts]
        own = self._common(kinds, node, "A field")
        sources = tuple([self._finished(draft, node) for draft in drafts])
        call = Kind(name="call")
        for draft in drafts:
            call = replace(call, tools=call.tools | (draft.call.tools if draft.call else 0))
        height = max(source.height for source in sources)
        return _Draft(forms.Merged(sources), drafts[0].level, own, call, height=height)

    def _arithmetic(self, node: Node, left: Node, right: Node, scope: _Scope, want: str) -> _Thing:
        shape = self._shape(left, scope)
        if isinstance(node, nodes.Minus) and shape in ("set", "source"):
            return self._difference(node, left, right, scope)
        one, other = self._value(left, scope), self._value(right, scope)
        for value, part in ((one, left), (other, right)):
            self._ensure_number(value, part, spans=True, times=True)
        sign = "*" if isinstance(node, nodes.Times) else "+" if isinstance(node, nodes.Add) else "-"
        kind = _arithmetic_kind(sign, one.kind.name, other.kind.name)
        if kind is None:
            message = f"`{sign}` of a {one.kind.name} and a {other.kind.name} has no meaning."
            raise Fault("TCC225", node, message)
        return _Value(forms.Arithmetic(sign, one.term, other.term), Kind(name=kind))

    def _difference(self, node: Node, left: Node, right: Node, scope: _Scope) -> _Draft:
        draft = self._source(left, scope)
        minus = self._source(right, scope)
        if not draft.is_calls or not minus.is_calls or minus.marks or minus.within is not None:
            raise Fault("TCC225", node, "`-` takes a set of calls from a set of calls.")
        if draft.is_plain and minus.is_plain:
            mask = draft.own.tools & ~minus.own.tools
            if not mask:
                raise Fault("TCC225", node, "This set has no tool.", about="empty")
            return self._draft(mask, draft.wide, scope)
        if not draft.is_plain:
            raise self._filter_inside(node)
        tools = self._tools(minus.own.tools)
        excluded = forms.All((forms.IsOf(draft.level, tools), *minus.conditions))
        draft.conditions.append(forms.Not(excluded))
        draft.height = max(draft.height, minus.height)
        return draft

    def _match(self, node: nodes.Match, scope: _Scope, beside: Kind | None) -> _Value:
        of = self._value(node.of, scope)
        arms: list[tuple[tuple[Term, ...], Term]] = []
        otherwise: Term | None = None
        kind: Kind | None = None
        seen: set[str | None] = set()
        for arm in node.arms:
            if not isinstance(arm, nodes.Arm | nodes.Else) or otherwise is not None:
                raise Fault("TCC225", arm, "`else` is the last arm of a `match`.")
            value = self._value(arm.term, scope, beside)
            if beside is not None:
                self._constant_for(value, beside, arm.term)
            if kind is not None and not _comparable(kind, value.kind):
                raise Fault("TCC225", arm, "The arms of this `match` have different types.")
            kind = value.kind if kind is None else kind
            if isinstance(arm, nodes.Else):
                otherwise = value.term
                continue
            tests = []
            for part in arm.values:
                test = self._value(part, scope, of.kind if of.kind.listed else None)
                if not _comparable(of.kind, test.kind) and not _reads_as(of.kind, test):
                    raise self._unlike(part, of.kind, test.kind)
                term = self._constant_for(test, of.kind, part)
                if not isinstance(term, forms.Constant):
                    raise Fault("TCC225", part, "An arm of `match` has constant values.")
                tests.append(term)
                seen.add(_state_text(term.state) if term.state in of.kind.listed else None)
            arms.append((tuple(tests), value.term))
        if kind is None:
            raise Fault("TCC225", node, "A `match` needs an arm.")
        missing = len(seen - {None}) < max(1, len(of.kind.listed.texts))
        if otherwise is None and (of.kind.rest or missing):
            message = "This `match` needs an arm for every value, or `else`."
            raise Fault("TCC225", node, message, about="arms")
        plain = replace(kind, listed=_NO_VALUES, rest=False)
        return _Value(forms.Choose(of.term, tuple(arms), otherwise), plain)

    # Functions.

    def _apply(self, node: nodes.Apply, scope: _Scope) -> _Thing:
        name, arguments = node.function, node.arguments
        least, most = nodes.FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            raise Fault("TCC225", node, f"`{name}` takes {least} to {most} arguments.")
        for argument in arguments:
            if isinstance(argument, nodes.Same):
                raise Fault("TCC225", argument, "`same` belongs in a filter.")
        first = arguments[0]
        if name == "pairs":
            return self._pairs(node, arguments, scope)
        if name in ("min", "max") and len(arguments) == 2:
            one, other = (self._value(argument, scope) for argument in arguments)
            self._ensure_number(one, first, spans=True, times=True)
            if not _comparable(one.kind, other.kind):
                raise Fault("TCC225", node, f"`{name}` compares values of one kind.")
            return _Value(forms.Arithmetic(name, one.term, other.term), _plain(one.kind))
        if name in _AGGREGATES:
            return self._aggregate(node, scope)
        value = self._value(first, scope)
        if name == "host":
            if value.kind.name != "url":
                raise Fault("TCC225", first, "`host` takes a URL.", about="url")
            return _Value(forms.Host(value.term), _TEXT)
        if value.kind.name not in ("time", "date"):
            raise Fault("TCC225", first, f"`{name}` takes a time or a date.")
        zone = self._zone(arguments[1]) if len(arguments) == 2 else 0
        kind = Kind(name="date", minutes=zone) if name == "day" else _NUMBER
        return _Value(forms.Clock(name, value.term, zone), kind)

    def _zone(self, node: Node) -> int | Zone:
        """The zone that the second argument of a clock function is.

        Raises:
            Fault: TCC225: it is no constant; TCC205: no such zone is recorded.
        """
        if not isinstance(node, nodes.Text):
            raise Fault("TCC225", node, "A zone is a text in quotes.", about="zone")
        minutes = zone_of(node.value)
        if minutes is not None:
            return minutes
        recorded = self._core.zones.of if self._core.zones else {}
        if node.value not in recorded:
            message = f"{nodes.text_of(node)} is no zone."
            raise Fault("TCC205", node, message, about="zone")
        return recorded[node.value]

    def _aggregate(self, node: nodes.Apply, scope: _Scope) -> _Value:
        name, first = node.function, node.arguments[0]
        distinct = (
            name == "count" and isinstance(first, nodes.Apply) and first.function == "distinct"
        )
        if distinct and isinstance(first, nodes.Apply):
            first = first.arguments[0]
        draft = self._source(first, scope)
        if name == "distinct":
            raise Fault("TCC225", node, "`distinct` belongs in `count(distinct(..))`.")
        if name == "last":
            source = self._finished(draft, first)
            return _Value(forms.Last(source), draft.own, draft.call)
        if name == "count":
            if distinct and draft.own.name in ("call", "list", "record", "json"):
                raise Fault("TCC225", first, "`distinct` counts the values of a field.")
            return _Value(forms.Count(self._finished(draft, first), distinct), _NUMBER)
        if len(node.arguments) == 2:
            if name != "sum":
                raise Fault("TCC225", node, f"`{name}` of a collection has one argument.")
            value = self._value(node.arguments[1], self._filtering(draft, scope))
            self._ensure_number(value, node.arguments[1], spans=True)
            source = self._finished(draft, first, (value.term,))
            return _Value(forms.Sum(source, value.term), _plain(value.kind))
        element = _Value(forms.Element(draft.level), draft.own, draft.call)
        self._ensure_number(element, first, spans=True, times=name != "sum")
        source = self._finished(draft, first)
        if name == "sum":
            return _Value(forms.Sum(source, element.term), _plain(draft.own))
        return _Value(forms.Extreme(source, name == "max"), _plain(draft.own))

    def _pairs(self, node: Node, arguments: Sequence[Node], scope: _Scope) -> _Draft:
        lists = [self._value(argument, scope) for argument in arguments]
        for value, argument in zip(lists, arguments, strict=True):
            if value.kind.name != "list":
                raise Fault("TCC225", argument, "`pairs` takes two lists.")
        left, right = (value.kind.of or _TEXT for value in lists)
        own = Kind(name="record", members=(("left", left), ("right", right)))
        base = forms.Pairs(lists[0].term, lists[1].term)
        height = max(_height_of(value.term) for value in lists)
        return _Draft(base, len(scope.elements), own, None, height=height)

    # Comparisons.

    def _compare(self, node: nodes.Compare, scope: _Scope) -> Condition:
        operator = node.operator
        if operator in ("under", "not under"):
            return self._under(node, scope)
        self._ensure_no_count_of_nothing(node, scope)
        if operator in ("in", "not in"):
            return self._among(node, scope)
        one, other = node.left, node.right
        if isinstance(one, nodes.Null) and operator in ("=", "!="):
            one, other = other, one
        left = self._side(one, other, scope)
        if operator in ("~", "!~"):
            return self._matches(node, left, scope)
        beside = left.kind if left.kind.listed and operator in ("=", "!=") else None
        options = self._options(other, scope, beside, [0])
        self._ensure_not_itself(node, scope)
        terms = []
        for value, part in options:
            read = _reads_as(left.kind, value) or _reads_as(value.kind, left)
            constant = beside is not None and isinstance(value.term, forms.Constant)
            if not (read or constant) and not _comparable(left.kind, value.kind):
                raise self._unlike(part, left.kind, value.kind)
            kind = left.kind if operator in ("=", "!=") else replace(left.kind, listed=_NO_VALUES)
            terms.append(self._constant_for(value, kind, part))
        if operator in ("=", "!="):
            equal = forms.Compare("=", self._read_left(operator, left, options, one), tuple(terms))
            return equal if operator == "=" else forms.Not(equal)
        if len(terms) > 1:
            raise Fault("TCC225", node, f"`|` belongs after `=` or `!=`, not after `{operator}`.")
        moments = left.kind.name in _MOMENTS or options[0][0].kind.name in _MOMENTS
        for value, part in ((left, one), options[0]):
            self._ensure_number(value, part, spans=True, times=True, constants=moments)
        return forms.Compare(operator, self._read_left(operator, left, options, one), tuple(terms))

    def _unlike(self, node: Node, one: Kind, other: Kind) -> Fault:
        message = f"A {one.name} is compared with a {other.name}."
        return Fault("TCC225", node, message, known=(one.name, other.name), about="types")

    def _side(self, node: Node, other: Node, scope: _Scope) -> _Value:
        """The left side; a word that means nothing may be a value of the listed right side."""
        if isinstance(node, nodes.Text):
            return self._value(node, scope, self._listed_side(other, scope))
        if not isinstance(node, Word):
            return self._value(node, scope)
        needs, height = dict(self._needs), self._height
        try:
            return self._value(node, scope)
        except Fault as fault:
            if fault.code not in ("TCC202", "TCC204", "TCC225") or fault.node is not node:
                raise
            self._needs, self._height = needs, height
            kind = self._listed_side(other, scope)
            if kind is None:
                raise
            return self._value(node, scope, kind)

    def _listed_side(self, node: Node, scope: _Scope) -> Kind | None:
        """The kind of a side of a comparison whose values are listed."""
        needs, height = dict(self._needs), self._height
        try:
            kind = self._value(node, scope).kind
        except Fault as fault:
            if fault.code == "D201":
                raise
            kind = _NOTHING
        self._needs, self._height = needs, height
        return kind if kind.listed else None

    def _read_left(
        self, operator: str, left: _Value, options: Sequence[tuple[_Value, Node]], node: Node
    ) -> Term:
        kind = options[0][0].kind
        if operator not in ("=", "!="):
            kind = replace(kind, listed=_NO_VALUES)
        return self._constant_for(left, kind, node)

    def _options(
        self, node: Node, scope: _Scope, beside: Kind | None, count: list[int]
    ) -> list[tuple[_Value, Node]]:
        count[0] += 1
        if count[0] > MAX_OPTIONS:
            raise Fault("D201", node, f"A comparison has more than {MAX_OPTIONS} values.")
        thing = self._thing(node, scope, "term", beside)
        if not isinstance(thing, _Options):
            return [(self._as_value(thing, node), node)]
        found = []
        for part in thing.parts:
            found += self._options(part, thing.scope, thing.beside, count)
        return found

    def _constant_for(self, value: _Value, kind: Kind, node: Node) -> Term:
        """The term of a value that is compared with a kind: a text is read as a value of it.

        Raises:
            Fault: TCC205: it is none of the listed values, or cannot be read.
        """
        term = value.term
        if not isinstance(term, forms.Constant):
            return term
        if kind.listed and term.state[0] != "z" and term.state not in kind.listed:
            message = f"{nodes.text_of(node)} is none of {_listed_text(kind)}."
            raise Fault("TCC205", node, message, known=kind.listed.texts)
        readable = _readable(kind)
        if not readable or term.state[0] != "s":
            return term
        for one in readable:
            try:
                return forms.Constant(_read_as(one, term.state[1]))
            except (places.Wrong, Rejected):
                continue
        names = " or ".join([_NAMED.get(one.name, one.name) for one in readable])
        message = f"{nodes.text_of(node)} is no {names}."
        raise Fault("TCC205", node, message, about=readable[0].name)

    def _under(self, node: nodes.Compare, scope: _Scope) -> Condition:
        left, right = self._value(node.left, scope), self._value(node.right, scope)
        names = [kind.name for kind in left.kind.choices or (left.kind,) if kind.name in _LOCATED]
        if not names:
            message = f"`{node.operator}` compares a path or a URL, and this is a {left.kind.name}."
            raise Fault("TCC225", node.left, message, about="located")
        term = right.term
        if isinstance(term, forms.Constant) and term.state[0] == "s":
            term = forms.Constant(self._scope_of(term.state[1], names, node.right))
        elif right.kind.name not in names:
            message = f"A {names[0]} is compared with a {right.kind.name}."
            raise Fault("TCC225", node.right, message)
        under = forms.Under(left.term, term)
        return under if node.operator == "under" else forms.Not(under)

    def _scope_of(self, text: str, names: Sequence[str], node: Node) -> State:
        """The directory or scope that a text is, beside values of these kinds."""
        for name in names:
            try:
                return name[0], (paths.normal if name == "path" else urls.scope)(text)
            except Rejected as refusal:
                message = f"{nodes.text_of(node)} is no {_NAMED[name]}: {refusal.expected}."
        raise Fault("TCC205", node, message, about=names[0])

    def _matches(self, node: nodes.Compare, left: _Value, scope: _Scope) -> Condition:
        choices = left.kind.choices or (left.kind,)
        if not any(one.name in ("text", "mixed", *_LOCATED) for one in choices):
            raise Fault("TCC225", node.left, f"`{node.operator}` compares a text with a pattern.")
        right = self._value(node.right, scope).term
        if not isinstance(right, forms.Constant) or right.state[0] != "s":
            raise Fault("TCC225", node.right, "A pattern is a constant text.")
        pattern = right.state[1]
        self._patterns.setdefault(pattern, node.right)
        matches = forms.Matches(left.term, pattern)
        return matches if node.operator == "~" else forms.Not(matches)

    def _between(
        self, node: Node, operator: str, of: Node, low: Node, high: Node, scope: _Scope
    ) -> Condition:
        values = [self._value(part, scope) for part in (of, low, high)]
        moments = values[0].kind.name in _MOMENTS
        for value, part in zip(values, (of, low, high), strict=True):
            self._ensure_number(value, part, spans=True, times=True, constants=moments)
            if not _comparable(values[0].kind, value.kind) and not _reads_as(values[0].kind, value):
                raise Fault(
                    "TCC225", part, f"A {values[0].kind.name} is compared with a {value.kind.name}."
                )
        kind = replace(values[0].kind, listed=_NO_VALUES)
        ends = [
            self._constant_for(value, kind, part)
            for value, part in zip(values[1:], (low, high), strict=True)
        ]
        between = forms.Between(values[0].term, *ends)
        return between if operator == "in" else forms.Not(between)

    def _among(self, node: nodes.Compare, scope: _Scope) -> Condition:
        try:
            thing = self._thing(node.right, scope, "source")
        except Fault:
            # Words that are no sources may be values of the listed left side.
            union = isinstance(node.right, nodes.Union)
            listed = self._value(node.left, scope).kind.listed
            value = isinstance(node.right, Word) and ("s", node.right.name) in listed
            if not (value or (union and listed)):
                raise
            thing = _Options(nodes.parts_of(node.right), scope, None)
        if isinstance(thing, _Options) or isinstance(node.right, nodes.Text | nodes.Number):
            equal = "=" if node.operator == "in" else "!="
            text = f"{nodes.text_of(node.left)} {equal} {nodes.text_of(node.right)}"
            raise Fault("TCC225", node, "`in` takes a list or a collection.", text)
        draft = self._as_source(thing, node.right, scope)
        beside = draft.own if draft.own.listed else None
        left = self._value(node.left, scope, beside)
        if not _comparable(left.kind, draft.own) and not _reads_as(draft.own, left):
            raise self._unlike(node, left.kind, draft.own)
        term = self._constant_for(left, draft.own, node.left)
        among = forms.Among(term, self._finished(draft, node.right))
        return among if node.operator == "in" else forms.Not(among)

    def _ensure_no_count_of_nothing(self, node: nodes.Compare, scope: _Scope) -> None:
        """``count(C) = 0`` is written ``no C``, and ``count(C) > 0`` is written ``C``."""
        for one, other, some in (
            (node.left, node.right, ("!=", ">")), (node.right, node.left, ("!=", "<"))
        ):  # fmt: skip
            if not isinstance(one, nodes.Apply) or other != nodes.Number("0"):
                continue
            of = one.arguments[0]
            if one.function != "count" or isinstance(of, nodes.Apply):
                continue
            draft = self._source(of, scope)
            if not isinstance(draft.base, forms.Items | forms.Pairs):
                text = nodes.text_of(of if node.operator in some else nodes.No(of))
                raise Fault("TCC235", node, "A count of calls is not compared with 0.", text)

    def _ensure_not_itself(self, node: nodes.Compare, scope: _Scope) -> None:
        itself = isinstance(node.left, Word) and node.left == node.right
        if itself and isinstance(node.left, Word) and scope.it is not None:
            name = node.left.name
            instead = f"{name} {node.operator} this.{name}"
            if scope.it == scope.this:
                instead = ""  # the filter of the restricted calls: there is no other call
            elif node.operator == "=":
                instead = f"same {name}"
            raise Fault("TCC231", node, f"`{name}` is compared with itself.", instead)

    # From things to conditions, terms and sources.

    def _condition(self, node: Node, scope: _Scope) -> Condition:
        if isinstance(node, nodes.Same):
            return self._recorded(node, self._same(node, scope))
        return self._truth(self._thing(node, scope, "condition"), node, scope)

    def _recorded(self, node: Node, condition: Condition) -> Condition:
        if self.conditions is not None:
            self.conditions.setdefault(id(node), []).append(condition)
        if self.origins is not None:
            self.origins[id(condition)] = node
        return condition

    def _same(self, node: nodes.Same, scope: _Scope) -> Condition:
        self._step(node)
        if scope.it is None or scope.this is None or scope.it == scope.this:
            message = "`same` compares an earlier call with the call being decided."
            raise Fault("TCC225", node, message, about="same")
        found: list[Condition] = []
        own, call = scope.elements[scope.it]
        for name in node.names:
            left = self._get(_Value(forms.Element(scope.it), own, call), name, node)
            this = _Value(forms.Element(scope.this), *scope.elements[scope.this])
            right = self._get(this, name, node)
            if not _comparable(left.kind, right.kind):
                message = f"`{name}` is a {left.kind.name} there and a {right.kind.name} here."
                raise Fault("TCC225", node, message)
            found.append(forms.Same(left.term, right.term))
        return found[0] if len(found) == 1 else forms.All(tuple(found))

    def _truth(self, thing: _Thing, node: Node, scope: _Scope) -> Condition:
        return self._recorded(node, self._true(thing, node, scope))

    def _true(self, thing: _Thing, node: Node, scope: _Scope) -> Condition:
        match thing:
            case _Truth(condition):
                return condition
            case _Draft():
                return forms.Some(self._finished(thing, node))
            case _Value(forms.Last(), kind):
                message = f"`{nodes.text_of(node)}` is no condition: compare it, or a field of it."
                raise Fault("TCC236", node, message, known=self._fields_of(kind), about=kind.name)
            case _Value(term, Kind(name="flag")):
                return forms.Compare("=", term, (forms.Constant(("b", True)),))
            case _Value(_, Kind(name="list")):
                return forms.Some(self._finished(self._as_source(thing, node, scope), node))
            case _Value(_, kind):
                message = f"A {kind.name} is no condition."
                raise Fault("TCC225", node, message, known=kind.listed.texts, about="scalar")
        raise Fault("TCC225", node, "Several values are no condition.")

    def _value(self, node: Node, scope: _Scope, beside: Kind | None = None) -> _Value:
        return self._as_value(self._thing(node, scope, "term", beside), node)

    def _fields_of(self, kind: Kind) -> list[str]:
        """The fields that calls or a record of a kind have."""
        if kind.name != "call":
            return [name for name, _ in kind.members]
        return [name for name, named in self._fields.items() if not kind.tools & ~named.has]

    def _as_value(self, thing: _Thing, node: Node) -> _Value:
        match thing:
            case _Value():
                return thing
            case _Draft():
                message = "A collection is compared by `count`, `last` or `in`."
                raise Fault("TCC225", node, message, about="collection")
            case _Truth():
                raise Fault("TCC225", node, "A condition is no value.")
        raise Fault("TCC225", node, "Several values belong after `=` or `!=`.")

    def _source(self, node: Node, scope: _Scope) -> _Draft:
        return self._as_source(self._thing(node, scope, "source"), node, scope)

    def _as_source(self, thing: _Thing, node: Node, scope: _Scope) -> _Draft:
        if isinstance(thing, _Draft):
            return thing
        if isinstance(thing, _Value) and thing.kind.name == "list":
            base = forms.Items(thing.term, thing.kind.most)
            height = _height_of(thing.term)
            return _Draft(base, len(scope.elements), thing.kind.of or _TEXT, None, height=height)
        message = "A set of calls, a collection or a list belongs here."
        raise Fault("TCC225", node, message, about="source")

    def _finished(self, draft: _Draft, node: Node, also: Iterable[Any] = ()) -> Source:
        """The source of a draft, its levels counted; `also` is what is asked of each element."""
        height = max([draft.height, *[mark.height for mark in draft.marks]])
        for part in (*draft.conditions, *also):
            for inner in _sources_in(part):
                height = max(height, 1 + inner.height)
        if height > MAX_LEVELS:
            message = f"Filters use calls or lists on more than {MAX_LEVELS} levels."
            raise Fault("TCC225", node, message)
        keys = self._keys(draft) if draft.is_calls else ()
        source = Source(
            draft.base, draft.level, tuple(draft.conditions), draft.within, tuple(draft.marks),
            height, keys,
        )  # fmt: skip
        if self.origins is not None:
            self.origins[id(source)] = node
        return source

    def _keys(self, draft: _Draft) -> tuple[forms.Key, ...]:
        """The arguments of the calls that the filter compares with terms over the decided call."""
        found: dict[str, forms.Key] = {}
        for condition in conjuncts(draft.conditions):
            for key in keys_in(condition, draft.level):
                if key.name not in found and self._is_argument(draft.own.tools, key.name):
                    found[key.name] = key
        return tuple(found.values())[:MAX_KEYS]

    def _is_argument(self, tools: int, name: str) -> bool:
        return not tools & ~self._fields[name].arguments

    def _ensure_number(
        self, value: _Value, node: Node, *, spans: bool = False, times: bool = False,
        constants: bool = False,
    ) -> None:  # fmt: skip
        names = {"number"} | ({"span"} if spans else set()) | ({"time", "date"} if times else set())
        text = constants and isinstance(value.term, forms.Constant) and value.kind.name == "text"
        if value.kind.name not in names and not text:
            message = f"A {value.kind.name} has no order and no sum."
            raise Fault("TCC225", node, message, about="order")


_FILE = _Scope(elements=((_NOTHING, None),), bare=None, it=None, this=None)


def _no_call() -> _Scope:
    """The scope of `finally`."""
    return _Scope(elements=((_NOTHING, None),), bare=None, it=None, this=None)


def _is_list(thing: _Thing) -> bool:
    return isinstance(thing, _Value) and thing.kind.name == "list"


def _fits_as(kind: Kind, want: str) -> bool:
    """Whether a field of a kind can be where `want` belongs."""
    if want in ("term", "any"):
        return True
    if want == "condition":
        return kind.name in ("flag", "list")
    return (want == "base" and kind.name in ("record", "list")) or (
        want in ("source", "applied") and kind.name == "list"
    )


def _shape_fits(shape: str, want: str) -> bool:
    """Whether a `let` whose body has this shape can be where `want` belongs."""
    if want == "any" or shape == "any":
        return want != "set"
    return (
        want
        in {
            "condition": ("condition",),
            "set": ("set", "source", "condition", "base", "applied"),
            "source": ("set", "source", "condition", "base", "applied"),
            "term": ("term",),
        }[shape]
    )


def _listed_text(kind: Kind) -> str:
    texts = kind.listed.texts
    return ", ".join(texts[:MAX_SHOWN]) + (", .." if len(texts) > MAX_SHOWN else "")


def _kind_of(declared: Field) -> Kind:
    if declared.type is not None:
        return kind_of_type(declared.type)
    texts = [text for text in declared.values if text and text != "*"]
    letters = {places.constant(text)[0] for text in texts if text != "null"}
    name = {"s": "text", "n": "number", "b": "flag"}.get("".join(sorted(letters)), "mixed")
    return Kind(name=name, listed=Listed(texts), rest="*" in declared.values[-1:])


def kind_of_type(declared: FieldType) -> Kind:
    """The kind of a declared type."""
    match declared:
        case TextType():
            return _TEXT
        case NumberType():
            return _NUMBER
        case FlagType():
            return _FLAG
        case JsonType():
            return Kind(name="json")
        case TimeType(zone=zone):
            return Kind(name="time", minutes=zone)
        case DateType(zone=zone):
            return Kind(name="date", minutes=zone)
        case PathType():
            return Kind(name="path")
        case UrlType():
            return Kind(name="url")
        case ListType(of=of, most=most):
            most = max(1, min(most, MOST_ELEMENTS))
            return Kind(name="list", of=kind_of_type(of), most=most)
        case RecordType(fields=members):
            return Kind(name="record", members=tuple([(m.name, _kind_of(m)) for m in members]))
        case NullableType(of=of):
            return kind_of_type(of)
        case UnionType(of=types):
            return Kind(name="union", choices=tuple(map(kind_of_type, types)))
    raise TypeError(declared)


def _plain(kind: Kind) -> Kind:
    return Kind(name=kind.name, minutes=kind.minutes)


_MOMENTS = frozenset({"time", "date"})
_LOCATED = frozenset({"path", "url"})
_READ = _MOMENTS | _LOCATED  # constant texts are read as values of these
_NAMED = {"path": "absolute path", "url": "absolute http or https URL"}
_SCALARS = frozenset({"text", "number", "flag", "mixed"})


def _comparable(one: Kind, other: Kind) -> bool:
    if one.choices or other.choices:
        return _share_a_choice(one, other)
    names = {one.name, other.name}
    if "null" in names or (len(names) == 1 and "call" not in names):
        return True
    return names <= _MOMENTS or ("mixed" in names and names <= _SCALARS)


def _share_a_choice(one: Kind, other: Kind) -> bool:
    """Whether a value of a union may equal a value of another kind.

    A list or object in a union is a whole JSON value, so it equals none outside of a union.
    """
    if one == other or "null" in (one.name, other.name):
        return True
    sides = [kind.choices or (kind,) for kind in (one, other)]
    plain = [[kind for kind in side if kind.name not in ("list", "record")] for side in sides]
    return any(_comparable(a, b) for a in plain[0] for b in plain[1])


def _readable(kind: Kind) -> tuple[Kind, ...]:
    """The kinds, of one or of the choices of a union, whose constants are written as texts."""
    choices = kind.choices or (kind,)
    if any(choice.name in ("text", "mixed") for choice in choices):
        return ()
    return tuple([choice for choice in choices if choice.name in _READ])


def _reads_as(kind: Kind, value: _Value) -> bool:
    """Whether a constant text is read as a time, a date, a path or a URL."""
    text = isinstance(value.term, forms.Constant) and value.kind.name == "text"
    return text and bool(_readable(kind))


def _read_as(kind: Kind, text: str) -> State:
    """The value of a constant text beside a kind.

    Raises:
        Wrong: it cannot be read.
        Rejected: it is no path or URL.
    """
    if kind.name in _LOCATED:
        return places.typed(text, PathType() if kind.name == "path" else UrlType())
    zone = kind.minutes
    if len(text) > len("2026-01-31"):
        # A local time of a zone that changes its offset may be two moments, or none.
        return places.typed(text, TimeType(zone=None if isinstance(zone, Zone) else zone))
    if not isinstance(zone, Zone):
        return places.typed(text, DateType(zone=zone or 0))
    start = zone.day_start(places.typed(text, DateType())[1] // DAY)
    if start is None:
        raise places.Wrong
    return "t", start


_SUMS: Mapping[tuple[str, str, str], str] = {
    ("+", "number", "number"): "number",
    ("-", "number", "number"): "number",
    ("*", "number", "number"): "number",
    ("*", "number", "span"): "span",
    ("*", "span", "number"): "span",
    ("+", "span", "span"): "span",
    ("-", "span", "span"): "span",
    ("+", "time", "span"): "time",
    ("+", "span", "time"): "time",
    ("-", "time", "span"): "time",
    ("-", "time", "time"): "span",
}


def _arithmetic_kind(sign: str, one: str, other: str) -> str | None:
    moments = ["time" if name == "date" else name for name in (one, other)]
    return _SUMS.get((sign, *moments))  # type: ignore[arg-type]


def _milliseconds(amount: str, unit: str, node: Node) -> int:
    exact = places.exact_number(amount) * nodes.UNITS[unit]
    if exact.denominator != 1:
        raise Fault("TCC225", node, "A duration is a whole number of milliseconds.")
    return int(exact)


def _span(span: nodes.Duration) -> int:
    return _milliseconds(span.amount, span.unit, span)


def _never_negative(declared: Field) -> bool:
    if declared.type is None:
        states = [places.constant(text) for text in declared.values if text]
        return all(state[0] == "n" and state[1] >= 0 for state in states)
    kind = declared.type
    low = kind.low if isinstance(kind, NumberType) else None
    return low is not None and not low.startswith("-")


def _windowed(base: forms.Base, span: int) -> forms.Base:
    """A base of rows whose calls are in a window."""
    match base:
        case forms.Rows(of=of):
            return replace(base, of=_windowed_source(of, span))
        case forms.Merged(parts):
            return forms.Merged(tuple([_windowed_source(part, span) for part in parts]))
    return base


def _windowed_source(source: Source, span: int) -> Source:
    if isinstance(source.base, forms.Calls):
        within = span if source.within is None else min(span, source.within)
        return replace(source, within=within)
    return replace(source, base=_windowed(source.base, span))


def conjuncts(conditions: Iterable[Condition]) -> Iterable[Condition]:
    """The conditions, those inside `and` one by one."""
    for condition in conditions:
        if isinstance(condition, forms.All):
            yield from conjuncts(condition.parts)
        else:
            yield condition


def keys_in(condition: Condition, level: int) -> Iterable[forms.Key]:
    """The keys that a condition on the element of a level gives."""
    match condition:
        case forms.Same(left, right) | forms.Compare("=", left, (right,)):
            same = isinstance(condition, forms.Same)
            for one, other in ((left, right), (right, left)):
                is_own = isinstance(one, forms.Get) and one.of == forms.Element(level)
                if is_own and isinstance(one, forms.Get) and _is_of_the_decided(other):
                    yield forms.Key(one.name, other, same)


def _is_of_the_decided(term: Term) -> bool:
    """Whether a term is a field of the call being decided, an attribute or a constant.

    A computed term is no key: it has no digest, which a validator looks calls up by.
    """
    if forms.is_computed(term):
        return False
    for form in walk(term):
        if isinstance(form, Source) or (isinstance(form, forms.Element) and form.level != 0):
            return False
    return True


def _keys_of(conditions: Iterable[Condition], level: int) -> tuple[str, ...]:
    """The fields of the call being decided that the conditions compare with the element's."""
    element, call = forms.Element(level), forms.Element(0)
    keys: dict[str, None] = {}
    for condition in conditions:
        match condition:
            case forms.All(parts):
                keys |= dict.fromkeys(_keys_of(parts, level))
            case forms.Same(left, right) | forms.Compare("=", left, (right,)):
                for one, other in ((left, right), (right, left)):
                    match one, other:
                        case forms.Get(of, _), forms.Get(this, name):
                            if of == element and this == call:
                                keys[name] = None
    return tuple(keys)


_LEAVES = frozenset({"State", "Tools", "str", "bool", "int", "int | None"})
_MEMBERS: Mapping[type, tuple[str, ...]] = {
    kind: tuple([member.name for member in fields(kind) if member.type not in _LEAVES])
    for kind in vars(forms).values()
    if isinstance(kind, type) and is_dataclass(kind)
}


def walk(form: Any) -> Iterable[Any]:
    """A form and all forms inside it."""
    stack = [form]
    while stack:
        form = stack.pop()
        if isinstance(form, tuple):
            stack += form
        elif type(form) in _MEMBERS:
            yield form
            stack += [getattr(form, name) for name in _MEMBERS[type(form)]]


def _height_of(term: Term) -> int:
    """How many levels of sources the filters of the sources in a term have."""
    return max([source.height for source in _sources_in(term)], default=0)


def _sources_in(form: Any) -> Iterable[Source]:
    """The outermost sources inside a form."""
    stack = [form]
    while stack:
        form = stack.pop()
        if isinstance(form, Source):
            yield form
        elif isinstance(form, tuple):
            stack += form
        elif type(form) in _MEMBERS:
            stack += [getattr(form, name) for name in _MEMBERS[type(form)]]


def _size(core: Core) -> int:
    """How many fields and nodes a core has."""
    found = sum([len(tool.arguments) + len(tool.answers) for tool in core.tools])
    todo: list[Any] = [*core.lets, *core.statements]
    while todo:
        part = todo.pop()
        if isinstance(part, Node):
            found += sum([1 for _ in nodes.walk(part)])
        elif isinstance(part, tuple):
            todo += part
        elif is_dataclass(part):
            todo += [getattr(part, member.name) for member in fields(part)]
    return found
