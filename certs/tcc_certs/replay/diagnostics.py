"""Kappa and the tightened key of each node: diagnostics, for whoever asks for them.

Normative text: docs/spec/ledger.md, section 10.  Nothing here is part of a verdict, and no claim
rests on it: a key of a run is that of its own race, and the tightened one belongs to another.
Cost: one small object a node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tcc_certs.formats.codec import Json
from tcc_certs.formats.decimals import divide_nearest
from tcc_certs.formats.fixed import format_q32, format_q64
from tcc_certs.race.digest import uuid7
from tcc_certs.race.published import clamp
from tcc_certs.replay.kappa import KAPPA_BITS
from tcc_certs.replay.tree import Node

NodeSink: TypeAlias = "Callable[[Mapping[str, Json]], None]"


def node_diagnostic(started_ms: int, node: Node, key: int, kappa: int | None) -> Mapping[str, Json]:
    """What is said of a node that was pushed.

    Args:
        key: Q64.64, as it was published.
        kappa: in units of 2^-96, at most 0; None where there is none: no exact counts are at hand,
            no plan is below the node, or its key does not come of counts.
    """
    tight: dict[str, Json] = {}
    if kappa is not None:
        tight["kappa"] = format_q32(divide_nearest(kappa, 1 << KAPPA_BITS - 32))
        # Rounded up, as a bound is.
        tight["key_tight"] = format_q64(clamp(key - (-kappa >> KAPPA_BITS - 64)))
    return {
        "diagnostic": True,
        "node_id": uuid7(started_ms, node.digest),
        "ctx_digest": node.digest.hex(),
        "key_raw": format_q64(key),
        **tight,
    }
