"""What a faster reader of ledgers has to be, to be handed in.

`validate` without one is the definition, and every finding is the definition's either way.  A
shortcut takes lines for as long as each has, to the byte, what the definition would expect; then it
leaves the run as the definition would have it after those, and hands over the next line.  So a
wrong one can pass a line, and can refuse none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.replay.run import Run


class Shortcut(Protocol):
    """A faster reader of the records that a seed determines."""

    def follow(
        self, artifact: CheckedArtifact, run: Run, reader: LedgerReader, lines: Iterator[bytes]
    ) -> bytes | None:
        """The first of these lines that it does not pass; None: it passed them to their end.

        Args:
            artifact: whose run this is.
            run: as the definition has it before the first of these lines; afterwards, as it would
                have it after the last that was passed.
            reader: its `head` and `records` are moved on past each line that is passed.

        Raises:
            Rejected: as the reader.
        """
