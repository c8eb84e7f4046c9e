"""Relations that were checked: decided for two calls where their fields are listed; their JSON.

Normative text: docs/spec/language.md, section 7; docs/spec/core.md, section 7.  A term that was
checked is nested tuples, its operator first (:mod:`tcc_compiler.resolve.relations`).
Cost: linear in the terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from tcc_certs.formats.codec import Json
from tcc_certs.values.declared import json_of
from tcc_certs.values.text_pattern import pattern_of
from tcc_compiler.language.values import REST, decimal_text
from tcc_compiler.resolve.relations import Made
from tcc_compiler.resolve.tools import ResolvedTool


def is_listed(made: Made, own: Sequence[ResolvedTool], seen: Sequence[ResolvedTool]) -> bool:
    """Whether a relation or a term speaks of listed fields and constants alone."""
    match made:
        case ("own" | "seen", str(name)):
            tools = own if made[0] == "own" else seen
            return all(name in tool.places for tool in tools)
        case ("text" | "number" | "word" | "ms", _):
            return True
        case ("constants", _):
            return True
        case ("~" | "!~", left, _):
            return is_listed(left, own, seen)
        case ("=" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in" | "maybe", one, other):
            return is_listed(one, own, seen) and is_listed(other, own, seen)
        case _:
            return False


def fields_in(made: Made, scope: str) -> set[str]:
    """The listed fields that a relation or a term names in a scope."""
    if made[0] == scope and len(made) == 2 and isinstance(made[1], str):
        return {made[1]}
    found: set[str] = set()
    for part in made[1:]:
        if isinstance(part, tuple):
            found |= fields_in(part, scope)
    return found


Value: TypeAlias = "tuple[str, Any] | None"


def value_of(text: str, others: Sequence[str] = ()) -> Value:
    """The value of a canonical text; None of the empty one, a field that is left out.

    Args:
        others: all that are listed: what is not is any value but those.
    """
    if not text:
        return None
    if text == REST:
        return "rest", frozenset([value_of(one) for one in others if one and one != REST])
    value = json_of(text)
    if value is None or isinstance(value, bool):
        return "word", json_text(value)
    return ("text", value) if isinstance(value, str) else ("number", Fraction(value))


def json_text(value: bool | None) -> str:
    """``true``, ``false`` or ``null``."""
    return "null" if value is None else "true" if value else "false"


Sides: TypeAlias = Mapping[tuple[str, str], Value]


def truth(made: Made, sides: Sides) -> bool | None:
    """Whether a relation over listed fields holds; None where that is unsure.

    Args:
        sides: the values of fields, by scope and name.
    """
    match made:
        case ("maybe", left, inner):
            return True if _side(left, sides) is None else truth(inner, sides)
        case ("~" | "!~", left, source):
            value = _side(left, sides)
            if value is None or value[0] == "rest":
                return None
            matched = value[0] == "text" and pattern_of(source).matches(value[1])
            return bool(matched) is (made[0] == "~")
        case ("in" | "not in", left, (_, values)):
            value = _side(left, sides)
            among = [_compare("=", value, one) for one in values]
            found = True if True in among else None if None in among else False
            return found if made[0] == "in" or found is None else not found
        case (op, left, right):
            return _compare(op, _side(left, sides), _side(right, sides))
    raise ValueError(f"a relation of no form: {made[0]}")


def _side(made: Made, sides: Sides) -> Value:
    if made[0] in ("own", "seen"):
        return sides[made[0], made[1]]
    return ("number" if made[0] == "ms" else made[0]), made[1]


def _compare(op: str, one: Value, other: Value) -> bool | None:
    if one is None or other is None:
        return None
    if "rest" in (one[0], other[0]):
        rest, value = (one, other) if one[0] == "rest" else (other, one)
        other_one = op in ("=", "!=") and value in rest[1]
        return op == "!=" if other_one else None
    if op in ("=", "!="):
        return (one == other) is (op == "=")
    below, same = bool(one[1] < other[1]), bool(one[1] == other[1])
    return {"<": below, "<=": below or same, ">": not (below or same), ">=": not below}[str(op)]


def both(parts: Sequence[bool | None]) -> bool | None:
    """False if one part is, else unsure if one is."""
    return False if False in parts else None if None in parts else True


# The JSON of the core (docs/spec/core.md, section 7).


def term_json(made: Made) -> Json:
    """A term."""
    match made:
        case ("text", value):
            return ["s", value]
        case ("number", value):
            return ["n", decimal_text(value)]
        case ("ms", value):
            return ["ms", value.numerator]
        case ("word", "null"):
            return ["z"]
        case ("word", value):
            return ["b", value]
        case ("part", inner, name):
            found = term_json(inner)
            return [*(found if isinstance(found, list) else []), name]
        case ("each",):
            return ["it"]
        case ("sum", parts):
            return ["sum", [[decimal_text(by), term_json(part)] for part, by in parts]]
        case ("max", one, other):
            return ["max", term_json(one), term_json(other)]
        case ("count", of):
            return ["count", term_json(of)]
        case ("count", of, relation):
            return ["count", term_json(of), relation_json(relation)]
        case ("constants", values):
            return ["list", [term_json(value) for value in values]]
        case ("look", name, keys, of):
            return ["look", name, [term_json(key) for key in keys], of]
    return list(made)  # own, seen, as, session, now


def relation_json(made: Made) -> Json:
    """A relation."""
    match made:
        case ("maybe", _, inner):
            return ["?", relation_json(inner)]
        case ("every", of, inner):
            return ["every", term_json(of), relation_json(inner)]
        case ("every_of" | "some_of", lists, relations):
            named: Json = [[term_json(of), name] for of, name in lists]
            kind = "all" if made[0] == "every_of" else "some"
            return [kind, named, [relation_json(one) for one in relations]]
        case ("~" | "!~", left, source):
            return [made[0], term_json(left), source]
    return [made[0], term_json(made[1]), term_json(made[2])]
