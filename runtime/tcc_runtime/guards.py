"""Names of guards, reasons to stop, kinds of counts, and the potential Phi.

The checks themselves are in :mod:`tcc_runtime.checks`.
Text: docs/spec/race.md, section 10; the records of guards: docs/spec/ledger.md, section 5.
Cost: a few comparisons for each expansion.
"""

from __future__ import annotations

from enum import StrEnum

from tcc_certs.errors import Code
from tcc_certs.formats.codec import divide_nearest, parse_decimal
from tcc_certs.formats.ledger import Q32_MAX, Q32_MIN
from tcc_runtime.item import Item, calls_of
from tcc_runtime.settings.settings import Settings
from tcc_runtime.states import State

_NANO_PLACES = 9


class SearchGuard(StrEnum):
    """The guards, by their names in ledgers."""

    ACYCLICITY = "AcyclicityFail"
    BUDGET = "BudgetFail"
    CAP = "CapExceeded"
    CLAMP = "NumClamp"
    COUNT = "CountFail"
    RANGE = "RangeFail"
    TIMEOUT = "Timeout"


class Stop(StrEnum):
    """The reasons why a run ended."""

    BOUND = "bound"
    EXHAUSTED = "exhausted"
    MAX_EXPANSIONS = "max_expansions"
    MAX_SECONDS = "max_seconds"
    INTERRUPTED = "interrupted"
    PRECISION = "precision"
    GUARD = "guard"

    @property
    def certifies(self) -> bool:
        """True if no unexamined plan can be better."""
        return self is Stop.BOUND or self is Stop.EXHAUSTED


def is_late(seconds: float, most: int | None) -> bool:
    """Return whether the time is over: `seconds` since the run began, `most` in milliseconds or
    None.
    """
    return most is not None and seconds * 1000 >= most


class CountKind(StrEnum):
    """The kind of a node's race count: exact, an upper bound, unusable, or wrong."""

    EXACT = "exact"
    UPPER = "upper"
    NONE = "none"
    WRONG = "wrong"


def counts_of(state: State) -> CountKind:
    """Return the kind of the counts of an opened state and its children."""
    if state.count == 0 or not state.complete:
        return CountKind.NONE
    if state.slack < 0 or not state.sound:
        return CountKind.WRONG
    return CountKind.UPPER if state.slack else CountKind.EXACT


class Descent:
    """Phi of a node's parent and of the node, and their difference, all Q32.32; and whether guards
    fired.
    """

    __slots__ = ("after", "before", "clamp", "delta", "fails")

    def __init__(self, exact: tuple[int, int, int], denominator: int, fails: bool) -> None:
        rounded = tuple(divide_nearest(part << 32, denominator) for part in exact)
        held = tuple(max(Q32_MIN, min(Q32_MAX, part)) for part in rounded)
        self.before, self.after, self.delta = held
        self.clamp = held != rounded
        self.fails = fails


class PotentialSum:
    """Phi(v) = (L - depth) + alpha * sum of cost_high of the prefix, in exact decimals.

    It must decrease by at least eta at every expansion.  With alpha = 0 it decreases by 1, and eta
    <= 1.
    """

    __slots__ = ("_alpha", "_eta", "_longest", "_unit")

    def __init__(self, settings: Settings, longest: int) -> None:
        alpha, places = parse_decimal(settings.alpha, "alpha", Code.LEDGER_SCHEMA)
        eta, eta_places = parse_decimal(settings.eta, "eta", Code.LEDGER_SCHEMA)
        # A common denominator: 10^(9 + both places).
        self._alpha: int = alpha * 10**eta_places
        self._eta = eta * 10 ** (places + _NANO_PLACES)
        self._unit: int = 10 ** (places + eta_places + _NANO_PLACES)
        self._longest = longest

    def descent(self, item: Item) -> Descent | None:
        """Return the step into a node; None at the root, and if alpha is 0."""
        if self._alpha == 0:
            return None
        calls = calls_of(item)
        if not calls:
            return None
        delta = self._alpha * calls[-1].cost_high - self._unit
        spent = sum([call.cost_high for call in calls])
        after = (self._longest - len(calls)) * self._unit + self._alpha * spent
        return Descent((after - delta, after, delta), self._unit, delta > -self._eta)
