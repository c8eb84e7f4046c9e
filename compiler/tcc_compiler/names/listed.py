"""Listed fields: their values by place, and the values that a pattern or a `when` names.

Cost: linear in the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from tcc_certs.values.declared import json_of
from tcc_certs.values.fields import Field
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import quote, some, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import REST
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.types import signed, value_text
from tcc_compiler.syntax.tree import Tree


@frozen
class Listed:
    """A listed field, with its values as calls of plans number them.

    Attributes:
        values: canonical texts in declared order. If the field is optional, the first is the empty
            text, which stands for a missing field.
        numbers: the values as numbers; None for a value that is no number.
        index: the place of each canonical text that can be written.
        numeric: whether all values that can be written are numbers.
    """

    name: str
    values: tuple[str, ...]
    numbers: tuple[Fraction | None, ...]
    index: Mapping[str, int]
    numeric: bool

    @property
    def optional(self) -> bool:
        """True if a call may leave this field out."""
        return self.values[0] == ""


@frozen
class Value:
    """A value in a text: its canonical text, and its number if it is a number."""

    text: str
    number: Fraction | None
    region: Region


def listed_of(field: Field) -> Listed:
    """Return the values of a listed field."""
    numbers = [_number(text) for text in field.values]
    absent = int(field.optional)
    return Listed(
        name=field.name,
        values=("",) * absent + field.values,
        numbers=(None,) * absent + tuple(numbers),
        index={text: at + absent for at, text in enumerate(field.values)},
        numeric=None not in numbers,
    )


def _number(text: str) -> Fraction | None:
    value = None if text == REST else json_of(text)
    return None if isinstance(value, str | bool) or value is None else Fraction(value)


def values_in(b: Builder, tree: Tree) -> tuple[Value, ...]:
    """Return the values of a `values` tree."""
    return tuple([_value(b, value) for value in tree.trees()])


def _value(b: Builder, tree: Tree) -> Value:
    number = signed(tree) if tree.kind == "signed" else None
    return Value(text=value_text(tree), number=number, region=b.region(tree))


def places_of(b: Builder, values: Sequence[Value], field: Listed) -> tuple[int, ...] | None:
    """Return the places of some values in a field, increasing; None after a mistake."""
    places: dict[int, Region] = {}
    before = b.failed
    for value in values:
        place = field.index.get(value.text)
        if place is None:
            message = f"{quote(value.text)} is no value of {quote(field.name)}"
            b.error("TCC205", value.region, message, _other_value(value, field))
        elif place in places:
            message = f"the value {quote(value.text)} is given twice"
            note = [("first given here", places[place])]
            b.error("TCC211", value.region, message, "take one of them away", note)
        else:
            places[place] = value.region
    return tuple(sorted(places)) if b.failed == before else None


def _other_value(value: Value, field: Listed) -> str:
    """Return a hint with the value that may be meant, and some values of the field."""
    values = list(field.index)
    listed = f"{quote(field.name)} is {some(values, ' | ')}"
    near = _other_form(value.text, field)
    if near is None and value.number is None:
        near = suggest(value.text, values)
    return listed if near is None else f"{near}{'' if near.endswith('?') else ';'} {listed}"


def _other_form(text: str, field: Listed) -> str | None:
    """Return a hint if the field has the value as a string instead of bare, or the reverse."""
    other = text[1:-1] if text.startswith('"') else f'"{text}"'
    if other not in field.index:
        return None
    form = "a string" if other.startswith('"') else "not a string"
    return f"in the domain it is {form}: write {other}"
