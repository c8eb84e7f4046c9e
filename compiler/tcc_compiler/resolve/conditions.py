"""Values that a `when` or a call pattern names, as places in the domain of a parameter.

Normative text: docs/spec/language.md, sections 6 and 7.  Cost: linear in the values that are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tcc_compiler.language.ast.leaves import Value
from tcc_compiler.language.ast.tools import Condition
from tcc_compiler.language.diagnostics import Report, quote, some, suggest
from tcc_compiler.language.spans import Region
from tcc_compiler.resolve.domains import Parameter

OPEN: Final = -1  # the place of an open parameter among those that tell calls apart


def condition_of(
    condition: Condition,
    parameters: Sequence[Parameter],
    names: dict[str, int],
    report: Report,
) -> tuple[int, frozenset[int]] | None:
    """The parameter of a `when` and the values for which it holds."""
    name = condition.name
    place = names.get(name.text)
    if place is None:
        message = f"the tool has no parameter {quote(name.text)}"
        hint = suggest(name.text, list(names))
        if hint is None:
            hint = f"it has {some(list(names))}" if names else "it has none: take `when` away"
        report.error("TCC204", name.region, message, hint)
        return None
    if place == OPEN:
        message = f"{quote(name.text)} is open, and no amount depends on it"
        hint = "list the values that matter before the semicolon, as a parameter of their own"
        report.error("TCC216", name.region, message, hint)
        return None
    places = values_of(condition.values, parameters[place], report)
    return None if places is None else (place, frozenset(places))


def values_of(
    values: Sequence[Value], parameter: Parameter, report: Report
) -> tuple[int, ...] | None:
    """The places of some values in a domain, increasing; None after an error."""
    places: dict[int, Region] = {}
    sound = True
    for value in values:
        place = parameter.index.get(value.text)
        if place is None:
            message = f"{quote(value.text)} is no value of {quote(parameter.name)}"
            note = [("its values are listed here", parameter.region)] if parameter.region else []
            report.error("TCC205", value.region, message, _other_value(value, parameter), note)
            sound = False
        elif place in places:
            message = f"the value {quote(value.text)} is given twice"
            note = [("first given here", places[place])]
            report.error("TCC211", value.region, message, "take one of them away", note)
            sound = False
        else:
            places[place] = value.region
    return tuple(sorted(places)) if sound else None


def _other_value(value: Value, parameter: Parameter) -> str:
    """A hint with the value that may be meant, and a few of those that there are."""
    values = list(parameter.index)
    listed = f"{quote(parameter.name)} is {some(values, ' | ')}"
    near = _other_form(value.text, parameter)
    if near is None and value.number is None:
        near = suggest(value.text, values)
    return listed if near is None else f"{near}{'' if near.endswith('?') else ';'} {listed}"


def _other_form(text: str, parameter: Parameter) -> str | None:
    """A hint where the domain has the value as a string and not bare, or the reverse."""
    other = text[1:-1] if text.startswith('"') else f'"{text}"'
    if other not in parameter.index:
        return None
    form = "a string" if other.startswith('"') else "not a string"
    return f"in the domain it is {form}: write {other}"
