"""The calls of a session that its gate still needs: the latest ones, and those without an outcome.

Text: docs/gate.md.  Cost: constant time for each call.  The oldest calls are dropped in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from tcc_certs.formats.codec import Json
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST, OPEN, Call
from tcc_certs.session.machine import Offer
from tcc_runtime.gate.answers import Outcome

MOST_TOLD: Final = 1_000  # calls in `gate.history`
NOTHING: Final[Mapping[str, Json]] = MappingProxyType({})
_OUTCOMES: Final[Mapping[str, Outcome]] = {
    OPEN: "unknown", LOST: "unknown", DONE: "done", FAILED: "failed", ANSWERED: "failed",
}  # fmt: skip


class Made(Struct):
    """A call that was made.

    Attributes:
        offer: the tool and the listed arguments, in the form of the automaton.
        call: the call in the form of the statements.
        line: the number of its record.
        opened: entries of its open arguments in the ledger.
        model: the model that makes the call, or ''.
        unforeseen: whether a part of its answer is not known.
        drawn: the attempt under which an account counted the call; None: no account did.
        has_ref: whether the caller passed an id.
    """

    offer: Offer
    call: Call
    line: int = 0
    opened: Mapping[str, Json] = NOTHING
    model: str = ""
    unforeseen: bool = False
    drawn: int | None = None
    has_ref: bool = False

    @property
    def outcome(self) -> Outcome:
        """The outcome; ``unknown`` while the call is under way."""
        return _OUTCOMES[self.call.outcome]


class MadeCalls:
    """The calls of one session; `len` counts dropped calls, too."""

    __slots__ = ("_count", "_of", "_outcomes", "_trim_at")

    def __init__(self) -> None:
        self._count = 0
        self._of: dict[int, Made] = {}  # by the number of the call, from 1
        # outcomes of dropped calls whose callers passed ids
        self._outcomes: dict[int, Outcome] = {}
        self._trim_at = 2 * MOST_TOLD

    def __len__(self) -> int:
        return self._count

    @property
    def is_complete(self) -> bool:
        """True if no call was dropped."""
        return len(self._of) == self._count

    def append(self, made: Made) -> int:
        """Add a call; return its number."""
        self._count += 1
        self._of[self._count] = made
        if len(self._of) > self._trim_at:
            self._trim()
        return self._count

    def _trim(self) -> None:
        """Drop the oldest calls whose outcomes are known."""
        for seq in [seq for seq in self._of if seq <= self._count - MOST_TOLD]:
            made = self._of[seq]
            if made.call.outcome in (OPEN, LOST):
                continue
            if made.has_ref:
                self._outcomes[seq] = made.outcome
            del self._of[seq]
        self._trim_at = len(self._of) + MOST_TOLD

    def of(self, seq: int) -> Made:
        """Return a call by its number, from 1.

        Raises:
            KeyError: no call has the number, or it was dropped.
        """
        return self._of[seq]

    def get(self, seq: int) -> Made | None:
        """Return a call by its number; None: no call has the number, or it was dropped."""
        return self._of.get(seq)

    def outcome(self, seq: int) -> Outcome:
        """Return the outcome of a call whose caller passed an id.  It may have been dropped."""
        made = self._of.get(seq)
        return self._outcomes[seq] if made is None else made.outcome

    def latest(self) -> Iterator[tuple[int, Made]]:
        """Yield the number and the call of the last calls, in order."""
        first = self._count - MOST_TOLD
        return ((seq, made) for seq, made in self._of.items() if seq > first)

    def items(self) -> Iterator[tuple[int, Made]]:
        """Yield the number and the call of the calls that were not dropped, in order."""
        return iter(self._of.items())

    def __iter__(self) -> Iterator[Made]:
        """Yield the calls that were not dropped, in order."""
        return iter(self._of.values())
