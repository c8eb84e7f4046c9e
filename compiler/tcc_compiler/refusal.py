"""How a pass says that it cannot go on; the pipeline turns it into a diagnostic."""

from __future__ import annotations

from collections.abc import Sequence


class Refused(Exception):
    """A pass has to stop.

    Args:
        code: of the catalogue, ``TCC4xx``.
        message: what is wrong, one sentence.
        hint: the mend, where there is one.
        place: the statement behind it, as ``Frontend.places`` names it: ``plan``, or ``limit`` and
            its canonical text; None where no one statement is.
        notes: the ways on, each with its place or None.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        place: str | None = None,
        notes: Sequence[tuple[str, str | None]] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.place = place
        self.notes = tuple(notes)
