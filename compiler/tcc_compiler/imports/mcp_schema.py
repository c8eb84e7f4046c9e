"""The schema of one argument of a tool as a domain of the grammar language.

What a grammar can list is listed: enum, const, boolean, integers between bounds that are close.
Other texts and numbers are open, with their limits; the rest is JSON of any shape.  Nothing is made
wider without a word: what a schema says and the domain does not is named as lost.
Normative text: docs/spec/language.md, section 12.  Cost: linear in the schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tcc_certs.errors import Rejected
from tcc_certs.values.text_source import MAX_STEPS, ensure_quick, read_tree, size_of
from tcc_compiler.imports.mcp_domains import Domain, Losses, quoted, unheld
from tcc_compiler.imports.mcp_listed import listed_domain
from tcc_compiler.imports.mcp_numbers import integer_domain, number_domain, numbers_of
from tcc_compiler.imports.mcp_pattern import dialect_of

_LONGEST = 1 << 20
_USUAL = 65536
_SHAPES = ("$ref", "$dynamicRef", "oneOf", "anyOf", "allOf", "not", "if")


def domain_of(schema: object) -> Domain | None:
    """The domain of an argument with that schema; None where no value is one."""
    if schema is False:
        return None
    if not isinstance(schema, Mapping):
        return Domain(text="json")
    if "const" in schema:
        return listed_domain(schema, [schema["const"]], frozenset(("const", "enum")))
    if isinstance(schema.get("enum"), Sequence) and not isinstance(schema["enum"], str):
        return listed_domain(schema, schema["enum"], frozenset(("enum",)))
    inner = _not_null(schema)
    if inner is not None:
        found = domain_of(inner)
        return None if found is None else _with(found, "null is refused")
    return _by_type(schema)


def _by_type(schema: Mapping[str, Any]) -> Domain | None:
    kind = schema.get("type")
    if any(word in schema for word in _SHAPES) or not isinstance(kind, str):
        return _any_json(schema)
    if kind == "boolean":
        lost = Losses().other(schema, frozenset())
        opened = Domain(text="flag", lost=lost)
        return Domain(text="true | false", values=2, opened=opened, lost=lost)
    if kind == "integer":
        return integer_domain(schema)
    if kind == "number":
        return number_domain(schema)
    if kind == "string":
        return _text(schema)
    if kind == "null":
        return listed_domain(schema, [None], frozenset())
    return _any_json(schema)


def _any_json(schema: Mapping[str, Any]) -> Domain:
    left = unheld(schema)
    kind = schema.get("type")
    said = ", ".join([*([json.dumps(kind)] if kind is not None else []), *left])
    return Domain(text="json", lost=(f"its shape is not held: {said}",) if said else ())


def _not_null(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of what is not null, where null is one of two kinds of value."""
    kind, either = schema.get("type"), schema.get("anyOf")
    if isinstance(kind, list) and "null" in kind and len(kind) == 2 and kind != ["null", "null"]:
        rest = next(name for name in kind if name != "null")
        return {**schema, "type": rest}
    if not isinstance(either, list) or len(either) != 2 or "type" in schema:
        return None
    others = [part for part in either if not _is_null(part)]
    if len(others) != 1 or not isinstance(others[0], Mapping):
        return None
    return {**{name: schema[name] for name in schema if name != "anyOf"}, **others[0]}


def _is_null(schema: object) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _with(domain: Domain, said: str) -> Domain:
    opened = None if domain.opened is None else _with(domain.opened, said)
    return Domain(text=domain.text, values=domain.values, opened=opened, lost=(*domain.lost, said))


def _text(schema: Mapping[str, Any]) -> Domain | None:
    losses = Losses()
    least = _length(schema, "minLength", 0)
    most = _length(schema, "maxLength", _USUAL if least <= _USUAL else _LONGEST)
    pattern = schema.get("pattern")
    made = dialect_of(pattern) if isinstance(pattern, str) else None
    longest = _LONGEST if made is None else _checked_at_once(made, min(most, _LONGEST))
    if longest < least <= most:
        made, longest = None, _LONGEST
    if most > longest:
        losses.said.append(f"at most {longest} characters")
    if least > min(most, longest):
        return None
    parts = ["text"]
    parts += [f"min {least}"] if least else []
    parts += [f"max {min(most, longest)}"] if min(most, longest) != _USUAL else []
    if made is not None:
        parts.append(f"~ {quoted(made)}")
    elif isinstance(pattern, str):
        losses.said.append(f"the pattern {quoted(pattern)} is not held")
    used = frozenset(("minLength", "maxLength", "pattern"))
    return Domain(text=" ".join(parts), lost=losses.other(schema, used))


def _checked_at_once(pattern: str, most: int) -> int:
    """How long texts of a pattern may be: so that one check holds nothing up, `most` at most."""
    try:
        ensure_quick(pattern, most, "pattern")
    except Rejected:
        return MAX_STEPS // size_of(read_tree(pattern, "pattern"))
    return most


def _length(schema: Mapping[str, Any], name: str, usual: int) -> int:
    found = [math.floor(value) for value in numbers_of(schema, name) if value >= 0]
    return found[0] if found else usual
