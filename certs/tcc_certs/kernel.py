"""The kernel: bytes in, a checked artifact out, or the first rule that fails.

This page is the order of the rules; each stands in a file of :mod:`tcc_certs.rules`, normative
text in docs/spec/artifact.md, section 5.  Every certificate is one equation a state over that
state's own edges, and has one solution: nothing is searched for, and no wrong value has slack to
hide in.  Cost: linear in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.artifact import ArtifactFile, read_artifact, unpack_limbs
from tcc_certs.automaton import Automaton, listed, view
from tcc_certs.core import core_of, decode_core
from tcc_certs.errors import Code, require
from tcc_certs.grammar import Core
from tcc_certs.rules.bounds import check_bounds, check_cost_max, check_range
from tcc_certs.rules.calls import CallTable, check_calls
from tcc_certs.rules.finiteness import check_finiteness
from tcc_certs.rules.leaf_ids import check_leaf_ids
from tcc_certs.rules.minimal import check_minimal
from tcc_certs.rules.partition import check_partition
from tcc_certs.rules.plans import check_plans
from tcc_certs.rules.race_counts import check_presence, check_race_counts
from tcc_certs.rules.rounded import RoundedCounts, check_rounded
from tcc_certs.rules.source import check_relaxed, check_source, check_tools
from tcc_certs.rules.sweep import Block, sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedArtifact:
    """An artifact all of whose certificates hold.

    Attributes:
        file: manifest and columns.
        automaton: states, edges, acceptance, ranks.
        core: the grammar that it says it is of; :mod:`tcc_certs.corecheck` shows that it is.
        table: the calls of the artifact.
        core_calls: for each call of the artifact its index in the core.
        plans: [n], number of plans below each state; of derivations in a nondeterministic one.
        race_count: [n], m(q); upper bounds where the manifest's counts are.
    """

    file: ArtifactFile
    automaton: Automaton
    core: Core
    table: CallTable
    core_calls: tuple[int, ...]
    plans: Sequence[int]
    race_count: Sequence[int]

    @property
    def calls(self) -> tuple[str, ...]:
        """The canonical texts of the calls."""
        return self.table.texts


def check(data: bytes | memoryview, *, pin: str | None = None) -> CheckedArtifact:
    """Every certificate of the artifact in `data` holds.

    Args:
        data: the whole file, from anywhere.
        pin: the artifact digest that it must have, in lower-case hex.

    Raises:
        Rejected: the first rule that fails.
    """
    file = read_artifact(data)
    manifest, columns = file.manifest, file.columns
    if pin is not None:
        require(pin, file.digest.hex(), Code.PIN, "artifact digest")
    table = check_calls(file)
    automaton = listed(view(file))
    check_partition(automaton, manifest.calls, manifest.nondeterministic)
    blocks = sweep(automaton)
    check_finiteness(blocks, automaton)
    plans = unpack_limbs(columns["plans"])
    check_plans(blocks, automaton.accept, plans, columns["plans"].shape[1])
    race_count = _check_race(file, blocks, automaton, table, plans)
    check_range(table.residual)
    check_bounds(
        blocks,
        automaton.accept,
        table.cost_low,
        table.residual,
        columns["cost_to_go"].items().tolist(),
        columns["residual_to_go"].items().tolist(),
    )
    check_cost_max(table.cost_high, manifest.cost_max)
    digests = bytes(columns["state_digest"].data)
    check_minimal(
        blocks, automaton, table.digest, digests, manifest.root, manifest.nondeterministic
    )
    value = decode_core(bytes(columns["core"].data))
    core = core_of(value)
    check_leaf_ids(manifest, core)
    check_relaxed(manifest.relaxed, core)
    core_calls = check_source(manifest, table, core)
    owners = {core.calls[index].tool for index in core_calls}
    check_tools(bytes(columns["tools"].data), value["tools"], owners)
    return CheckedArtifact(
        file=file,
        automaton=automaton,
        core=core,
        table=table,
        core_calls=core_calls,
        plans=plans,
        race_count=race_count,
    )


def _check_race(
    file: ArtifactFile,
    blocks: Sequence[Block],
    automaton: Automaton,
    table: CallTable,
    plans: Sequence[int],
) -> Sequence[int]:
    """C4; the column where there is one, ``plans`` where it would repeat them."""
    bits, rounding = file.manifest.fraction_bits, file.manifest.round_counts
    if rounding is not None:
        mantissa = file.columns["race_mantissa"].items().tolist()
        exponent = file.columns["race_exponent"].items().tolist()
        check_rounded(blocks, automaton, mantissa, exponent, table.weight, bits, rounding)
        return RoundedCounts(mantissa, exponent)
    column = file.columns.get("race_count", file.columns["plans"])
    counts = unpack_limbs(column) if "race_count" in file.columns else plans
    check_race_counts(blocks, automaton, counts, table.weight, bits, column.shape[1])
    check_presence(plans, counts if "race_count" in file.columns else None)
    return counts
