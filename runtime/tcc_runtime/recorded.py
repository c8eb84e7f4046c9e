"""A run that is recorded, from its terms to its result.

Text: docs/spec/race.md, sections 7 and 9.  It takes the runs in which no guard looks at a node and
no number can be clamped: those that :mod:`tcc_runtime.swift` takes, too.
Cost: next to that of the search some hundred microseconds.
"""

from __future__ import annotations

from collections.abc import Callable

from tcc_certs.formats.fixed import format_q64
from tcc_runtime.entries import Item, above
from tcc_runtime.guards import ENDING, Stop, is_late
from tcc_runtime.load import Artifact
from tcc_runtime.modes import Claim, Terms
from tcc_runtime.numbers import clamped
from tcc_runtime.opening import race_key_of
from tcc_runtime.outcome import Found, Run, plan
from tcc_runtime.recorder import Recorder
from tcc_runtime.steps import Follow, Steps
from tcc_runtime.tables import tables_of


def recorded(
    artifact: Artifact,
    terms: Terms,
    recorder: Recorder,
    follow: Follow | None,
    elapsed: Callable[[], float],
    interrupted: Callable[[], bool],
) -> Run:
    """The run.

    Args:
        terms: such that :func:`tcc_runtime.swift.fits` holds.
        recorder: not opened yet.
        follow: is told of every expansion and draw; True, or KeyboardInterrupt, ends the run.
        elapsed: seconds since the run began.
        interrupted: whether Ctrl-C was pressed.

    Raises:
        LedgerError: the ledger cannot be written.
    """
    settings = terms.settings
    tables, ms = tables_of(artifact, settings.recipe, settings.inflate), settings.max_ms

    def late() -> bool:
        return is_late(elapsed(), ms)

    key, due = race_key_of(artifact, terms), None if ms is None else late
    recorder.open(artifact, terms)
    steps = Steps(tables, key, terms, recorder, due, interrupted, follow)
    return recorder.close(_result(steps, terms, steps.run()))


def _result(steps: Steps, terms: Terms, stop: Stop) -> Run:
    left, incumbent = steps.key_left, steps.incumbent
    gap = None if left is None or incumbent is None else clamped(left - incumbent)
    return Run(
        mode=terms.mode,
        claim_type=terms.claim if stop.certifies else Claim.NONE,
        law="softmax",
        stop=stop,
        plans=tuple([_plan(*found) for found in steps.best]),
        expansions=steps.expansions,
        leaves=steps.leaves,
        frontier_key=None if left is None else format_q64(left),
        gap=None if gap is None else format_q64(gap),
        materialised=None,
        tail_lse=None,
        guards=(ENDING[stop],) if stop in ENDING else (),
        seed=terms.settings.seed.hex(),
        ledger_head=None,
    )


def _plan(minus_value: int, digest: bytes, leaf: Item) -> Found:
    calls = []
    step = above(leaf)
    while step is not None:
        if step[10] is not None:
            calls.append(step[10].call)
        step = above(step)
    calls.reverse()
    cost = sum([call.cost_low for call in calls])
    return plan([call.text for call in calls], cost, -minus_value, digest)
