"""The checks of a run, which look at an item before it is popped, and the effects of their guards.

Text: docs/spec/race.md, sections 10 and 19.  The loop gets only the checks that the run can need.
Cost: a few comparisons for each item.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappush, heappushpop
from typing import Protocol

from tcc_certs.formats.ledger import Q64_MAX
from tcc_certs.replay.amounts import SpentAmounts
from tcc_certs.replay.asking.controller import Choice
from tcc_runtime.guards import CountKind, SearchGuard, Stop
from tcc_runtime.item import ORDER, VIEW, Item, nodes_up, state_view
from tcc_runtime.pricing.drawing import Wish
from tcc_runtime.pricing.refine import AnsweredAsk, Refinement
from tcc_runtime.search import AGAIN, Search, Verdict
from tcc_runtime.settings.modes import Claim
from tcc_runtime.states import State


class AskSink(Protocol):
    """Receives the questions of a run."""

    def requeue(self, item: Item) -> None:
        """Receive an item that was pushed again with its present key."""

    def reserve(self, edge: Item, choice: Choice, spent: SpentAmounts, wish: Wish | None) -> None:
        """Receive the choice of a model before its question; `spent` is the cost of all earlier
        questions.

        `wish` is the reservation of the account, if the run has one.  If it is not granted, the
        question is not asked.
        """

    def refine(self, asked: AnsweredAsk, spent: SpentAmounts) -> None:
        """Receive an answer."""

    def exhausted(self, edge: Item | None, spent: SpentAmounts) -> None:
        """Receive the end of the questions: no model is left for `edge`, or the budget is exceeded
        (None).
        """


class Timed:
    """Stops the run if its time is over."""

    def __init__(self, search: Search, late: Callable[[], bool]) -> None:
        self._search = search
        self._late = late

    def __call__(self, item: Item) -> Verdict:
        """Return Stop.MAX_SECONDS if the time is over, else None."""
        if not self._late():
            return None
        self._search.fire(SearchGuard.TIMEOUT)
        return Stop.MAX_SECONDS


class Capped:
    """Stops the run if the allowed number of nodes was expanded."""

    def __init__(self, search: Search, most: int) -> None:
        self._search = search
        self._most = most

    def __call__(self, item: Item) -> Verdict:
        """Return Stop.MAX_EXPANSIONS if the number is reached, else None."""
        if self._search.expansions < self._most:
            return None
        self._search.fire(SearchGuard.CAP)
        return Stop.MAX_EXPANSIONS


class Deep:
    """Stops the run at a node that is deeper than any plan, which only an unverified artifact can
    have.
    """

    def __init__(self, search: Search, longest: int) -> None:
        self._search = search
        self._longest = longest

    def __call__(self, item: Item) -> Verdict:
        """Return Stop.GUARD if the node is too deep, else None."""
        if sum(1 for _ in nodes_up(item)) - 1 <= self._longest:
            return None
        self._search.fire(SearchGuard.CAP)
        return Stop.GUARD


class Counted:
    """Checks which mode the count of a node allows.

    Args:
        counts: returns the kind of an opened state's count.
        fall_back: switches to fallback mode.
    """

    def __init__(
        self, search: Search, counts: Callable[[State], CountKind], fall_back: Callable[[], None]
    ) -> None:
        self._search = search
        self._counts = counts
        self._fall_back = fall_back

    def __call__(self, item: Item) -> Verdict:
        """Lower the mode to one that the count allows; stop the run if the count is wrong."""
        search = self._search
        if search.mode == "fallback":
            return None
        state = state_view(item).state
        state.open()
        counts = self._counts(state)
        if counts is CountKind.WRONG:
            search.fire(SearchGuard.COUNT)
            return Stop.GUARD
        if counts is CountKind.NONE:
            self._fall_back()
            search.downgrade(Claim.NONE, SearchGuard.COUNT)
            return AGAIN
        if counts is CountKind.UPPER and search.mode == "exact":
            # The counts are bounds although the manifest says exact, which is possible only in an
            # unverified artifact. The guarantees for bounds need m >= its sum in *every* state,
            # which was not checked. So the run claims nothing.
            search.mode = "surrogate"
            search.switched = True
            search.downgrade(Claim.NONE, SearchGuard.COUNT)
        return None


class AskCheck:
    """Asks for the costs of calls when they are needed.

    Args:
        late: returns whether the time is over.
        fall_back: switches to fallback mode.
        sink: receives the questions; None: no sink.
        finalized: whether items have keys from their own arrivals.
    """

    def __init__(
        self,
        search: Search,
        refinement: Refinement,
        late: Callable[[], bool],
        fall_back: Callable[[], None],
        sink: AskSink | None,
        finalized: bool,
    ) -> None:
        self._search = search
        self._refinement = refinement
        self._late = late
        self._fall_back = fall_back
        self._sink = sink
        self._finalized = finalized

    def slack(self, item: Item) -> int | None:
        """Return how far the greatest key is above the least value of the k best leaves, Q64.64.

        A popped leaf has its value; a leaf of the frontier has at least -beta C - ln E at the
        greatest cost of its calls.  None if keys are not from own arrivals, or if fewer than k
        leaves are known.  In the heap no key below an item is greater than the item's key, and no
        leaf has a value above its key.  So subtrees of the heap that cannot matter are skipped.
        """
        search = self._search
        if not self._finalized or search.mode == "fallback":
            return None
        heap, k = search.heap, search.top
        known = [-leaf[ORDER] for leaf in search.best]
        heapify(known)
        places = [-1]
        while places:
            at = places.pop()
            if at >= len(heap):
                continue
            found = item if at < 0 else heap[at]
            full = len(known) >= k
            if full and -found[ORDER] <= known[0]:
                continue
            if found[VIEW] is None:
                worth = -search.race.recost(found, self._refinement.costs(found)[1])[ORDER]
                (heappushpop if full else heappush)(known, worth)
            places += (0,) if at < 0 else (2 * at + 1, 2 * at + 2)
        return min(-item[ORDER] - known[0], Q64_MAX) if len(known) >= k else None

    def overspent(self) -> None:
        """Stop asking if the budget is exceeded; called before any item is looked at."""
        if self._refinement.overspent:
            self._exhaust(None)

    def requeue(self, item: Item) -> Verdict:
        """Push the greatest item again if answers have lowered its key."""
        if not self._refinement.narrowed:
            return None
        search = self._search
        present = search.race.recost(item, self._refinement.low(item))
        if present is item:
            return None
        if present[ORDER] == item[ORDER]:
            search.item = present
            return None
        search.requeue(present)
        if self._sink is not None:
            self._sink.requeue(present)
        return AGAIN

    def ask(self, item: Item) -> Verdict:
        """Ask for the cost of the call that has to be known, if a model is left that fits the
        budget.
        """
        search, refinement, sink = self._search, self._refinement, self._sink
        edge = refinement.due(item)
        if edge is None:
            return None
        if self._late():
            search.fire(SearchGuard.TIMEOUT)
            return Stop.MAX_SECONDS
        choice = refinement.choice(edge, self.slack(item))
        if choice is None:
            self._exhaust(edge)
            return AGAIN
        wish = refinement.wish(choice)
        if sink is not None:
            sink.reserve(edge, choice, refinement.controller.spent, wish)
        if wish is not None and not wish.granted:
            return AGAIN
        asked = refinement.ask(edge, choice)
        if asked.fails:
            search.fire(SearchGuard.RANGE)
            search.claim = Claim.NONE
        if sink is not None:
            sink.refine(asked, refinement.controller.spent)
        return AGAIN

    def _exhaust(self, edge: Item | None) -> None:
        """Ask nothing more, and switch to fallback mode for the rest of the run."""
        search, refinement = self._search, self._refinement
        refinement.closed = True
        search.fire(SearchGuard.BUDGET)
        falls = search.mode != "fallback"
        if falls:
            self._fall_back()
        if self._sink is not None:
            self._sink.exhausted(edge, refinement.controller.spent)
        if falls:
            search.downgrade(Claim.NONE, SearchGuard.BUDGET)
