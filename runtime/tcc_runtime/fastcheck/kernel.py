"""The vectorised kernel: bytes in, a checked artifact out; what it does not show is handed over.

The rules are those of :mod:`tcc_certs.kernel`, in docs/spec/artifact.md, section 5.  Everything
that is not one value a state (manifest, calls, documents) is checked by the kernel's own rules.
Rounded race counts, and counts of sizes that :mod:`tcc_runtime.fastcheck.counts` does not decide,
are checked by the kernel's own rules for C3 and C4.
Cost: see ``benchmarks/README.md``; some copies of one column at a time beside the file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from tcc_certs import kernel
from tcc_certs.artifact import ArtifactFile, read_artifact, unpack_limbs
from tcc_certs.automaton import listed, view
from tcc_certs.errors import Code, require
from tcc_certs.kernel import CheckedArtifact, check_documents, race_counts, race_rules
from tcc_certs.rules.bounds import check_cost_max, check_range
from tcc_certs.rules.calls import CallTable, check_calls
from tcc_certs.rules.plans import check_plans
from tcc_certs.rules.rounded import RoundedCounts
from tcc_certs.rules.sweep import Rule, sweep
from tcc_runtime.fastcheck import rows
from tcc_runtime.fastcheck.bounds import addable, bounded
from tcc_runtime.fastcheck.counts import Digits, Rows, digits_of, minimal, raced, summed
from tcc_runtime.fastcheck.digests import digested, first_digest
from tcc_runtime.fastcheck.spans import Array, Span, column, spans


def check(data: bytes | memoryview, *, pin: str | None = None) -> CheckedArtifact:
    """As :func:`tcc_certs.kernel.check`: the same verdict, code and place on the same bytes.

    Raises:
        Rejected: the first rule that fails.
    """
    file = read_artifact(data)
    if pin is not None:
        require(pin, file.digest.hex(), Code.PIN, "artifact digest")
    table = check_calls(file)
    check_range(table.residual)
    if not holds(file, table):
        return kernel.check(data, pin=pin)
    check_cost_max(table.cost_high, file.manifest.cost_max)
    core, core_calls = check_documents(file, table)
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
    """Whether C1 to C6, but for `cost_max`, are shown to hold; False says nothing.

    Args:
        file: digests of the columns checked.
        table: the calls, checked.

    Raises:
        Rejected: C301 or C401, of the kernel's own rules, where all else is shown.
    """
    manifest = file.manifest
    if sys.byteorder != "little" or manifest.states < 2 or manifest.edges == 0:
        return False
    if not rows.well_formed(file) or not _first_holds(file):
        return False
    rank, digests = column(file, "rank"), column(file, "state_digest")
    if not rows.numbered(rank, digests) or digests[-1].tobytes() != manifest.root:
        return False
    return _counts_fit(file) and _spans_hold(file, table)


def _first_holds(file: ArtifactFile) -> bool:
    """The values of the state that stops and has no edges."""
    bounds = [column(file, name) for name in ("rank", "cost_to_go", "residual_to_go")]
    counts = [Rows(column(file, "plans"))]
    if "race_count" in file.columns:
        counts.append(Rows(column(file, "race_count")))
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


def _spans_hold(file: ArtifactFile, table: CallTable) -> bool:
    """The equations of all states but the first, and that every state and every call is used."""
    manifest = file.manifest
    names = ("accept", "rank", "cost_to_go", "residual_to_go", "state_digest")
    accept, rank, cost_to_go, residual_to_go, digests = (column(file, name) for name in names)
    call_digest = np.frombuffer(b"".join(table.digest), np.uint8).reshape(-1, 32)
    low, residual = np.array(table.cost_low, np.int64), np.array(table.residual, np.int64)
    if not (addable(low, cost_to_go) and addable(residual, residual_to_go)):
        return False
    counts = _Counts(file, table)
    entered, used = np.zeros(manifest.states, np.bool_), np.zeros(manifest.calls, np.bool_)
    all_used = False
    for span in spans(file):
        shown = (
            rows.ordered(span, manifest.nondeterministic)
            and rows.ranked(span, rank)
            and bounded(span, np.minimum, accept, low, cost_to_go)
            and bounded(span, np.maximum, accept, residual, residual_to_go)
            and digested(span, accept, call_digest, digests, manifest.nondeterministic)
        )
        if not shown:
            return False
        counts.note(span, accept)
        entered[span.targets] = True
        if not all_used:
            used[span.calls] = True
            all_used = bool(used.all())
    if not (entered[:-1].all() and all_used):
        return False
    counts.finish()
    return True


class _Counts:
    """C3 and C4 span by span while that is possible; else, in the end, by the kernel's rules."""

    __slots__ = ("_file", "_one_limb", "_plans", "_race", "_rules", "_table")

    def __init__(self, file: ArtifactFile, table: CallTable) -> None:
        plans, rank = column(file, "plans"), column(file, "rank")
        degree, bits = int(np.diff(column(file, "edge_start")).max()), file.manifest.fraction_bits
        unit, weight = np.ones(len(table.weight), np.uint64), np.array(table.weight, np.uint64)
        self._file = file
        self._table = table
        # The equation of the plans is the one of race counts without weights.
        self._one_limb = plans[:, 0] if plans.shape[1] == 1 else None
        self._plans = digits_of(plans, rank, unit, 0, degree) if self._one_limb is None else None
        self._race: Digits | None = None
        self._rules = {"plans": self._one_limb is None and self._plans is None, "race": False}
        if file.manifest.round_counts is not None:
            self._rules["race"] = True
        elif "race_count" in file.columns or bits or set(table.weight) != {1}:
            race = column(file, "race_count" if "race_count" in file.columns else "plans")
            self._race = digits_of(race, rank, weight, bits, degree)
            self._rules["race"] = self._race is None

    def note(self, span: Span, accept: Array) -> None:
        """Looks at one span; what is not shown here is left to :meth:`finish`."""
        if self._one_limb is not None and not self._rules["plans"]:
            self._rules["plans"] = not summed(span, accept, self._one_limb)
        if self._plans is not None and not self._rules["plans"]:
            self._rules["plans"] = not raced(span, accept, self._plans)
        if self._race is not None and not self._rules["race"]:
            self._rules["race"] = not raced(span, accept, self._race)

    def finish(self) -> None:
        """C3 and C4 hold in every state.

        Raises:
            Rejected: the kernel's own finding.
        """
        if not any(self._rules.values()):
            return
        file, automaton = self._file, listed(self._file)
        plans = unpack_limbs(file.columns["plans"])
        found: list[Rule] = []
        if self._rules["plans"]:
            found.append(lambda block: check_plans(block, automaton.accept, plans))
        if self._rules["race"]:
            counts = race_counts(file, plans)
            found.extend(race_rules(file, automaton, self._table, counts))
        sweep(automaton, found)
