"""``recovered``: a run that broke off was taken up here.

Normative text: docs/spec/ledger.md, section 3.  What was dropped before it nobody can know.
"""

from __future__ import annotations

from tcc_certs.errors import Code, ensure
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size
from tcc_certs.replay.run import Run


def replay_recovered(run: Run, record: Record, line: int) -> None:
    """Hold a ``recovered`` record against the number of records before it.

    Raises:
        Rejected: L104 it tells another number.
    """
    stated = size(record, "records")
    ensure(stated == line - 1, Code.LEDGER_ORDER, "records", line - 1, stated)
