"""The documents about a grammar or its artifact: what was compiled, what is in it, its tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tcc.schemas.parts import (
    CODE,
    COUNTS,
    DECIMAL,
    DIAGNOSTICS,
    DIGITS,
    FLAG,
    HEX32,
    PLACED,
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

# Where a grammar is refused, its diagnostics are the whole document.
REFUSED: Final = closed({"diagnostics": {**DIAGNOSTICS, "minItems": 1}})

_DECLARED = closed(
    {"name": TEXT},
    {"open": TEXTS, "observed": TEXTS, "strict": {"const": True}, "errors": {"const": "failed"}},
)
_DESCRIBED = closed(
    {
        "grammar": TEXT,
        "version": TEXT,
        "digest": HEX32,
        "root_state": HEX32,
        "counts": COUNTS,
        "plans": DIGITS,
        "race_count": DIGITS,
        "states": WHOLE,
        "edges": WHOLE,
        "calls": WHOLE,
        "max_depth": WHOLE,
        "min_cost": DECIMAL,
        "min_cost_plan": or_null(TEXTS),
        "tilt": WHOLE,
        "beta": DECIMAL,
        "nondeterministic": FLAG,
        "round_counts": or_null(WHOLE),
        "relaxed": TEXTS,
        "enforced": shared("enforced"),
    },
    {
        "config": TEXT,
        "tools": listed(_DECLARED),
        "monitors": TEXTS,
        "diagnostics": DIAGNOSTICS,
        "plans_by_depth": listed(DIGITS),
    },
)
_TESTED = closed(
    {
        "grammar": TEXT,
        "passed": FLAG,
        "examples": WHOLE,
        "expectations": WHOLE,
        "diagnostics": DIAGNOSTICS,
    }
)
_LAID_OUT = closed(
    {"file": TEXT, "changed": FLAG, "diagnostics": DIAGNOSTICS},
    {"error": TEXT, "diff": TEXT, "text": or_null(TEXT)},
)
_ENDS = {"file": TEXT, "line": PLACED, "column": PLACED, "end_line": PLACED, "end_column": PLACED}
_AT = or_null(closed(_ENDS))
_LINT = closed(
    {
        "code": CODE,
        "level": one_of("error", "warning"),
        "severity": one_of("error", "warning"),
        "message": TEXT,
        "place": _AT,
        "related": listed(closed({"message": TEXT, "place": _AT})),
    },
    {"hint": TEXT, "fix": listed(closed({**_ENDS, "text": TEXT}))},
)
_LINTED = closed(
    {
        "grammar": TEXT,
        "clean": FLAG,
        "config": or_null(TEXT),
        "mended": FLAG,
        "skipped": listed(closed({"code": CODE, "why": TEXT})),
    }
)
_SKELETON_WARNING = closed({"code": CODE, "place": TEXT, "message": TEXT})

GRAMMARS: Final[Mapping[str, Sequence[Schema]]] = {
    "compile": (_DESCRIBED, REFUSED),
    "inspect": (_DESCRIBED, REFUSED),
    "test": (
        closed({"passed": FLAG, "grammars": listed(_TESTED), "diagnostics": DIAGNOSTICS}),
        REFUSED,
    ),
    "count": (
        closed(
            {"plans": DIGITS, "counts": COUNTS, "left_to_run": TEXTS},
            {"plans_by_depth": listed(DIGITS)},
        ),
        REFUSED,
    ),
    "enumerate": (
        closed(
            {
                "plans": listed(TEXTS),
                "counts": COUNTS,
                "total": DIGITS,
                "left_to_run": TEXTS,
                "complete": FLAG,
            }
        ),
        REFUSED,
    ),
    "lint": (
        closed(
            {
                "findings": listed(_LINT),
                "undecided": listed(_LINT),
                "grammars": listed(_LINTED),
            }
        ),
        REFUSED,
    ),
    "fmt": (closed({"changed": WHOLE, "files": listed(_LAID_OUT)}),),
    "init": (closed({"grammar": TEXT, "written": TEXTS, "next": TEXTS}),),
    "import": (
        closed({"tools": WHOLE, "diagnostics": listed(_SKELETON_WARNING), "grammar": TEXT}),
    ),
}
