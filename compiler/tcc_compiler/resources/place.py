"""Places: names of the statements of a grammar, for messages of the passes.

A place names a statement without its text or its span, which the core does not have: ``plan``,
``start``, ``goal``, ``rule NAME``, ``tool NAME``, ``limit`` and its canonical text, or the members
of the core for a `require` or `forbid` (docs/spec/core.md, section 1).  Cost: constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tcc_certs.core.model import Forbid, ForbidBefore, ForbidNext, ForbidWith, Limit, Require

Statement: TypeAlias = Limit | Require | Forbid


def place_of(statement: Statement) -> str:
    """The place of a statement of the core."""
    match statement:
        case Limit():
            return f"limit {statement.text}"
        case Require(order, first, second):
            return require_place(order, first, second)
        case ForbidNext(patterns):
            return forbid_place("next", patterns)
        case ForbidWith(first, second):
            return forbid_place("with", (first, second))
        case ForbidBefore(first, second):
            return forbid_place("before", (first, second))


def require_place(order: str, first: int, second: int) -> str:
    """The place of a `require`; patterns are those of the core."""
    return f"require {order} {first} {second}"


def forbid_place(kind: str, patterns: Sequence[int]) -> str:
    """The place of a `forbid`: ``next``, ``with`` or ``before``."""
    return f"forbid {kind} {' '.join(map(str, patterns))}"
