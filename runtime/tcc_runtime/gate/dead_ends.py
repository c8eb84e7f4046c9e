"""Reasons of dead ends: restrictions that together exclude every plan with a call.

A restriction is the plan expression, the states of signatures, a strict tool, or a statement.
Trials omit restrictions and follow the calls through the residuals of the core.  The residuals of a
set of restrictions are kept with the policy, so later refusals reuse the tables.  Text:
docs/gate.md.  Cost: each trial is bounded.  Trials start when the reason is first read.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Final

from tcc_certs.corecheck.letters import WorkBudget
from tcc_certs.corecheck.residuals import Residuals
from tcc_certs.errors import Rejected
from tcc_runtime.analysis.blame import Walk, restricted
from tcc_runtime.analysis.statements import Part, WrittenStatement, statements_of
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Reason
from tcc_runtime.gate.session import Session
from tcc_runtime.gate.session.made import Made

PLAN: Final[Reason] = {"kind": "plan", "text": "plan", "because": None}
LONGEST: Final = 20_000  # calls
_NOWHERE: Final = "an outcome that may have led where no plan continues"
_UNDECIDED: Final = "finding the statements that refuse takes more work than a reason is worth"
_MOST_RUNS: Final = 64  # outcomes of unknown calls that are tried
_MOST_WORK: Final = 4_000_000  # units of all trials of one reason
_MOST_WALKS: Final = 64  # sets of restrictions whose residuals are kept


def plan_reasons(session: Session, made: int, calls: Sequence[int]) -> list[Reason]:
    """Return the reasons why no plan continues with a call.

    Args:
        made: the number of calls before the refused call.
        calls: indices in the artifact of the refused call, one for each combination of its listed
            answers.
    """
    policy = session.policy
    if not calls or made > LONGEST or not session.made.is_complete:
        return [PLAN if not calls else _undecided()]
    for run in islice(_runs(session, islice(session.made, made)), _MOST_RUNS):
        position = policy.machine.start[0]
        for call in run:
            position = policy.machine.step(position, call)
        if not position:
            return [{"kind": "gate", "text": _NOWHERE, "because": None}]
        if not any(policy.leads_to(position, call) for call in calls):
            word = [policy.core_calls[call] for call in run]
            return _excluding(policy, [*word, calls[0]])
    return [_undecided()]


def _undecided() -> Reason:
    return {"kind": "gate", "text": _UNDECIDED, "because": None}


def _runs(session: Session, made: Iterable[Made]) -> Iterator[list[int]]:
    """Yield the sequences of artifact calls that may have happened, one for each combination of
    unknown outcomes.
    """
    choices: list[list[tuple[int, ...]]] = []
    for one in made:
        calls = one.offer.calls
        if one.outcome == "failed":
            continue
        known = calls.get(session.answer(one)) if one.outcome == "done" else None
        if known is not None:
            choices.append([(known,)])
        else:
            nothing: list[tuple[int, ...]] = [()] if one.outcome == "unknown" else []
            choices.append([*nothing, *[(call,) for call in calls.values()]])
    for chosen in product(*choices):
        yield [call for some in chosen for call in some]


def _excluding(policy: Policy, word: Sequence[int]) -> list[Reason]:
    """Return a minimal set of restrictions that together exclude all plans beginning with
    `word`.
    """
    trials = trials_of(policy)
    kept = list(restrictions_of(policy))
    try:
        for one in list(kept):  # the plan is tried first, so it is dropped unless it is needed
            rest = [other for other in kept if other is not one]
            if not trials.may_begin([other.part for other in rest], word):
                kept = rest
    except Rejected:
        return [_undecided()]
    return [_reason(policy, one) for one in kept]


def _reason(policy: Policy, one: WrittenStatement) -> Reason:
    if one.part[0] != "statements":
        return PLAN if one.kind == "plan" else {**PLAN, "text": one.text}
    return {"kind": one.kind, "text": one.text, "because": one.because}


def restrictions_of(policy: Policy) -> Sequence[WrittenStatement]:
    """Return the restrictions of an artifact, without the statements that its automaton omits."""
    return trials_of(policy).restrictions


def trials_of(policy: Policy) -> Trials:
    """Return the trials of a policy, which its artifact keeps."""
    found = policy.artifact.kept.get("trials")
    if not isinstance(found, Trials):
        found = policy.artifact.kept["trials"] = Trials(policy)
    return found


class RenewedBudget(WorkBudget):
    """A budget for several trials, one after another."""

    __slots__ = ()

    def renew(self, limit: int) -> None:
        """Reset the work that is left to `limit` units."""
        self._limit = self._left = limit


class Trials:
    """Decides whether a plan that satisfies some of the restrictions begins with given calls.

    Attributes:
        restrictions: the restrictions of the artifact, in the order of the core.
    """

    def __init__(self, policy: Policy) -> None:
        self._core = policy.core
        # A session counts its calls. So a depth total can end it even if the automaton omits the
        # total.
        counted = policy.core.depth_totals if policy.artifact.cyclic else ()
        omitted = policy.artifact.omitted.difference(counted)
        self.restrictions = [
            one
            for one in statements_of(policy.core, {})
            if one.part[0] != "statements" or one.part[1] not in omitted
        ]
        self._walks: dict[frozenset[Part], tuple[Walk, RenewedBudget]] = {}
        self._lock = threading.Lock()

    def may_begin(self, parts: Collection[Part], word: Sequence[int]) -> bool:
        """Return whether a plan that satisfies these restrictions begins with the calls `word`
        (core indices).

        Raises:
            Rejected: D201: the decision takes too much work.
        """
        return self._tried(frozenset(parts), word, ends=False)

    def may_end(self, parts: Collection[Part], word: Sequence[int]) -> bool:
        """Return whether the calls `word` (core indices) are a whole plan that satisfies these
        restrictions.

        Raises:
            Rejected: D201: the decision takes too much work.
        """
        return self._tried(frozenset(parts), word, ends=True)

    def _tried(self, parts: frozenset[Part], word: Sequence[int], *, ends: bool) -> bool:
        # Do not wait: after a fork the lock may belong to a thread that no longer exists.
        if not self._lock.acquire(blocking=False):
            return self._new_walk(parts)[0].lets_through(word, ends=ends)
        try:
            kept = self._walks.pop(parts) if parts in self._walks else self._new_walk(parts)
            walk, budget = kept
            budget.renew(_MOST_WORK)
            found = walk.lets_through(word, ends=ends)
            # A walk that exceeded its budget is not kept, because its tables may be incomplete.
            self._walks[parts] = walk, budget
            if len(self._walks) > _MOST_WALKS:
                del self._walks[next(iter(self._walks))]
        finally:
            self._lock.release()
        return found

    def _new_walk(self, parts: frozenset[Part]) -> tuple[Walk, RenewedBudget]:
        budget = RenewedBudget(_MOST_WORK)
        limited, kept = restricted(self._core, parts)
        return Walk(Residuals(limited, kept, budget), budget), budget
