"""Best-first search over the prefix DAG, until no key left exceeds the incumbent.

One loop serves every run.  It pops the greatest item and applies the stop rule and the configured
checks.  Then the race makes the next items, which are pushed, and the sink gets the step if there
is one.  The loop does not depend on the race, the rung or the ledger.

An item is read before it is popped, and the values of a step are computed before anything changes.
So a run that is interrupted, for example by Ctrl-C (:class:`tcc_runtime.process.Interrupts`), ends
between two steps.

The greatest item of the frontier is stored outside of the heap: most children are popped next, and
each saves a push and a pop.

Text: docs/spec/race.md, sections 9 to 11 and 21.
Cost: a step of the race, a heap operation for each item that is not popped next, and an insertion
among k leaves for each leaf.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush, heappushpop
from typing import Final, Literal, Protocol, TypeAlias

from tcc_runtime.guards import Descent, PotentialSum, SearchGuard, Stop
from tcc_runtime.item import ORDER, Item
from tcc_runtime.numbers.reals import UNDECIDED
from tcc_runtime.numbers.rung import Rung
from tcc_runtime.outcome import Progress
from tcc_runtime.process import Interrupts
from tcc_runtime.races.interface import Race, Step, clamps
from tcc_runtime.settings.modes import Claim
from tcc_runtime.settings.settings import Mode

# Frontier: ordered by published key descending, then id ascending; and the best k leaves.


class Frontier:
    """The items that were pushed and not yet popped, and the leaves that were popped.

    Args:
        numbers: the rung that orders items.
        top: k, the number of best leaves to keep.

    Attributes:
        item: the greatest item, which is not in `heap`; None: no item is left.
        heap: the other items.
        best: the best k leaves, sorted: minus the value, L, and the item.
        found: all leaves that were popped.
    """

    def __init__(self, numbers: Rung, top: int) -> None:
        self.item: Item | None = None
        self.heap: list[Item] = []
        self.best: list[tuple[int, bytes, Item]] = []
        self.found: list[Item] = []
        self.numbers = numbers
        self.top = top

    def offer(self, leaf: Item) -> None:
        """Keep a leaf if it is one of the best k."""
        insort(self.best, (leaf[0], leaf[1], leaf))
        del self.best[self.top :]

    @property
    def incumbent(self) -> int | None:
        """B*, the k-th best value so far; None until k leaves were found."""
        return -self.best[-1][0] if len(self.best) == self.top else None

    def greatest(self) -> Item | None:
        """Return the greatest item.

        Float keys at the top are replaced by exact keys until no other item can exceed the result.
        """
        heap, numbers = self.heap, self.numbers
        while (item := self.item) is not None and type(item[ORDER]) is float:
            if not heap or item[ORDER] + numbers.width < heap[0][ORDER]:
                break
            self.item = heappushpop(heap, numbers.order(item))
        return self.item

    def key_left(self) -> int | None:
        """Return the greatest key left, exact; None if no item is left.

        Raises:
            Undecided: the last precision does not decide the key.
        """
        top = self.greatest()
        return None if top is None else -self.numbers.order(top)[ORDER]

    def frontier(self) -> list[Item]:
        """Return all items, in no particular order."""
        return self.heap if self.item is None else [self.item, *self.heap]

    def remake(self, again: Callable[[Item], Item]) -> None:
        """Replace every item and every found leaf by `again` of it."""
        items, found = [again(item) for item in self.frontier()], list(map(again, self.found))
        heapify(items)
        self.heap[:] = items
        self.item = heappop(self.heap) if items else None
        self.found[:] = found
        self.best.clear()
        for leaf in found:
            self.offer(leaf)


# Sinks: receivers of the steps of a run, such as a ledger or a follower.


class Sink(Protocol):
    """Receives the steps of a run, in order."""

    def enter(self, race: Race) -> None:
        """Receive the race of all later steps."""

    def root(self, item: Item) -> None:
        """Receive the root, which is pushed."""

    def step(self, step: Step, descent: Descent | None) -> None:
        """Receive a step: a node was expanded, or the remainder of a node was drawn from."""

    def leaf(self, leaf: Item, word: int, incumbent: int | None) -> None:
        """Receive a popped leaf, its word U_P, and B* after it."""

    def downgrade(self, mode: Mode, claim: Claim, guard: SearchGuard) -> None:
        """Receive a change of the mode."""

    def flush(self) -> None:
        """Write everything received so far."""


# The state of a run: its frontier, the mode and claim in force, and how guards change them.


class Standing(Frontier):
    """The frontier of a run under a race, a mode and a claim.

    Attributes:
        race, mode, claim: the race, mode and claim in force.
        fired: the guards that fired, in the order of their first firing.
        switched: whether counts became bounds after an arrival was drawn.  Then the distribution of
            the result is not known.
        clamping: whether numbers may have to be clamped.
        sink: receives every step; None: no sink.
    """

    def __init__(self, race: Race, numbers: Rung, mode: Mode, claim: Claim, top: int) -> None:
        super().__init__(numbers, top)
        self.race = race
        self.mode: Mode = mode
        self.claim = claim
        self.fired: list[SearchGuard] = []
        self.switched = False
        self.clamping = False
        self.sink: Sink | None = None

    def downgrade(self, claim: Claim, guard: SearchGuard) -> None:
        """Lower the claim after the mode was lowered, because a guard fired."""
        self.fire(guard)
        self.claim = claim
        if self.sink is not None:
            self.sink.enter(self.race)
            self.sink.downgrade(self.mode, claim, guard)

    def fire(self, guard: SearchGuard) -> None:
        """Note that a guard fires."""
        if guard not in self.fired:
            self.fired.append(guard)

    def clamped(self) -> None:
        """Note that a number was clamped: the run claims nothing."""
        self.fire(SearchGuard.CLAMP)
        self.claim = Claim.NONE

    def note_clamps(self, items: Sequence[Item], *, popped: bool = False) -> None:
        """Check whether a number of these pushed or popped items was clamped."""
        if self.clamping and any(clamps(self.race, item, popped) for item in items):
            self.clamped()

    def note_descent(self, descent: Descent | None) -> None:
        """Check the potential Phi of an expansion."""
        if descent is None:
            return
        if descent.fails:
            self.fire(SearchGuard.ACYCLICITY)
            self.claim = Claim.NONE
        if descent.clamp:
            self.fire(SearchGuard.CLAMP)


AGAIN: Final = "again"  # the frontier was changed: look at its greatest item again
# expansions before interrupts are deferred: they end too soon to be interrupted
UNHELD: Final = 256
Verdict: TypeAlias = "Stop | Literal['again'] | None"
Check: TypeAlias = "Callable[[Item], Verdict]"
Follow: TypeAlias = "Callable[[Progress], bool | None]"


class Search(Standing):
    """One run, from its root to its stop.

    Args:
        race: makes the items that follow a popped one.
        numbers: the rung of the race, which orders items.
        mode, claim: the mode and claim at the start.
        top: k, the number of best leaves to keep.
        interrupts: tells whether the run shall end early.

    Attributes:
        expansions: the number of expansions so far.
        on_node, on_leaf, on_left: checks before a node, a leaf or a remainder is popped.
        opening: called after the root was pushed, before anything is popped; or None.
        before: called before the greatest item is looked at; or None.
        potential: the potential for its guard; None: the guard cannot fire.
        guarded: whether the potential or clamps have to be checked after every step.
        follow: called after every step.  If it returns True or raises KeyboardInterrupt, the run
            ends.
    """

    def __init__(
        self,
        race: Race,
        numbers: Rung,
        mode: Mode,
        claim: Claim,
        top: int,
        interrupts: Interrupts,
    ) -> None:
        super().__init__(race, numbers, mode, claim, top)
        self.expansions = 0
        self.on_node: Sequence[Check] = ()
        self.on_leaf: Sequence[Check] = ()
        self.on_left: Sequence[Check] = ()
        self.opening: Callable[[], Stop | None] | None = None
        self.before: Callable[[], None] | None = None
        self.potential: PotentialSum | None = None
        self.guarded = False
        self.follow: Follow | None = None
        self._interrupts = interrupts

    def run(self) -> Stop:
        """Run until a rule or a check stops the search; return the reason.

        Raises:
            LedgerError: the ledger cannot be written.
        """
        try:
            self._begin()
            stop = None if self.opening is None else self.opening()
            return self._steps() if stop is None else stop
        except UNDECIDED:
            return Stop.PRECISION
        finally:
            if self.sink is not None:
                self.sink.flush()

    def let_go(self) -> None:
        """Drop the checks.  They refer to this search, so they form a reference cycle with all
        items.
        """
        self.on_node = self.on_leaf = self.on_left = ()
        self.opening = self.before = self.follow = None

    def _begin(self) -> None:
        self.item = root = self.race.root()
        self.note_clamps([root])
        if self.sink is not None:
            self.sink.enter(self.race)
            self.sink.root(root)

    def _steps(self) -> Stop:
        heap, best, top, numbers = self.heap, self.best, self.top, self.numbers
        interrupts, sink, follow, before = self._interrupts, self.sink, self.follow, self.before
        # A step with outside effects must not be cut in two, so interrupts are deferred from the
        # start.
        hold_at = UNHELD if sink is None and follow is None and before is None else 0
        expansions = self.expansions
        item = self.item
        try:
            while True:
                if expansions == hold_at:
                    interrupts.hold()
                if before is not None:
                    self.item = item
                    before()
                    item = self.item
                if item is None:
                    return Stop.EXHAUSTED
                order = item[0]
                if type(order) is float:
                    most = order + numbers.width
                    if (heap and most >= heap[0][0]) or (
                        len(best) == top and order < best[-1][0] <= most
                    ):
                        item = heappushpop(heap, numbers.order(item))
                        continue
                if len(best) == top and order >= best[-1][0]:
                    return Stop.BOUND
                if interrupts.pressed:
                    return Stop.INTERRUPTED
                view, left = item[2], item[3]
                checks = (
                    self.on_leaf if view is None else self.on_node if left is None else self.on_left
                )
                if checks:
                    self.item, self.expansions = item, expansions
                    verdict = self._checked(checks)
                    item = self.item
                    if isinstance(verdict, Stop):
                        return verdict
                    if verdict is not None or item is None:
                        continue
                if view is None:
                    item = self._take_leaf(item)
                    continue
                if left is None:
                    step = self.race.expand(item)
                    expansions += 1
                else:
                    step = self.race.draw(item)
                children, rest = step[3], step[4]
                if rest is not None:
                    heappush(heap, rest)
                if len(children) == 1:
                    item = heappushpop(heap, children[0])
                else:
                    for child in children:
                        heappush(heap, child)
                    item = heappop(heap) if heap else None
                if self.guarded:
                    self._tell(step, left is None)
                elif sink is not None:
                    sink.step(step, None)
                if follow is not None:
                    self.item, self.expansions = item, expansions
                    if self._is_over(follow):
                        return Stop.INTERRUPTED
                    item = self.item
        finally:
            self.item, self.expansions = item, expansions

    def _checked(self, checks: Sequence[Check]) -> Verdict:
        for check in checks:
            if self.item is None:
                return AGAIN
            verdict = check(self.item)
            if verdict is not None:
                return verdict
        return None

    def _take_leaf(self, item: Item) -> Item | None:
        """Record the popped leaf; return the next greatest item."""
        race, heap = self.race, self.heap
        leaf = self.numbers.order(race.settle(item))
        word = 0 if self.sink is None else race.leaf_word(leaf)
        self.found.append(leaf)
        self.offer(leaf)
        if self.clamping and race.late and clamps(race, leaf, popped=True):
            self.clamped()
        following = heappop(heap) if heap else None
        if self.sink is not None:
            self.sink.leaf(leaf, word, self.incumbent)
        return following

    def _tell(self, step: Step, expanded: bool) -> None:
        """Check the guards after which a run continues, and give the step to the sink."""
        descent = None
        if expanded and self.potential is not None:
            descent = self.potential.descent(step[0])
            self.note_descent(descent)
        if self.clamping:
            if expanded and self.race.late and step[0][4] is not None:
                self.note_clamps([step[0]], popped=True)
            self.note_clamps(step[3])
            if step[4] is not None:
                self.note_clamps([step[4]])
        if self.sink is not None:
            self.sink.step(step, descent)

    def _is_over(self, follow: Follow) -> bool:
        """Call `follow` after the step is written; return whether the run shall end."""
        if self.sink is not None:
            self.sink.flush()
        top = self.greatest()
        order = self.numbers.order
        progress = Progress(
            expansions=self.expansions,
            incumbent=self.incumbent,
            shown=lambda: None if top is None else -order(top)[ORDER],
        )
        try:
            return bool(follow(progress))
        except KeyboardInterrupt:
            return True

    def requeue(self, item: Item) -> None:
        """Replace the greatest item by `item`, and push that again."""
        self.item = heappushpop(self.heap, item)
        self.note_clamps([item])

    def change(self, race: Race, mode: Mode, again: Callable[[Item], Item]) -> None:
        """Continue with another race and mode: every item and every found leaf is made again."""
        self.remake(again)
        self.race, self.mode = race, mode
        self.clamping = race.clamping
        self.guarded |= self.clamping
