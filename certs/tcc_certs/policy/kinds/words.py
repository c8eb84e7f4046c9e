"""Words: the meaning of a name at its place, and the fields and `let`s that it can name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tcc_certs.policy import forms, nodes
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.forms import Term
from tcc_certs.policy.kinds.things import (
    FILE_SCOPE,
    NOWHERE,
    Bound,
    Draft,
    Fault,
    NamedFields,
    Scope,
    Thing,
    Truth,
    Value,
    fits_as,
    shape_fits,
)
from tcc_certs.policy.kinds.values import TEXT, Kind, Listed, comparable, kind_of, listed_text
from tcc_certs.policy.kinds.work import Work
from tcc_certs.policy.nodes import Definition, Node, Word
from tcc_certs.values.fields import Field

MAX_NAMES = 128  # most lets of a block, and most parameters of a `let`


class Words(Work):
    """Resolves words."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._given: dict[str, Kind] = {}
        for given in core.given:
            self._given[given.name] = (
                self._learned_kind(given) if isinstance(given, Learned) else kind_of(given)
            )

    def _thing(self, node: Node, scope: Scope, want: str, beside: Kind | None = None) -> Thing:
        """Read a node.  A subclass handles each class of nodes.

        Args:
            want: the kind of thing that fits at the place: ``condition``, ``set``, ``source``,
                ``term``, ``base``, ``applied`` or ``any``.
            beside: the kind of the other side of a comparison.
        """
        raise NotImplementedError

    @property
    def bare_texts(self) -> frozenset[int]:
        """The ids of text nodes that are listed values and could be written as bare words."""
        return frozenset(self._bare - self._quoted)

    def _circle(self, node: object, name: str) -> Fault:
        return Fault("TCC225", node, f"`{name}` is defined by itself.", about="circle")

    def _open(
        self, bound: Bound, node: Node, scope: Scope, arguments: Sequence[Node] = ()
    ) -> tuple[Node, Scope]:
        """Return the body of a `let` or argument, and the scope in which its words are resolved."""
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
        outside = FILE_SCOPE if bound.scope is None else bound.scope
        names = dict(outside.names)
        for name, argument in zip(bound.parameters, arguments, strict=True):
            names[name] = Bound(argument, scope)
        within = scope.within | {bound.name} if bound.name else scope.within
        this = scope.this if bound.scope is None else outside.this
        return bound.body, Scope(
            elements=scope.elements, bare=outside.bare, it=outside.it, this=this, names=names,
            within=within,
        )  # fmt: skip

    def _word(self, node: Word, scope: Scope, want: str, beside: Kind | None) -> Thing:
        """Resolve a word where a thing of kind `want` is expected."""
        name = node.name
        found: list[tuple[str, Any]] = []
        if name in scope.names and self._bound_fits(scope.names[name], scope, want):
            found.append(("a name of the block", scope.names[name]))
        value = self._bare_field(name, scope)
        if value is not None and fits_as(value.kind, want):
            found.append(("a field", value))
        if name in self._lets and self._fits(name, want):
            let = self._lets[name]
            found.append(("a `let`", Bound(let.body, None, let.parameters, name)))
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
            return Value(forms.Constant(("s", name)), TEXT)
        if what == "a name of the block" and meant.name == "":
            # An argument resolves words at the place of the use, but has the elements of this
            # place.
            outer = meant.scope or FILE_SCOPE
            inner = Scope(
                elements=scope.elements, bare=outer.bare, it=outer.it, this=outer.this,
                names=outer.names, within=outer.within,
            )  # fmt: skip
            return self._thing(meant.body, inner, want, beside)
        body, inner = self._open(meant, node, scope)
        wanted = "any" if isinstance(body, Word) else want
        return self._thing(body, inner, wanted)  # values in the body of a `let` are texts

    def _two(self, node: Node, name: str, one: str, other: str, inside: bool = False) -> Fault:
        """The fault for a word with two meanings. `inside`: it is in a filter of earlier calls."""
        forms = {"a field": f"{'it' if inside else 'this'}.{name}", "a value": f'"{name}"'}
        known = [forms[what] for what in (one, other) if what in forms]
        return Fault("TCC234", node, f"`{name}` is {one} and {other} here.", known=known)

    def _unknown(self, node: Word, scope: Scope, want: str, beside: Kind | None) -> Fault:
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
        elif scope is not FILE_SCOPE and scope.this is None and name in self._fields:
            message = "`finally` has no call, so it has no fields."
            return Fault("TCC225", node, message, about="end")
        elif name in self._fields and scope.this is not None:
            message = "In a `let` of the file, fields are not in scope."
            return Fault("TCC202", node, message, f"this.{name}")
        if beside is not None and beside.listed:
            message = f"`{name}` is none of {listed_text(beside)}."
            return Fault("TCC205", node, message, known=beside.listed.texts)
        if name in self._masks or name in self._lets or name in scope.names:
            return Fault("TCC225", node, f"`{name}` does not fit here.", about="unfit")
        return Fault("TCC202", node, f"Nothing is called `{name}` here.")

    def _lacks(self, node: Node, tools: int, name: str, who: str = "These calls have") -> Fault:
        """The fault for a field that some tools lack. It lists the fields that all of them have."""
        known = self._fields_of(Kind(name="call", tools=tools))
        return Fault("TCC204", node, f"{who} no field `{name}`.", known=known, about="calls")

    def _parameters(self, name: str, scope: Scope) -> tuple[str, ...]:
        """The parameters of the `let` with this name, or an empty tuple."""
        if name in scope.names:
            return scope.names[name].parameters
        return self._lets[name].parameters if name in self._lets else ()

    def _has(self, kind: Kind, name: str) -> bool:
        known = self._fields.get(name, NOWHERE)
        found = known.arguments if kind.decided else known.has
        return kind.name == "call" and not kind.tools & ~found

    def _bare_field(self, name: str, scope: Scope) -> Value | None:
        """Return the field that a bare name means; None if no call of the scope has it."""
        if scope.bare is None:
            return None
        own, call = scope.elements[scope.bare]
        self._charge(len(own.members) // 16)
        for member, kind in own.members:
            if member == name:
                return Value(forms.Element(scope.bare), kind)
        holder = own if own.name == "call" else call
        if holder is None:
            return None
        common = holder.tools & self._fields.get(name, NOWHERE).has
        return Value(forms.Element(scope.bare), self._known(name, common)) if common else None

    def _known(self, name: str, tools: int) -> Kind:
        """The kind of the field `name` in the last of these tools, which all have it."""
        declared, _ = self._fields[name].of[tools.bit_length() - 1]
        return self._declared(declared)

    def _declared(self, declared: Field) -> Kind:
        """The kind of a field of a tool."""
        found = self._of_field.get(id(declared))
        if found is None:
            found = self._of_field[id(declared)] = kind_of(declared)
        return found

    def _field(self, node: Word, scope: Scope) -> Value:
        level = scope.bare
        if level is None:
            raise Fault("TCC202", node, f"Nothing is called `{node.name}` here.")
        own, call = scope.elements[level]
        return self._get(Value(forms.Element(level), own, call), node.name, node)

    def _get(self, of: Value, name: str, node: Node) -> Value:
        """A field of a call, record or row."""
        self._charge(len(of.kind.members) // 16)
        for member, kind in of.kind.members:
            if member == name:
                return Value(forms.Get(of.term, name), kind)
        if of.kind.name == "call":
            return Value(forms.Get(of.term, name), self._call_field(of.term, of.kind, name, node))
        if of.call is not None:
            term = forms.CallOf(of.term)
            return Value(forms.Get(term, name), self._call_field(term, of.call, name, node))
        known = [member for member, _ in of.kind.members]
        message = f"A {of.kind.name} has no field `{name}`."
        raise Fault("TCC204", node, message, known=known)

    def _call_field(self, term: Term, kind: Kind, name: str, node: Node) -> Kind:
        named = self._fields.get(name, NOWHERE)
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

    def _kinds_in(self, named: NamedFields, tools: int) -> list[Kind]:
        """The different kinds of the fields of one name in a set of tools."""
        if "slots" not in named.__dict__:
            self._charge(len(named.of) * (1 + len(self._names) // 512))
        self._charge(len(named.slots) // 8)
        return [kind for kind, _, mask in named.slots if tools & mask]

    def _common(self, kinds: Sequence[Kind], node: object, what: str) -> Kind:
        """The common kind of fields that have one name in several tools.

        Raises:
            Fault: TCC225: they cannot be compared.
        """
        first = kinds[0]
        if all(other == first for other in kinds):
            return first
        self._charge(sum([1 + len(one.members) + len(one.listed.texts) // 8 for one in kinds]))
        for other in kinds[1:]:
            if first.choices or other.choices or not comparable(first, other):
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
        """A statement to write instead of a limit over answers, or an empty text."""
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
            of = self._fields.get(name, NOWHERE).of.get(at)
            if of is None:
                raise Fault("TCC204", learned, f"`{tool}` has no field `{name}`.")
            found.append(self._declared(of[0]))
        return self._common(found, learned, f"`{learned.name}`")

    def _fits(self, name: str, want: str) -> bool:
        let = self._lets[name]
        if let.parameters:
            return want == "applied"
        if name not in self._shapes:
            self._shapes[name] = self._shape(let.body, FILE_SCOPE)
        return shape_fits(self._shapes[name], want)

    def _bound_fits(self, bound: Bound, scope: Scope, want: str) -> bool:
        if bound.parameters:
            return want == "applied"
        if want == "applied":
            return True
        return shape_fits(self._shape(bound.body, bound.scope or FILE_SCOPE), want)

    def _shape(self, node: Node, scope: Scope) -> str:
        """The shape of a node: ``condition``, ``set``, ``source``, ``term`` or ``any``."""
        passed: list[str] = []  # lets of the file with the same shape
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
                    node, scope = bound.body, bound.scope or FILE_SCOPE
                    shape = "any" if bound.parameters else ""
                case Word(name):
                    shape = self._word_shape(name, scope)
                    if not shape:
                        if name in passed:
                            raise self._circle(node, name)
                        passed.append(name)
                        node, scope = self._lets[name].body, FILE_SCOPE
                case nodes.Where(of=of):
                    let = self._lets.get(of.name) if isinstance(of, Word) else None
                    if let is not None and let.parameters:
                        node, scope = let.body, FILE_SCOPE
                    elif isinstance(of, Word) and of.name in scope.names:
                        bound = scope.names[of.name]
                        node, scope = bound.body, bound.scope or FILE_SCOPE
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

    def _word_shape(self, name: str, scope: Scope) -> str:
        """Return the shape of a word that the block does not define.

        '' to use the body of its `let`.
        """
        value = self._bare_field(name, scope)
        if value is not None:
            return "any" if value.kind.name in ("list", "flag", "record") else "term"
        let = self._lets.get(name)
        if let is None or let.parameters:
            return "set" if name in self._masks else "any"
        return self._shapes.get(name, "")

    def _is_free(self, name: str, scope: Scope) -> bool:
        """Return True if no term has this name, so that a bare word means the value."""
        value = self._bare_field(name, scope)
        if value is not None and fits_as(value.kind, "term"):
            return False
        if name in scope.names and self._bound_fits(scope.names[name], scope, "term"):
            return False
        return not (name in self._lets and self._fits(name, "term"))

    def _ensure_alone(self, node: Node, name: str, scope: Scope, want: str) -> None:
        """Refuse `any`, `null`, `true` or `false` where a field or `let` of this name fits, too."""
        value = self._bare_field(name, scope)
        field_fits = value is not None and fits_as(value.kind, want)
        let_fits = name in self._lets and self._fits(name, want)
        bound = scope.names.get(name)
        if field_fits or let_fits or (bound and self._bound_fits(bound, scope, want)):
            raise self._two(node, name, f"`{name}`", "a name")

    def _draft(self, mask: int, wide: bool, scope: Scope) -> Draft:
        own = Kind(name="call", tools=mask, wide=wide)
        base = forms.Calls(self._tools(mask))
        return Draft(base, len(scope.elements), own, None, wide=wide)

    def _applied(self, word: Word, scope: Scope) -> Bound | None:
        """Return the `let` with parameters that a word before parentheses names, or None."""
        name = word.name
        bound = scope.names.get(name)
        if bound is not None and not bound.parameters:
            bound = None
        let = self._lets.get(name)
        if let is not None and let.parameters:
            if bound is not None:
                raise self._two(word, name, "a `let` of the block", "a `let` of the file")
            bound = Bound(let.body, None, let.parameters, name)
        if bound is not None:
            value = self._bare_field(name, scope)
            if name in self._masks or (value is not None and value.kind.name == "list"):
                raise self._two(word, name, "a `let` with parameters", "a source")
        return bound

    def _value(self, node: Node, scope: Scope, beside: Kind | None = None) -> Value:
        return self._as_value(self._thing(node, scope, "term", beside), node)

    def _fields_of(self, kind: Kind) -> list[str]:
        """Return the fields that all calls, or the record, of a kind have."""
        if kind.name != "call":
            return [name for name, _ in kind.members]
        return [name for name, named in self._fields.items() if not kind.tools & ~named.has]

    def _as_value(self, thing: Thing, node: Node) -> Value:
        match thing:
            case Value():
                return thing
            case Draft():
                message = "A collection is compared by `count`, `last` or `in`."
                raise Fault("TCC225", node, message, about="collection")
            case Truth():
                raise Fault("TCC225", node, "A condition is no value.")
        raise Fault("TCC225", node, "Several values belong after `=` or `!=`.")

    def _is_argument(self, tools: int, name: str) -> bool:
        return not tools & ~self._fields[name].arguments
