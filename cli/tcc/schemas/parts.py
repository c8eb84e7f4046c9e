"""What the schemas of documents are put together from: kinds of values, closed objects, lists.

The language is JSON Schema, draft 2020-12.  Every object is closed: a member that is not told here
is an error, so that a reader may rely on a schema, and a test on its being whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Schema: TypeAlias = "Mapping[str, Any]"

TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
PLACED: Final[Schema] = {"type": "integer", "minimum": 1}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
HEX16: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
HEX32: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
CODE: Final[Schema] = {"type": "string", "pattern": "^[A-Z]+[0-9]{3}$"}
# What stands in a table whose columns are those of an experiment.
CELL: Final[Schema] = {"type": ["string", "number", "boolean", "null"]}
# Numbers that may be beyond 2^53, or are no whole ones, are texts.
DIGITS: Final[Schema] = {"type": "string", "pattern": "^[0-9]+$"}
DECIMAL: Final[Schema] = {"type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?$"}


def closed(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object that has all of `required`, of `optional` what there is, and nothing else."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def listed(item: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": item}


def by_name(item: Schema) -> Schema:
    """An object whose members' names are of the grammar, or of what was counted."""
    return {"type": "object", "additionalProperties": item}


def or_null(schema: Schema) -> Schema:
    """A value, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def one_of(*values: str) -> Schema:
    """One of these texts."""
    return {"enum": list(values)}


def shared(name: str) -> Schema:
    """What stands in SHARED under that name."""
    return {"$ref": f"#/$defs/{name}"}


TEXTS: Final = listed(TEXT)
CLAIM: Final = one_of("RunWiseExact", "RunWiseSurrogate", "TruncationOnly", "NoCert")
SENSE: Final = one_of("equal", "narrower", "wider", "incomparable", "cost", "other")
COUNTS: Final = one_of("exact", "upper", "none")

_SPAN = {"file": TEXT, "line": PLACED, "column": PLACED, "end_line": PLACED, "end_column": PLACED}
_PLACE = closed({"file": TEXT, "line": PLACED, "column": PLACED})
_FOUND = {"expected": TEXT, "found": TEXT}
# What is stated of atoms (docs/privacy.md): an order is a decimal, or another method's name.
ORDER: Final[Schema] = {"anyOf": [DECIMAL, one_of("gdp", "pld", "pure")]}
STATED: Final[Mapping[str, Schema]] = {
    "router_rdp_eps": DECIMAL,
    "alpha_selected": ORDER,
    "eps_delta": closed({"delta": DECIMAL, "eps": DECIMAL}),
}
SHARED: Final[Mapping[str, Schema]] = {
    "diagnostic": closed(
        {"code": CODE, "severity": one_of("error", "warning", "note"), "message": TEXT},
        {**_SPAN, "hint": TEXT, "notes": listed(closed({"message": TEXT}, _SPAN))},
    ),
    "finding": closed({"code": CODE, "path": TEXT, **_FOUND}),
    "line": closed({"code": CODE, "line": WHOLE, "field": TEXT, **_FOUND}),
    "statement": closed({"kind": TEXT, "text": TEXT, "place": or_null(_PLACE)}),
    "plan": closed({"calls": TEXTS, "cost": DECIMAL}),
    "enforced": closed({"automaton": TEXTS, "gate": TEXTS, "run": TEXTS}),
}
DIAGNOSTICS: Final = listed(shared("diagnostic"))
