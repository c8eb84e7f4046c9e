"""A validator that expects fallback at counts that a test picks.

No verified artifact gets there by its counts: where one is too wide the root's is, and then all are
rounded before the root is pushed.  What follows a `BudgetFail` is the same, but wants a ledger with
asks; so here the validator is made to see the guard fire, under the name of `CountFail`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tcc_certs.replay import kinds
from tcc_certs.replay.run import ReplayedRun, Turn


def counts_fall(monkeypatch: pytest.MonkeyPatch, falls: Callable[[int], bool]) -> None:
    """The guard fires where a node is next whose count has so many bits."""

    def due(run: ReplayedRun) -> bool:
        if run.__dict__.get("due") or not (run.nodes and run.policy.uses_counts):
            return bool(run.__dict__.get("due"))
        top = run.frontier.top
        if run.turn is not Turn.EXPAND or top is None or top.states is None:
            return False
        language = run.language
        count, unit = language.rate(top.states)
        lift = language.fraction_bits * language.rank(top.states) - unit
        return falls(count.bit_length() + lift)

    def set_due(run: ReplayedRun, value: bool) -> None:
        run.__dict__["due"] = value

    monkeypatch.setattr(ReplayedRun, "falls_back", property(due, set_due), raising=False)
    monkeypatch.setattr(kinds, "BUDGET", "CountFail")
