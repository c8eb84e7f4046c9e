"""The documents that are graphs: node-link JSON as networkx reads it, with a head of ours.

Integers beyond 2^53, and decimals that no float says exactly, are texts.  Attributes:
docs/pictures.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tcc.schemas.grammars import REFUSED
from tcc.schemas.parts import (
    COUNTS,
    DECIMAL,
    DIGITS,
    FLAG,
    HEX32,
    TEXT,
    WHOLE,
    Schema,
    closed,
    listed,
    one_of,
)

_EXACT = {"anyOf": [{"type": "integer"}, DECIMAL]}
_AMOUNT = {"anyOf": [{"type": "number"}, DECIMAL]}
_OF_ALL = {
    "name": TEXT,
    "version": TEXT,
    "digest": HEX32,
    "root": WHOLE,
    "root_state": HEX32,
    "counts": COUNTS,
    "plans": DIGITS,
    "states": WHOLE,
    "edges": WHOLE,
    "calls": WHOLE,
    "max_depth": WHOLE,
    "min_cost": _AMOUNT,
    "beta": DECIMAL,
    "tilt": WHOLE,
    "nondeterministic": FLAG,
    "relaxed": TEXT,
}
_STATE = closed(
    {
        "id": WHOLE,
        "start": FLAG,
        "accept": FLAG,
        "rank": WHOLE,
        "plans": DIGITS,
        "cost_to_go": _AMOUNT,
        "residual_to_go": _EXACT,
        "state_digest": HEX32,
    },
    {"race_count": DIGITS, "race_mantissa": DIGITS, "race_exponent": _EXACT},
)
_PREFIX = closed(
    {
        "id": WHOLE,
        "kind": one_of("node", "cut", "leaf"),
        "prefix": TEXT,
        "depth": WHOLE,
        "state": WHOLE,
        "accept": FLAG,
        "plans": DIGITS,
        "cost": _AMOUNT,
        "cost_to_go": _AMOUNT,
        "rank": WHOLE,
        "context": HEX32,
    },
    {"leaf_id": HEX32},
)
_ENDS = {"source": WHOLE, "target": WHOLE, "key": TEXT}
_CALL = {
    "call": TEXT,
    "tool": TEXT,
    "arguments": TEXT,
    "cost": _AMOUNT,
    "price": _EXACT,
    "latency_ms": _EXACT,
    "epsilon": _AMOUNT,
    "race_weight": _EXACT,
}
_EDGE = closed({**_ENDS, **_CALL}, {"cost_high": _AMOUNT})
_STOP = closed({**_ENDS, "stop": {"const": True}})


def _graph(of_all: Mapping[str, Schema], node: Schema, edge: Schema) -> Schema:
    return closed(
        {
            "directed": {"const": True},
            "multigraph": {"const": True},
            "graph": closed(of_all),
            "nodes": listed(node),
            "edges": listed(edge),
        }
    )


GRAPHS: Final[Mapping[str, Sequence[Schema]]] = {
    "graph": (_graph(_OF_ALL, _STATE, _EDGE), REFUSED),
    "unroll": (
        _graph({**_OF_ALL, "depth": WHOLE}, _PREFIX, {"anyOf": [_EDGE, _STOP]}),
        REFUSED,
    ),
}
