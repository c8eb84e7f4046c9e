"""Collections: sets of calls, rows and lists, their filters and windows, and their conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tcc_certs.policy import forms, nodes
from tcc_certs.policy.forms import Condition, Source
from tcc_certs.policy.kinds.parts import (
    conjuncts,
    height_of,
    keys_in,
    keys_of,
    sources_in,
    walk,
    windowed,
)
from tcc_certs.policy.kinds.things import (
    Draft,
    Fault,
    Options,
    Scope,
    Thing,
    Truth,
    Value,
    milliseconds,
)
from tcc_certs.policy.kinds.values import TEXT, Kind, comparable
from tcc_certs.policy.kinds.words import Words
from tcc_certs.policy.nodes import Node, Word

MAX_LEVELS = 2  # most nesting of sources inside the filter of a source
MAX_KEYS = 8


class Sources(Words):
    """Reads collections."""

    def _filter(
        self, filters: Sequence[tuple[Node, Scope]], inner: Scope, level: int, mask: int
    ) -> tuple[tuple[Condition, ...], int]:
        """Return the conditions of a filter, and the tools that have all fields that it names."""
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

    def _filter_inside(self, node: Node) -> Fault:
        message = "A filter cannot be inside a union or difference of a statement's set."
        return Fault("TCC241", node, message)

    def _member(self, node: nodes.Get, of: Node, name: str, scope: Scope) -> Thing:
        thing = self._thing(of, scope, "base")
        if isinstance(thing, Value) and thing.kind.name != "list":
            return self._get(thing, name, node)
        draft = self._as_source(thing, of, scope)
        level = draft.level
        value = self._get(Value(forms.Element(level), draft.own, draft.call), name, node)
        source = self._finished(draft, of)
        call = draft.own if draft.own.name == "call" else draft.call
        listed = value.kind.name == "list" and value.kind.of is not None
        own = value.kind.of if listed and value.kind.of is not None else value.kind
        base = forms.Rows(source, value.term, value.kind.most if listed else None)
        return Draft(base, level, own, call, height=source.height)

    def _where(
        self, node: nodes.Where, of: Node, conditions: Sequence[Node], scope: Scope, want: str
    ) -> Thing:
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

    def _add_filter(self, draft: Draft, conditions: Sequence[Node], scope: Scope) -> None:
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

    def _filtering(self, draft: Draft, scope: Scope) -> Scope:
        """Return the scope inside the filter of a source."""
        elements = (*scope.elements, (draft.own, draft.call))
        return scope.inside(elements, draft.level, draft.level, scope.this)

    def _modified(self, node: nodes.Within | nodes.Since, scope: Scope) -> Draft:
        draft = self._source(node.of, scope)
        if draft.own.name != "call" and draft.call is None:
            message = "The elements of a list have no time and no order of calls."
            raise Fault("TCC225", node, message, about="list")
        if isinstance(node, nodes.Within):
            span = milliseconds(node.amount, node.unit, node)
            if draft.is_calls:
                draft.within = span if draft.within is None else min(span, draft.within)
            else:
                draft.base = windowed(draft.base, span)
            return draft
        thing = self._thing(node.mark, scope, "set")
        mark = thing if isinstance(thing, Draft) else None
        if mark is None or not mark.is_calls or mark.marks or mark.within is not None:
            message = "`since` takes a set of calls with a filter, without modifiers."
            raise Fault("TCC225", node.mark, message, about="mark")
        draft.marks.append(self._finished(mark, node.mark))
        return draft

    def _every(self, node: nodes.Every, of: Node, scope: Scope) -> Condition:
        draft = self._source(of, scope)
        if not draft.filtered:
            text = nodes.text_of(of)
            message = "`every` needs a filter: what holds for every element?"
            raise Fault("TCC225", node, message, f"every {text}(..)")
        conditions = tuple(draft.conditions[-draft.filtered :])
        del draft.conditions[-draft.filtered :]
        if draft.is_calls and draft.unfiltered != draft.own.tools:
            # The filter is false for tools that lack a field, so such a call makes `every` false.
            has = forms.IsOf(draft.level, self._tools(draft.own.tools))
            conditions = (has, *conditions)
            draft.own = replace(draft.own, tools=draft.unfiltered)
            draft.base = forms.Calls(self._tools(draft.unfiltered))
        source = self._finished(draft, of, conditions)
        return forms.Every(source, conditions)

    def _unused(self, node: nodes.Unused, of: Node, scope: Scope) -> Condition:
        if self._restricted is None or scope.this != 0:
            message = "`unused` belongs in a clause of `before`."
            raise Fault("TCC225", node, message, about="unused")
        draft = self._source(of, scope)
        if draft.marks:
            message = "`unused` cannot be combined with `since`."
            raise Fault("TCC225", node, message, about="both")
        keys = keys_of(draft.conditions, draft.level)
        if not keys or not draft.is_calls:
            message = "`unused` needs a key: a filter with `same` or `f = this.g`."
            raise Fault("TCC225", node, message, about="key")
        mask, filters = self._restricted
        level = draft.level
        own = Kind(name="call", tools=mask, decided=True)
        inner = Scope(
            elements=(*scope.elements, (own, None)), bare=level, it=level, this=level,
            within=scope.within,
        )  # fmt: skip
        conditions, _ = self._filter(filters, inner, level, mask)
        # Such a condition may have been true at the earlier call, so that call counts as a use.
        conditions = tuple([one for one in conditions if not self._may_change(one)])
        same = [
            forms.Same(forms.Get(forms.Element(level), key), forms.Get(forms.Element(0), key))
            for key in keys
        ]
        mark = Draft(forms.Calls(self._tools(mask)), level, own, None, [*conditions, *same])
        draft.marks.append(self._finished(mark, of))
        return forms.Some(self._finished(draft, of))

    def _may_change(self, condition: Condition) -> bool:
        """Return True if later calls, or time, can change the truth of a condition."""
        return any(
            isinstance(form, Source | forms.Now)
            or (isinstance(form, forms.Attribute) and form.name in self._learned)
            for form in walk(condition)
        )

    def _union(
        self, node: Node, parts: Sequence[Node], scope: Scope, want: str, beside: Kind | None
    ) -> Thing:
        is_term = want == "any" and self._shape(parts[0], scope) == "term"
        if want == "term" or is_term:
            return Options(tuple(parts), scope, beside)
        things = [self._thing(part, scope, want) for part in parts]
        drafts = [thing for thing in things if isinstance(thing, Draft)]
        if len(drafts) < len(things):
            if want == "any":
                return Options(tuple(parts), scope, beside)
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
        return Draft(forms.Merged(sources), drafts[0].level, own, call, height=height)

    def _difference(self, node: Node, left: Node, right: Node, scope: Scope) -> Draft:
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

    def _pairs(self, node: Node, arguments: Sequence[Node], scope: Scope) -> Draft:
        lists = [self._value(argument, scope) for argument in arguments]
        for value, argument in zip(lists, arguments, strict=True):
            if value.kind.name != "list":
                raise Fault("TCC225", argument, "`pairs` takes two lists.")
        left, right = (value.kind.of or TEXT for value in lists)
        own = Kind(name="record", members=(("left", left), ("right", right)))
        base = forms.Pairs(lists[0].term, lists[1].term)
        height = max(height_of(value.term) for value in lists)
        return Draft(base, len(scope.elements), own, None, height=height)

    def _condition(self, node: Node, scope: Scope) -> Condition:
        if isinstance(node, nodes.Same):
            return self._recorded(node, self._same(node, scope))
        return self._truth(self._thing(node, scope, "condition"), node, scope)

    def _recorded(self, node: Node, condition: Condition) -> Condition:
        if self.conditions is not None:
            self.conditions.setdefault(id(node), []).append(condition)
        if self.origins is not None:
            self.origins[id(condition)] = node
        return condition

    def _same(self, node: nodes.Same, scope: Scope) -> Condition:
        self._step(node)
        if scope.it is None or scope.this is None or scope.it == scope.this:
            message = "`same` compares an earlier call with the call being decided."
            raise Fault("TCC225", node, message, about="same")
        found: list[Condition] = []
        own, call = scope.elements[scope.it]
        for name in node.names:
            left = self._get(Value(forms.Element(scope.it), own, call), name, node)
            this = Value(forms.Element(scope.this), *scope.elements[scope.this])
            right = self._get(this, name, node)
            if not comparable(left.kind, right.kind):
                message = f"`{name}` is a {left.kind.name} there and a {right.kind.name} here."
                raise Fault("TCC225", node, message)
            found.append(forms.Same(left.term, right.term))
        return found[0] if len(found) == 1 else forms.All(tuple(found))

    def _truth(self, thing: Thing, node: Node, scope: Scope) -> Condition:
        return self._recorded(node, self._true(thing, node, scope))

    def _true(self, thing: Thing, node: Node, scope: Scope) -> Condition:
        match thing:
            case Truth(condition):
                return condition
            case Draft():
                return forms.Some(self._finished(thing, node))
            case Value(forms.Last(), kind):
                message = f"`{nodes.text_of(node)}` is no condition: compare it, or a field of it."
                raise Fault("TCC236", node, message, known=self._fields_of(kind), about=kind.name)
            case Value(term, Kind(name="flag")):
                return forms.Compare("=", term, (forms.Constant(("b", True)),))
            case Value(_, Kind(name="list")):
                return forms.Some(self._finished(self._as_source(thing, node, scope), node))
            case Value(_, kind):
                message = f"A {kind.name} is no condition."
                raise Fault("TCC225", node, message, known=kind.listed.texts, about="scalar")
        raise Fault("TCC225", node, "Several values are no condition.")

    def _source(self, node: Node, scope: Scope) -> Draft:
        return self._as_source(self._thing(node, scope, "source"), node, scope)

    def _as_source(self, thing: Thing, node: Node, scope: Scope) -> Draft:
        if isinstance(thing, Draft):
            return thing
        if isinstance(thing, Value) and thing.kind.name == "list":
            base = forms.Items(thing.term, thing.kind.most)
            height = height_of(thing.term)
            return Draft(base, len(scope.elements), thing.kind.of or TEXT, None, height=height)
        message = "A set of calls, a collection or a list belongs here."
        raise Fault("TCC225", node, message, about="source")

    def _finished(self, draft: Draft, node: Node, also: Iterable[Any] = ()) -> Source:
        """Return the source of a draft.

        Args:
            also: conditions or terms over each element.  Their sources count for the height, too.
        """
        height = max([draft.height, *[mark.height for mark in draft.marks]])
        for part in (*draft.conditions, *also):
            for inner in sources_in(part):
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

    def _keys(self, draft: Draft) -> tuple[forms.Key, ...]:
        """Return the keys: arguments that the filter compares with terms over the decided call."""
        found: dict[str, forms.Key] = {}
        for condition in conjuncts(draft.conditions):
            for key in keys_in(condition, draft.level):
                if key.name not in found and self._is_argument(draft.own.tools, key.name):
                    found[key.name] = key
        return tuple(found.values())[:MAX_KEYS]
