"""The parts of an accepted artifact that a run reads.

Normative text: docs/spec/artifact.md, docs/spec/race.md.  A node has a set of states: a single
state if the automaton is deterministic.  Counts of a set are sums. n of a set is a pair of count
and unit, n = count / 2^unit.  Rounded counts are never expanded, because all of them together may
take the square of the artifact's size.  Their powers of two go into the unit.
Cost: one logarithm for each distinct cost, for the envelope of recipe R1.  One pass over the edges
to inflate.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.artifact import MAX_ROUND_BITS, Automaton, require_race_counts
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.limits import MAX_WRITTEN_BYTES
from tcc_certs.race.arrivals import Fraction
from tcc_certs.race.digest import child_context, root_context
from tcc_certs.race.enclosures import call_residual, score
from tcc_certs.rounded import RoundedCounts, count_pairs, round_up
from tcc_certs.statements import Constraints, Tally, residual_constraints

# ---- Race counts in a run: integers m(q) in units of 2^(F*d(q)), computed bottom-up.


def edge_sum(
    automaton: Automaton, weight: Sequence[int], fraction_bits: int, count: Sequence[int], q: int
) -> int:
    """Return the sum of the masses of a state's children, in the units of `q` (right side of C4).

    Args:
        weight: W of each call of the automaton.
        count: m of each target of `q`.
    """
    rank = automaton.rank
    total = automaton.accept[q] << fraction_bits * rank[q]
    for call, target in automaton.edges(q):
        total += weight[call] * count[target] << fraction_bits * (rank[q] - 1 - rank[target])
    return total


def inflated_counts(
    automaton: Automaton,
    weight: Sequence[int],
    fraction_bits: int,
    race_count: Sequence[int],
    factor: tuple[int, int],
) -> Sequence[int]:
    """Return m'(q) = max(ceil(factor * m(q)), the sum of the masses with m' of the targets).

    Args:
        race_count: m of each state.
        factor: at least 1, an exact decimal (numerator, places).

    Raises:
        Rejected: D201: the counts would take more than MAX_WRITTEN_BYTES.
    """
    if factor == (1, 0):
        return race_count
    _ensure_written(automaton, race_count, factor)
    numerator, unit = factor[0], 10 ** factor[1]
    counts: list[int] = []
    for q in range(automaton.states):
        least = edge_sum(automaton, weight, fraction_bits, counts, q)
        counts.append(max(-(-numerator * race_count[q] // unit), least))
    return counts


def _ensure_written(
    automaton: Automaton, race_count: Sequence[int], factor: tuple[int, int]
) -> None:
    """Decline inflated counts that would be much larger than the artifact when expanded.

    m' is at most ceil(factor + 1) * m, so it has at most as many bits as both factors together.
    Each state has m', the bracket and the masses of its children.  The bits of counts that the
    artifact itself has expanded are not included.

    Raises:
        Rejected: D201: more than MAX_WRITTEN_BYTES.
    """
    more = (-(-factor[0] // 10 ** factor[1]) + 1).bit_length()
    starts, bits = automaton.edge_start, 0
    for q in range(automaton.states):
        own = 0
        if isinstance(race_count, RoundedCounts):
            own = race_count.mantissa[q].bit_length() + race_count.exponent[q]
        bits += (2 + starts[q + 1] - starts[q] + automaton.accept[q]) * (own + more)
    limit = f"counts of at most {MAX_WRITTEN_BYTES} bytes when inflated"
    ensure(bits >> 3 <= MAX_WRITTEN_BYTES, Code.LIMIT, "inflate", limit, f"{bits >> 3} bytes")


def rounded_counts(
    automaton: Automaton,
    weight: Sequence[int],
    fraction_bits: int,
    least: Sequence[int],
    bits: int,
) -> RoundedCounts:
    """Return m^(q), the least number of `bits` bits not below m(q) and the masses with m^ together.

    The result is superadditive in every state, so it bounds the counts (Certificates.v:
    superadditive_counts_are_bounds).  The sums are never expanded.

    Args:
        least: m of each state, as the run would use it.
        bits: 1 .. 63.
    """
    rank = automaton.rank
    mantissa: list[int] = []
    exponent: list[int] = []
    for q, own in enumerate(count_pairs(least)):
        stop = fraction_bits * rank[q]
        terms = [(automaton.accept[q], stop)]
        for call, target in automaton.edges(q):
            lift = stop - fraction_bits * (1 + rank[target]) + exponent[target]
            terms.append((weight[call] * mantissa[target], lift))
        # Canonical pairs compare by the exponent first.
        (number, up), (value, shift) = round_up(terms, bits), round_up([own], bits)
        up, number = max((up, number), (shift, value))
        mantissa.append(number)
        exponent.append(up)
    return RoundedCounts(mantissa, exponent)


_NOT_RAISED = b"\0"

States: TypeAlias = "tuple[int, ...]"  # strictly increasing, never empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The parts of an artifact that a run reads.

    Attributes:
        automaton: states, edges, acceptance, rank.
        deterministic: whether a call leads to one state.
        upper: whether the artifact's counts are bounds.
        texts: canonical text of each call.
        weight: W of each call.
        cost_low, cost_high: the costs of each call, nano-units.
        plans: N of each state.
        race_count: m of each state, inflated if the run inflates.
        count, raised: for each state, m = count * 2^raised.
        rounded: whether m was rounded up, because it has more bits than the run may use.
        cost_to_go: h of each state, nano-units.
        residual_to_go: g of each state, Q31.32.
        fraction_bits, beta: F and beta.
        envelope: max(0, the largest r of any call), Q31.32, for recipe R1; 0 with R2.
        cheapest: min(0, the least cost_low of any call), nano-units, for fallback with recipe R1.
        root_digest: D(root).
    """

    automaton: Automaton
    deterministic: bool
    upper: bool
    texts: Sequence[str]
    weight: Sequence[int]
    cost_low: Sequence[int]
    cost_high: Sequence[int]
    plans: Sequence[int]
    race_count: Sequence[int]
    count: Sequence[int]
    raised: Sequence[int]
    rounded: bool
    cost_to_go: Sequence[int]
    residual_to_go: Sequence[int]
    fraction_bits: int
    beta: tuple[int, int]
    envelope: int
    cheapest: int
    root_digest: bytes

    @property
    def root(self) -> States:
        """The states of the root."""
        return (self.automaton.root,)

    def rank(self, states: States) -> int:
        """Return d of a set: the greatest number of calls that may still follow."""
        if len(states) == 1:
            return self.automaton.rank[states[0]]
        return max([self.automaton.rank[q] for q in states])

    def rate(self, states: States) -> tuple[int, int]:
        """Return n of a set as (count, unit): n = count / 2^unit."""
        bits, rank, raised = self.fraction_bits, self.automaton.rank, self.raised
        if len(states) == 1:
            (q,) = states
            return self.count[q], bits * rank[q] - raised[q]
        unit = max([bits * rank[q] - raised[q] for q in states])
        counts = [self.count[q] << unit - bits * rank[q] + raised[q] for q in states]
        return sum(counts), unit

    def count_bits(self, states: States) -> int:
        """Return the number of bits of m of a set, in units of 2^(F*d).

        For rounded counts, it is the number of bits of the mantissa, in a set of the widest member.
        """
        if isinstance(self.race_count, RoundedCounts):
            return max([self.race_count.mantissa[q].bit_length() for q in states])
        count, unit = self.rate(states)
        return count.bit_length() + self.fraction_bits * self.rank(states) - unit

    def number_of_plans(self, states: States) -> int:
        """Return N of a set: the number of plans below it, or a bound of it."""
        return self.plans[states[0]] if len(states) == 1 else sum([self.plans[q] for q in states])

    def accepts(self, states: States) -> bool:
        """Return whether a plan may stop at a set, as far as the automaton decides it."""
        return any(self.automaton.accept[q] for q in states)

    def steps(self, states: States) -> list[tuple[int, States]]:
        """Return the calls after a set in canonical order, each with the set that it leads to."""
        if len(states) == 1 and self.deterministic:
            return [(call, (target,)) for call, target in self.automaton.edges(states[0])]
        targets: dict[int, set[int]] = {}
        for q in states:
            for call, target in self.automaton.edges(q):
                targets.setdefault(call, set()).add(target)
        return [(call, tuple(sorted(targets[call]))) for call in sorted(targets)]

    def bound(self, recipe: str, states: States | None, cost_low: int) -> Fraction:
        """Return M of a node at `states` (None: a leaf) whose calls so far cost `cost_low`."""
        numerator, denominator = score(self.beta, cost_low)
        if states is None:
            return numerator, denominator
        if recipe == "r2":
            ahead = max([self.residual_to_go[q] for q in states])
        else:
            ahead = self.rank(states) * self.envelope
        return (numerator << 32) + ahead * denominator, denominator << 32

    def least_cost(self, recipe: str, states: States) -> int:
        """Return the least cost of the calls after a set, nano-units: h by R2, a bound by R1."""
        if recipe == "r2":
            return min([self.cost_to_go[q] for q in states])
        return self.rank(states) * self.cheapest


def language_of(
    artifact: CheckedArtifact,
    inflate: tuple[int, int],
    recipe: str,
    count_bits: int = 0,
    root: States = (),
) -> Language:
    """Return the language of an artifact.  The artifact caches the last result.

    Args:
        count_bits: the most bits of a count that the run uses; 0: no limit.
        root: the states of the run's root; no count of the run is wider than the root's.
    """
    settings = inflate, recipe, count_bits, root if count_bits else ()
    kept = artifact.kept.get("language")
    if isinstance(kept, tuple) and kept[0] == settings and isinstance(kept[1], Language):
        return kept[1]
    language = read_language(artifact, inflate, recipe)
    if 0 < count_bits < language.count_bits(root or language.root):
        language = _rounded(language, min(count_bits, MAX_ROUND_BITS))
    artifact.kept["language"] = settings, language
    return language


def _rounded(language: Language, bits: int) -> Language:
    """Return the language with race counts rounded up."""
    counts = rounded_counts(
        language.automaton, language.weight, language.fraction_bits, language.race_count, bits
    )
    return replace(
        language, race_count=counts, count=counts.mantissa, raised=counts.exponent, rounded=True
    )


def read_language(
    artifact: CheckedArtifact, inflate: tuple[int, int] = (1, 0), recipe: str = "r1"
) -> Language:
    """Return the language of an accepted artifact, with race counts multiplied by `inflate`.

    Args:
        recipe: the recipe of the keys, ``r1`` or ``r2``.

    Raises:
        Rejected: D203 the artifact is for a gate, and has no race counts; D204 its plans have no
            bound.
    """
    manifest, columns = artifact.file.manifest, artifact.file.columns
    require_race_counts(manifest)
    automaton = artifact.automaton
    weight = columns["call_weight"].items()
    cost_low = columns["call_cost_low"].items()
    bits = manifest.fraction_bits
    distinct = sorted(set(zip(cost_low, weight, strict=True))) if recipe == "r1" else []
    counts = inflated_counts(automaton, weight, bits, artifact.race_count, inflate)
    if isinstance(counts, RoundedCounts):
        count, raised = counts.mantissa, counts.exponent
    else:
        count, raised = counts, _NOT_RAISED * automaton.states
    residuals = [call_residual(manifest.beta, cost, heavy, bits) for cost, heavy in distinct]
    return Language(
        automaton=automaton,
        deterministic=not manifest.nondeterministic,
        upper=manifest.counts != "exact",
        texts=artifact.calls,
        weight=weight,
        cost_low=cost_low,
        cost_high=columns["call_cost_high"].items(),
        plans=artifact.plans,
        race_count=counts,
        count=count,
        raised=raised,
        rounded=False,
        cost_to_go=columns["cost_to_go"].items(),
        residual_to_go=columns["residual_to_go"].items(),
        fraction_bits=bits,
        beta=manifest.beta,
        envelope=max([0, *residuals]),
        cheapest=min([0, *(cost for cost, _ in distinct)]),
        root_digest=root_context(manifest.root_document),
    )


# ---- The root of a run: the artifact's root, or the node to which the calls of `after` lead.
#
# Normative text: docs/spec/race.md, sections 2 and 23.  The calls before the run matter in three
# ways: its context D is folded along them, they lead to its state, and they advance the statements
# left to the run.  Everything else (costs, depth, ranks, counts, the cut and its tail) begins at
# that state.  `after` is a claim of the ledger like any other.  If a call has no edge, or a
# statement forbids it, the ledger is invalid.  Cost: for each call, one binary search among the
# calls, and one among the edges of each state.


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRoot:
    """The start of a run.

    Attributes:
        after: the indices of the calls before it.
        states: the states that they lead to, strictly increasing.
        digest: D.
        tally: the state of the statements left to the run; those of a cut begin here.
        rank: d, the most calls that may follow.
    """

    after: tuple[int, ...]
    states: States
    digest: bytes
    tally: Tally
    rank: int


def root_of(artifact: CheckedArtifact, after: Sequence[str] = ()) -> RunRoot:
    """Return the root of a run after these calls.

    Raises:
        Rejected: L201: the calls are no prefix of a plan.
    """
    rows = artifact.automaton
    states: States = (rows.root,)
    digest = root_context(artifact.file.manifest.root_document)
    constraints = residual_constraints(artifact, None) if after else Constraints(items=())
    tally: Tally | None = constraints.start
    calls: list[int] = []
    for text in after:
        call = _number(artifact.calls, text)
        states = () if call is None else _led(rows, states, call)
        tally = None if tally is None or call is None else constraints.step(tally, call)
        if not states or call is None or tally is None:
            expected = f"a call that may follow the {len(calls)} before it"
            raise Rejected(Code.LEDGER_HEADER, "after", expected, text)
        digest = child_context(digest, text.encode())
        calls.append(call)
    rank = max([rows.rank[q] for q in states])
    return RunRoot(after=tuple(calls), states=states, digest=digest, tally=tally or (), rank=rank)


def _number(calls: Sequence[str], text: str) -> int | None:
    """Return the index of a call with this text, or None."""
    at = bisect_left(calls, text)
    return at if at < len(calls) and calls[at] == text else None


def _led(rows: Automaton, states: States, call: int) -> States:
    """Return all states that the call leads to from any of `states`."""
    found: set[int] = set()
    for q in states:
        end = rows.edge_start[q + 1]
        at = bisect_left(rows.edge_call, call, rows.edge_start[q], end)
        while at < end and rows.edge_call[at] == call:
            found.add(rows.edge_target[at])
            at += 1
    return tuple(sorted(found))
