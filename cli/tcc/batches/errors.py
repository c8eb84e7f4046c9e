"""What goes wrong with a batch: a code of the catalogue, the file, and what is the matter."""

from __future__ import annotations


class BatchError(Exception):
    """A batch cannot be made, or cannot go on.  What was finished before stays as it is.

    Args:
        code: of the catalogue of diagnostics, TCC80x or TCC90x.
        where: the file, folder or address.
        what: what is the matter, and the mend.
    """

    def __init__(self, code: str, where: str, what: str) -> None:
        self.code = code
        self.where = where
        self.what = what
        super().__init__(f"{where}: {code}: {what}")

    def __reduce__(self) -> tuple[type[BatchError], tuple[str, str, str]]:
        return BatchError, (self.code, self.where, self.what)


class PartDamaged(ValueError):
    """A part that is cut off, altered, or none at all.

    Args:
        what: where it differs.
    """
