"""The exception by which a pass refuses its input; the pipeline makes it a diagnostic."""

from __future__ import annotations

from collections.abc import Sequence


class Refused(Exception):
    """A pass refuses its input.

    Args:
        code: of the catalogue, ``TCC4xx``.
        message: what is wrong, one sentence.
        hint: how to correct it, if there is a way.
        place: the statement that caused it (:mod:`tcc_compiler.resources.place`); None where no
            single statement did.
        notes: further messages, such as what would fit the limits; each with its place or None.
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
