"""Kappa, a diagnostic: how far the counts that a run used are from exact ones, node by node.

Normative text: docs/spec/ledger.md, section 10.  No claim rests on it, and it is no part of a
verdict: a key of a run is that of its own race, and the tightened one belongs to another.  Beside
each node goes its state in an automaton whose counts are exact: the artifact's own, or that of a
handed-in artifact of the same core, its counts made again with the run's weights.

An exact count has F bits for each call that may still follow, so that writing out all of them takes
the square of a small artifact's size.  An enclosure is (low, high, shift): the count is at least
low * 2^shift and at most high * 2^shift, and high takes at most 257 bits.  Every step rounds
outward by less than 2^-255 of the count, so that at the top of an automaton of depth d the ends
differ by less than about d * 2^-254; they are equal as long as no bit that is set was cut off.  A
count that enclosures do not tell from the run's counts as equal to it.

Cost: one pass over the edges, a few hundred bits a state; one logarithm for each pair of counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.artifact import Automaton
from tcc_certs.formats.codec import Json, divide_nearest
from tcc_certs.formats.ledger import format_q32, format_q64
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.arrivals import clamp
from tcc_certs.race.digest import uuid7
from tcc_certs.race.numbers import log_enclosure
from tcc_certs.replay.language import Language, RunRoot, States
from tcc_certs.replay.tree import Node, Slot

# ---- Enclosures of counts.

Enclosed: TypeAlias = "tuple[int, int, int]"

_BITS = 256
_GUARD = 64  # terms are cut so far below the sum's last place: fewer than 2^64 of them add up


def enclosed(count: int) -> Enclosed:
    """The enclosure of a count that is there as an integer, at least 0."""
    return _cut(count, count, 0)


def enclosed_counts(
    automaton: Automaton, weight: Sequence[int], fraction_bits: int
) -> list[Enclosed]:
    """The race counts that are exact for this automaton with these weights.

    Args:
        weight: W of each call of the automaton.
        fraction_bits: F; the count of q is in units of 2^(F*d(q)), and targets precede sources.
    """
    rank, counts = automaton.rank, list[Enclosed]()
    for q in range(automaton.states):
        terms = [(1, 1, fraction_bits * rank[q])] if automaton.accept[q] else []
        for call, target in automaton.edges(q):
            low, high, shift = counts[target]
            by = weight[call]
            ahead = fraction_bits * (rank[q] - 1 - rank[target])
            terms.append((by * low, by * high, shift + ahead))
        counts.append(_total(terms))
    return counts


def _total(terms: Sequence[Enclosed]) -> Enclosed:
    """The enclosure of a sum."""
    if len(terms) == 1:
        return _cut(*terms[0])
    top = max([high.bit_length() + shift for _, high, shift in terms], default=0)
    level = max(0, top - _BITS - _GUARD)
    low_sum = high_sum = 0
    for low, high, shift in terms:
        if shift >= level:
            low_sum += low << shift - level
            high_sum += high << shift - level
        else:
            low_sum += low >> level - shift
            high_sum += -(-high >> level - shift)
    return _cut(low_sum, high_sum, level)


def _cut(low: int, high: int, shift: int) -> Enclosed:
    """The same with at most 256 bits, or 257 where rounding up carries."""
    drop = high.bit_length() - _BITS
    if drop <= 0:
        return low, high, shift
    return low >> drop, -(-high >> drop), shift + drop


KAPPA_BITS = 96
NO_KAPPA: Mapping[str, int | str] = {"nodes": 0, "tightened": 0, "mean": "0.0000000000"}


class ExactCounts:
    """An automaton with exact counts to walk beside the run's.

    Attributes:
        automaton: deterministic.
        call: for each call of the run its index there, -1: none; None: it is the run's automaton.
        own: m of each state where the artifact has it itself, else None.
    """

    def __init__(
        self,
        automaton: Automaton,
        call: Sequence[int] | None,
        own: Sequence[int] | None,
        made: Sequence[Enclosed] = (),
    ) -> None:
        """Take an automaton.

        Args:
            made: m of each state in the run's weights, where there is no `own`.
        """
        self.automaton = automaton
        self.call = call
        self.own = own
        self._made = made

    def count(self, state: int) -> Enclosed:
        """m of a state, in units of 2^(F*d)."""
        return self._made[state] if self.own is None else enclosed(self.own[state])

    def step(self, state: int, slot: Slot) -> int | None:
        """The state of a child, its parent's for `stop`; None: no plan is there."""
        if slot.call is None or slot.states is None:
            return state if self.automaton.accept[state] else None
        return slot.states[0] if self.call is None else self._led(state, self.call[slot.call])

    def root(self, root: RunRoot) -> int | None:
        """The state of a run's root."""
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
    """The artifact's own automaton, where its plans are exactly the run's."""
    if not language.deterministic or artifact.file.manifest.relaxed is not None:
        return None
    if not language.upper:
        return ExactCounts(artifact.automaton, None, artifact.race_count)
    counts = enclosed_counts(artifact.automaton, language.weight, language.fraction_bits)
    return ExactCounts(artifact.automaton, None, None, counts)


def handed_counts(
    exact: CheckedArtifact, artifact: CheckedArtifact, language: Language
) -> ExactCounts:
    """The automaton of `exact`, handed in by the auditor.

    Raises:
        Rejected: L202 its counts are bounds, or it is of another core.
    """
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
    """The figure of a run, made up as its nodes are pushed.

    Attributes:
        root: the exact state of the run's root; None: there is none.
    """

    def __init__(self, language: Language, exact: ExactCounts | None, root: RunRoot) -> None:
        self._language = language
        self._exact = exact
        self.root = None if exact is None else exact.root(root)
        self._same = exact is not None and exact.own is language.race_count
        self._nodes = self._tightened = self._sum = 0

    def step(self, state: int | None, slot: Slot) -> int | None:
        """The exact state of a child."""
        return None if self._exact is None or state is None else self._exact.step(state, slot)

    def note(self, states: States | None, exact: int | None) -> int | None:
        """A node was pushed, with its states (None: a leaf) and its exact state; its kappa.

        Returns:
            in units of 2^-96, rounded down; None where there is no exact count.
        """
        if self._exact is None or exact is None:
            return None
        self._nodes += 1
        if states is None or self._same:
            return 0
        count, unit = self._language.rate(states)
        unit -= self._language.fraction_bits * self._exact.automaton.rank[exact]
        kappa = _kappa(self._exact.count(exact), count, unit)
        self._tightened += kappa < 0
        self._sum += kappa
        return kappa

    def document(self) -> Mapping[str, int | str]:
        """``nodes``, ``tightened``, ``mean``."""
        mean = divide_nearest(self._sum, max(1, self._nodes) << KAPPA_BITS - 32)
        return {"nodes": self._nodes, "tightened": self._tightened, "mean": format_q32(mean)}


def _kappa(exact: Enclosed, used: int, ahead: int) -> int:
    """ln(exact * 2^ahead / used) in units of 2^-96, rounded down; 0 where they may be equal."""
    low, high, shift = exact
    used_low, used_high, used_shift = enclosed(used)
    lift = shift + ahead - used_shift
    return _ratio(low, high, used_low, used_high, lift)


@lru_cache(maxsize=1 << 12)
def _ratio(low: int, high: int, used_low: int, used_high: int, lift: int) -> int:
    """Kappa of an exact count of low * 2^lift .. high * 2^lift and a used one."""
    up, down = max(lift, 0), max(-lift, 0)
    if low << up <= used_high << down and used_low << down <= high << up:
        return 0
    return log_enclosure(low << up, used_high << down, KAPPA_BITS)[0]


# ---- Diagnostics of each node, for whoever asks for them.

NodeSink: TypeAlias = "Callable[[Mapping[str, Json]], None]"


def node_diagnostic(started_ms: int, node: Node, key: int, kappa: int | None) -> Mapping[str, Json]:
    """What is said of a node that was pushed.

    Args:
        key: Q64.64, as it was published.
        kappa: in units of 2^-96, at most 0; None where there is none: no exact counts are at hand,
            no plan is below the node, or its key does not come of counts.
    """
    tight: dict[str, Json] = {}
    if kappa is not None:
        tight["kappa"] = format_q32(divide_nearest(kappa, 1 << KAPPA_BITS - 32))
        # Rounded up, as a bound is.
        tight["key_tight"] = format_q64(clamp(key - (-kappa >> KAPPA_BITS - 64)))
    return {
        "diagnostic": True,
        "node_id": uuid7(started_ms, node.digest),
        "ctx_digest": node.digest.hex(),
        "key_raw": format_q64(key),
        **tight,
    }
