"""The vectorised kernel: bytes in, a checked artifact out; what it does not show is handed over.

The rules are those of :mod:`tcc_certs.kernel`, in docs/spec/artifact.md, section 5.  Everything
that is not one value a state (manifest, calls, documents) is checked by the kernel's own rules.
Here columns are shown to be right, rule by rule; that something in them is wrong, or of a size that
is not decided here, is all that is found, and the kernel says what and where.
Cost: see ``benchmarks/README.md``; some copies of one column at a time beside the file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tcc_certs import kernel
from tcc_certs.errors import Code, require
from tcc_certs.formats.artifact import ArtifactFile, read_artifact
from tcc_certs.formats.automaton import view
from tcc_certs.kernel import CheckedArtifact, check_documents
from tcc_certs.rules.calls import CallTable, check_calls
from tcc_certs.rules.counts import RoundedCounts
from tcc_certs.rules.strict import allowed_answers
from tcc_runtime.fastcheck import rows
from tcc_runtime.fastcheck.answers import answered
from tcc_runtime.fastcheck.bounds import addable, bounded
from tcc_runtime.fastcheck.counts import Digits, Rows, digits_of, minimal, raced, summed
from tcc_runtime.fastcheck.digests import digested, first_digest
from tcc_runtime.fastcheck.rounded import Rounded
from tcc_runtime.fastcheck.spans import Array, Span, column, spans

Equation: TypeAlias = Callable[[Span, Array], bool]  # of a span, and of `accept`


def check(data: bytes | memoryview, *, pin: str | None = None) -> CheckedArtifact:
    """As :func:`tcc_certs.kernel.check`: the same verdict, code and place on the same bytes.

    Raises:
        Rejected: the first rule that fails.
    """
    file = read_artifact(data)
    if pin is not None:
        require(pin, file.digest.hex(), Code.PIN, "artifact digest")
    table = check_calls(file)
    if not holds(file, table):
        return kernel.check(data, pin=pin)
    core, core_calls = check_documents(file, table)
    answers = allowed_answers(file.manifest, core)
    if answers is not None and not answered(file, answers, core_calls):
        return kernel.check(data, pin=pin)
    plans = Rows(column(file, "plans"))
    return CheckedArtifact(
        file=file,
        automaton=view(file),
        core=core,
        table=table,
        core_calls=core_calls,
        plans=plans,
        race_count=_race_count(file, plans),
    )


def _race_count(file: ArtifactFile, plans: Rows) -> Sequence[int]:
    columns = file.columns
    if file.manifest.round_counts is not None:
        return RoundedCounts(columns["race_mantissa"].items(), columns["race_exponent"].items())
    return Rows(column(file, "race_count")) if "race_count" in columns else plans


def holds(file: ArtifactFile, table: CallTable) -> bool:
    """Whether C1 to C6 are shown to hold in every state; False says nothing.

    Args:
        file: digests of the columns checked.
        table: the calls, checked.
    """
    manifest = file.manifest
    if sys.byteorder != "little" or manifest.states < 2 or manifest.edges == 0:
        return False
    if not rows.well_formed(file) or not _first_holds(file):
        return False
    rank, digests = column(file, "rank"), column(file, "state_digest")
    if not rows.numbered(rank, digests) or digests[-1].tobytes() != manifest.root:
        return False
    if not _counts_fit(file):
        return False
    counts = _count_equations(file, table)
    return counts is not None and _spans_hold(file, table, counts) and _digests_hold(file, table)


def _first_holds(file: ArtifactFile) -> bool:
    """The values of the state that stops and has no edges."""
    bounds = [column(file, name) for name in ("rank", "cost_to_go", "residual_to_go")]
    counts = [Rows(column(file, "plans"))]
    if "race_count" in file.columns:
        counts.append(Rows(column(file, "race_count")))
    if file.manifest.round_counts is not None:
        counts.append(Rows(column(file, "race_mantissa")))
        bounds.append(column(file, "race_exponent"))
    return (
        not any(int(values[0]) for values in bounds)
        and all(values[0] == 1 for values in counts)
        and first_digest(column(file, "state_digest"))
    )


def _counts_fit(file: ArtifactFile) -> bool:
    """Rows of counts are no wider than they need to be, and race counts are there for a reason."""
    plans = column(file, "plans")
    if "race_count" not in file.columns:
        return minimal(plans)
    race = column(file, "race_count")
    differs = race.shape != plans.shape or bool((race != plans).any())
    return minimal(plans) and minimal(race) and differs


def _spans_hold(file: ArtifactFile, table: CallTable, counts: Sequence[Equation]) -> bool:
    """The equations of all states but the first, the digests' left out, and that every state and
    every call is used.
    """
    manifest = file.manifest
    names = ("accept", "rank", "cost_to_go", "residual_to_go")
    accept, rank, cost_to_go, residual_to_go = (column(file, name) for name in names)
    low, residual = np.array(table.cost_low, np.int64), np.array(table.residual, np.int64)
    begins = rows.levels(rank)
    if begins is None:
        return False
    if not (addable(low, cost_to_go) and addable(residual, residual_to_go)):
        return False
    entered, used = np.zeros(manifest.states, np.bool_), np.zeros(manifest.calls, np.bool_)
    all_used = False
    for span in spans(file):
        shown = (
            rows.ordered(span, manifest.nondeterministic)
            and rows.ranked(span, rank, begins)
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
    """S(q) of all states but the first."""
    call_digest = np.frombuffer(b"".join(table.digest), np.uint8).reshape(-1, 32)
    accept, digests = column(file, "accept"), column(file, "state_digest")
    return digested(spans(file), accept, call_digest, digests, file.manifest.nondeterministic)


def _count_equations(file: ArtifactFile, table: CallTable) -> Sequence[Equation] | None:
    """C3 and C4 of a span; None where the counts' sizes do not allow for it."""
    degree = int(np.diff(column(file, "edge_start")).max())
    equations = _of_plans(file, table, degree), _of_race(file, table, degree)
    found = [equation for equation in equations if equation is not None]
    return found if len(found) == len(equations) else None


def _of_plans(file: ArtifactFile, table: CallTable, degree: int) -> Equation | None:
    """C3."""
    plans, rank = column(file, "plans"), column(file, "rank")
    if plans.shape[1] == 1:
        flat = plans[:, 0]
        return lambda span, accept: summed(span, accept, flat)
    # The equation of the plans is the one of race counts without weights.
    unit = np.ones(len(table.weight), np.uint64)
    return _by_digits(digits_of(plans, rank, unit, 0, degree), rank)


def _of_race(file: ArtifactFile, table: CallTable, degree: int) -> Equation | None:
    """C4."""
    rank, weight = column(file, "rank"), np.array(table.weight, np.uint64)
    bits = file.manifest.fraction_bits
    if file.manifest.round_counts is not None:
        rounded = Rounded(
            mantissa=column(file, "race_mantissa"),
            exponent=column(file, "race_exponent"),
            rank=rank,
            weight=weight,
            fraction_bits=bits,
            bits=file.manifest.round_counts,
        )
        return rounded.held
    if "race_count" not in file.columns and not bits and int(weight.max()) == 1:
        return lambda span, accept: True  # it repeats C3
    race = column(file, "race_count" if "race_count" in file.columns else "plans")
    return _by_digits(digits_of(race, rank, weight, bits, degree), rank)


def _by_digits(digits: Digits | None, rank: Array) -> Equation | None:
    if digits is None:
        return None
    return lambda span, accept: raced(span, accept, digits, int(rank[span.last - 1]))
