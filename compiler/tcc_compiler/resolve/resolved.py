"""What resolving a grammar comes to: a value with nothing left to look up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcc_certs.core.model import CallSet
from tcc_certs.formats.codec import Json
from tcc_compiler.resolve.letters import Alphabet
from tcc_compiler.resolve.limits import Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A grammar with nothing left to look up.

    Attributes:
        patterns: the call sets in use, strictly increasing; other members name them by number.
        rules: those that the plan reaches, by name.
        requires: order (``before``, ``after``) and two patterns.
        chains: the patterns of each ``forbid P1 P2 ..``.
        pairs: the patterns of each ``forbid A with B``.
    """

    name: str
    version: str
    alphabet: Alphabet
    patterns: Sequence[CallSet]
    rules: Mapping[str, Json]
    plan: Json
    start: str | None
    goals: Sequence[str]
    limits: Sequence[Limit]
    requires: Sequence[tuple[str, int, int]]
    chains: Sequence[tuple[int, ...]]
    pairs: Sequence[tuple[int, int]]
