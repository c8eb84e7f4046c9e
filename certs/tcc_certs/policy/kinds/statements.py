"""Statements: their rules, the sets of calls that they restrict, and their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcc_certs.policy import forms, nodes
from tcc_certs.policy.forms import Condition, Source, Tools
from tcc_certs.policy.kinds.comparisons import Comparisons
from tcc_certs.policy.kinds.parts import walk
from tcc_certs.policy.kinds.things import (
    FILE_SCOPE,
    NOWHERE,
    Bound,
    Draft,
    Fault,
    Scope,
    Thing,
    Truth,
    Value,
    is_list,
    no_call,
    span_of,
)
from tcc_certs.policy.kinds.values import TIME, Kind, never_negative
from tcc_certs.policy.kinds.words import MAX_NAMES
from tcc_certs.policy.nodes import Definition, Node, Statement, Word


class Kinds(Comparisons):
    """Reads the statements of a core.

    Attributes:
        conditions: by the id of a node, the conditions made from it; None: not recorded.
        opened: by the id of a word, the `let` that it names; recorded together with `conditions`.
        origins: by the id of a condition or source, the node that it was made from; None: not
            recorded.
    """

    def rule(self, statement: Statement) -> forms.Rule:
        """Return the rule of a statement.

        Raises:
            Fault: the statement is wrong.
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
                scope = self._block(no_call(), statement.lets, statement)
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
                within = None if statement.within is None else span_of(statement.within)
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
        """Check the lets of the file, used or unused.

        Raises:
            Fault: a `let` refers to itself, or a `let` without parameters is wrong.
        """
        self._ensure_no_circle()
        for let in self._core.lets:
            if not let.parameters:
                self.check_let(let)

    def check_let(self, let: Definition) -> None:
        """Check a `let` of the file that has no parameters.

        Raises:
            Fault: its body is wrong.
        """
        self._begin(let)
        self._needs = {0: self._all}
        self._restricted = (self._all, ())
        own = Kind(name="call", tools=self._all, wide=True)
        scope = Scope(
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

    def _lets_in(self, let: Definition) -> list[str]:
        """Return the names of the file's lets that the body of a `let` uses."""
        applied = {id(node.of) for node in nodes.walk(let.body) if isinstance(node, nodes.Where)}
        found = []
        for node in nodes.walk(let.body):
            other = self._lets.get(node.name) if isinstance(node, Word) else None
            if other is None or other.name in let.parameters:
                continue
            # The name of a `let` with parameters means that `let` only before parentheses.
            if not other.parameters or id(node) in applied:
                found.append(other.name)
        return found

    def _owe(self, owe: nodes.Owe) -> forms.Rule:
        tools, where, scope = self._restrict(owe.after, owe.where, owe, decided=False)
        first = scope.elements[0]
        mask, wide, filters = self._set(owe.calls, FILE_SCOPE, owe.pays)
        own = Kind(name="call", tools=mask, wide=wide)
        inner = Scope(elements=(first, (own, None)), bare=1, it=1, this=0)
        paying, mask = self._filter(filters, inner, 1, mask)
        for condition in (*where, *paying):
            for form in walk(condition):
                if isinstance(form, Source | forms.Now):
                    message = "The filters of `owe` use no other calls and no `now`."
                    raise Fault("TCC225", owe, message, about="values")
        within = None if owe.within is None else span_of(owe.within)
        draft = Draft(forms.Calls(self._tools(mask)), 1, replace(own, tools=mask), None)
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
        within = None if limit.within is None else span_of(limit.within)
        return forms.Rule(
            kind="limit", tools=tools, where=where, field=limit.field, most=most.term,
            per=tuple([value.term for value in per]), within=within, across=across,
        )  # fmt: skip

    def _ensure_summed(self, tools: Tools, name: str, node: object) -> None:
        """Refuse a summed field unless it is a required argument of at least 0 in each tool."""
        fields = self._fields.get(name, NOWHERE).of
        for tool in sorted(tools):
            found, answer = fields.get(self._masks[tool].bit_length() - 1, (None, True))
            if found is None or answer:
                known = [one.name for one in self._core.tools[self._places[tool]].arguments]
                message = f"`{tool}` has no argument `{name}`."
                raise Fault("TCC204", node, message, known=known)
            if found.optional or not never_negative(found):
                message = f"`{name}` of `{tool}` is no required number of at least 0."
                raise Fault("TCC225", node, message)

    def _restrict(
        self, on: Node, where: Sequence[Node], statement: object, *, decided: bool
    ) -> tuple[Tools, tuple[Condition, ...], Scope]:
        """Return the tools that a statement restricts, its filter, and the scope of its clauses."""
        mask, wide, filters = self._set(on, FILE_SCOPE, where)
        own = Kind(name="call", tools=mask, wide=wide, decided=decided)
        inner = Scope(elements=((own, None),), bare=0, it=0, this=0)
        conditions, mask = self._filter(filters, inner, 0, mask)
        if isinstance(statement, nodes.Require):
            self._restricted = (mask, filters)
        narrow = Kind(name="call", tools=mask, decided=decided)
        scope = Scope(elements=((narrow, None),), bare=0, it=None, this=0)
        return self._tools(mask), conditions, scope

    def _set(
        self, node: Node, scope: Scope, where: Sequence[Node] = (), inside: bool = False
    ) -> tuple[int, bool, list[tuple[Node, Scope]]]:
        """Return the tools of a set, whether it was written with `any`, and its filters."""
        self._height += 1
        self._step(node)
        filters: list[tuple[Node, Scope]] = []
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
        self, node: Word, name: str, scope: Scope, inside: bool
    ) -> tuple[int, bool, list[tuple[Node, Scope]]]:
        let = self._lets.get(name)
        is_let = let is not None and self._fits(name, "set")
        if is_let and name in self._masks:
            raise self._two(node, name, "a tool", "a `let`")
        if is_let and let is not None:
            body, inner = self._open(Bound(let.body, None, let.parameters, name), node, scope)
            mask, wide, filters = self._set(body, inner)
            if filters and inside:
                raise self._filter_inside(node)
            return mask, wide, filters
        if name in self._masks:
            return self._masks[name], False, []
        if let is not None:
            raise Fault("TCC225", node, f"`{name}` is no set of calls.", about="set")
        raise Fault("TCC202", node, f"No tool and no `let` is called `{name}`.")

    def _block(self, scope: Scope, lets: Sequence[Definition], node: object) -> Scope:
        if not lets:
            return scope
        if len(lets) > MAX_NAMES:
            raise Fault("D201", node, f"A block has more than {MAX_NAMES} `let`s.")
        inner = replace(scope, it=None)
        for let in lets:
            if let.name in inner.names:
                raise Fault("TCC201", let, f"`{let.name}` is declared twice in this block.")
            bound = Bound(let.body, inner, let.parameters, let.name)
            if not let.parameters:
                self._thing(let.body, inner, "any")
            inner = replace(inner, names={**inner.names, let.name: bound})
        return replace(inner, it=scope.it)

    def _thing(self, node: Node, scope: Scope, want: str, beside: Kind | None = None) -> Thing:
        """Read a node; `want` is the kind of thing that fits at the place."""
        self._height += 1
        self._step(node)
        found = self._form(node, scope, want, beside)
        self._height -= 1
        return found

    def _form(self, node: Node, scope: Scope, want: str, beside: Kind | None) -> Thing:
        match node:
            case Word():
                return self._word(node, scope, want, beside)
            case nodes.Text() | nodes.Number() | nodes.Flag() | nodes.Null() | nodes.Duration():
                return self._constant(node, scope, want, beside)
            case nodes.This():
                if scope.this is None:
                    raise Fault("TCC225", node, "`this` has no call here.", about="end")
                return Value(forms.Element(scope.this), *scope.elements[scope.this])
            case nodes.It():
                if scope.it is None:
                    message = "`it` belongs inside the parentheses of a filter."
                    raise Fault("TCC225", node, message, about="it")
                return Value(forms.Element(scope.it), *scope.elements[scope.it])
            case nodes.Now():
                return Value(forms.Now(), TIME)
            case nodes.Session(name):
                if name not in self._given:
                    raise Fault("TCC202", node, f"No `given` declares `{name}`.")
                return Value(forms.Attribute(name), self._given[name])
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
                return Truth(self._unused(node, of, scope))
            case nodes.No(of):
                source = self._source(of, scope)
                return Truth(forms.Not(forms.Some(self._finished(source, of))))
            case nodes.Every(of):
                return Truth(self._every(node, of, scope))
            case nodes.Not(of):
                thing = self._thing(of, scope, "condition")
                if isinstance(thing, Draft) or is_list(thing):
                    text = nodes.text_of(of)
                    message = f"`not` negates a condition, and `{text}` is a collection."
                    raise Fault("TCC232", node, message, nodes.text_of(nodes.No(of)))
                return Truth(forms.Not(self._truth(thing, of, scope)))
            case nodes.And(parts):
                return Truth(forms.All(tuple([self._condition(p, scope) for p in parts])))
            case nodes.Or(parts):
                return Truth(forms.AnyOf(tuple([self._condition(p, scope) for p in parts])))
            case nodes.Compare():
                return Truth(self._compare(node, scope))
            case nodes.Between(operator, of, low, high):
                return Truth(self._between(node, operator, of, low, high, scope))
            case nodes.Union(parts):
                return self._union(node, parts, scope, want, beside)
            case nodes.Add(left, right) | nodes.Minus(left, right) | nodes.Times(left, right):
                return self._arithmetic(node, left, right, scope, want)
            case nodes.Negative(of):
                value = self._value(of, scope)
                self._ensure_number(value, of, spans=True)
                zero = forms.Constant(("n", 0))
                return Value(forms.Arithmetic("-", zero, value.term), value.kind)
            case nodes.Match():
                return self._match(node, scope, beside)
        raise Fault("TCC225", node, "This form does not belong here.")
