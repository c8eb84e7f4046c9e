"""Checks an artifact with numpy; undecided artifacts are left to the kernel.

The rules are those of :mod:`tcc_certs.kernel`, docs/spec/artifact.md, section 5.  Parts that are
not one value for each state (manifest, calls, documents) are checked by the kernel's own functions.
Columns are shown to be right, rule by rule.  If a column has a fault, or a size that is not handled
here, the kernel decides, and names code and place.
Cost: see ``benchmarks/README.md``.  Memory: some copies of one column at a time, in addition to the
file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from blake3 import blake3

from tcc_certs import kernel
from tcc_certs.call_rules import CallTable, check_calls
from tcc_certs.errors import Code, require
from tcc_certs.formats.artifact import MAX_ROUND_BITS, ArtifactFile, read_artifact, view
from tcc_certs.kernel import CheckedArtifact, check_json
from tcc_certs.rounded import RoundedCounts
from tcc_certs.strict import StrictGroups, allowed_answers
from tcc_runtime.fastcheck import counts
from tcc_runtime.fastcheck.spans import (
    Array,
    StateSpan,
    column,
    levels,
    numbered,
    ordered,
    ranked,
    spans,
    well_formed,
)

# arguments: a span, and the column `accept`
Equation: TypeAlias = Callable[[StateSpan, Array], bool]


def check(data: bytes | memoryview, *, pin: str | None = None) -> CheckedArtifact:
    """Check an artifact with the same verdict, code and place as :func:`tcc_certs.kernel.check`.

    Raises:
        Rejected: the first rule that is broken.
    """
    file = read_artifact(data)
    if pin is not None:
        require(pin, file.digest.hex(), Code.PIN, "artifact digest")
    table = check_calls(file)
    if file.manifest.cyclic or not holds(file, table):
        return kernel.check(data, pin=pin)
    core, core_calls = check_json(file, table)
    strict = any(tool.strict for tool in core.tools)
    if strict and not answered(file, allowed_answers(file.manifest, core), core_calls):
        return kernel.check(data, pin=pin)
    plans = _plans(file)
    return CheckedArtifact(
        file=file,
        automaton=view(file),
        core=core,
        table=table,
        core_calls=core_calls,
        plans=plans,
        race_count=_race_count(file, plans),
    )


def _plans(file: ArtifactFile) -> Sequence[int]:
    columns = file.columns
    if file.manifest.gate:
        return RoundedCounts(columns["plans_mantissa"].items(), columns["plans_exponent"].items())
    return counts.Rows(column(file, "plans"))


def _race_count(file: ArtifactFile, plans: Sequence[int]) -> Sequence[int]:
    columns = file.columns
    if file.manifest.gate:
        return ()
    if file.manifest.round_counts is not None:
        return RoundedCounts(columns["race_mantissa"].items(), columns["race_exponent"].items())
    return counts.Rows(column(file, "race_count")) if "race_count" in columns else plans


def holds(file: ArtifactFile, table: CallTable) -> bool:
    """Return whether C1 to C6 are shown to hold in every state.  False means undecided.

    Args:
        file: an artifact whose digests of columns were checked.
        table: the calls, which were checked.
    """
    manifest = file.manifest
    if sys.byteorder != "little" or manifest.states < 2 or manifest.edges == 0:
        return False
    if not well_formed(file) or not _first_holds(file):
        return False
    rank, digests = column(file, "rank"), column(file, "state_digest")
    if not numbered(rank, digests) or digests[-1].tobytes() != manifest.root:
        return False
    if not _counts_fit(file):
        return False
    counts = _count_equations(file, table)
    return counts is not None and _spans_hold(file, table, counts) and _digests_hold(file, table)


def _first_holds(file: ArtifactFile) -> bool:
    """Return whether the values of the first state are right: it stops, and has no edges."""
    bounds = [column(file, name) for name in ("rank", "cost_to_go", "residual_to_go")]
    values_of = [_plans(file)]
    if file.manifest.gate:
        bounds.append(column(file, "plans_exponent"))
    if "race_count" in file.columns:
        values_of.append(counts.Rows(column(file, "race_count")))
    if file.manifest.round_counts is not None:
        values_of.append(counts.Rows(column(file, "race_mantissa")))
        bounds.append(column(file, "race_exponent"))
    return (
        not any(int(values[0]) for values in bounds)
        and all(values[0] == 1 for values in values_of)
        and first_digest(column(file, "state_digest"))
    )


def _counts_fit(file: ArtifactFile) -> bool:
    """Return whether rows of counts are not too wide, and race counts differ from the counts of
    plans.
    """
    if file.manifest.gate:
        return True
    plans = column(file, "plans")
    if "race_count" not in file.columns:
        return counts.minimal(plans)
    race = column(file, "race_count")
    differs = race.shape != plans.shape or bool((race != plans).any())
    return counts.minimal(plans) and counts.minimal(race) and differs


def _spans_hold(file: ArtifactFile, table: CallTable, counts: Sequence[Equation]) -> bool:
    """Return whether all equations of all states but the first are true, except digests.

    Also whether every state and every call is used.
    """
    manifest = file.manifest
    names = ("accept", "rank", "cost_to_go", "residual_to_go")
    accept, rank, cost_to_go, residual_to_go = (column(file, name) for name in names)
    low, residual = np.array(table.cost_low, np.int64), np.array(table.residual, np.int64)
    begins = levels(rank)
    if begins is None:
        return False
    if not (addable(low, cost_to_go) and addable(residual, residual_to_go)):
        return False
    entered, used = np.zeros(manifest.states, np.bool_), np.zeros(manifest.calls, np.bool_)
    all_used = False
    for span in spans(file):
        shown = (
            ordered(span, manifest.nondeterministic)
            and ranked(span, rank, begins)
            and bounded(span, np.less, accept, low, cost_to_go)
            and bounded(span, np.greater, accept, residual, residual_to_go)
            and all(equation(span, accept) for equation in counts)
        )
        if not shown:
            return False
        entered[span.targets] = True
        if not all_used:
            used[span.calls] = True
            all_used = bool(used.all())
    return bool(entered[:-1].all()) and all_used


def _digests_hold(file: ArtifactFile, table: CallTable) -> bool:
    """Return whether S(q) is right for all states but the first."""
    call_digest = np.frombuffer(b"".join(table.digest), np.uint8).reshape(-1, 32)
    accept, digests = column(file, "accept"), column(file, "state_digest")
    return digested(spans(file), accept, call_digest, digests, file.manifest.nondeterministic)


def _count_equations(file: ArtifactFile, table: CallTable) -> Sequence[Equation] | None:
    """Return the equations of C3 and C4 for a span; None if the sizes of the counts do not allow
    it.
    """
    degree = int(np.diff(column(file, "edge_start")).max())
    equations = _of_plans(file, table, degree), _of_race(file, table, degree)
    found = [equation for equation in equations if equation is not None]
    return found if len(found) == len(equations) else None


def _of_plans(file: ArtifactFile, table: CallTable, degree: int) -> Equation | None:
    """Return the equation of C3."""
    rank, unit = column(file, "rank"), np.ones(len(table.weight), np.uint64)
    if file.manifest.gate:
        rounded = counts.Rounded(
            mantissa=column(file, "plans_mantissa"),
            exponent=column(file, "plans_exponent"),
            rank=rank,
            weight=unit,
            fraction_bits=0,
            bits=MAX_ROUND_BITS,
        )
        return rounded.held
    plans = column(file, "plans")
    if plans.shape[1] == 1:
        flat = plans[:, 0]
        return lambda span, accept: counts.summed(span, accept, flat)
    # C3 is the equation of race counts without weights.
    return _by_digits(counts.digits_of(plans, rank, unit, 0, degree), rank)


def _of_race(file: ArtifactFile, table: CallTable, degree: int) -> Equation | None:
    """Return the equation of C4."""
    rank, weight = column(file, "rank"), np.array(table.weight, np.uint64)
    bits = file.manifest.fraction_bits
    if file.manifest.round_counts is not None:
        rounded = counts.Rounded(
            mantissa=column(file, "race_mantissa"),
            exponent=column(file, "race_exponent"),
            rank=rank,
            weight=weight,
            fraction_bits=bits,
            bits=file.manifest.round_counts,
        )
        return rounded.held
    if file.manifest.gate:
        return lambda span, accept: True  # artifacts of gates have no race counts
    if "race_count" not in file.columns and not bits and int(weight.max()) == 1:
        return lambda span, accept: True  # it repeats C3
    race = column(file, "race_count" if "race_count" in file.columns else "plans")
    return _by_digits(counts.digits_of(race, rank, weight, bits, degree), rank)


def _by_digits(digits: counts.DigitColumns | None, rank: Array) -> Equation | None:
    if digits is None:
        return None
    return lambda span, accept: counts.raced(span, accept, digits, int(rank[span.last - 1]))


# C9: if a strict call has an edge, each of its possible answers has one. The calls of a state are
# distinct (C1), so counting is enough. Cost: a sort of the strict edges of each span.


def answered(file: ArtifactFile, answers: StrictGroups, core_calls: Sequence[int]) -> bool:
    """Return whether C9 is shown to hold in every state.

    Args:
        file: a deterministic artifact for which C1 to C6 are true.
        core_calls: the index in the core of each call of the artifact.
    """
    group = np.array(answers.group, np.int64)[np.array(core_calls, np.intp)]
    expected = np.array(answers.size, np.int64)
    for span in spans(file):
        groups = span.at_calls(group)
        strict = groups >= 0
        keys = span.source[strict] * len(expected) + groups[strict]
        found, edges = np.unique(keys, return_counts=True)
        if bool((edges != expected[found % len(expected)]).any()):
            return False
    return True


# C5: the least cost and the largest residual to go. Cost: for each of the two a gather, an addition
# and two comparisons for each edge.

_MOST = 1 << 63


def addable(call: Array, column: Array) -> bool:
    """Return whether no sum of two values leaves 64 bits."""
    least = int(call.min()) + int(column.min())
    greatest = int(call.max()) + int(column.max())
    return least >= -_MOST and greatest < _MOST


def bounded(span: StateSpan, better: np.ufunc, accept: Array, call: Array, column: Array) -> bool:
    """Return whether each value of a column is the best of: 0 if a plan may stop, and call plus
    target for each edge.

    This is so if no candidate is better than the value, and one is equal to it.

    Args:
        better: ``less`` or ``greater``.
        accept: [n], 0 or 1.
        call, column: [c] and [n], signed 64 bits, for which :func:`addable` is true.
    """
    through = span.at_targets(column)
    through += span.at_calls(call)
    own, stops = span.of(column), span.of(accept).view(np.bool_)
    held = span.each_edge(own)
    if better(through, held).any() or (better(0, own) & stops).any():
        return False
    return bool((span.some(through == held) | ((own == 0) & stops)).all())


# C6: S(q) of every state; the pairs of its edges are gathered for a span at a time. A separate
# pass, because the pairs would push the data of the other equations out of the cache. Cost: one
# BLAKE3 for each state, and 64 bytes moved for each edge.

_HEADS = (b"\x10\x00", b"\x10\x01")
_DIGEST = "V32"
_PAIR = 64
# BLAKE3 processes several kilobytes together only at the beginning of a message. From this size on,
# that saves more time than a copy costs.
_LONG = 4096


def first_digest(digests: Array) -> bool:
    """Return whether S is right for the first state, which stops and has no edges."""
    return bool(digests[0].tobytes() == blake3(_HEADS[1]).digest())


def digested(
    spans: Iterable[StateSpan],
    accept: Array,
    call_digest: Array,
    digests: Array,
    nondeterministic: bool,
) -> bool:
    """Return whether S(q) = BLAKE3(0x10 | accept | A(call) | S(target)..) in all spans.

    Args:
        accept: [n], 0 or 1.
        call_digest: [c, 32], A(a).
        digests: [n, 32], the column.
        nondeterministic: whether edges of one call are sorted in S by the digests of their targets.
    """
    calls, states = call_digest.view(_DIGEST)[:, 0], digests.view(_DIGEST)[:, 0]
    # Reusing one hasher takes two thirds of the time of creating one for each state.
    hasher = blake3()
    reset, update, digest = hasher.reset, hasher.update, hasher.digest
    for span in spans:
        pairs = _pairs(span, calls, states, nondeterministic)
        if pairs is None:
            return False
        edges = pairs.view(np.uint8).reshape(-1).data
        starts = (span.starts * _PAIR).tolist()
        rows = zip(span.of(accept).tolist(), starts, [*starts[1:], len(edges)], strict=True)
        expected = []
        for accepts, low, high in rows:
            reset()
            if high - low < _LONG:
                update(_HEADS[accepts])
                update(edges[low:high])
            else:
                update(_HEADS[accepts] + edges[low:high])
            expected.append(digest())
        if b"".join(expected) != span.of(digests).tobytes():
            return False
    return True


def _pairs(span: StateSpan, calls: Array, states: Array, nondeterministic: bool) -> Array | None:
    """Return A(call) and S(target) in the order of S, [edges, 2]; None if :func:`_order` returns
    None.
    """
    pairs = np.empty((len(span.targets), 2), _DIGEST)
    pairs[:, 0] = span.at_calls(calls)
    pairs[:, 1] = span.at_targets(states)
    if not nondeterministic:
        return pairs
    order = _order(span, pairs[:, 1])
    return None if order is None else pairs[order]


def _order(span: StateSpan, states: Array) -> Array | None:
    """Return the order of the edges by (call, S(target)) in a state; None if the first words do not
    decide it.
    """
    keys = span.source.astype(np.uint64) << np.uint64(32) | span.calls.astype(np.uint64)
    heads = states.copy().view(">u8").reshape(-1, 4)[:, 0].astype(np.uint64)
    order = np.lexsort((heads, keys))
    keys, heads = keys[order], heads[order]
    tied = (keys[1:] == keys[:-1]) & (heads[1:] == heads[:-1])
    return None if tied.any() else order
