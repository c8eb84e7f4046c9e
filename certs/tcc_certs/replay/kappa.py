"""Kappa, a diagnostic: for each node, how far the counts of a run are from exact counts.

Normative text: docs/spec/ledger.md, section 10.  No claim depends on kappa, and it is not part of a
verdict: a key of a run belongs to its own race, and the tightened key to another race.  Each node
has a second state, in an automaton with exact counts.  This is the artifact's own automaton, or
that of another artifact of the same core, with counts recomputed for the run's weights.

If the artifact's own counts are exact and used by the run, kappa is 0, and no further code is
loaded.  Cost: the cost of :mod:`tcc_certs.replay.enclosed`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.artifact import Automaton
from tcc_certs.formats.codec import Json, divide_nearest
from tcc_certs.formats.ledger import format_q32, format_q64
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.arrivals import clamp
from tcc_certs.race.digest import uuid7
from tcc_certs.replay.language import Language, RunRoot, States
from tcc_certs.replay.tree import Node, Slot

if TYPE_CHECKING:
    from tcc_certs.replay.enclosed import Enclosed

KAPPA_BITS = 96  # fractional bits of kappa
NO_KAPPA: Mapping[str, int | str] = {"nodes": 0, "tightened": 0, "mean": "0.0000000000"}


class ExactCounts:
    """An automaton with exact counts, which is walked in parallel with the run's automaton.

    Attributes:
        automaton: deterministic.
        call: for each call of the run its index in this automaton, or -1; None: it is the run's
            automaton.
        own: m of each state if the artifact has it; else None.
    """

    def __init__(
        self,
        automaton: Automaton,
        call: Sequence[int] | None,
        own: Sequence[int] | None,
        made: Sequence[Enclosed] = (),
    ) -> None:
        """Store the automaton.

        Args:
            made: m of each state with the run's weights, if `own` is None.
        """
        self.automaton = automaton
        self.call = call
        self.own = own
        self._made = made

    def count(self, state: int) -> Enclosed:
        """Return m of a state, in units of 2^(F*d)."""
        from tcc_certs.replay.enclosed import enclosed

        return self._made[state] if self.own is None else enclosed(self.own[state])

    def step(self, state: int, slot: Slot) -> int | None:
        """Return the state of a child; for `stop`, the parent's state.

        None: no plan is below the child.
        """
        if slot.call is None or slot.states is None:
            return state if self.automaton.accept[state] else None
        return slot.states[0] if self.call is None else self._led(state, self.call[slot.call])

    def root(self, root: RunRoot) -> int | None:
        """Return the state of a run's root."""
        if self.call is None:
            return root.states[0]
        state: int | None = self.automaton.root
        for call in root.after:
            state = None if state is None else self._led(state, self.call[call])
        return state

    def _led(self, state: int, wanted: int) -> int | None:
        rows = self.automaton
        end = rows.edge_start[state + 1]
        at = bisect_left(rows.edge_call, wanted, rows.edge_start[state], end)
        return rows.edge_target[at] if at < end and rows.edge_call[at] == wanted else None


def own_counts(artifact: CheckedArtifact, language: Language) -> ExactCounts | None:
    """Return the artifact's own automaton if its plans are exactly the plans of the run.

    Else None.
    """
    if not language.deterministic or artifact.file.manifest.relaxed:
        return None
    if not language.upper:
        return ExactCounts(artifact.automaton, None, artifact.race_count)
    from tcc_certs.replay.enclosed import enclosed_counts

    counts = enclosed_counts(artifact.automaton, language.weight, language.fraction_bits)
    return ExactCounts(artifact.automaton, None, None, counts)


def handed_counts(
    exact: CheckedArtifact, artifact: CheckedArtifact, language: Language
) -> ExactCounts:
    """Return the automaton of `exact`, an artifact that the auditor gives.

    Raises:
        Rejected: L202: its counts are bounds, or it has another core.
    """
    from tcc_certs.replay.enclosed import enclosed_counts

    path, columns = "argument counts", exact.file.columns
    counts = exact.file.manifest.counts
    ensure(counts == "exact", Code.LEDGER_ARTIFACT, path, "exact counts", counts)
    same = bytes(columns["core"].data) == bytes(artifact.file.columns["core"].data)
    ensure(same, Code.LEDGER_ARTIFACT, path, "an artifact of the same core", "another core")
    at = {text: index for index, text in enumerate(exact.calls)}
    weight = dict(zip(language.texts, language.weight, strict=True))
    missing = [text for text in exact.calls if text not in weight]
    if missing:
        raise Rejected(Code.LEDGER_ARTIFACT, path, "calls of the artifact", missing[0])
    weights = [weight[text] for text in exact.calls]
    counts_here = enclosed_counts(exact.automaton, weights, language.fraction_bits)
    calls = [at.get(text, -1) for text in language.texts]
    return ExactCounts(exact.automaton, calls, None, counts_here)


class Kappa:
    """The kappa statistics of a run, updated as its nodes are pushed.

    Attributes:
        root: the exact state of the run's root, or None.
    """

    def __init__(self, language: Language, exact: ExactCounts | None, root: RunRoot) -> None:
        self._language = language
        self._exact = exact
        self.root = None if exact is None else exact.root(root)
        self._same = exact is not None and exact.own is language.race_count
        self._nodes = self._tightened = self._sum = 0

    def step(self, state: int | None, slot: Slot) -> int | None:
        """Return the exact state of a child, or None."""
        return None if self._exact is None or state is None else self._exact.step(state, slot)

    def note(self, states: States | None, exact: int | None) -> int | None:
        """Count a pushed node, and return its kappa.

        Args:
            states: the states of the node; None: a leaf.
            exact: its exact state, or None.

        Returns:
            kappa in units of 2^-96, rounded down; None without an exact count.
        """
        if self._exact is None or exact is None:
            return None
        self._nodes += 1
        if states is None or self._same:
            return 0
        from tcc_certs.replay.enclosed import kappa_of

        count, unit = self._language.rate(states)
        unit -= self._language.fraction_bits * self._exact.automaton.rank[exact]
        kappa = kappa_of(self._exact.count(exact), count, unit)
        self._tightened += kappa < 0
        self._sum += kappa
        return kappa

    def document(self) -> Mapping[str, int | str]:
        """Return ``nodes``, ``tightened`` and ``mean``."""
        mean = divide_nearest(self._sum, max(1, self._nodes) << KAPPA_BITS - 32)
        return {"nodes": self._nodes, "tightened": self._tightened, "mean": format_q32(mean)}


# ---- Diagnostics of each node.

NodeSink: TypeAlias = "Callable[[Mapping[str, Json]], None]"


def node_diagnostic(started_ms: int, node: Node, key: int, kappa: int | None) -> Mapping[str, Json]:
    """Return the diagnostic object of a pushed node.

    Args:
        key: Q64.64, as published.
        kappa: in units of 2^-96, at most 0.  None if no exact counts are available, no plan is
            below the node, or its key does not depend on counts.
    """
    tight: dict[str, Json] = {}
    if kappa is not None:
        tight["kappa"] = format_q32(divide_nearest(kappa, 1 << KAPPA_BITS - 32))
        # Rounded up, because it is a bound.
        tight["key_tight"] = format_q64(clamp(key - (-kappa >> KAPPA_BITS - 64)))
    return {
        "diagnostic": True,
        "node_id": uuid7(started_ms, node.digest),
        "ctx_digest": node.digest.hex(),
        "key_raw": format_q64(key),
        **tight,
    }
