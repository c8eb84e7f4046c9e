"""The ``downgrade`` record: surrogate from the root on, or fallback for every leaf and every item.

Normative text: docs/spec/ledger.md, section 5.  Cost: of fallback a key for every leaf and every
item.
"""

from __future__ import annotations

from dataclasses import replace

from tcc_certs.errors import Code, ensure
from tcc_certs.formats.ledger import Record
from tcc_certs.replay.fallback import Fallback
from tcc_certs.replay.findings import NO_CERT, RUN_WISE_EXACT, RUN_WISE_SURROGATE
from tcc_certs.replay.guards import BUDGET, COUNT
from tcc_certs.replay.policy import with_key
from tcc_certs.replay.records import compare, downgrade_record
from tcc_certs.replay.run import Run
from tcc_certs.replay.tree import Node
from tcc_certs.replay.turn import at_cost
from tcc_certs.replay.words import unlogged_words


def replay_downgrade(run: Run, record: Record, line: int) -> None:
    """What a `CountFail` or a `BudgetFail` makes of a run.

    Rounded counts are bounds from the root on, and of the claim nothing is lost but its name.  In
    fallback an item of the rest race has its node's bound.

    Raises:
        Rejected: L604 no guard asks for it; D302 leaves have values that want the seed.
    """
    if run.narrows:
        run.claim, run.narrows = lowered(run.claim), False
        expected = downgrade_record("surrogate", run.claim, COUNT)
        compare(expected, record, line, Code.GUARD, run.findings)
        return
    ensure(run.falls_back, Code.GUARD, "kind", "no downgrade", "downgrade")
    expected = downgrade_record("fallback", NO_CERT, BUDGET)
    compare(expected, record, line, Code.GUARD, run.findings)
    run.claim, run.falls_back = NO_CERT, False
    run.policy = fallback = Fallback(language=run.language, tau=run.header.tau)
    word = unlogged_words(run.key)

    def pushed(item: Node) -> Node:
        item = at_cost(item, run.refinement)
        return with_key(replace(item, arrival=None), fallback.push(item, word))

    run.best.revalue(lambda leaf: pushed(leaf).key)
    run.frontier.rekey(pushed)


def lowered(claim: str) -> str:
    """The claim of a run whose counts have become bounds before its first word is drawn."""
    return RUN_WISE_SURROGATE if claim == RUN_WISE_EXACT else claim
