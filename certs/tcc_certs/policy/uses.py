"""The uses that statements make of fields, and so the parts of each value that a ledger needs.

Normative text: docs/spec/session.md, section 3.  A gate writes ledger entries by these forms, and a
validator reads them, so both use this module.

The walk visits the forms of :mod:`tcc_certs.policy.kinds`, in which definitions, `same` and
`unused` are expanded.  Each term has *nodes*: the fields, elements and members that its value may
come from.  A comparison for equality uses the digests of both sides.  A computed value has no
digest.  If one side is computed, the ledger needs the value of the other side.

Cost: linear in the forms, and for each form in the number of different types of its fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TypeVar

from tcc_certs.policy import forms
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.forms import Condition, ManyTools, Rule, Source, Term, Tools
from tcc_certs.policy.kinds import walk
from tcc_certs.values.fields import Field, FieldType, ListType, NullableType, RecordType
from tcc_certs.values.places import State, constant

ELEMENT = "*"  # the step from a list to its elements
_NULL: State = ("z", None)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The parts of a value that a ledger entry has: of a field, a list element or an object member.

    Attributes:
        name: the name of the field or member.
        type: the type of the value, without `or null`.  None: the field is listed, and the entry
            has the text of the value.
        values: the values of a listed field.
        nullable: whether null is a value.
        optional: whether the field or member may be absent.
        digest, value: whether the entry has the digest, and the value.
        compared: whether a decision compares the value, or compares it with null.
        patterns: the patterns that statements compare a text with, in order.
        scopes: the constants that `under` compares a path or URL with, in order.
        size: whether the entry has the length of a list.
        of: the form of the elements of a list; None: the entry has no elements.
        members: the forms of the used members of an object, in declared order; None: no member is
            used.
    """

    name: str = ""
    type: FieldType | None = None
    values: tuple[str, ...] = ()
    nullable: bool = False
    optional: bool = False
    digest: bool = False
    value: bool = False
    compared: bool = False
    patterns: tuple[str, ...] = ()
    scopes: tuple[State, ...] = ()
    size: bool = False
    of: Form | None = None
    members: tuple[Form, ...] | None = None

    @property
    def takes_work(self) -> bool:
        """True if an entry has list elements or pattern matches, whose number is bounded."""
        inner = any(member.takes_work for member in self.members or ())
        return bool(self.patterns) or self.of is not None or inner

    @property
    def has_marks(self) -> bool:
        """True if statements compare a text of the value with a pattern or a constant scope."""
        inner = [*(self.members or ()), *([] if self.of is None else [self.of])]
        return bool(self.patterns or self.scopes) or any(one.has_marks for one in inner)


@dataclass(slots=True, eq=False)
class _Node:
    """The uses of a field of some tools, of a list element, or of an object member.

    Attributes:
        declared: the different types, or listed values, that it may have.
        equal, value, size: whether a statement uses its digest, its value or its length.
        null: whether a statement compares it with null.
    """

    declared: tuple[Field, ...]
    equal: bool = False
    value: bool = False
    size: bool = False
    null: bool = False
    patterns: dict[str, None] = field(default_factory=dict)
    scopes: dict[State, None] = field(default_factory=dict)
    inner: dict[str, _Node] = field(default_factory=dict)

    def element(self) -> _Node:
        """Return the node of the elements of a list."""
        return self._inner(ELEMENT, [_unnamed(one.of) for one in self._types(ListType)])

    def member(self, name: str) -> _Node | None:
        """Return the node of a member of an object; None: no object has this member."""
        named = [
            member
            for one in self._types(RecordType)
            for member in one.fields
            if member.name == name
        ]
        return self._inner(name, named) if named else None

    def members(self) -> Iterator[str]:
        """Yield the names of the members of all object types."""
        for one in self._types(RecordType):
            for member in one.fields:
                yield member.name

    def _types(self, kind: type[_T]) -> list[_T]:
        found = [_stripped(one.type) for one in self.declared]
        return [one for one in found if isinstance(one, kind)]

    def _inner(self, step: str, declared: Iterable[Field]) -> _Node:
        if step not in self.inner:
            self.inner[step] = _Node(tuple(dict.fromkeys(declared)))
        return self.inner[step]

    @property
    def is_used(self) -> bool:
        """True if a statement uses more of an element than its presence."""
        flags = self.equal, self.value, self.size, self.null
        return any(flags) or bool(self.patterns or self.scopes or self.inner)

    @property
    def is_list(self) -> bool:
        return bool(self._types(ListType))

    @property
    def is_structure(self) -> bool:
        """True if a value may be a list or an object."""
        return self.is_list or bool(self._types(RecordType))

    @property
    def is_open(self) -> bool:
        """True if the type is declared, so that the ledger may have only the digest of a value."""
        return any(one.type is not None for one in self.declared)

    @property
    def is_nullable(self) -> bool:
        return any(isinstance(one.type, NullableType) for one in self.declared)

    def listed(self) -> Iterator[State]:
        """Yield the listed values that it may have."""
        for one in self.declared:
            if one.type is None:
                yield from [constant(text) for text in one.values if text and text != "*"]


def _inside(
    nodes: Sequence[_Node], others: Sequence[_Node]
) -> Iterator[tuple[tuple[_Node, ...], tuple[_Node, ...]]]:
    """Yield the elements and members of both sides of a comparison of lists or objects."""
    both = nodes, others
    if any(node.is_list for node in (*nodes, *others)):
        one, other = [tuple([n.element() for n in side if n.is_list]) for side in both]
        for node in (*nodes, *others):
            node.size = True
        yield one, other
    for name in dict.fromkeys(chain.from_iterable([n.members() for n in (*nodes, *others)])):
        one, other = [
            tuple([member for node in side if (member := node.member(name)) is not None])
            for side in both
        ]
        yield one, other


def _unnamed(kind: FieldType) -> Field:
    return Field(name="", steps=(), type=kind)


def _stripped(kind: FieldType | None) -> FieldType | None:
    return kind.of if isinstance(kind, NullableType) else kind


@dataclass(frozen=True, slots=True)
class _Value:
    """The possible origins of the value of a term, or of an element.

    Attributes:
        nodes: fields, elements and members.
        constants: constants of the core.
        computed: whether it may be the result of a computation, which has no digest.
        calls: the tools of a call, if it is a call.
        of: the tools of the call that a row belongs to.
        pair: the elements of two lists, if it is a pair.
    """

    nodes: tuple[_Node, ...] = ()
    constants: tuple[State, ...] = ()
    computed: bool = False
    calls: tuple[Tools, ...] = ()
    of: tuple[Tools, ...] = ()
    pair: tuple[_Value, _Value] | None = None


_COMPUTED = _Value(computed=True)


class Uses:
    """The parts of all values that a session ledger of a core needs.

    Args:
        rules: the rules of the core's statements (`Policy.rules`).

    Attributes:
        constants: the constants whose digests the header of the ledger has.
        timed: whether a statement depends on times.
    """

    def __init__(self, core: Core, rules: Sequence[Rule]) -> None:
        self._core = core
        walker = _Walker(core)
        for rule in rules:
            walker.rule(rule)
        self.constants: frozenset[State] = frozenset(walker.constants)
        self._roots = walker.roots
        self._given = walker.given
        self.timed = any(map(_is_timed, rules))
        self._arguments: dict[str, Mapping[str, Form]] = {}
        self._answers: dict[str, Mapping[str, Form]] = {}

    def arguments(self, tool: str) -> Mapping[str, Form]:
        """Return the forms of the open arguments of a tool, in declared order."""
        found = self._arguments.get(tool)
        if found is None:
            declared = self._core.tool_of[tool].arguments
            found = self._arguments[tool] = {
                one.name: form_of(one, self._nodes(tool, one.name), digest=True)
                for one in declared
                if one.type is not None
            }
        return found

    def answers(self, tool: str) -> Mapping[str, Form]:
        """Return the forms of the open answers of a tool that statements use, in declared order."""
        found = self._answers.get(tool)
        if found is None:
            found = {}
            for one in self._core.tool_of[tool].answers:
                nodes = self._nodes(tool, one.name)
                if one.type is not None and nodes:
                    found[one.name] = form_of(one, nodes, digest=False)
            self._answers[tool] = found
        return found

    @cached_property
    def given(self) -> Mapping[str, Form]:
        """The forms of the attributes that a session starts with, in declared order."""
        return {
            one.name: form_of(one, self._given[one.name], digest=True)
            for one in self._core.given
            if not isinstance(one, Learned)
        }

    def _nodes(self, tool: str, name: str) -> list[_Node]:
        roots = self._roots.get(name, ())
        return [node for tools, node in roots if tool in tools]


def form_of(declared: Field, nodes: Sequence[_Node], *, digest: bool) -> Form:
    """Return the form of a field.

    Args:
        nodes: its uses.
        digest: whether the entry has the digest even if no statement compares the value.
    """
    kind = _stripped(declared.type)
    nullable = kind is not declared.type
    value = kind is not None and any(node.value for node in nodes)
    compared = nullable and any(node.null for node in nodes)
    of, members, size = None, None, False
    patterns: tuple[str, ...] = ()
    scopes: tuple[State, ...] = ()
    if isinstance(kind, ListType):
        elements = [node for node in _inner(nodes, ELEMENT) if node.is_used]
        if elements:
            of = form_of(_unnamed(kind.of), elements, digest=False)
        size = of is None and any(node.size for node in nodes)
    elif isinstance(kind, RecordType):
        inner = [(member, _inner(nodes, member.name)) for member in kind.fields]
        used = [form_of(member, uses, digest=False) for member, uses in inner if uses]
        members = tuple(used) or None
    elif kind is not None:
        patterns = tuple(sorted({one for node in nodes for one in node.patterns}))
        scopes = tuple(sorted({one for node in nodes for one in node.scopes}))
        compared = compared or value or bool(patterns or scopes) or any(n.equal for n in nodes)
    return Form(
        name=declared.name, type=kind, values=declared.values, nullable=nullable,
        optional=declared.optional, digest=kind is not None and (digest or compared),
        value=value, compared=compared, patterns=patterns, scopes=scopes, size=size, of=of,
        members=members,
    )  # fmt: skip


def _inner(nodes: Sequence[_Node], step: str) -> list[_Node]:
    return [node.inner[step] for node in nodes if step in node.inner]


def _is_timed(rule: Rule) -> bool:
    """Return whether a statement has a window, a deadline, an `ask` or `now`."""
    if rule.kind == "ask" or rule.within is not None:
        return True
    parts = (*rule.where, *rule.paying, *rule.per, rule.then, rule.most)
    return any(
        isinstance(form, forms.Now) or (isinstance(form, Source) and form.within is not None)
        for form in walk(parts)
    )


# The walk.


class _Walker:
    """Records the uses that statements make of fields.

    Attributes:
        roots: by the name of a field, the nodes of sets of tools.
        given: by the name of an attribute, the nodes of its values.
        constants: the constants that are compared with digests.
    """

    def __init__(self, core: Core) -> None:
        self.roots: dict[str, list[tuple[Tools, _Node]]] = {}
        self.constants: set[State] = set()
        self._places = {tool.name: at for at, tool in enumerate(core.tools)}
        self._masks: dict[str, Mapping[Field, int]] = {}
        self._named: dict[str, list[tuple[int, Field]]] = {}
        for at, tool in enumerate(core.tools):
            for one in chain(tool.arguments, tool.answers):
                self._named.setdefault(one.name, []).append((at, one))
        self._root: dict[tuple[int, str], _Node] = {}
        self._kept: list[Tools] = []  # keeps the sets alive, so that their ids stay unique
        self._learned = {one.name: one for one in core.given if isinstance(one, Learned)}
        self.given: dict[str, tuple[_Node, ...]] = {
            one.name: (_Node((one,)),) for one in core.given if not isinstance(one, Learned)
        }

    def _declared(self, name: str) -> Mapping[Field, int]:
        """Return the different declarations of a field, each with the mask of its tools."""
        found = self._masks.get(name)
        if found is None:
            bits: dict[Field, bytearray] = {}
            for at, one in self._named.get(name, ()):
                plain = Field(name="", steps=(), type=one.type, values=one.values)
                mask = bits.setdefault(plain, bytearray())
                mask.extend(bytes((at >> 3) + 1 - len(mask)))
                mask[at >> 3] |= 1 << (at & 7)
            found = {one: int.from_bytes(mask, "little") for one, mask in bits.items()}
            self._masks[name] = found
        return found

    def _field(self, tools: Tools, name: str) -> _Node | None:
        """Return the node of a field of a set of tools; None: no tool has the field."""
        key = id(tools), name
        if key not in self._root:
            mask = tools.mask if isinstance(tools, ManyTools) else self._mask(tools)
            named = self._declared(name).items()
            declared = tuple([one for one, bits in named if bits & mask])
            self._root[key] = _Node(declared)
            self._kept.append(tools)
            if declared:
                self.roots.setdefault(name, []).append((tools, self._root[key]))
        node = self._root[key]
        return node if node.declared else None

    def _mask(self, tools: frozenset[str]) -> int:
        found = 0
        for tool in tools:
            found |= 1 << self._places[tool]
        return found

    def _learn(self, name: str) -> tuple[_Node, ...]:
        """Return the nodes of the fields that an attribute is learned from."""
        sources = self._learned[name].sources
        fields = [self._field(frozenset([tool]), of) for tool, of in sources]
        self.given[name] = tuple([node for node in fields if node is not None])
        return self.given[name]

    def rule(self, rule: Rule) -> None:
        """Record the uses of a statement."""
        calls = () if rule.tools is None else (rule.tools,)
        elements = {0: _Value(calls=calls)}
        self._all(rule.where, elements)
        if rule.then is not None:
            self._condition(rule.then, elements)
        if rule.paying:
            self._all(rule.paying, {**elements, 1: _Value(calls=(rule.pays,))})
        for term in rule.per:
            value = self._term(term, elements)
            self._equal(value, value)
            if rule.across:
                self._ordered(value)
        if rule.field is not None:
            self._ordered(self._get(elements[0], rule.field))
        if rule.most is not None:
            self._ordered(self._term(rule.most, elements))

    # Conditions.

    def _all(self, conditions: Iterable[Condition], elements: dict[int, _Value]) -> None:
        for condition in conditions:
            self._condition(condition, elements)

    def _condition(self, condition: Condition, elements: dict[int, _Value]) -> None:
        match condition:
            case forms.Not(of):
                self._condition(of, elements)
            case forms.All(parts) | forms.AnyOf(parts):
                self._all(parts, elements)
            case forms.Some(of):
                self._source(of, elements)
            case forms.Every(of, conditions):
                self._source(of, elements)
                self._all(conditions, elements)
            case forms.Compare(operator, left, options):
                self._compare(operator, self._term(left, elements), options, elements)
            case forms.Same(left, right):
                self._equal(self._term(left, elements), self._term(right, elements))
            case forms.Between(of, low, high):
                for term in (of, low, high):
                    self._ordered(self._term(term, elements))
            case forms.Among(of, source):
                self._equal(self._term(of, elements), self._source(source, elements))
            case forms.Matches(of, pattern):
                for node in self._term(of, elements).nodes:
                    node.patterns[pattern] = None
            case forms.Under(of, scope):
                self._under(self._term(of, elements), scope, elements)

    def _under(self, value: _Value, scope: Term, elements: dict[int, _Value]) -> None:
        if not isinstance(scope, forms.Constant):
            self._ordered(value)
            self._ordered(self._term(scope, elements))
            return
        for node in value.nodes:
            node.scopes[scope.state] = None

    def _compare(
        self, operator: str, left: _Value, options: Sequence[Term], elements: dict[int, _Value]
    ) -> None:
        for option in options:
            if option == forms.Constant(_NULL):
                for node in left.nodes:
                    node.null = True
                    if node.is_nullable:
                        self.constants.add(_NULL)
                continue
            right = self._term(option, elements)
            if operator == "=":
                self._equal(left, right)
            else:
                self._ordered(left)
                self._ordered(right)

    def _ordered(self, value: _Value) -> None:
        """Record that the value is used: in an order, in arithmetic or in a sum."""
        for node in value.nodes:
            node.value = True

    def _equal(self, one: _Value, other: _Value) -> None:
        """Record that both sides are compared for equality."""
        if one.pair is not None and other.pair is not None:
            for sides in zip(one.pair, other.pair, strict=True):
                self._equal(*sides)
        for value, beside in ((one, other), (other, one)):
            if beside.computed:
                self._ordered(value)
            self._with_constants(value, beside.constants)
        todo = [(one.nodes, other.nodes)] if one.nodes and other.nodes else []
        while todo:
            nodes, others = todo.pop()
            inside = list(_inside(nodes, others))
            todo += inside
            if not inside:
                self._leaves(nodes, others)
        if not (one.nodes and other.nodes):
            for node in (*one.nodes, *other.nodes):
                node.equal = node.equal or not node.is_structure

    def _leaves(self, nodes: Sequence[_Node], others: Sequence[_Node]) -> None:
        """Record that values without elements and members are compared with each other."""
        for side, beside in ((nodes, others), (others, nodes)):
            is_open = any(node.is_open for node in beside)
            for node in side:
                node.equal = True
                if is_open:
                    self.constants.update(node.listed())

    def _with_constants(self, value: _Value, constants: Iterable[State]) -> None:
        is_open = [node for node in value.nodes if node.is_open]
        nullable = any(node.is_nullable for node in is_open)
        for state in constants if is_open else ():
            if state != _NULL or nullable:
                self.constants.add(state)
            for node in is_open:
                node.null = node.null or state == _NULL

    # Sources.

    def _source(self, source: Source, elements: dict[int, _Value]) -> _Value:
        """Return the origins of the elements of a source, and store them under its level."""
        for mark in source.marks:
            self._source(mark, elements)
        value = self._base(source, elements)
        elements[source.level] = value
        self._all(source.conditions, elements)
        elements[source.level] = value
        return value

    def _base(self, source: Source, elements: dict[int, _Value]) -> _Value:
        match source.base:
            case forms.Calls(tools):
                return _Value(calls=(tools,))
            case forms.Rows(of, get, most):
                inner = self._source(of, elements)
                value = self._term(get, elements)
                if most is not None:
                    value = self._elements(value)
                return _Value(
                    nodes=value.nodes, constants=value.constants, computed=value.computed,
                    pair=value.pair, of=inner.calls or inner.of,
                )  # fmt: skip
            case forms.Merged(parts):
                return _joined([self._source(part, elements) for part in parts])
            case forms.Items(of):
                return self._elements(self._term(of, elements))
            case forms.Pairs(left, right):
                sides = [self._elements(self._term(term, elements)) for term in (left, right)]
                return _Value(pair=(sides[0], sides[1]))
        raise TypeError(source.base)

    def _elements(self, value: _Value) -> _Value:
        """Return the elements of a list, and record that its length is used."""
        for node in value.nodes:
            node.size = True
        return _Value(nodes=tuple([node.element() for node in value.nodes if node.is_list]))

    # Terms.

    def _term(self, term: Term, elements: dict[int, _Value]) -> _Value:
        match term:
            case forms.Constant(state):
                return _Value(constants=(state,))
            case forms.Element(level):
                return elements[level]
            case forms.Get(of, name):
                return self._get(self._term(of, elements), name)
            case forms.CallOf(of):
                return _Value(calls=self._term(of, elements).of)
            case forms.Attribute(name):
                return _Value(nodes=self.given.get(name) or self._learn(name))
            case forms.Now():
                return _COMPUTED
            case forms.Arithmetic(_, left, right):
                self._ordered(self._term(left, elements))
                self._ordered(self._term(right, elements))
                return _COMPUTED
            case forms.Last(of):
                return self._source(of, elements)
            case forms.Count(of, distinct):
                value = self._source(of, elements)
                if distinct:
                    self._equal(value, value)
                return _COMPUTED
            case forms.Sum(of, inner):
                self._source(of, elements)
                self._ordered(self._term(inner, elements))
                return _COMPUTED
            case forms.Extreme(of):
                self._ordered(self._source(of, elements))
                return _COMPUTED
            case forms.Clock(_, of) | forms.Host(of):
                self._ordered(self._term(of, elements))
                return _COMPUTED
            case forms.Choose(of, arms, otherwise):
                return self._choose(of, arms, otherwise, elements)
        raise TypeError(term)

    def _choose(
        self,
        of: Term,
        arms: Sequence[tuple[tuple[Term, ...], Term]],
        otherwise: Term | None,
        elements: dict[int, _Value],
    ) -> _Value:
        value = self._term(of, elements)
        results = []
        for tests, then in arms:
            for test in tests:
                self._equal(value, self._term(test, elements))
            results.append(self._term(then, elements))
        if otherwise is not None:
            results.append(self._term(otherwise, elements))
        return _joined(results)

    def _get(self, of: _Value, name: str) -> _Value:
        """Return a field of a call, or a member of an object or a pair."""
        if of.pair is not None and name in ("left", "right"):
            return of.pair[name == "right"]
        nodes = [node for tools in of.calls if (node := self._field(tools, name)) is not None]
        nodes += [m for node in of.nodes if (m := node.member(name)) is not None]
        return _Value(nodes=tuple(nodes))


def _joined(values: Sequence[_Value]) -> _Value:
    """Return the origins of a value that is any of several values."""
    pairs = [value.pair for value in values if value.pair is not None]
    return _Value(
        nodes=tuple(dict.fromkeys(chain.from_iterable([value.nodes for value in values]))),
        constants=tuple(chain.from_iterable([value.constants for value in values])),
        computed=any(value.computed for value in values),
        calls=tuple(chain.from_iterable([value.calls for value in values])),
        of=tuple(chain.from_iterable([value.of for value in values])),
        pair=(
            (_joined([pair[0] for pair in pairs]), _joined([pair[1] for pair in pairs]))
            if pairs
            else None
        ),
    )  # fmt: skip
