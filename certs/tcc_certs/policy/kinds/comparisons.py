"""Comparisons and the arms of `match`: which sides are comparable, how constants are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcc_certs.errors import Rejected
from tcc_certs.policy import forms, nodes
from tcc_certs.policy.forms import Condition, Term
from tcc_certs.policy.kinds.terms import Terms
from tcc_certs.policy.kinds.things import Fault, Options, Scope, Value, reads_as
from tcc_certs.policy.kinds.values import (
    LOCATED,
    MOMENTS,
    NAMED,
    NO_VALUES,
    NOTHING,
    Kind,
    _state_text,
    comparable,
    listed_text,
    read_as,
    readable,
)
from tcc_certs.policy.nodes import Node, Word
from tcc_certs.values import paths, places, urls
from tcc_certs.values.places import State

MAX_OPTIONS = 1 << 12
_ORDERS = ("<", "<=", ">", ">=")


class Comparisons(Terms):
    """Reads comparisons."""

    def _match(self, node: nodes.Match, scope: Scope, beside: Kind | None) -> Value:
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
            if kind is not None and not comparable(kind, value.kind):
                raise Fault("TCC225", arm, "The arms of this `match` have different types.")
            kind = value.kind if kind is None else kind
            if isinstance(arm, nodes.Else):
                otherwise = value.term
                continue
            tests = []
            for part in arm.values:
                test = self._value(part, scope, of.kind if of.kind.listed else None)
                if not comparable(of.kind, test.kind) and not reads_as(of.kind, test):
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
        plain = replace(kind, listed=NO_VALUES, rest=False)
        return Value(forms.Choose(of.term, tuple(arms), otherwise), plain)

    def _compare(self, node: nodes.Compare, scope: Scope) -> Condition:
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
            read = reads_as(left.kind, value) or reads_as(value.kind, left)
            constant = beside is not None and isinstance(value.term, forms.Constant)
            if not (read or constant) and not comparable(left.kind, value.kind):
                raise self._unlike(part, left.kind, value.kind)
            kind = left.kind if operator in ("=", "!=") else replace(left.kind, listed=NO_VALUES)
            terms.append(self._constant_for(value, kind, part))
        if operator in ("=", "!="):
            equal = forms.Compare("=", self._read_left(operator, left, options, one), tuple(terms))
            return equal if operator == "=" else forms.Not(equal)
        if len(terms) > 1:
            raise Fault("TCC225", node, f"`|` belongs after `=` or `!=`, not after `{operator}`.")
        moments = left.kind.name in MOMENTS or options[0][0].kind.name in MOMENTS
        for value, part in ((left, one), options[0]):
            self._ensure_number(value, part, spans=True, times=True, constants=moments)
        return forms.Compare(operator, self._read_left(operator, left, options, one), tuple(terms))

    def _side(self, node: Node, other: Node, scope: Scope) -> Value:
        """Read the left side.  An unknown word may be a listed value of the right side."""
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

    def _listed_side(self, node: Node, scope: Scope) -> Kind | None:
        """Return the kind of a side of a comparison if its values are listed, or None."""
        needs, height = dict(self._needs), self._height
        try:
            kind = self._value(node, scope).kind
        except Fault as fault:
            if fault.code == "D201":
                raise
            kind = NOTHING
        self._needs, self._height = needs, height
        return kind if kind.listed else None

    def _read_left(
        self, operator: str, left: Value, options: Sequence[tuple[Value, Node]], node: Node
    ) -> Term:
        kind = options[0][0].kind
        if operator not in ("=", "!="):
            kind = replace(kind, listed=NO_VALUES)
        return self._constant_for(left, kind, node)

    def _options(
        self, node: Node, scope: Scope, beside: Kind | None, count: list[int]
    ) -> list[tuple[Value, Node]]:
        count[0] += 1
        if count[0] > MAX_OPTIONS:
            raise Fault("D201", node, f"A comparison has more than {MAX_OPTIONS} values.")
        thing = self._thing(node, scope, "term", beside)
        if not isinstance(thing, Options):
            return [(self._as_value(thing, node), node)]
        found = []
        for part in thing.parts:
            found += self._options(part, thing.scope, thing.beside, count)
        return found

    def _constant_for(self, value: Value, kind: Kind, node: Node) -> Term:
        """Return the term of one side; a constant text is read as a value of the other side.

        Raises:
            Fault: TCC205: the constant is not a listed value, or cannot be read.
        """
        term = value.term
        if not isinstance(term, forms.Constant):
            return term
        if kind.listed and term.state[0] != "z" and term.state not in kind.listed:
            message = f"{nodes.text_of(node)} is none of {listed_text(kind)}."
            raise Fault("TCC205", node, message, known=kind.listed.texts)
        kinds = readable(kind)
        if not kinds or term.state[0] != "s":
            return term
        for one in kinds:
            try:
                return forms.Constant(read_as(one, term.state[1]))
            except (places.Wrong, Rejected):
                continue
        names = " or ".join([NAMED.get(one.name, one.name) for one in kinds])
        message = f"{nodes.text_of(node)} is no {names}."
        raise Fault("TCC205", node, message, about=kinds[0].name)

    def _under(self, node: nodes.Compare, scope: Scope) -> Condition:
        left, right = self._value(node.left, scope), self._value(node.right, scope)
        names = [kind.name for kind in left.kind.choices or (left.kind,) if kind.name in LOCATED]
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
        """Read the constant after `under` as a directory or a scope of URLs."""
        for name in names:
            try:
                return name[0], (paths.normal if name == "path" else urls.scope)(text)
            except Rejected as refusal:
                message = f"{nodes.text_of(node)} is no {NAMED[name]}: {refusal.expected}."
        raise Fault("TCC205", node, message, about=names[0])

    def _matches(self, node: nodes.Compare, left: Value, scope: Scope) -> Condition:
        choices = left.kind.choices or (left.kind,)
        if not any(one.name in ("text", "mixed", *LOCATED) for one in choices):
            raise Fault("TCC225", node.left, f"`{node.operator}` compares a text with a pattern.")
        right = self._value(node.right, scope).term
        if not isinstance(right, forms.Constant) or right.state[0] != "s":
            raise Fault("TCC225", node.right, "A pattern is a constant text.")
        pattern = right.state[1]
        self._patterns.setdefault(pattern, node.right)
        matches = forms.Matches(left.term, pattern)
        return matches if node.operator == "~" else forms.Not(matches)

    def _between(
        self, node: Node, operator: str, of: Node, low: Node, high: Node, scope: Scope
    ) -> Condition:
        values = [self._value(part, scope) for part in (of, low, high)]
        moments = values[0].kind.name in MOMENTS
        for value, part in zip(values, (of, low, high), strict=True):
            self._ensure_number(value, part, spans=True, times=True, constants=moments)
            if not comparable(values[0].kind, value.kind) and not reads_as(values[0].kind, value):
                raise Fault(
                    "TCC225", part, f"A {values[0].kind.name} is compared with a {value.kind.name}."
                )
        kind = replace(values[0].kind, listed=NO_VALUES)
        ends = [
            self._constant_for(value, kind, part)
            for value, part in zip(values[1:], (low, high), strict=True)
        ]
        between = forms.Between(values[0].term, *ends)
        return between if operator == "in" else forms.Not(between)

    def _among(self, node: nodes.Compare, scope: Scope) -> Condition:
        try:
            thing = self._thing(node.right, scope, "source")
        except Fault:
            # A name that is no source may be a value of the listed left side.
            union = isinstance(node.right, nodes.Union)
            listed = self._value(node.left, scope).kind.listed
            value = isinstance(node.right, Word) and ("s", node.right.name) in listed
            if not (value or (union and listed)):
                raise
            thing = Options(nodes.parts_of(node.right), scope, None)
        if isinstance(thing, Options) or isinstance(node.right, nodes.Text | nodes.Number):
            equal = "=" if node.operator == "in" else "!="
            text = f"{nodes.text_of(node.left)} {equal} {nodes.text_of(node.right)}"
            raise Fault("TCC225", node, "`in` takes a list or a collection.", text)
        draft = self._as_source(thing, node.right, scope)
        beside = draft.own if draft.own.listed else None
        left = self._value(node.left, scope, beside)
        if not comparable(left.kind, draft.own) and not reads_as(draft.own, left):
            raise self._unlike(node, left.kind, draft.own)
        term = self._constant_for(left, draft.own, node.left)
        among = forms.Among(term, self._finished(draft, node.right))
        return among if node.operator == "in" else forms.Not(among)

    def _ensure_no_count_of_nothing(self, node: nodes.Compare, scope: Scope) -> None:
        """Refuse to compare a count of calls with 0: ``no C`` or ``C`` says the same."""
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

    def _ensure_not_itself(self, node: nodes.Compare, scope: Scope) -> None:
        itself = isinstance(node.left, Word) and node.left == node.right
        if itself and isinstance(node.left, Word) and scope.it is not None:
            name = node.left.name
            instead = f"{name} {node.operator} this.{name}"
            if scope.it == scope.this:
                instead = ""  # the filter of the restricted calls has no other call
            elif node.operator == "=":
                instead = f"same {name}"
            raise Fault("TCC231", node, f"`{name}` is compared with itself.", instead)
