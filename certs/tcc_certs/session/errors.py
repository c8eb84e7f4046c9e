"""Errors that were read: what the forbids of a core make of a call that changed nothing.

A call that failed with an answer (`answered`) counts for no limit and no require, but whoever made
it has read what was said.  For `forbid` it counts as done, its observed values unknown
(docs/spec/session.md, section 5).  The automaton does not know of such calls; so each forbid over a
tool whose errors mean failure is held here beside it, from the core.  What the forbids know is one
immutable value, so that a step is taken back by going back to the value before it.
Cost: a bit operation or two a call for each such forbid; nothing where the core has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from tcc_certs.core.model import Core, Forbid, ForbidBefore, ForbidNext, ForbidWith, members
from tcc_certs.session.monitors.keyed import Values

How: TypeAlias = "Literal['done', 'unknown', 'answered']"
# Of each forbid the patterns met, as bits: by calls alone, and with an error that was read.  Of a
# forbid of neighbours bit j says that the last j + 1 calls are in its patterns 0 to j.
Known: TypeAlias = "tuple[tuple[int, int], ...]"


class ErrorForbids:
    """The forbids of a core over tools whose errors mean failure.

    Attributes:
        start: what they know before the first call; empty where there are none.
    """

    def __init__(self, core: Core) -> None:
        failing = {at for at, tool in enumerate(core.tools) if tool.errors_failed}
        self._core = core
        self._forbids: list[tuple[Forbid, int, dict[int, int]]] = []
        for forbid in core.forbids if failing else ():
            sets = [core.patterns[at] for at in _patterns(forbid)]
            bits: dict[int, int] = {}
            for at, calls in enumerate(sets):
                for call in members(calls):
                    bits[call] = bits.get(call, 0) | 1 << at
            if any(core.calls[met].tool in failing for met in bits):
                self._forbids.append((forbid, len(sets), bits))
        self.start: Known = tuple([(0, 0)] * len(self._forbids))
        self._by_tool: dict[int, list[int]] = {}
        for index, made in enumerate(core.calls) if self._forbids else ():
            self._by_tool.setdefault(made.tool, []).append(index)
        self._kept: dict[tuple[int, Values], tuple[int, ...]] = {}

    def forbids(self, known: Known, tool: int, values: Values) -> str | None:
        """The text of the first forbid that an error that was read puts in the way of a call."""
        if not any(read for _, read in known):
            return None
        for (forbid, length, _), (_, read), met in zip(
            self._forbids, known, self._met(tool, values), strict=True
        ):
            if _refuses(forbid, length, read, met):
                from tcc_certs.core.enforced import EnforcedTexts  # here: few sessions refuse so

                return EnforcedTexts(self._core).of(forbid)
        return None

    def after(self, known: Known, tool: int, values: Values, how: How) -> Known:
        """What is known behind a call.

        Args:
            values: with the observed ones where it was done and they are known; None: any.
        """
        return tuple(
            [
                _after(forbid, length, before, met, how)
                for (forbid, length, _), before, met in zip(
                    self._forbids, known, self._met(tool, values), strict=True
                )
            ]
        )

    def _met(self, tool: int, values: Values) -> tuple[int, ...]:
        """For each forbid the patterns that a call is in, or may be in."""
        found = self._kept.get((tool, values))
        if found is None:
            calls = [
                index
                for index in self._by_tool.get(tool, ())
                if _agrees(self._core.calls[index].values, values)
            ]
            found = self._kept[tool, values] = tuple(
                [_union(bits, calls) for _, _, bits in self._forbids]
            )
        return found


def _patterns(forbid: Forbid) -> Sequence[int]:
    return forbid.patterns if isinstance(forbid, ForbidNext) else (forbid.first, forbid.second)


def _agrees(made: Sequence[int], values: Values) -> bool:
    return all(value is None or value == one for one, value in zip(made, values, strict=True))


def _union(bits: dict[int, int], calls: Sequence[int]) -> int:
    found = 0
    for call in calls:
        found |= bits.get(call, 0)
    return found


def _refuses(forbid: Forbid, length: int, read: int, met: int) -> bool:
    match forbid:
        case ForbidBefore():
            return bool(read & 1 and met & 2)
        case ForbidWith():
            return bool((read & 1 and met & 2) or (read & 2 and met & 1))
        case _:
            return bool(met & (read << 1) & (1 << (length - 1)))


def _after(
    forbid: Forbid, length: int, before: tuple[int, int], met: int, how: How
) -> tuple[int, int]:
    plain, read = before
    if not isinstance(forbid, ForbidNext):  # calls are the automaton's
        return (0, read | met) if how == "answered" else before
    most = (1 << (length - 1)) - 1  # a whole match was refused, or is the automaton's
    if how == "answered":
        return 0, met & ((plain | read) << 1 | 1) & most
    after = met & (plain << 1 | 1) & most, met & (read << 1) & most
    return after if how == "done" else (plain | after[0], read | after[1])
