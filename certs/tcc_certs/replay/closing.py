"""The end of a run: the stop rule, coverage of the root, and the claim.

Normative text: docs/spec/ledger.md, sections 3 to 5 and 7 to 9.  For the tail of a truncated run:
section 8, and docs/spec/race.md, section 13.

The tail is T_K = ln of the sum over longer plans of e^(-beta*cost), rounded up.  The sum is
computed level by level.  After j calls, each reached state has the sum over the prefixes that lead
to it, as long as it is undecided whether their plans have more than K calls.  Then the prefixes are
dropped, or multiplied by the sum over all plans from the state.  Sums are enclosures with a shared
binary exponent of any size.  They are rounded outward, and narrowed until the rounding is decided.

Cost: one sum over the frontier.  A tail takes two passes over the edges, and its steps, which are
bounded before they are computed.  A step takes some microseconds at 128 bits (nearly always enough)
and at 512 bits, and tens of microseconds at 4096 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.artifact import Automaton
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Q64_MAX, Q64_MIN, Record, format_q64
from tcc_certs.formats.ledger_schema import text
from tcc_certs.limits import FREE_TAIL_STEPS, MAX_PRECISION_BITS, TAIL_STEPS_PER_EDGE
from tcc_certs.race import enclosures
from tcc_certs.race.arrivals import WORD, clamp
from tcc_certs.replay.amounts import cap_fields, spent_fields
from tcc_certs.replay.findings import NO_CERT, Findings
from tcc_certs.replay.header_check import Seed
from tcc_certs.replay.language import Language, States
from tcc_certs.replay.records import compare, plan_record
from tcc_certs.replay.run import CAP, TIMEOUT, ReplayedRun, Turn
from tcc_certs.replay.tree import PRIME, Node, share_of

# ---- The tail of a truncated run.

Scaled: TypeAlias = "tuple[int, int, int]"  # low <= value / 2^exponent <= high

_ZERO: Scaled = (0, 0, 0)
_ONE: Scaled = (1, 1, 0)
# bits beyond the result: a step loses a unit or two, and there are fewer than 2^40 steps
_SPARE = 64
_GRAIN = 32
_PRECISIONS = (2 * WORD, 8 * WORD, MAX_PRECISION_BITS)


def tail_lse(language: Language, calls: int, root: States | None = None) -> int:
    """Return the least Q64.64 number not below T_K, for K = `calls` below the root's rank.

    Args:
        root: the states at which the run starts; None: the artifact's root.

    Raises:
        Rejected: D201 the tail takes too many steps; D202 there is no such number.
    """
    root = language.root if root is None else root
    cost = _only_cost(language, calls, root)
    if cost is not None:
        numerator, denominator = enclosures.score(language.beta, cost)
        return _within(-(-(numerator << WORD) // denominator))

    fewest = _fewest(language.automaton)
    steps = tail_steps(language.automaton, fewest, calls, root)
    most = FREE_TAIL_STEPS + TAIL_STEPS_PER_EDGE * len(language.automaton.edge_call)
    if steps > most:
        raise Rejected(Code.LIMIT, "tail_lse", f"a tail of at most {most} steps", steps)
    ends = 0, 1
    for bits in _PRECISIONS:
        if ends[0] != ends[1]:
            low, high = _log(_total(language, fewest, calls, root, bits + _SPARE), bits)
            ends = -(-low >> bits - WORD), -(-high >> bits - WORD)
    # If it is still undecided, one plan dominates the sum, which lies above the nearby number.
    return _within(ends[1])


def _within(value: int) -> int:
    """Return the least number of Q64.64 not below `value`."""
    ensure(value <= Q64_MAX, Code.PRECISION, "tail_lse", "a tail within Q64.64", "more")
    return max(value, Q64_MIN)


def _fewest(automaton: Automaton) -> list[int]:
    """Return s of each state: the fewest calls of a plan from this state."""
    fewest: list[int] = []
    for q in range(automaton.states):
        ahead = [fewest[target] for _, target in automaton.edges(q)]
        fewest.append(0 if automaton.accept[q] else 1 + min(ahead))
    return fewest


def tail_steps(
    automaton: Automaton, fewest: Sequence[int], calls: int, root: States | None = None
) -> int:
    """Return an upper bound of the number of edge visits of the tail's computation.

    A state is visited once for each number j of calls that may lead to it and leave open whether a
    plan is longer than K: j + s <= K < j + d.
    """
    rank = automaton.rank
    span = dict.fromkeys((automaton.root,) if root is None else root, (0, 0))
    steps = 0
    for q in range(max(span), -1, -1):
        if q not in span:  # only after a prefix; the artifact's root reaches every state
            continue
        first, last = span.pop(q)
        edges = list(automaton.edges(q))
        open_first, open_last = max(first, calls - rank[q] + 1), min(last, calls - fewest[q])
        if open_first <= open_last:
            steps += len(edges) * (open_last - open_first + 1)
        for _, target in edges:
            low, high = span.get(target, (first + 1, last + 1))
            span[target] = min(low, first + 1), max(high, last + 1)
    return steps


def _only_cost(language: Language, calls: int, root: States) -> int | None:
    """Return the cost of the only plan with more than K calls; None if there are more such plans.

    A state of rank d has a plan of d calls.  So a step can be part of a longer plan exactly if the
    rank of its target is great enough.  Two such steps make two plans.
    """
    automaton, cost = language.automaton, 0
    longer = [q for q in root if automaton.rank[q] > calls]
    if len(longer) != 1:
        return None
    (state,) = longer
    for done in range(automaton.rank[state] + 1):
        ways = [
            (language.cost_low[call], target)
            for call, target in automaton.edges(state)
            if done + 1 + automaton.rank[target] > calls
        ]
        ends = bool(automaton.accept[state]) and done > calls
        if len(ways) + ends > 1:
            return None
        if not ways:
            break
        ((more, state),) = ways
        cost += more
    return cost


def _total(
    language: Language, fewest: Sequence[int], calls: int, root: States, bits: int
) -> Scaled:
    """Return the sum over plans with more than K calls."""
    automaton = language.automaton
    by_cost = {cost: _power(language, cost, bits) for cost in set(language.cost_low)}
    weight = [by_cost[cost] for cost in language.cost_low]
    below: list[Scaled] = []
    for q in range(automaton.states):
        value = _ONE if automaton.accept[q] else _ZERO
        for call, target in automaton.edges(q):
            value = _sum(value, _product(weight[call], below[target], bits), bits)
        below.append(value)
    total, level, done = _ZERO, dict.fromkeys(root, _ONE), 0
    while level:
        done += 1
        after: dict[int, Scaled] = {}
        for state, value in level.items():
            for call, target in automaton.edges(state):
                if done + automaton.rank[target] <= calls:
                    continue
                step = _product(value, weight[call], bits)
                if done + fewest[target] > calls:
                    total = _sum(total, _product(step, below[target], bits), bits)
                else:
                    after[target] = _sum(after.get(target, _ZERO), step, bits)
        level = after
    return total


def _power(language: Language, cost: int, bits: int) -> Scaled:
    """Return an enclosure of e^(-beta * cost) with about `bits` bits of relative precision.

    Let y = whole * ln 2 + r, with enough places for the integer part of y.  `whole` is chosen so
    that r is never below 0, and exceeds ln 2 by almost nothing.
    """
    numerator, denominator = enclosures.score(language.beta, cost)
    size = max(0, numerator.bit_length() - denominator.bit_length() + 2)
    places = bits + WORD + -(-size // _GRAIN) * _GRAIN
    low, high = enclosures.enclose_fraction(numerator, denominator, places)
    two = enclosures.log_two(places)
    whole = low // two[1 if low >= 0 else 0]
    spent = sorted((whole * two[0], whole * two[1]))
    low, high = enclosures.exp_enclosure((low - spent[1], high - spent[0]), places, bits)
    return low, high, whole - bits


def _product(left: Scaled, right: Scaled, bits: int) -> Scaled:
    return _short(left[0] * right[0], left[1] * right[1], left[2] + right[2], bits)


def _sum(left: Scaled, right: Scaled, bits: int) -> Scaled:
    if left[1] == 0 or right[1] == 0:
        return right if left[1] == 0 else left
    if left[2] < right[2]:
        left, right = right, left
    lift = left[2] - right[2]
    if left[1].bit_length() + lift > right[1].bit_length() + 2 * bits:
        # With this many bits, one unit of the left term exceeds the right term.
        pad = max(0, bits - left[1].bit_length())
        return left[0] << pad, (left[1] << pad) + 1, left[2] - pad
    low, high = (left[0] << lift) + right[0], (left[1] << lift) + right[1]
    return _short(low, high, right[2], bits)


def _short(low: int, high: int, exponent: int, bits: int) -> Scaled:
    drop = high.bit_length() - bits
    if drop <= 0:
        return low, high, exponent
    return low >> drop, -(-high >> drop), exponent + drop


def _log(value: Scaled, bits: int) -> enclosures.Enclosure:
    """Return an enclosure of the logarithm of an enclosure, with `bits` fractional bits."""
    low, high, exponent = value
    return enclosures.log_enclosure(low, 1, bits, exponent)[0], enclosures.log_enclosure(
        high, 1, bits, exponent
    )[1]


_CERTIFIES = ("bound", "exhausted")
_ALWAYS_POSSIBLE = ("interrupted", "precision")
_STOP_GUARD: Mapping[str, str] = {"max_expansions": CAP, "max_seconds": TIMEOUT}


def possible_stops(run: ReplayedRun) -> tuple[str, ...]:
    """Return the possible reasons for the end of a run here; only one if the stop rule holds."""
    if run.nodes == 0:
        return ("precision",)
    turn = run.turn
    if turn is Turn.CLOSE:
        return ("exhausted",) if run.frontier.top is None else ("bound",)
    stops = [*_ALWAYS_POSSIBLE]
    if run.header.timed and turn not in (Turn.REQUEUE, Turn.LEAF):
        stops.append("max_seconds")
    if turn is Turn.CAP:
        stops.append("max_expansions")
    return tuple(stops)


def check_coverage(run: ReplayedRun) -> None:
    """Check that the frontier, the popped leaves and the lost masses add up to the root.

    The shares are omega * n of each item of the frontier and each popped leaf.  For each expanded
    node, they are omega * (n - the masses of all children + the masses of the forbidden children).
    Their sum is n(root).  Every pop has kept its mass in integers
    (:meth:`tcc_certs.replay.run.ReplayedRun.begin`).  So the equation holds in exact rationals if
    every share is counted once, which this sum of residues shows.

    Raises:
        Rejected: L608: they do not.
    """
    language = run.language
    root = share_of(1, *language.rate(run.root.states))
    covered = (run.outside + run.frontier.covered(language)) % PRIME
    require(root, covered, Code.COVERAGE, "coverage")


def close_record(run: ReplayedRun, stop: str, seed: Seed | None, tail: bool) -> dict[str, Json]:
    """Return the expected ``close`` record after a stop of kind `stop`.

    Args:
        tail: whether it has the tail of a truncated run even if nothing is claimed.

    Raises:
        Rejected: D201, D202: the tail is too expensive or not representable.
    """
    claim = run.claim if stop in _CERTIFIES else NO_CERT
    record: dict[str, Json] = {
        "kind": "close",
        "stop": stop,
        "claim_type": claim,
        "plans": [_plan(run, leaf, -value) for value, _, leaf in run.best.ranked],
        "expansions": run.expansions,
        "leaves": run.leaves,
        "law": _law(run),
    }
    if run.refinement is not None:
        record |= spent_fields(run.refinement.controller.spent)
        record |= cap_fields(run.header.caps)
    elif run.header.taken is not None:
        record |= run.header.taken.fields()
    top, incumbent = run.frontier.top, run.best.incumbent
    if top is not None:
        record["frontier_key"] = format_q64(top.key)
        if incumbent is not None:
            record["gap"] = format_q64(clamp(top.key - incumbent))
    if run.policy.counts_leaves:
        record["materialised"] = run.leaf_nodes
    if run.header.truncate < run.root.rank and (tail or claim != NO_CERT):
        record["tail_lse"] = format_q64(
            tail_lse(run.language, run.header.truncate, run.root.states)
        )
    if stop in _STOP_GUARD:
        record["guards"] = [_STOP_GUARD[stop]]
    if seed is not None:
        record["seed"] = seed.seed.hex()
        record["opening_salt"] = seed.salt.hex()
    return record


def _plan(run: ReplayedRun, leaf: Node, value: int) -> dict[str, Json]:
    refinement = run.refinement
    high = leaf.cost_low if refinement is None else refinement.costs(leaf)[1]
    return plan_record(leaf, value, high)


def _law(run: ReplayedRun) -> str:
    """Return the law for `close`.

    ``run_wise_only`` if answers may depend on when or whom a run asks.
    """
    refinement, law = run.refinement, run.policy.law
    if law == "softmax" and refinement is not None and not refinement.same:
        return "run_wise_only"
    return law


def check_close(
    record: Record, line: int, run: ReplayedRun, seed: Seed | None, findings: Findings
) -> None:
    """Compare the ``close`` record with the replayed run.

    Args:
        seed: the seed with which the uniforms were checked; None: withheld.

    Raises:
        Rejected: L608 the coverage; D201, D202 the tail.
    """
    stops = possible_stops(run)
    stop = text(record, "stop")
    if stop not in stops:
        findings.add(Code.STOP_RULE, line, "stop", " or ".join(stops), stop)
    if run.nodes:
        check_coverage(run)
    logged = {name: record[name] for name in ("seed", "opening_salt") if name in record}
    stated = "tail_lse" in record
    ending = stop if stop in stops else stops[0]
    expected = close_record(run, ending, seed if logged else None, stated)
    if seed is None and len(logged) == 2:
        # the seed is not in the last line, so it was not found; there is another finding about this
        expected |= logged
    compare({**expected, "stop": stop}, record, line, Code.CLOSE_FIELD, findings)
