"""The checks of a run: what is looked at before an item is popped, and what a firing guard does.

Text: docs/spec/race.md, sections 10 and 19.  Each is handed to the loop where the run can need it.
Cost: a few comparisons an item.
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
    """Gets the asks of a run."""

    def requeue(self, item: Item) -> None:
        """An item was pushed again with its present key."""

    def reserve(self, edge: Item, choice: Choice, spent: SpentAmounts, wish: Wish | None) -> None:
        """Somebody is going to be asked; `spent` is what all asks before took.

        `wish` is what the account says, where there is one; one that is not granted: nobody is.
        """

    def refine(self, asked: AnsweredAsk, spent: SpentAmounts) -> None:
        """Somebody has answered."""

    def exhausted(self, edge: Item | None, spent: SpentAmounts) -> None:
        """No ask is left."""


class Timed:
    """Whether the time is up."""

    def __init__(self, search: Search, late: Callable[[], bool]) -> None:
        self._search = search
        self._late = late

    def __call__(self, item: Item) -> Verdict:
        """Ends the run."""
        if not self._late():
            return None
        self._search.fire(SearchGuard.TIMEOUT)
        return Stop.MAX_SECONDS


class Capped:
    """Whether as many nodes as may be were expanded."""

    def __init__(self, search: Search, most: int) -> None:
        self._search = search
        self._most = most

    def __call__(self, item: Item) -> Verdict:
        """Ends the run."""
        if self._search.expansions < self._most:
            return None
        self._search.fire(SearchGuard.CAP)
        return Stop.MAX_EXPANSIONS


class Deep:
    """Whether a node is deeper than any plan; only an unverified artifact has one."""

    def __init__(self, search: Search, longest: int) -> None:
        self._search = search
        self._longest = longest

    def __call__(self, item: Item) -> Verdict:
        """Ends the run."""
        if sum(1 for _ in nodes_up(item)) - 1 <= self._longest:
            return None
        self._search.fire(SearchGuard.CAP)
        return Stop.GUARD


class Counted:
    """What the count of a node is good for.

    Args:
        counts: of an opened state.
        fall_back: goes on in fallback mode.
    """

    def __init__(
        self, search: Search, counts: Callable[[State], CountKind], fall_back: Callable[[], None]
    ) -> None:
        self._search = search
        self._counts = counts
        self._fall_back = fall_back

    def __call__(self, item: Item) -> Verdict:
        """Goes down to where the count suffices; ends the run where it is wrong."""
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
            # Exact counts turn out to be bounds; only an unverified artifact has such ones.  What
            # holds of bounds holds if m is no less than its sum in *every* state, which nobody has
            # shown: nothing is claimed.
            search.mode = "surrogate"
            search.switched = True
            search.downgrade(Claim.NONE, SearchGuard.COUNT)
        return None


class AskCheck:
    """Asks what calls cost before it matters.

    Args:
        late: whether the time is up.
        fall_back: goes on in fallback mode.
        sink: gets the asks; None: there is none.
        finalized: whether items have keys of their own arrivals.
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
        """How far the greatest key lies above what the k best leaves are worth at least, Q64.64.

        A leaf that was popped is worth its value, one of the frontier -beta C - ln E at the
        greatest that its calls may cost.  None where keys are not of own arrivals, and of fewer
        than k leaves.  Below an item of the heap no key is greater, and no leaf is worth more than
        its key: so what cannot count is not looked at.
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
        """Before anything else is looked at."""
        if self._refinement.overspent:
            self._exhaust(None)

    def requeue(self, item: Item) -> Verdict:
        """Pushes the greatest item again, where answers have brought its key down."""
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
        """Asks what the call costs whose cost has to be known, where a model is left that fits."""
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
        """Nothing more is asked; the remainder of the run is fallback."""
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
