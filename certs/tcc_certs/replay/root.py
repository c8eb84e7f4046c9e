"""The root of a run: the root of the artifact, or where the calls of `after` lead from there.

Normative text: docs/spec/race.md, sections 2 and 23.  The calls that were made before the run
count for three things: its context D is folded along them, its state is where they lead, and the
statements left to the run have seen them.  All else (costs, depth, ranks, counts, the cut and its
tail) begins at that state.  `after` is a claim of the ledger like any other: where no edge carries
one of its calls, or a statement forbids it, it is no prefix of a plan, and the ledger is invalid.
Cost: a bisection in the calls and one among the edges of each state held, for each call.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.automaton import Automaton
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.digest import child_context, root_context
from tcc_certs.replay.constraints import Constraints, Tally, residual_constraints
from tcc_certs.replay.language import States


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """Where a run begins.

    Attributes:
        after: the numbers of the calls before it.
        states: where they lead, strictly increasing.
        digest: D.
        tally: what the statements left to the run have seen; those of a cut begin here.
        rank: d, the most calls that may follow.
    """

    after: tuple[int, ...]
    states: States
    digest: bytes
    tally: Tally
    rank: int


def root_of(artifact: CheckedArtifact, after: Sequence[str] = ()) -> Root:
    """The root of a run after these calls.

    Raises:
        Rejected: L201 they are no prefix of a plan.
    """
    rows = artifact.automaton
    states: States = (rows.root,)
    digest = root_context(artifact.file.manifest.root_document)
    constraints = residual_constraints(artifact, None) if after else Constraints(items=())
    tally: Tally | None = constraints.start
    calls: list[int] = []
    for text in after:
        call = _number(artifact.calls, text)
        states = () if call is None else _led(rows, states, call)
        tally = None if tally is None or call is None else constraints.after(tally, call)
        if not states or call is None or tally is None:
            expected = f"a call that may follow the {len(calls)} before it"
            raise Rejected(Code.LEDGER_HEADER, "after", expected, text)
        digest = child_context(digest, text.encode())
        calls.append(call)
    rank = max([rows.rank[q] for q in states])
    return Root(after=tuple(calls), states=states, digest=digest, tally=tally or (), rank=rank)


def _number(calls: Sequence[str], text: str) -> int | None:
    """The number of a call; None where there is none of that text."""
    at = bisect_left(calls, text)
    return at if at < len(calls) and calls[at] == text else None


def _led(rows: Automaton, states: States, call: int) -> States:
    """All states that the call leads to from one of `states`."""
    found: set[int] = set()
    for q in states:
        end = rows.edge_start[q + 1]
        at = bisect_left(rows.edge_call, call, rows.edge_start[q], end)
        while at < end and rows.edge_call[at] == call:
            found.add(rows.edge_target[at])
            at += 1
    return tuple(sorted(found))
