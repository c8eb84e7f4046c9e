"""How a pass says that it cannot go on; the pipeline turns it into a diagnostic."""

from __future__ import annotations


class Refused(Exception):
    """A pass has to stop.

    Args:
        code: of the catalogue, ``TCC4xx``.
        message: what is wrong, one sentence.
        hint: the mend, where there is one.
        notes: figures and witnesses, one sentence each.
    """

    def __init__(
        self, code: str, message: str, hint: str | None = None, notes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.notes = notes
