"""The search: best first over the prefix DAG until no key left exceeds the incumbent.

Text: docs/spec/race.md, section 9.  It asks the race and is answered; what it does is told to the
recorder.  Each item is looked at before it is popped, and what it publishes is computed before
anything changes, so a run that ends early ends between two steps.
Cost: one expansion (:mod:`tcc_runtime.race`) and its heap operations a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.fixed import format_q64
from tcc_runtime.errors import Undecided
from tcc_runtime.frontier import Frontier, Incumbent
from tcc_runtime.guards import Caps, Descent, Guard, Potential, Stop
from tcc_runtime.interrupts import held_interrupts
from tcc_runtime.load import Artifact
from tcc_runtime.outcome import Progress, Run, found
from tcc_runtime.race import Node, Race, seeded_draw
from tcc_runtime.recorder import Recorder
from tcc_runtime.settings import Settings
from tcc_runtime.tables import State, tables_of

OnExpand: TypeAlias = Callable[[Progress], "bool | None"]


def search(
    artifact: Artifact,
    settings: Settings,
    recorder: Recorder | None = None,
    on_expand: OnExpand | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Run:
    """Finds the best plans of one realised race, and shows that no other is better.

    Args:
        artifact: with exact counts.
        settings: the seed and everything else a run may be told.
        recorder: writes the ledger; None records nothing.
        on_expand: called after each expansion; True, or KeyboardInterrupt, ends the run.
        clock: seconds, from any origin, never falling; only `max_seconds` looks at it.

    Raises:
        LedgerError: the ledger could not be written; what it holds is a valid prefix.
        Rejected: D101, a call's cost is a range, which nothing here refines; or an unverified
            artifact leads out of its ranges.
    """
    _require_points(artifact)
    with held_interrupts() as interrupted:
        loop = _Search(artifact, settings, recorder, on_expand, clock, interrupted)
        if recorder is None:
            return loop.run()
        with recorder:
            return loop.run()


def _require_points(artifact: Artifact) -> None:
    low, high = artifact.cost_low, artifact.cost_high
    if low != high:
        at = next(i for i, pair in enumerate(zip(low, high, strict=True)) if pair[0] != pair[1])
        raise Rejected(Code.UNKNOWN_FEATURE, f"call_cost_high[{at}]", low[at], high[at])


class _Search:
    def __init__(
        self,
        artifact: Artifact,
        settings: Settings,
        recorder: Recorder | None,
        on_expand: OnExpand | None,
        clock: Callable[[], float],
        interrupted: Callable[[], bool],
    ) -> None:
        longest = artifact.rank(artifact.root)
        self._artifact = artifact
        self._settings = settings
        self._recorder = recorder
        self._on_expand = on_expand
        self._clock = clock
        self._interrupted = interrupted
        self._tables = tables_of(artifact, settings.recipe)
        self._race = Race(self._tables, seeded_draw(artifact, settings.seed))
        self._frontier = Frontier()
        self._incumbent = Incumbent(settings.top)
        self._caps = Caps(settings, longest)
        self._potential = Potential(settings, longest)
        self._started = clock()
        self._expansions = self._leaves = 0
        self._fired: list[Guard] = []
        self._certifiable = True

    def run(self) -> Run:
        """Opens, steps until something stops it, closes."""
        if self._recorder is not None:
            self._recorder.open(self._artifact, self._settings)
        try:
            self._push_root()
            stop = None
            while stop is None:
                stop = self._step()
        except Undecided:
            stop = Stop.PRECISION
        return self._finish(stop)

    def _push_root(self) -> None:
        root = self._race.root()
        self._frontier.push(root)
        self._note_clamps([root])
        if self._recorder is not None:
            self._recorder.root(root)

    def _step(self) -> Stop | None:
        """Pops one item, or says why none is popped."""
        node, best = self._frontier.top(), self._incumbent.value
        if node is None:
            return Stop.EXHAUSTED
        if best is not None and node.key <= best:
            return Stop.BOUND
        if self._interrupted():
            return Stop.INTERRUPTED
        if node.state is None:
            self._take_leaf(node)
            return None
        return self._expand(node, node.state)

    def _take_leaf(self, leaf: Node) -> None:
        word = self._race.arrival_word(leaf)
        self._frontier.pop()
        self._leaves += 1
        self._incumbent.offer(leaf)
        if self._recorder is not None:
            self._recorder.leaf(leaf, word, self._incumbent.value)

    def _expand(self, node: Node, state: State) -> Stop | None:
        state.open(self._tables)
        elapsed = self._clock() - self._started
        refused = self._caps.before(node, state, self._expansions, elapsed)
        if refused is not None:
            self._fire(refused[1])
            return refused[0]
        expansion = self._race.expand(node)
        descent = self._potential.descent(node)
        self._frontier.pop()
        for child in expansion.children:
            self._frontier.push(child)
        self._expansions += 1
        self._note_descent(descent)
        self._note_clamps(expansion.children)
        if self._recorder is not None:
            self._recorder.expand(expansion, descent)
        return self._report()

    def _report(self) -> Stop | None:
        if self._on_expand is None:
            return None
        top = self._frontier.top()
        progress = Progress(
            expansions=self._expansions,
            incumbent=self._incumbent.value,
            bound=None if top is None else top.key,
        )
        try:
            return Stop.INTERRUPTED if self._on_expand(progress) else None
        except KeyboardInterrupt:
            return Stop.INTERRUPTED

    def _note_clamps(self, nodes: list[Node]) -> None:
        if any(node.clamp for node in nodes):
            self._fire(Guard.CLAMP)
            self._certifiable = False

    def _note_descent(self, descent: Descent | None) -> None:
        if descent is None:
            return
        if descent.fails:
            self._fire(Guard.ACYCLICITY)
            self._certifiable = False
        if descent.clamp:
            self._fire(Guard.CLAMP)

    def _fire(self, guard: Guard) -> None:
        if guard not in self._fired:
            self._fired.append(guard)

    def _finish(self, stop: Stop) -> Run:
        top, best = self._frontier.top(), self._incumbent.value
        certified = stop.certifies and self._certifiable
        run = Run(
            mode=self._settings.mode,
            claim_type="RunWiseExact" if certified else "NoCert",
            stop=stop,
            plans=tuple(found(leaf) for leaf in self._incumbent.leaves()),
            expansions=self._expansions,
            leaves=self._leaves,
            frontier_key=None if top is None else format_q64(top.key),
            gap=None if top is None or best is None else format_q64(top.key - best),
            guards=tuple(self._fired),
            seed=self._settings.seed.hex(),
            ledger_head=None,
        )
        return run if self._recorder is None else self._recorder.close(run)
