"""The result of a run, and its progress reports.

Text: docs/spec/race.md, section 9.  Values, keys and gaps are Q64.64 text; costs are exact
decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from tcc_certs.formats.codec import format_decimal
from tcc_certs.formats.ledger import format_q64
from tcc_certs.policy.atoms import Atom
from tcc_certs.privacy.spending import Taken
from tcc_certs.replay.amounts import SpentAmounts
from tcc_runtime.guards import SearchGuard, Stop
from tcc_runtime.settings.modes import Claim

_NANO_PLACES = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plan that a run found.

    Attributes:
        calls: canonical texts.
        leaf_id: L in hex.
        cost_high: None unless the run never learned a cost and knows only its range.
        assumed: the calls with listed answers, in order.  The plan continues as written only if the
            tools give these answers.
        pam: the PaM value for ranking and its rank among the plans; None unless requested.
    """

    calls: tuple[str, ...]
    cost: str
    value: str
    leaf_id: str
    cost_high: str | None = None
    assumed: tuple[str, ...] = ()
    pam: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of a run after an expansion; numbers are Q64.64.

    Attributes:
        expansions: nodes expanded so far.
        incumbent: B*; None until k leaves were found.
        shown: computes the bound on demand.
    """

    expansions: int
    incumbent: int | None
    shown: Callable[[], int | None] = field(repr=False)

    @property
    def bound(self) -> int | None:
        """The greatest key left, or None."""
        return self.shown()

    @property
    def gap(self) -> int | None:
        """The bound minus the incumbent, if both are known."""
        bound = None if self.incumbent is None else self.bound
        return None if self.incumbent is None or bound is None else bound - self.incumbent


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of one run.

    Attributes:
        mode: the mode in which the run ended.
        claim_type: the claim about the plans.
        law: ``softmax`` if the plans are draws of it, else ``run_wise_only`` or ``none``.  With
            ``run_wise_only``, a cost came from a tool that does not promise one cost for each edge.
        stop: why the run ended.
        plans: the best k plans, best first.
        expansions, leaves: internal nodes expanded, leaves popped.
        frontier_key: the greatest key left; None if the frontier is empty.
        gap: frontier_key minus the incumbent, if both are known.
        materialised: in fallback mode the number of leaves with a value; else None.
        tail_lse: T_K, Q64.64, if the run has a cut; else None.
        guards: the guards that fired, in the order of their first firing.
        seed: hex.
        ledger_head: hex head of the chain of the ledger; None without a ledger.
        spent: the amounts that asks took; None if no cost is a range.
        atoms: of the asks, in order.
        taken: the privacy account at the end; None if the run kept none.
        after: the calls before the run.  `plans` and their costs begin after them.
        raw_input_dependent: the setting.
        verified: whether the artifact was verified.
    """

    mode: str
    claim_type: Claim
    law: str
    stop: Stop
    plans: tuple[Found, ...]
    expansions: int
    leaves: int
    frontier_key: str | None
    gap: str | None
    materialised: int | None
    tail_lse: str | None
    guards: tuple[SearchGuard, ...]
    seed: str
    ledger_head: str | None
    spent: SpentAmounts | None = None
    taken: Taken | None = None
    atoms: tuple[Atom, ...] = ()
    after: tuple[str, ...] = ()
    raw_input_dependent: bool = False
    verified: bool = True

    @property
    def assumed(self) -> tuple[tuple[str, ...], ...]:
        """For each plan its calls with listed answers, which the run assumed."""
        return tuple([found.assumed for found in self.plans])


def plan(
    calls: Sequence[str],
    cost: int,
    value: int,
    name: bytes,
    cost_high: int | None = None,
    answered: Container[str] = (),
) -> Found:
    """Return a plan that costs `cost` nano-units, or up to `cost_high`.

    Args:
        answered: the calls with listed answers.
    """
    high = cost if cost_high is None else cost_high
    return Found(
        calls=tuple(calls),
        assumed=tuple([call for call in calls if call in answered]) if answered else (),
        cost=format_decimal(cost, _NANO_PLACES),
        value=format_q64(value),
        leaf_id=name.hex(),
        cost_high=None if high == cost else format_decimal(high, _NANO_PLACES),
    )
