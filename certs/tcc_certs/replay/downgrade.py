"""The ``downgrade`` record: fallback from here on, for every leaf and every item.

Normative text: docs/spec/ledger.md, section 5.  Cost: a key for every leaf and every item.
"""

from __future__ import annotations

from dataclasses import replace

from tcc_certs.errors import Code, ensure
from tcc_certs.ledger import Record
from tcc_certs.replay.fallback import Fallback
from tcc_certs.replay.findings import NO_CERT
from tcc_certs.replay.records import compare, downgrade_record
from tcc_certs.replay.run import Run
from tcc_certs.replay.words import unlogged_words


def replay_downgrade(run: Run, record: Record, line: int) -> None:
    """What a `CountFail` makes of a run; an item of the rest race has its node's bound then.

    Raises:
        Rejected: L604 no guard asks for it; D302 leaves have values that want the seed.
    """
    ensure(run.must_downgrade, Code.GUARD, "kind", "no downgrade", "downgrade")
    compare(downgrade_record(), record, line, Code.GUARD, run.findings)
    run.claim = NO_CERT
    fallback = Fallback(language=run.language, tau=run.header.tau)
    run.policy = fallback
    word = unlogged_words(run.key)
    run.best.revalue(lambda leaf: fallback.push(leaf, word).key)
    run.frontier.rekey(lambda item: replace(item, key=fallback.push(item, word).key, arrival=None))
