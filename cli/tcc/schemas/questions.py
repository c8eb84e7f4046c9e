"""The documents that answer questions about plans: why, diff, cheapest, sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tcc.schemas.grammars import REFUSED
from tcc.schemas.parts import (
    DECIMAL,
    DIGITS,
    FLAG,
    SENSE,
    TEXT,
    TEXTS,
    WHOLE,
    Schema,
    closed,
    listed,
    one_of,
    or_null,
    shared,
)

_STATEMENTS = listed(shared("statement"))
_WITNESSES = closed({"shortest": or_null(TEXTS), "cheapest": or_null(TEXTS)})
_SIDES = ("added", "removed")
_CHANGED = closed({"name": TEXT, "old": TEXT, "new": TEXT, "sense": SENSE})
_CHANGES = closed({"added": TEXTS, "removed": TEXTS, "changed": listed(_CHANGED)})
_MEMBER = closed(
    {"of": TEXT, "name": TEXT, "old": or_null(TEXT), "new": or_null(TEXT), "sense": SENSE}
)
_AMOUNT = closed({"old": TEXT, "new": TEXT})

_WHY = closed(
    {
        "allowed": FLAG,
        "position": WHOLE,
        "may_stop": FLAG,
        "allowed_next": TEXTS,
        "because": _STATEMENTS,
        "smallest": FLAG,
        "nearest": or_null(TEXTS),
    },
    {"others": listed(_STATEMENTS), "hint": TEXT},
)
_DIFF = closed(
    {
        "verdict": or_null(SENSE),
        "plans": or_null(one_of("equal", "narrower", "wider", "incomparable")),
        "counts": one_of("exact", "upper"),
        "added": DIGITS,
        "removed": DIGITS,
        "common": DIGITS,
        "witnesses": closed(dict.fromkeys(_SIDES, _WITNESSES)),
        "because": closed(dict.fromkeys(_SIDES, _STATEMENTS)),
        "calls": or_null(closed({"added": TEXTS, "removed": TEXTS, "amounts": TEXTS})),
        "monitors": _CHANGES,
        "open": _CHANGES,
        "members": listed(_MEMBER),
        "breaking": FLAG,
    },
    {
        "amounts": listed(
            closed({"call": TEXT}, dict.fromkeys(("cost", "price", "latency", "epsilon"), _AMOUNT))
        ),
        "reason": TEXT,
    },
)
_PLANS = listed(shared("plan"))

QUESTIONS: Final[Mapping[str, Sequence[Schema]]] = {
    "why": (_WHY, REFUSED),
    "diff": (_DIFF, REFUSED),
    "cheapest": (closed({"plans": _PLANS}), REFUSED),
    "sample": (
        closed(
            {
                "law": one_of("uniform", "softmax"),
                "seed": {"type": "string", "pattern": "^([0-9a-f]{2})+$"},
                "plans": _PLANS,
            },
            {"beta": DECIMAL},
        ),
        REFUSED,
    ),
}
