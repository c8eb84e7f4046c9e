"""Terms: constants, arithmetic, functions and aggregates."""

from __future__ import annotations

from tcc_certs.formats.codec import is_identifier
from tcc_certs.policy import forms, nodes
from tcc_certs.policy.kinds.sources import Sources
from tcc_certs.policy.kinds.things import Fault, Scope, Thing, Value, milliseconds
from tcc_certs.policy.kinds.values import (
    FLAG,
    NUMBER,
    SPAN,
    TEXT,
    Kind,
    arithmetic_kind,
    comparable,
    plain_kind,
)
from tcc_certs.policy.nodes import Node
from tcc_certs.values import places
from tcc_certs.values.fields import zone_of
from tcc_certs.values.zones import Zone

_AGGREGATES = ("last", "count", "distinct", "sum", "min", "max")


class Terms(Sources):
    """Reads terms."""

    def _constant(self, node: Node, scope: Scope, want: str, beside: Kind | None) -> Value:
        match node:
            case nodes.Text(value):
                bare = beside is not None and ("s", value) in beside.listed
                bare = bare and is_identifier(value) and self._is_free(value, scope)
                (self._bare if bare else self._quoted).add(id(node))
                return Value(forms.Constant(("s", value)), TEXT)
            case nodes.Number(value):
                return Value(forms.Constant(("n", places.exact_number(value))), NUMBER)
            case nodes.Flag(value):
                self._ensure_alone(node, "true" if value else "false", scope, want)
                return Value(forms.Constant(("b", value)), FLAG)
            case nodes.Duration(amount, unit):
                return Value(forms.Constant(("n", milliseconds(amount, unit, node))), SPAN)
        self._ensure_alone(node, "null", scope, want)
        return Value(forms.Constant(("z", None)), Kind(name="null"))

    def _arithmetic(self, node: Node, left: Node, right: Node, scope: Scope, want: str) -> Thing:
        shape = self._shape(left, scope)
        if isinstance(node, nodes.Minus) and shape in ("set", "source"):
            return self._difference(node, left, right, scope)
        one, other = self._value(left, scope), self._value(right, scope)
        for value, part in ((one, left), (other, right)):
            self._ensure_number(value, part, spans=True, times=True)
        sign = "*" if isinstance(node, nodes.Times) else "+" if isinstance(node, nodes.Add) else "-"
        kind = arithmetic_kind(sign, one.kind.name, other.kind.name)
        if kind is None:
            message = f"`{sign}` of a {one.kind.name} and a {other.kind.name} has no meaning."
            raise Fault("TCC225", node, message)
        return Value(forms.Arithmetic(sign, one.term, other.term), Kind(name=kind))

    def _apply(self, node: nodes.Apply, scope: Scope) -> Thing:
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
            if not comparable(one.kind, other.kind):
                raise Fault("TCC225", node, f"`{name}` compares values of one kind.")
            return Value(forms.Arithmetic(name, one.term, other.term), plain_kind(one.kind))
        if name in _AGGREGATES:
            return self._aggregate(node, scope)
        value = self._value(first, scope)
        if name == "host":
            if value.kind.name != "url":
                raise Fault("TCC225", first, "`host` takes a URL.", about="url")
            return Value(forms.Host(value.term), TEXT)
        if value.kind.name not in ("time", "date"):
            raise Fault("TCC225", first, f"`{name}` takes a time or a date.")
        zone = self._zone(arguments[1]) if len(arguments) == 2 else 0
        kind = Kind(name="date", minutes=zone) if name == "day" else NUMBER
        return Value(forms.Clock(name, value.term, zone), kind)

    def _zone(self, node: Node) -> int | Zone:
        """Return the zone that the second argument of a clock function names.

        Raises:
            Fault: TCC225: it is no constant text; TCC205: no such zone is recorded.
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

    def _aggregate(self, node: nodes.Apply, scope: Scope) -> Value:
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
            return Value(forms.Last(source), draft.own, draft.call)
        if name == "count":
            if distinct and draft.own.name in ("call", "list", "record", "json"):
                raise Fault("TCC225", first, "`distinct` counts the values of a field.")
            return Value(forms.Count(self._finished(draft, first), distinct), NUMBER)
        if len(node.arguments) == 2:
            if name != "sum":
                raise Fault("TCC225", node, f"`{name}` of a collection has one argument.")
            value = self._value(node.arguments[1], self._filtering(draft, scope))
            self._ensure_number(value, node.arguments[1], spans=True)
            source = self._finished(draft, first, (value.term,))
            return Value(forms.Sum(source, value.term), plain_kind(value.kind))
        element = Value(forms.Element(draft.level), draft.own, draft.call)
        self._ensure_number(element, first, spans=True, times=name != "sum")
        source = self._finished(draft, first)
        if name == "sum":
            return Value(forms.Sum(source, element.term), plain_kind(draft.own))
        return Value(forms.Extreme(source, name == "max"), plain_kind(draft.own))

    def _unlike(self, node: Node, one: Kind, other: Kind) -> Fault:
        message = f"A {one.name} is compared with a {other.name}."
        return Fault("TCC225", node, message, known=(one.name, other.name), about="types")

    def _ensure_number(
        self, value: Value, node: Node, *, spans: bool = False, times: bool = False,
        constants: bool = False,
    ) -> None:  # fmt: skip
        names = {"number"} | ({"span"} if spans else set()) | ({"time", "date"} if times else set())
        text = constants and isinstance(value.term, forms.Constant) and value.kind.name == "text"
        if value.kind.name not in names and not text:
            message = f"A {value.kind.name} has no order and no sum."
            raise Fault("TCC225", node, message, about="order")
