"""What a record of each kind has to say, and what it changes in the run: a page a kind.

Normative text: docs/spec/ledger.md, sections 3, 5 and 11.  ``open`` and ``close`` are with
:mod:`tcc_certs.replay.opening` and :mod:`tcc_certs.replay.closing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tcc_certs.formats.ledger import Record
from tcc_certs.replay.kinds.budget import replay_budget
from tcc_certs.replay.kinds.downgrade import replay_downgrade
from tcc_certs.replay.kinds.draw import replay_draw
from tcc_certs.replay.kinds.expand import replay_expand
from tcc_certs.replay.kinds.leaf import replay_leaf
from tcc_certs.replay.kinds.node import replay_node
from tcc_certs.replay.kinds.recovered import replay_recovered
from tcc_certs.replay.kinds.refine import replay_refine
from tcc_certs.replay.kinds.requeue import replay_requeue
from tcc_certs.replay.kinds.rest import replay_rest
from tcc_certs.replay.run import Run

KINDS: Mapping[str, Callable[[Run, Record, int], None]] = {
    "node": replay_node,
    "expand": replay_expand,
    "leaf": replay_leaf,
    "rest": replay_rest,
    "draw": replay_draw,
    "requeue": replay_requeue,
    "budget": replay_budget,
    "refine": replay_refine,
    "downgrade": replay_downgrade,
    "recovered": replay_recovered,
}
