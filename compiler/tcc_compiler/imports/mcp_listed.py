"""The schemas that list values as domains, and the same values open.

Normative text: docs/spec/language.md, section 12.  Cost: linear in the values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tcc_certs.values.numbers import canonical_number
from tcc_certs.values.text_syntax import MAX_PATTERN
from tcc_compiler.imports.mcp_domains import (
    Domain,
    Losses,
    has_type,
    is_number,
    quoted,
    value_text,
)
from tcc_compiler.imports.mcp_pattern import dialect_of

_ESCAPED = frozenset("\\.+*?()[]{}^$|")


def listed_domain(
    schema: Mapping[str, Any], values: Sequence[Any], used: frozenset[str]
) -> Domain | None:
    """The domain that lists these values.

    Args:
        used: the keywords of the schema that say so.

    Returns:
        None where no value has the schema's type.
    """
    if any(isinstance(value, Mapping | list) for value in values):
        return Domain(text="json", lost=("its shape is not held: enum",))
    losses = Losses()
    texts: dict[str, Any] = {}
    for value in values:
        text = value_text(value) if has_type(value, schema.get("type")) else None
        if text is not None:
            texts[text] = value
        elif has_type(value, schema.get("type")):
            losses.said.append(f"the value {json.dumps(str(value)[:40])} is refused everywhere")
    if not texts:
        return None
    lost = losses.other(schema, used)
    opened = _opened(list(texts.values()), lost)
    return Domain(text=" | ".join(texts), values=len(texts), opened=opened, lost=lost)


def _opened(values: Sequence[Any], lost: tuple[str, ...]) -> Domain:
    """The same values, open: a pattern lists texts, bounds enclose numbers."""
    if all(isinstance(value, str) for value in values):
        pattern = dialect_of("^(?:" + "|".join(map(_literal, values)) + ")$")
        if pattern is not None and len(pattern) <= MAX_PATTERN:
            return Domain(text=f"text ~ {quoted(pattern)}", lost=lost)
        return Domain(text="text", lost=(*lost, "its values are not held: there are too many"))
    if all(isinstance(value, bool) for value in values):
        whole = () if len(values) == 2 else ("one of two values is let through, too",)
        return Domain(text="flag", lost=(*lost, *whole))
    if all(is_number(value) for value in values):
        texts = [canonical_number(value) for value in values]
        low, high = min(texts, key=Decimal), max(texts, key=Decimal)
        kind = "number" if any("." in text for text in texts) else "integer"
        said = f"any {kind} between its values is let through"
        return Domain(text=f"{kind} {low} .. {high}", lost=(*lost, said))
    return Domain(text="json", lost=(*lost, "its values are not held"))


def _literal(text: str) -> str:
    return "".join(f"\\{char}" if char in _ESCAPED else char for char in text)
