"""A resolved grammar: every name replaced by what it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from tcc_certs.core.model import CallSet
from tcc_certs.formats.codec import Json
from tcc_compiler.frozen import frozen
from tcc_compiler.language.spans import Region
from tcc_compiler.resolve.calls import CallList
from tcc_compiler.resolve.limits import ResolvedLimit
from tcc_compiler.resolve.monitors import Monitor


@frozen
class Resolved:
    """A grammar in which every name is replaced by what it stands for.

    Attributes:
        patterns: the call sets in use, strictly increasing; other members name them by number.
        rules: those that the plan reaches, by name.
        requires: order (``after``, ``before``, ``each``) and two patterns.
        forbids: kind (``before``, ``next``, ``with``) and the patterns.
        places: the region of each statement, by its place (:mod:`tcc_compiler.resources.place`).
        written: the same for every statement, where two of them say one thing, too.
    """

    name: str
    version: str
    call_list: CallList
    patterns: Sequence[CallSet]
    rules: Mapping[str, Json]
    plan: Json
    start: str | None
    goals: Sequence[str]
    limits: Sequence[ResolvedLimit]
    requires: Sequence[tuple[str, int, int]]
    forbids: Sequence[tuple[str, tuple[int, ...]]]
    monitors: Sequence[Monitor] = ()
    places: Mapping[str, Region] = field(default_factory=dict)
    written: Sequence[tuple[str, Region]] = ()
