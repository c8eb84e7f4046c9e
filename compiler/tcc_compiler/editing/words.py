"""The meanings of words in a grammar, and the names that fit at a place, for editors.

:class:`tcc_certs.policy.kinds.Kinds` is the only resolver of words; :class:`NotedKinds` records its
results. A name fits at a place if the resolver accepts it there. So completion tries each name. In
a grammar with mistakes the correct parts have their meanings.
Cost: resolving all statements. A trial resolves one word or one comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from tcc_certs.formats.codec import is_identifier
from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core, Given, Learned, Tool
from tcc_certs.policy.kinds import MAX_EXPANDED, Fault, Kind, Kinds
from tcc_certs.policy.plans import Empty
from tcc_certs.policy.type_texts import domain_text
from tcc_certs.values.declared import FlagType, TextType
from tcc_certs.values.fields import Field, FieldType, ListType, NullableType, RecordType
from tcc_compiler.frozen import frozen
from tcc_compiler.names.nodes import Builder, Spans
from tcc_compiler.names.statements import Stated, calls_of, definition_of, policy_of
from tcc_compiler.names.types import Shapes, Types
from tcc_compiler.names.zones import recorded_zones
from tcc_compiler.syntax.tree import Tree

POLICIES = ("before", "finally_", "forbid", "owe", "limit")
HOLE = "hole_of_completion"  # the placeholder name at the place to be completed
_MOST_TRIED = 4000  # the most names that are tried at one place

What: TypeAlias = Literal["tool", "let", "local", "field", "value", "attribute"]


@frozen(kw_only=False)
class Meaning:
    """A meaning of a word.

    Attributes:
        what: the kind of the thing that is meant.
        name: its name; for a value its canonical text.
        field: the declared field; of a value, the field that lists it.
    """

    what: What
    name: str
    field: Field | None = None


@frozen(kw_only=False)
class Offer:
    """A name or constant that fits at a place.

    Attributes:
        what: its kind; `word` for a constant.
        text: the text to write, without backticks that the place may require.
        name: whether `text` is a name.
        field: the declared field of a field or value.
    """

    what: What | Literal["word"]
    text: str
    name: bool = True
    field: Field | None = None


@dataclass(slots=True)
class Hole:
    """The place to be completed.

    Attributes:
        offers: the names that fit, in the order of the scope.
        wants: what may be written there: ``condition``, ``term``, ``source``, ``set``, ``member``,
            ``operand`` (of a comparison), ``pattern``, or ``any`` of them.
        this, it: whether there is a call being decided, and an element other than that call.
        decides: whether `unused` may be written there.
    """

    offers: dict[Offer, None] = field(default_factory=dict)
    wants: set[str] = field(default_factory=set)
    this: bool = False
    it: bool = False
    decides: bool = False


class NotedKinds(Kinds):
    """The resolver of a core, which also records what each word means.

    Attributes:
        meanings: the meanings of a node's word or label, by the id of the node.
        scopes: the scope of a node, by the id of the node.
        hole: the place of the word `HOLE`, if it was resolved.
    """

    def __init__(self, core: Core, check_time: Callable[[], None] | None = None) -> None:
        super().__init__(core)
        self.meanings: dict[int, dict[tuple[str, str, int], Meaning]] = {}
        self.scopes: dict[int, Any] = {}
        self.hole: Hole | None = None
        self._check_time = check_time
        self._noted: set[int] = set()
        self._compared: set[int] = set()  # holes for which `_try_comparisons` makes the offers
        self._members: dict[int, Mapping[str, Field]] = {}  # by the id of a record's kind
        self._owners: dict[int, Field] = {}  # by the id of the kind of a field
        for one in core.given:
            if isinstance(one, Field):
                self._register(self._given[one.name], one)

    def _note(self, node: object, meaning: Meaning) -> None:
        self._noted.add(id(node))
        key = (meaning.what, meaning.name, id(meaning.field))
        self.meanings.setdefault(id(node), {})[key] = meaning

    def _charge(self, steps: int) -> None:
        if self._check_time is not None:
            self._check_time()

    # Words.

    def _thing(self, node: n.Node, scope: Any, want: str, beside: Any = None) -> Any:
        self.scopes[id(node)] = scope
        found = super()._thing(node, scope, want, beside)
        if isinstance(node, n.Session):
            self._note(node, Meaning("attribute", node.name))
        return found

    def _form(self, node: n.Node, scope: Any, want: str, beside: Any) -> Any:
        if isinstance(node, n.Session) and node.name == HOLE:
            hole = self._hole("member", scope)
            for name in self._given:
                hole.offers[Offer("attribute", name)] = None
        return super()._form(node, scope, want, beside)

    def _word(self, node: n.Word, scope: Any, want: str, beside: Any) -> Any:
        if node.name == HOLE and id(node) not in self._compared:
            self._try_words(scope, want, beside)
        self._noted.discard(id(node))
        found = super()._word(node, scope, want, beside)
        if id(node) not in self._noted:
            name = node.name
            listed = beside is not None and ("s", name) in beside.listed
            if name in self._masks and want != "term":
                self._note(node, Meaning("tool", name))
            elif listed and want in ("term", "any"):
                self._note(node, Meaning("value", name, self._owners.get(id(beside))))
            else:
                self._note(node, Meaning("local", name))
        return found

    def _open(self, bound: Any, node: n.Node, scope: Any, arguments: Sequence[n.Node] = ()) -> Any:
        if bound.name:
            what: What = "let" if bound.scope is None else "local"
            self._note(node, Meaning(what, bound.name))
        if n.Word(HOLE) in arguments:
            self._try_words(scope, "any", None)
        return super()._open(bound, node, scope, arguments)

    def _set_named(self, node: n.Word, name: str, scope: Any, inside: bool) -> Any:
        if name == HOLE:
            hole = self._hole("set", scope)
            for word in map(n.Word, [*self._lets, *self._names]):
                self._take(hole, word, partial(self._set_named, word, word.name, scope, inside))
        self._noted.discard(id(node))
        found = super()._set_named(node, name, scope, inside)
        if id(node) not in self._noted:
            self._note(node, Meaning("tool", name))
        return found

    # Fields.

    def _declared(self, declared: Field) -> Kind:
        kind = super()._declared(declared)
        if declared.type is None or isinstance(declared.type, ListType | RecordType | NullableType):
            self._register(kind, declared)
        return kind

    def _register(self, kind: Kind, declared: Field) -> None:
        """Record which field a kind belongs to, and which fields the members of its records are."""
        if declared.type is None:
            self._owners[id(kind)] = declared
        todo: list[tuple[Kind | None, FieldType | None]] = [(kind, declared.type)]
        while todo:
            one, of = todo.pop()
            if isinstance(of, NullableType):
                todo.append((one, of.of))
            elif isinstance(of, ListType) and one is not None:
                todo.append((one.of, of.of))
            elif isinstance(of, RecordType) and one is not None:
                if id(one) in self._members:
                    continue
                self._members[id(one)] = {inner.name: inner for inner in of.fields}
                for (_, inside), inner in zip(one.members, of.fields, strict=True):
                    if inner.type is None:
                        self._owners[id(inside)] = inner
                    todo.append((inside, inner.type))

    def _get(self, of: Any, name: str, node: n.Node) -> Any:
        if name == HOLE and not isinstance(node, n.Same):
            hole = self._hole("member", None)
            for one in self._fields_in(of.kind, of.call):
                if self._trial(partial(self._get, of, one, node)) is not None:
                    declared = next(iter(self._meant_by(of, one)), None)
                    hole.offers[Offer("field", one, field=declared)] = None
        value = super()._get(of, name, node)
        for declared in self._meant_by(of, name):
            self._note(node, Meaning("field", name, declared))
        return value

    def _meant_by(self, of: Any, name: str) -> Iterator[Field]:
        """Yield the declared fields that a name means after a call, record or row."""
        if any(member == name for member, _ in of.kind.members):
            inner = self._members.get(id(of.kind), {}).get(name)
            if inner is not None:
                yield inner
            return
        calls = of.kind if of.kind.name == "call" else of.call
        named = self._fields.get(name)
        if calls is None or named is None:
            return
        for at in _bits(calls.tools & named.has):
            yield named.of[at][0]

    def _fields_in(self, own: Kind, call: Kind | None) -> Iterator[str]:
        """Yield the names of the fields that a call, record or row may have, each once."""
        names = dict.fromkeys([member for member, _ in own.members])
        calls = own if own.name == "call" else call
        for at in _bits(calls.tools) if calls is not None else ():
            tool = self._core.tools[at]
            names |= dict.fromkeys([one.name for one in (*tool.arguments, *tool.answers)])
            if len(names) > _MOST_TRIED:
                break
        yield from names

    def fields_in_scope(self, node: int) -> tuple[list[Field], list[Field]]:
        """Return the fields in scope at a node: those for bare names, those for `this.NAME`."""
        scope = self.scopes.get(node)
        if scope is None:
            return [], []
        own = self._visible(scope, scope.bare)
        other = [] if scope.this == scope.bare else self._visible(scope, scope.this)
        return own, other

    def _visible(self, scope: Any, level: int | None) -> list[Field]:
        if level is None:
            return []
        own, call = scope.elements[level]
        value = _Element(own, call)
        found: dict[str, Field] = {}
        for name in self._fields_in(own, call):
            calls = own if own.name == "call" else call
            named = self._fields.get(name)
            if named is not None and calls is not None and calls.tools & named.has:
                has = named.arguments if calls.decided else named.has
                if not calls.tools & has or (calls.tools & ~has and not calls.wide):
                    continue  # an answer of the call being decided, or a field of some tools only
            for one in self._meant_by(value, name):
                found.setdefault(name, one)
        return list(found.values())

    def _same(self, node: n.Same, scope: Any) -> Any:
        self.scopes[id(node)] = scope
        if HOLE in node.names and scope.it is not None and scope.it != scope.this:
            hole = self._hole("member", None)
            for name in self._fields_in(*scope.elements[scope.it]):
                if self._trial(partial(self._same, n.Same((name,)), scope)) is not None:
                    hole.offers[Offer("field", name)] = None
        return super()._same(node, scope)

    def _ensure_summed(self, tools: Any, name: str, node: object) -> None:
        fields = self._fields.get(name)
        if name == HOLE:
            hole = self._hole("member", None)
            for one in self._fields:
                self._trial(partial(self._offer_summed, hole, tools, one, node))
        super()._ensure_summed(tools, name, node)
        for tool in sorted(tools) if fields is not None else ():
            found, _ = fields.of[self._places[tool]] if fields is not None else (None, False)
            self._note(node, Meaning("field", name, found))

    def _offer_summed(self, hole: Hole, tools: Any, name: str, node: object) -> None:
        self._ensure_summed(tools, name, node)
        hole.offers[Offer("field", name)] = None

    # Trials.

    def _hole(self, want: str, scope: Any) -> Hole:
        if self.hole is None:
            self.hole = Hole()
        self.hole.wants.add(want)
        if scope is not None:
            self.hole.this |= scope.this is not None
            self.hole.it |= scope.it is not None and scope.it != scope.this
            self.hole.decides |= self._restricted is not None and scope.this == 0
        return self.hole

    def _trial(self, attempt: Callable[[], Any]) -> Any:
        """Return the result of an attempt, or None after a Fault; restore all state."""
        state = dict(self._needs), self._height, self._left, self._restricted, dict(self._patterns)
        self._left = min(self._left, MAX_EXPANDED)
        if self._check_time is not None:
            self._check_time()
        try:
            return attempt()
        except Fault:
            return None
        finally:
            self._needs, self._height, self._left, self._restricted, self._patterns = state

    def _take(self, hole: Hole, word: n.Word, attempt: Callable[[], Any]) -> bool:
        """Offer a word if an attempt with it succeeds; return whether it did."""
        self.meanings.pop(id(word), None)
        if self._trial(attempt) is None:
            return False
        for meaning in self.meanings.pop(id(word), {}).values():
            text = meaning.name
            hole.offers[Offer(meaning.what, text, field=meaning.field)] = None
            break
        return True

    def _read_word(self, word: n.Word, scope: Any, want: str, beside: Kind | None) -> Any:
        """Resolve a word as a whole source, condition or term.

        Raises:
            Fault: the word does not fit.
        """
        thing = self._word(word, scope, want, beside)
        match want:
            case "source":
                kind = getattr(thing, "kind", None)
                if kind is not None and self._holds_list(kind):
                    return thing  # a list may follow after a dot
                return self._as_source(thing, word, scope)
            case "condition":
                return self._truth(thing, word, scope)
        return thing

    def _read_holder(self, word: n.Word, scope: Any) -> Any:
        """Return the kind of a word that is a call or record with comparable fields; else None."""
        kind = self._word(word, scope, "term", None).kind
        return kind if kind.name in ("call", "record") else None

    def _holds_list(self, kind: Kind) -> bool:
        """Return whether a call or record may contain a list."""
        if any(member.name in ("list", "record") for _, member in kind.members):
            return True
        fields = [
            one
            for at in _bits(kind.tools)
            for one in (*self._core.tools[at].arguments, *self._core.tools[at].answers)
        ]
        return any(isinstance(one.type, ListType | RecordType | NullableType) for one in fields)

    def _take_applied(self, hole: Hole, scope: Any) -> None:
        """Offer every `let` with parameters, because only its arguments decide where it fits."""
        for name, bound in scope.names.items():
            if bound.parameters:
                hole.offers[Offer("local", name)] = None
        for name, let in self._lets.items():
            if let.parameters:
                hole.offers[Offer("let", name)] = None

    def _names_at(self, scope: Any) -> Iterator[str]:
        yield from scope.names
        if scope.bare is not None:
            yield from self._fields_in(*scope.elements[scope.bare])
        yield from self._lets
        yield from self._names

    def _try_words(self, scope: Any, want: str, beside: Kind | None) -> None:
        hole = self._hole(want, scope)
        # A comparison may begin wherever a condition may be written.
        wants = ("term", "condition") if want == "condition" else (want,)
        for wanted in wants:
            for name in dict.fromkeys([*_listed(beside), *self._names_at(scope)]):
                word = n.Word(name)
                self._take(hole, word, partial(self._read_word, word, scope, wanted, beside))
        self._take_applied(hole, scope)

    def _apply(self, node: n.Apply, scope: Any) -> Any:
        least = n.FUNCTIONS[node.function][0]
        missing = least - len(node.arguments)
        if missing > 0 and n.Word(HOLE) in node.arguments:
            node = replace(node, arguments=(*node.arguments, *[n.Null()] * missing))
        return super()._apply(node, scope)

    def _compare(self, node: n.Compare, scope: Any) -> Any:
        operands = node.right.parts if isinstance(node.right, n.Union) else (node.right,)
        holes = [one for one in operands if isinstance(one, n.Word) and one.name == HOLE]
        if holes:
            self._try_comparisons(node, holes[0], scope)
        return super()._compare(node, scope)

    def _try_comparisons(self, node: n.Compare, hole: n.Word, scope: Any) -> None:
        self._compared.add(id(hole))
        if node.operator in ("~", "!~"):
            self._hole("pattern", None)
            return
        found = self._hole("operand", scope)
        left = self._trial(lambda: self._side(node.left, n.Null(), scope))
        kind = None if left is None else left.kind

        def compares(other: n.Node) -> bool:
            made = replace(node, right=other)
            return self._trial(lambda: self._compare(made, scope)) is not None

        equal = node.operator in ("=", "!=")
        for text in kind.listed.texts[:_MOST_TRIED] if kind is not None and equal else ():
            plain = is_identifier(text) and text not in ("true", "false", "null")
            bare = plain and compares(n.Word(text))
            owner = self._owners.get(id(kind))
            shown = text if bare or not plain else n.quoted(text)
            found.offers[Offer("value", shown, False, owner)] = None
        for text in self._enumerated(node.left) if equal else ():
            found.offers[Offer("value", n.quoted(text), False)] = None
        for name in self._given:
            if compares(n.Session(name)):
                found.offers[Offer("word", f"session.{_named(name)}", False)] = None
        for name in dict.fromkeys(self._names_at(scope)):
            word = n.Word(name)
            if word == node.left:
                continue
            compared = partial(self._compare, replace(node, right=word), scope)
            if not self._take(found, word, compared):
                self._take(found, word, partial(self._read_holder, word, scope))
        self._take_applied(found, scope)
        if scope.this is not None and scope.this != scope.bare:
            for one in self._visible(scope, scope.this):
                if compares(n.Get(n.This(), one.name)):
                    text = f"this.{_named(one.name)}"
                    found.offers[Offer("field", text, False, one)] = None
        for constant, text in _CONSTANTS:
            if compares(constant):
                found.offers[Offer("word", text, False)] = None

    def _enumerated(self, left: n.Node) -> tuple[str, ...]:
        """Return the texts that the type of a field enumerates."""
        for meaning in self.meanings.get(id(left), {}).values():
            kind = None if meaning.field is None else meaning.field.type
            kind = kind.of if isinstance(kind, NullableType) else kind
            if isinstance(kind, TextType) and kind.among:
                return tuple(kind.among)
        return ()


_CONSTANTS: Sequence[tuple[n.Node, str]] = (
    (n.Now(), "now"), (n.Flag(True), "true"), (n.Flag(False), "false"), (n.Null(), "null"),
)  # fmt: skip


@frozen(kw_only=False)
class _Element:
    """The kind of an element, and the kind of the call if the element is a row of a call."""

    kind: Kind
    call: Kind | None


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _listed(kind: Kind | None) -> Sequence[str]:
    return () if kind is None else [text for text in kind.listed.texts if is_identifier(text)]


def _named(name: str) -> str:
    return n.written([".", n.Name(name)])[1:]


# The words of a grammar.


@dataclass(slots=True)
class Words:
    """The correct parts of a grammar, and the meanings of their words.

    Attributes:
        core: the core, without plans.
        kinds: the resolver, with the meanings of the words of all statements.
        spans: the regions of nodes and fields, by their ids.
        stated: the statements, each with the tree that it is part of.
    """

    core: Core
    kinds: NotedKinds
    spans: Spans
    stated: tuple[tuple[Tree, Stated], ...]

    def meanings(self, node: int) -> Iterable[Meaning]:
        """Return the meanings of the word of a node, given the node's id."""
        return self.kinds.meanings.get(node, {}).values()


def words_of(files: Sequence[Builder]) -> Words:
    """Resolve the words of a grammar as far as they are correct.

    Mistakes are reported to the builders.
    """
    root = files[0]
    shapes = Shapes()
    for b in files:
        for tree in b.file.statements:
            if tree.kind == "shape":
                shapes.trees.setdefault(tree.tokens("NAME")[0].text, (b, tree))
    tools: dict[str, Tool] = {}
    for b in files:
        for tree in b.file.statements:
            if tree.kind == "tool":
                b.report.tick(16)
                tools.setdefault(b.name(tree.trees()[0]), _tool(b, tree, shapes))
    given = tuple(_given(root, shapes, tools))
    lets: dict[str, n.Definition] = {}
    for tree in root.file.statements:
        if tree.kind == "let":
            lets.setdefault(root.name(tree.trees()[0]), definition_of(root, tree))
    stated = [(tree, one) for tree in root.file.statements for one in stated_in(root, tree)]
    roots = [let.body for let in lets.values()]
    roots += [part for _, one in stated for part in n.roots_of(one.statement)]
    core = Core(
        name="g", version="", tools=tuple(tools.values()), rules={}, plan=Empty(), given=given,
        lets=tuple(lets.values()), zones=recorded_zones(roots),
    )  # fmt: skip
    kinds = _noted(core, root, [one for _, one in stated])
    return Words(core=core, kinds=kinds, spans=root.spans, stated=tuple(stated))


def stated_in(b: Builder, tree: Tree) -> list[Stated]:
    """Return the policy statements of a tree, including those in an `expect`."""
    match tree.kind:
        case "expect_always":
            return policy_of(b, tree.trees()[0])
        case "expect_reachable":
            on, where = calls_of(b, tree.trees()[0])
            made = n.Forbid(on=on, where=where)
            return [Stated(statement=made, region=b.region(tree), broken=False)]
        case kind if kind in POLICIES:
            return policy_of(b, tree)
    return []


def _tool(b: Builder, tree: Tree, shapes: Shapes) -> Tool:
    types = Types(b, shapes)
    fields, gives = tree.tree("fields"), tree.tree("gives")
    arguments = types.sound_fields(fields.trees() if fields else (), {})
    answers: tuple[Field, ...] = ()
    if gives is not None:
        for token in gives.tokens("NAME"):
            answers += shapes.fields(b, token, True) or ()
        answers += types.sound_fields(gives.trees("field"), {}, answers=True)
    return Tool(name=b.name(tree.trees()[0]), arguments=arguments, answers=answers)


def _given(b: Builder, shapes: Shapes, tools: Mapping[str, Tool]) -> Iterator[Given]:
    types = Types(b, shapes)
    for tree in b.file.statements:
        if tree.kind == "given":
            yield from types.sound_fields(tree.trees("field"), {})
        elif tree.kind == "learned":
            name, of = tree.trees()
            sources = tuple(
                [
                    (tool, label)
                    for tool, label, _ in learned_from(b, of)
                    if tool in tools
                    and any(
                        one.name == label for one in (*tools[tool].arguments, *tools[tool].answers)
                    )
                ]
            )
            if sources:
                yield Learned(name=b.name(name), sources=sources)


def learned_from(b: Builder, tree: Tree) -> Iterator[tuple[str, str, Tree]]:
    """Yield the tool, the field and the tree of each source of a learned attribute."""
    for part in tree.trees() if tree.kind == "either_of" else [tree]:
        inside = part.trees() if part.kind == "member" else []
        if len(inside) == 2 and inside[0].kind == "name":
            yield b.name(inside[0]), b.name(inside[1]), part


def _noted(core: Core, b: Builder, stated: Sequence[Stated]) -> NotedKinds:
    """Return the resolver of a core after it has read all `let`s and these statements."""
    try:
        kinds = NotedKinds(core, b.report.tick)
    except Fault:  # the fields of a learned attribute cannot be compared
        kinds = NotedKinds(replace(core, given=()), b.report.tick)
    for let in core.lets:
        if not let.parameters:
            with suppress(Fault):
                kinds.check_let(let)
    for one in stated:
        read_statement(kinds, one, b)
    return kinds


def read_statement(kinds: Kinds, stated: Stated, b: Builder) -> None:
    """Let the resolver read a statement with all `let`s of its block; ignore its mistakes."""
    statement = stated.statement
    if (
        isinstance(statement, n.Limit)
        and statement.scope is None
        and (statement.per or statement.within is not None)
    ):
        statement = replace(statement, scope="session")  # the meanings of its words are the same
    with suppress(Fault):
        kinds.rule(statement)
    if stated.lets and isinstance(statement, n.Require | n.Ask):
        lets = sorted((*statement.lets, *stated.lets), key=lambda let: b.spans[id(let.body)].start)
        with suppress(Fault):
            kinds.rule(replace(statement, lets=tuple(lets)))


def without_parameters(let: n.Definition) -> n.Definition:
    """Return a `let` with null for each parameter, since null can be compared with everything."""

    def replaced(node: n.Node, parts: tuple[n.Node, ...]) -> n.Node:
        if isinstance(node, n.Word) and node.name in let.parameters:
            return n.Null()
        return n.with_parts(node, parts)

    return n.Definition(name=let.name, body=n.fold(let.body, replaced))


def described(declared: Field) -> str:
    """Return the type of a field as a short text for a completion."""
    kind = "flag" if isinstance(declared.type, FlagType) else domain_text(declared)
    return kind if len(kind) <= 80 else f"{kind[:77]}..."
