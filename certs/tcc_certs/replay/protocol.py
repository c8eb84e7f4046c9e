"""What may come at all, asked of every line, whoever takes it and however fast.

Normative text: docs/spec/ledger.md, section 3.  A record passes in two ways: it is held against the
one that is expected (:mod:`tcc_certs.replay.steps`), or a shortcut that was handed in passes it for
its bytes (:mod:`tcc_certs.replay.shortcut`).  What holds of all records alike stands here, before
both: both take their lines from :meth:`Protocol.lines` alone, so neither can pass by.
Cost: one comparison a line.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.replay.run import Run


class Protocol:
    """Whether a ledger has ended, and whether its next record may be passed for its bytes.

    Attributes:
        closed: a ``close`` was read.
    """

    def __init__(self) -> None:
        self.closed = False

    def lines(self, reader: LedgerReader) -> Iterator[bytes]:
        """The lines of a ledger, each once, for as long as lines may come.

        Raises:
            Rejected: L104 a line after ``close``; L101 or L102 one that breaks the chain as well;
                else as the reader.
        """
        for line in reader.unverified():
            if self.closed:
                kind = reader.verified(line).record.get("kind")
                path = f"line {reader.records}: kind"
                raise Rejected(Code.LEDGER_ORDER, path, "nothing after close", kind)
            yield line

    def lets_pass(self, run: Run | None) -> bool:
        """Whether a shortcut may be asked about the next line.

        There is a run, its header passed and its seed known; it has not ended; and nothing is
        expected that only one kind of record may answer.
        """
        return not self.closed and run is not None and run.key is not None and run.awaits is None
