"""Runs: from settings to a result.

A run chooses the race, the numbers, the checks and the sink, runs the loop
(:mod:`tcc_runtime.search`), and returns its result.
Text: docs/spec/race.md, sections 9 to 11 and 21.
Cost: some tens of microseconds plus the loop; in fallback mode one look at each frontier item.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tcc_certs.errors import Code
from tcc_certs.formats.codec import parse_decimal
from tcc_certs.formats.ledger import format_q64
from tcc_certs.replay.amounts import SpentAmounts
from tcc_runtime.account.account import Account
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.constraints import constraints_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.checks import AskCheck, Capped, Counted, Deep, Timed
from tcc_runtime.errors import SettingsError
from tcc_runtime.guards import CountKind, PotentialSum, SearchGuard, Stop, counts_of, is_late
from tcc_runtime.item import VIEW, Item, calls_of
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.numbers.ladder import Numbers, begin_with, heuristic_of, rung_of
from tcc_runtime.numbers.reals import UNDECIDED, clamped
from tcc_runtime.numbers.rung import PROVEN, Precision
from tcc_runtime.numbers.tail import Abandoned, tail_lse
from tcc_runtime.outcome import Found, Run, plan
from tcc_runtime.pricing.drawing import Drawing
from tcc_runtime.pricing.quotes import Quoter
from tcc_runtime.pricing.refine import Refinement, refinement_of
from tcc_runtime.process import Interrupts, collection_put_off
from tcc_runtime.races.coupled import Anchored, Coupled, Literal as LiteralRace, Rest
from tcc_runtime.races.fallback import Fallback
from tcc_runtime.races.interface import Race, RunHashers
from tcc_runtime.search import Check, Follow, Search
from tcc_runtime.settings.modes import Claim, Terms, lowered, race_key_of, terms_of
from tcc_runtime.settings.settings import Settings
from tcc_runtime.states import State, tables_of

# Results: the best plans, the claim and its gap (section 11).


def result_of(
    search: Search,
    terms: Terms,
    refinement: Refinement | None,
    tail: int | None,
    stop: Stop,
    answered: frozenset[str],
    heuristic: Callable[[Item], int] | None = None,
) -> Run:
    """Return the result of a search.

    Args:
        refinement: None if no cost is a range.
        tail: T_K; None if the run has no cut.
        stop: why the search ended.
        answered: the calls with listed answers.
        heuristic: the PaM value of a leaf; None if the caller did not ask for it.
    """
    left, best = None, search.incumbent
    try:
        left = search.key_left()
    except UNDECIDED:  # possible only for a key that was not published
        stop = Stop.PRECISION
    return Run(
        mode=search.mode,
        claim_type=search.claim if stop.certifies else Claim.NONE,
        law=_law(search, terms, refinement),
        stop=stop,
        plans=_plans(search, refinement, answered, heuristic),
        expansions=search.expansions,
        leaves=len(search.found),
        frontier_key=None if left is None else format_q64(left),
        gap=None if left is None or best is None else format_q64(clamped(left - best)),
        materialised=_materialised(search) if search.mode == "fallback" else None,
        tail_lse=None if tail is None else format_q64(tail),
        guards=tuple(search.fired),
        seed=terms.settings.seed.hex(),
        ledger_head=None,
        spent=None if refinement is None else refinement.controller.spent,
        taken=terms.taken if refinement is None else refinement.controller.spent.taken,
        atoms=() if refinement is None else tuple(refinement.atoms),
        after=tuple(terms.settings.after),
        raw_input_dependent=terms.settings.raw_input_dependent,
    )


def _plans(
    search: Search,
    refinement: Refinement | None,
    answered: frozenset[str],
    heuristic: Callable[[Item], int] | None,
) -> tuple[Found, ...]:
    """Return the best plans, with PaM values and ranks if a heuristic is given."""
    plans = [_plan(*found, refinement, answered) for found in search.best]
    if heuristic is None:
        return tuple(plans)
    # In fallback the value of a leaf is its PaM value.
    falls = search.mode == "fallback"
    values = [order if falls else -heuristic(leaf) for order, _, leaf in search.best]
    by = sorted(range(len(plans)), key=lambda at: (values[at], search.best[at][1]))
    for rank, at in enumerate(by, 1):
        plans[at] = replace(plans[at], pam=(format_q64(-values[at]), rank))
    return tuple(plans)


def _materialised(search: Search) -> int:
    """Return the number of leaves that were pushed."""
    return len(search.found) + sum(item[VIEW] is None for item in search.frontier())


def _law(search: Search, terms: Terms, refinement: Refinement | None) -> str:
    """Return the law of which the best plans are draws."""
    if search.mode == "fallback" or terms.race == "literal":
        return "none"
    same = not search.switched and (refinement is None or refinement.same)
    return "softmax" if same else "run_wise_only"


def _plan(
    minus_value: int,
    name: bytes,
    leaf: Item,
    refinement: Refinement | None,
    answered: frozenset[str],
) -> Found:
    calls = calls_of(leaf)
    texts = [call.text for call in calls]
    if refinement is None:
        low: int = sum([call.cost_low for call in calls])
        return plan(texts, low, -minus_value, name, answered=answered)
    low, high = refinement.costs(leaf)
    return plan(texts, low, -minus_value, name, high, answered)


# Listed answers: a search chooses them like arguments, so each plan lists the answers that it
# assumes.

# Canonical JSON escapes quotes, so no text holds this.
_MARK = b'"gives":'


def answered_calls(artifact: Artifact) -> frozenset[str]:
    """Return the canonical texts of the calls with a listed answer; kept with the artifact.

    Raises:
        Rejected: an unverified artifact has no core.
    """
    found = artifact.kept.get("answered_calls")
    if not isinstance(found, frozenset):
        found = artifact.kept["answered_calls"] = _answered_calls(artifact)
    return found


def _answered_calls(artifact: Artifact) -> frozenset[str]:
    if _MARK not in bytes(artifact.file.columns["tools"].data):
        return frozenset()
    core = artifact.core
    answers = [any(field.type is None for field in tool.answers) for tool in core.tools]
    return frozenset([call.text for call in core.calls if answers[call.tool]])


OnExpand: TypeAlias = Follow


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How a run is computed.  The result does not depend on it.

    Attributes:
        numbers: the first rung; None is the quickest that the run allows.
        precision: of all rungs.
        counts: the kind of a count; None follows the settings.
    """

    numbers: Numbers | None = None
    precision: Precision = PROVEN
    counts: Callable[[State], CountKind] | None = None


QUICKEST = Engine()


def search(
    artifact: Artifact,
    settings: Settings,
    recorder: Recorder | None = None,
    on_expand: OnExpand | None = None,
    clock: Callable[[], float] = time.monotonic,
    quoter: Quoter | None = None,
    engine: Engine = QUICKEST,
    adapters: Iterable[Adapter] | None = None,
    account: Account | None = None,
    spent: SpentAmounts | None = None,
    drawing: Drawing | None = None,
    pam: bool = False,
) -> Run:
    """Find the best plans of one realised race, and show that no other plan is better.

    Args:
        artifact: with exact counts or with bounds, on which the claim of the run depends.
        settings: the seed and all options.
        recorder: writes the ledger; None records nothing.
        on_expand: is called after each expansion and each draw of the remainder.  True or
            KeyboardInterrupt ends the run.
        clock: monotonic seconds.  `max_seconds` uses it, and it times answers that do not state how
            long they took.
        quoter: answers questions about costs that are ranges; None asks nothing.  If it raises, the
            run ends and the ledger can be resumed.
        engine: how the run is computed.
        adapters: the adapters of a registry; None checks no adapter of a run without a ledger.
        account: pays for asks, together with other runs; None: only the caps of the settings.
        spent: the amounts that the session has spent before; they are included in the result.
        drawing: draws on the account of a session, for a run without a ledger.
        pam: add PaM values to the plans; nothing else changes.

    Raises:
        SettingsError: the artifact does not allow these settings.
        LedgerError: the ledger could not be written; its content is a valid prefix.
        AnswerError: the quoter returned something that is no answer.
        Rejected: A102 a model has an unknown adapter; an unverified artifact leads out of its
            ranges; C401 an artifact that was declared checked has an impossible count; K101, K103,
            K104, K106 the account.
        ValueError: the rung of the engine does not take this run.
    """
    began = clock()
    registry = () if adapters is None and recorder is not None else adapters
    if account is not None and recorder is None:
        raise SettingsError("account", "none without a ledger, which has to name it", account.id)
    if recorder is not None and (spent is not None or drawing is not None):
        raise SettingsError("spent", "nothing before a run with a ledger of its own", spent)
    drawn_on = None if account is None else (account.id, account.caps)
    terms = terms_of(
        artifact, settings, quoted=quoter is not None, registry=registry, account=drawn_on
    )
    recorded, ranged = recorder is not None, terms.ask is not None
    numbers = begin_with(artifact, engine.numbers, recorded=recorded, ranged=ranged)
    alone = on_expand is None and quoter is None
    with Interrupts() as interrupts, collection_put_off(alone):

        def begun() -> _Run:
            run = _Run(artifact, terms, engine, numbers, interrupts, began, clock, quoter, recorder)
            run.pam = pam
            run.go_on(spent, drawing)
            return run

        # No name keeps the run: its items are freed before the collector runs again.
        if recorder is not None:
            with recorder:
                return recorder.close(_recorded(begun(), recorder, account, on_expand))
        try:
            return begun().made(on_expand)
        except KeyboardInterrupt:
            if not interrupts.unheld:
                raise
            # The interrupt may have cut a step in two: repeat the run up to this point.
            interrupts.pressed = True
            return begun().made(None)


def _recorded(run: _Run, recorder: Recorder, account: Account | None, follow: Follow | None) -> Run:
    """Open the ledger of a run and return its result."""
    recorder.open(run.artifact, run.terms)
    if account is not None:
        run.draw(recorder.drawing(account))
    return run.made(follow)


class _Run:
    """One run."""

    def __init__(
        self,
        artifact: Artifact,
        terms: Terms,
        engine: Engine,
        numbers: Numbers,
        interrupts: Interrupts,
        began: float,
        clock: Callable[[], float],
        quoter: Quoter | None,
        recorder: Recorder | None,
    ) -> None:
        settings = terms.settings
        self.artifact, self.terms, self._engine = artifact, terms, engine
        self._began, self._clock = began, clock
        self._interrupts = interrupts
        self._tail: int | None = None
        self.pam = False
        self._numbers = numbers
        self._tables = tables_of(artifact, settings.recipe, settings.inflate, terms.rounded)
        self._refinement = refinement_of(artifact, terms, quoter, clock)
        self._constraints = constraints_of(
            artifact, terms.truncate if terms.cut else None, terms.root.held
        )
        self._answered = answered_calls(artifact)
        self._uniforms = RunHashers(race_key_of(artifact, terms))
        self._rung = rung_of(
            numbers,
            self._tables,
            engine.precision,
            fresh=terms.race == "literal",
            cost_of=None if self._refinement is None else self._refinement.low,
        )
        race = self._race_of()
        self._search = search = Search(
            race, self._rung, terms.mode, terms.claim, settings.top, interrupts
        )
        search.sink = recorder
        if terms.cut:
            search.opening = self._weigh_longer
        search.clamping = race.clamping
        if settings.alpha != "0":
            search.potential = PotentialSum(settings, terms.root.rank)
        search.guarded = search.clamping or search.potential is not None
        self._hand_in_checks(recorder)

    def made(self, follow: Follow | None) -> Run:
        """Run until a stop and return the result."""
        search = self._search
        search.follow = follow
        try:
            if self.terms.rounded is not None:
                # Before the first draw: that counts are bounds does not depend on arrivals.
                search.mode = "surrogate"
                search.downgrade(lowered(search.claim), SearchGuard.COUNT)
            stop = search.run()
            heuristic = self._heuristic() if self.pam else None
            told = self._refinement, self._tail, stop, self._answered, heuristic
            run = result_of(search, self.terms, *told)
            return replace(run, verified=self.artifact.verified)
        finally:
            search.let_go()

    def go_on(self, spent: SpentAmounts | None, drawing: Drawing | None) -> None:
        """Take the amounts spent before, and the account that asks draw on."""
        if self._refinement is not None:
            self._refinement.drawing = drawing
            if spent is not None:
                self._refinement.controller.spent = spent

    def draw(self, drawing: Drawing) -> None:
        """Take the account that asks draw on."""
        if self._refinement is not None:
            self._refinement.drawing = drawing

    def _race_of(self) -> Race:
        """Return the race that the run starts with."""
        terms = self.terms
        told = self._tables, self._rung, self._uniforms, self._constraints
        if terms.mode == "fallback":
            return self._fallback()
        if terms.race == "rest":
            return Rest(*told, root=terms.root)
        if terms.keys == "finalized":
            return Coupled(*told, root=terms.root)
        kind = LiteralRace if terms.race == "literal" else Anchored
        cost_of = None if self._refinement is None else self._refinement.low
        return kind(*told, cost_of, root=terms.root)

    def _fallback(self) -> Fallback:
        return Fallback(
            self._tables,
            self._rung,
            self._uniforms,
            self._constraints,
            self.terms.settings.tau,
            self._engine.precision,
            exact=self._numbers == "mpfr",
            root=self.terms.root,
        )

    def _heuristic(self) -> Callable[[Item], int]:
        """Return the function that computes the PaM value of a leaf of this run."""
        return heuristic_of(
            self._tables,
            parse_decimal(self.terms.settings.tau, "tau", Code.LEDGER_SCHEMA),
            self._engine.precision,
            fresh=self.terms.race == "literal",
            cost_of=None if self._refinement is None else self._refinement.low,
        )

    def _fall_back(self) -> None:
        """Change to fallback mode: leaves get heuristic values, and nodes get bounds."""
        race = self._fallback()
        self._search.change(race, "fallback", lambda item: race.converted(item, self._cost(item)))

    def _cost(self, item: Item) -> int:
        """Return the known cost of the calls of a prefix."""
        if self._refinement is not None and self._refinement.narrowed:
            return self._refinement.low(item)
        low: int = sum([call.cost_low for call in calls_of(item)])
        return low

    def _late(self) -> bool:
        return is_late(self._clock() - self._began, self.terms.settings.max_ms)

    def _hand_in_checks(self, recorder: Recorder | None) -> None:
        """Give the search the checks of this run, in the order of section 10."""
        search, artifact, settings = self._search, self.artifact, self.terms.settings
        node: list[Check] = []
        left: list[Check] = []
        leaf: list[Check] = []
        asking = None
        if self._refinement is not None:
            finalized = self.terms.keys == "finalized" and self.terms.mode != "fallback"
            asking = AskCheck(
                search, self._refinement, self._late, self._fall_back, recorder, finalized
            )
            search.before = asking.overspent
            for checks in (node, left, leaf):
                checks.append(asking.requeue)
        if settings.max_ms is not None:
            timed = Timed(search, self._late)
            node.append(timed)
            left.append(timed)
        if settings.max_expansions is not None:
            node.append(Capped(search, settings.max_expansions))
        if not artifact.verified:
            node.append(Deep(search, self.terms.root.rank))
        counts = self._engine.counts
        if counts is not None or not artifact.verified:
            node.append(Counted(search, counts or counts_of, self._fall_back))
        if asking is not None:
            node.append(asking.ask)
            leaf.append(asking.ask)
        search.on_node, search.on_left, search.on_leaf = node, left, leaf

    def _weigh_longer(self) -> Stop | None:
        """Compute T_K before the first item is popped: without it the run claims nothing."""
        self._interrupts.hold()
        try:
            terms = self.terms
            self._tail = tail_lse(self.artifact, terms.truncate, self._is_over, terms.root.members)
        except Abandoned:
            if self._interrupts.pressed:
                return Stop.INTERRUPTED
            self._search.fire(SearchGuard.TIMEOUT)
            return Stop.MAX_SECONDS
        return None

    def _is_over(self) -> bool:
        return self._late() or self._interrupts.pressed
