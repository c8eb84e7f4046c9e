"""A run that nobody records, from its terms to its result.

Text: docs/spec/race.md, section 21.  Cost: next to that of the search some tens of microseconds.
"""

from __future__ import annotations

from collections.abc import Callable

from tcc_certs.formats.fixed import format_q64
from tcc_runtime.gauges import Unfit
from tcc_runtime.guards import ENDING, Stop, is_late
from tcc_runtime.interrupts import Interrupts
from tcc_runtime.items import Item
from tcc_runtime.load import Artifact
from tcc_runtime.modes import Claim, Terms
from tcc_runtime.numbers import UNDECIDED, clamped
from tcc_runtime.opening import race_key_of
from tcc_runtime.outcome import Found, Progress, Run, plan
from tcc_runtime.swift import Swift
from tcc_runtime.swift_coupled import SwiftCoupled
from tcc_runtime.swift_rest import SwiftRest
from tcc_runtime.tables import tables_of


class Told:
    """Tells `follow` of every step, and counts them."""

    def __init__(self, follow: Callable[[Progress], bool | None], past: int = 0) -> None:
        self._follow = follow
        self._past = past
        self._count = 0

    def __call__(self, progress: Progress) -> bool | None:
        self._count += 1
        return self._follow(progress) if self._count > self._past else None

    def again(self) -> Told:
        """Of a run that begins again: tells of what was not told yet."""
        return Told(self._follow, self._count)


def unrecorded(
    artifact: Artifact,
    terms: Terms,
    follow: Callable[[Progress], bool | None] | None,
    elapsed: Callable[[], float],
) -> Run | None:
    """The run; None where enclosures do not decide it, which a step by step run then does.

    Args:
        terms: such that :func:`tcc_runtime.swift.fits` holds.
        follow: is told of every expansion and draw; True, or KeyboardInterrupt, ends the run.
        elapsed: seconds since the run began.
    """
    settings = terms.settings
    tables = tables_of(artifact, settings.recipe, settings.inflate)
    key, ms = race_key_of(artifact, terms), settings.max_ms
    kind = SwiftRest if terms.race == "rest" else SwiftCoupled

    def late() -> bool:
        return is_late(elapsed(), ms)

    def begun() -> Swift:
        return kind(tables, key, terms, None if ms is None else late, interrupted, follow)

    with Interrupts() as interrupted:
        try:
            swift = begun()
            try:
                stop = swift.run()
            except KeyboardInterrupt:
                if not interrupted.unheld:
                    raise
                # It may have cut a step in two: begin again, and end there.
                swift, stop = begun(), Stop.INTERRUPTED
            return _result(swift, terms, stop)
        except (Unfit, *UNDECIDED):
            return None


def _result(swift: Swift, terms: Terms, stop: Stop) -> Run:
    left, best = swift.key_left(), swift.best
    settings, guard = terms.settings, ENDING.get(stop)
    full = len(best) == settings.top
    return Run(
        mode=terms.mode,
        claim_type=terms.claim if stop.certifies else Claim.NONE,
        law="softmax",
        stop=stop,
        plans=tuple([_plan(swift, *found) for found in best]),
        expansions=swift.expansions,
        leaves=swift.leaves,
        frontier_key=None if left is None else format_q64(left),
        gap=None if left is None or not full else format_q64(clamped(left + best[-1][0])),
        materialised=None,
        tail_lse=None,
        guards=() if guard is None else (guard,),
        seed=settings.seed.hex(),
        ledger_head=None,
    )


def _plan(swift: Swift, minus_value: int, name: bytes, leaf: Item) -> Found:
    calls = swift.near.calls(leaf)
    cost = sum([call.cost_low for call in calls])
    return plan([call.text for call in calls], cost, -minus_value, name)
