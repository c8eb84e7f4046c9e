"""The documents about signed statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tcc.schemas.parts import (
    HEX32,
    TEXT,
    Schema,
    closed,
    listed,
    one_of,
    or_null,
    shared,
)

# What a key's owner signed is theirs: of the predicate no more is promised than its kind.
_STATEMENT = closed(
    {
        "_type": {"const": "https://in-toto.io/Statement/v1"},
        "subject": {
            **listed(closed({"name": TEXT, "digest": closed({"blake3": TEXT, "sha256": TEXT})})),
            "minItems": 1,
            "maxItems": 1,
        },
        "predicateType": {"const": "urn:tcc:predicate:1.0"},
        "predicate": {
            "type": "object",
            "properties": {"kind": one_of("artifact", "ledger", "session")},
            "required": ["kind"],
        },
    }
)

SIGNATURES: Final[Mapping[str, Sequence[Schema]]] = {
    "sign": (
        closed({"envelope": TEXT, "keyid": HEX32, "statement": _STATEMENT}),
        closed({"private": TEXT, "public": TEXT, "keyid": HEX32}),
    ),
    "verify": (
        closed(
            {
                "verdict": one_of("VALID", "INVALID"),
                "findings": listed(shared("diagnostic")),
                "keyid": or_null(HEX32),
                "file": or_null(TEXT),
                "statement": or_null(_STATEMENT),
            }
        ),
    ),
}
