"""The search: best first over the prefix DAG until no key left exceeds the incumbent.

Text: docs/spec/race.md, sections 9 to 11.  It asks the race and is answered; what it does is told
to the recorder.  Each item is looked at before it is popped, and what it publishes is computed
before anything changes, so a run that ends early ends between two steps.
Cost: one expansion (:mod:`tcc_runtime.race`) and its heap operations a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tcc_certs.formats.fixed import format_q64
from tcc_runtime.anchored import Anchored, Literal
from tcc_runtime.constraints import Constraints, constraints_of
from tcc_runtime.fallback import Fallback
from tcc_runtime.frontier import Frontier, Incumbent
from tcc_runtime.guards import Caps, Counts, Descent, Guard, Potential, Stop, counts_of
from tcc_runtime.interrupts import held_interrupts
from tcc_runtime.load import Artifact
from tcc_runtime.modes import Claim, Terms, terms_of
from tcc_runtime.node import Expansion, Node, restore, standing
from tcc_runtime.numbers import UNDECIDED, clamped
from tcc_runtime.opening import race_key_of
from tcc_runtime.outcome import Found, Progress, Run, found
from tcc_runtime.quotes import Quoter
from tcc_runtime.race import Coupled, Draw, Race, drawing
from tcc_runtime.recorded import recorded
from tcc_runtime.recorder import Recorder
from tcc_runtime.refine import Refinement, refinement_of
from tcc_runtime.rest import Successive, all_left
from tcc_runtime.rest_item import Rest
from tcc_runtime.settings import Mode, Settings
from tcc_runtime.swift import fits
from tcc_runtime.tables import State, Tables, tables_of
from tcc_runtime.tail import Ended, tail_lse
from tcc_runtime.unrecorded import Told, unrecorded

OnExpand: TypeAlias = Callable[[Progress], "bool | None"]


def search(
    artifact: Artifact,
    settings: Settings,
    recorder: Recorder | None = None,
    on_expand: OnExpand | None = None,
    clock: Callable[[], float] = time.monotonic,
    quoter: Quoter | None = None,
) -> Run:
    """Finds the best plans of one realised race, and shows that no other is better.

    Args:
        artifact: with exact counts or with bounds; what a run may claim depends on it.
        settings: the seed and everything else a run may be told.
        recorder: writes the ledger; None records nothing.
        on_expand: called after each expansion and each draw of what is left; True, or
            KeyboardInterrupt, ends the run.
        clock: seconds, from any origin, never falling; `max_seconds` looks at it, and an answer
            that does not say how long it took is timed by it.
        quoter: is asked what calls cost whose cost is a range; None: nobody is.  What it raises
            ends the run and leaves a ledger that can be resumed.

    Raises:
        SettingsError: the artifact does not allow these settings.
        LedgerError: the ledger could not be written; what it holds is a valid prefix.
        AnswerError: the quoter gave something that is no answer.
        Rejected: an unverified artifact leads out of its ranges; C401, one that is said to have
            been checked has a count that no kernel can have passed.
    """
    started = clock()
    terms = terms_of(artifact, settings, quoted=quoter is not None)
    fast = fits(artifact, terms)
    if fast and recorder is None:
        told = None if on_expand is None else Told(on_expand)
        run = unrecorded(artifact, terms, told, lambda: clock() - started)
        if run is not None:
            return run
        on_expand = None if told is None else told.again()
    with held_interrupts() as interrupted:
        if fast and recorder is not None and not recorder.wants_nodes:
            with recorder:
                return recorded(
                    artifact, terms, recorder, on_expand, lambda: clock() - started, interrupted
                )
        loop = _Search(artifact, terms, recorder, on_expand, clock, started, interrupted, quoter)
        if recorder is None:
            return loop.run()
        with recorder:
            return loop.run()


def race_of(terms: Terms, tables: Tables, draw: Draw, constraints: Constraints | None) -> Race:
    """The race that a run starts with."""
    if terms.mode == "fallback":
        return Fallback(tables, draw, terms.settings.tau, constraints)
    if terms.race == "literal":
        return Literal(tables, draw, constraints)
    if terms.race == "rest":
        return Successive(tables, draw, constraints)
    kind = Anchored if terms.keys == "anchored" else Coupled
    return kind(tables, draw, constraints)


class _Search:
    def __init__(
        self,
        artifact: Artifact,
        terms: Terms,
        recorder: Recorder | None,
        on_expand: OnExpand | None,
        clock: Callable[[], float],
        started: float,
        interrupted: Callable[[], bool],
        quoter: Quoter | None,
    ) -> None:
        settings = terms.settings
        longest = artifact.rank(artifact.root)
        self._artifact = artifact
        self._terms = terms
        self._settings = settings
        self._recorder = recorder
        self._on_expand = on_expand
        self._clock = clock
        self._interrupted = interrupted
        self._tables = tables_of(artifact, settings.recipe, settings.inflate)
        self._draw = drawing(race_key_of(artifact, terms))
        self._constraints = constraints_of(artifact, terms.truncate if terms.cut else None)
        self._refinement = refinement_of(artifact, terms, quoter, clock)
        self._race = race_of(terms, self._tables, self._draw, self._constraints)
        self._mode: Mode = terms.mode
        self._claim = terms.claim
        self._frontier = Frontier()
        self._found: list[Node] = []
        self._incumbent = Incumbent(settings.top)
        self._caps = Caps(settings, longest)
        self._potential = Potential(settings, longest)
        self._started = started
        self._expansions = self._materialised = 0
        self._fired: list[Guard] = []
        self._tail: int | None = None

    def run(self) -> Run:
        """Opens, steps until something stops it, closes."""
        if self._recorder is not None:
            self._recorder.open(self._artifact, self._terms)
        try:
            stop = self._stepped()
        except UNDECIDED:
            stop = Stop.PRECISION
        return self._finish(stop)

    def _stepped(self) -> Stop:
        self._push_root()
        stop = self._weigh_longer() if self._terms.cut else None
        while stop is None:
            stop = self._step()
        return stop

    def _push_root(self) -> None:
        root = self._race.root()
        self._frontier.push(root)
        self._note_clamps([root])
        if self._recorder is not None:
            self._recorder.root(root)

    def _weigh_longer(self) -> Stop | None:
        """T_K, before anything is popped: a run that has no time for it has none for a claim."""
        try:
            self._tail = tail_lse(self._artifact, self._terms.truncate, self._is_over)
        except Ended:
            if self._interrupted():
                return Stop.INTERRUPTED
            self._fire(Guard.TIMEOUT)
            return Stop.MAX_SECONDS
        return None

    def _is_over(self) -> bool:
        return self._caps.is_late(self._clock() - self._started) or self._interrupted()

    def _step(self) -> Stop | None:
        """Pops one item, or says why none is popped."""
        node, best = self._frontier.top(), self._incumbent.value
        refinement = self._refinement
        if refinement is not None and refinement.overspent:
            self._exhaust(refinement, None)
            return None
        if node is None:
            return Stop.EXHAUSTED
        if best is not None and node.key <= best:
            return Stop.BOUND
        if self._interrupted():
            return Stop.INTERRUPTED
        if refinement is not None and self._requeue(refinement, node):
            return None
        if isinstance(node, Rest):
            return self._take_rest(node)
        if node.state is None:
            return self._take_leaf(node)
        return self._take_node(node, node.state)

    def _requeue(self, refinement: Refinement, node: Node) -> bool:
        """Pushes the top again, where answers have brought its key down."""
        before = node.key
        if not refinement.refresh(node):
            return False
        self._race.rekey(node)
        if node.key == before:
            return False
        self._frontier.pop()
        self._frontier.push(node)
        self._note_clamps([node])
        if self._recorder is not None:
            self._recorder.requeue(node)
        return True

    def _ask(self, refinement: Refinement, edge: Node) -> Stop | None:
        """Asks what the call costs that leads to `edge`, where a model is left that fits."""
        if self._caps.is_late(self._clock() - self._started):
            self._fire(Guard.TIMEOUT)
            return Stop.MAX_SECONDS
        choice = refinement.choice(edge)
        if choice is None:
            self._exhaust(refinement, edge)
            return None
        if self._recorder is not None:
            self._recorder.reserve(edge, choice, refinement.controller.spent)
        asked = refinement.ask(edge, choice)
        if asked.fails:
            self._fire(Guard.RANGE)
            self._claim = Claim.NONE
        if self._recorder is not None:
            self._recorder.refine(asked, refinement.controller.spent)
        return None

    def _exhaust(self, refinement: Refinement, edge: Node | None) -> None:
        """Nothing more is asked; what is left of the run is fallback."""
        refinement.closed = True
        self._fire(Guard.BUDGET)
        falls = self._mode != "fallback"
        if falls:
            self._rekey_all()
        if self._recorder is not None:
            self._recorder.exhausted(edge, refinement.controller.spent)
        if falls:
            self._downgrade(Claim.NONE, Guard.BUDGET)

    def _take_leaf(self, leaf: Node) -> Stop | None:
        edge = None if self._refinement is None else self._refinement.due(leaf)
        if self._refinement is not None and edge is not None:
            return self._ask(self._refinement, edge)
        word = self._race.settle(leaf)
        self._frontier.pop()
        self._found.append(leaf)
        self._incumbent.offer(leaf)
        late = self._terms.keys == "anchored" and self._mode != "fallback"
        if late:
            self._note_clamps([leaf])
        if self._recorder is not None:
            self._recorder.leaf(leaf, word, self._incumbent.value, late)
        return None

    def _take_node(self, node: Node, state: State) -> Stop | None:
        elapsed = self._clock() - self._started
        refused = self._caps.before(node, self._expansions, elapsed)
        if refused is not None:
            self._fire(refused[1])
            return refused[0]
        state.open(self._tables)
        if self._mode != "fallback":
            counts = counts_of(state, self._settings.count_bits)
            if counts is Counts.WRONG:
                self._fire(Guard.COUNT)
                return Stop.GUARD
            if counts is Counts.NONE:
                self._fall_back()
                return None
            if counts is Counts.UPPER and self._mode == "exact":
                self._to_surrogate()
        edge = None if self._refinement is None else self._refinement.due(node)
        if self._refinement is not None and edge is not None:
            return self._ask(self._refinement, edge)
        return self._expand(node)

    def _take_rest(self, rest: Rest) -> Stop | None:
        if self._caps.is_late(self._clock() - self._started):
            self._fire(Guard.TIMEOUT)
            return Stop.MAX_SECONDS
        race = self._race
        if isinstance(race, Successive):
            drawing = race.draw(rest)
        else:
            drawing = all_left(rest, race.expand(rest.of))
        self._enter(drawing)
        self._note_clamps(drawing.items)
        if self._recorder is not None:
            self._recorder.draw(drawing)
        return self._report()

    def _enter(self, expansion: Expansion) -> None:
        """The top of the frontier gives way to what its pop has made."""
        self._frontier.pop()
        for item in expansion.items:
            self._frontier.push(item)
        self._materialised += any(child.state is None for child in expansion.children)

    def _expand(self, node: Node) -> Stop | None:
        expansion = self._race.expand(node)
        descent = self._potential.descent(node)
        self._enter(expansion)
        self._expansions += 1
        self._note_descent(descent)
        self._note_clamps([node, *expansion.items] if expansion.late else expansion.items)
        if self._recorder is not None:
            self._recorder.expand(expansion, descent)
        return self._report()

    def _to_surrogate(self) -> None:
        """Exact counts turn out to be bounds; only an unverified artifact has such ones.

        What holds of bounds holds if m is no less than its sum in *every* state, which nobody has
        shown: nothing is claimed.
        """
        self._mode = "surrogate"
        self._downgrade(Claim.NONE, Guard.COUNT)

    def _fall_back(self) -> None:
        """No counts from here on."""
        self._rekey_all()
        self._downgrade(Claim.NONE, Guard.COUNT)

    def _rekey_all(self) -> None:
        """Fallback from here on: every leaf gets its heuristic value, every node its bound."""
        race = Fallback(self._tables, self._draw, self._settings.tau, self._constraints)
        items, frontier = self._frontier.nodes(), Frontier()
        nodes = [*items, *self._found]
        before = [standing(node) for node in nodes]
        try:
            for node in nodes:
                if self._refinement is not None:
                    self._refinement.refresh(node)
                race.rekey(node)
        except UNDECIDED:  # the run ends here, with the keys that it had
            for node, kept in zip(nodes, before, strict=True):
                restore(node, kept)
            raise
        for node in items:
            frontier.push(node)
        self._frontier = frontier
        self._incumbent = Incumbent(self._settings.top)
        for leaf in self._found:
            self._incumbent.offer(leaf)
        self._race, self._mode = race, "fallback"

    def _downgrade(self, claim: Claim, guard: Guard) -> None:
        self._fire(guard)
        self._claim = claim
        if self._recorder is not None:
            self._recorder.downgrade(self._mode, claim, guard)

    def _report(self) -> Stop | None:
        if self._on_expand is None:
            return None
        top = self._frontier.top()
        bound = None if top is None else top.key
        progress = Progress(
            expansions=self._expansions, incumbent=self._incumbent.value, shown=lambda: bound
        )
        try:
            return Stop.INTERRUPTED if self._on_expand(progress) else None
        except KeyboardInterrupt:
            return Stop.INTERRUPTED

    def _note_clamps(self, nodes: Sequence[Node]) -> None:
        if any(node.clamp for node in nodes):
            self._fire(Guard.CLAMP)
            self._claim = Claim.NONE

    def _note_descent(self, descent: Descent | None) -> None:
        if descent is None:
            return
        if descent.fails:
            self._fire(Guard.ACYCLICITY)
            self._claim = Claim.NONE
        if descent.clamp:
            self._fire(Guard.CLAMP)

    def _fire(self, guard: Guard) -> None:
        if guard not in self._fired:
            self._fired.append(guard)

    def _finish(self, stop: Stop) -> Run:
        top, best = self._frontier.top(), self._incumbent.value
        claim = self._claim if stop.certifies else Claim.NONE
        run = Run(
            mode=self._mode,
            claim_type=claim,
            law=self._law(),
            stop=stop,
            plans=tuple(self._plan(leaf) for leaf in self._incumbent.leaves()),
            expansions=self._expansions,
            leaves=len(self._found),
            frontier_key=None if top is None else format_q64(top.key),
            gap=None if top is None or best is None else format_q64(clamped(top.key - best)),
            materialised=self._materialised if self._mode == "fallback" else None,
            tail_lse=None if self._tail is None else format_q64(self._tail),
            guards=tuple(self._fired),
            seed=self._settings.seed.hex(),
            ledger_head=None,
            spent=None if self._refinement is None else self._refinement.controller.spent,
        )
        return run if self._recorder is None else self._recorder.close(run)

    def _law(self) -> str:
        """What the best plans are draws of."""
        if self._mode == "fallback" or self._terms.race == "literal":
            return "none"
        return "softmax" if self._refinement is None or self._refinement.same else "run_wise_only"

    def _plan(self, leaf: Node) -> Found:
        high = leaf.cost if self._refinement is None else self._refinement.costs(leaf)[1]
        return found(leaf, high)
