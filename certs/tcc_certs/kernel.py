"""The kernel: bytes in, a checked artifact out, or the first rule that fails.

This page is the order of the rules; each stands in a file of :mod:`tcc_certs.rules`, normative
text in docs/spec/artifact.md, section 5.  Every certificate is one equation a state over that
state's own edges, and has one solution: nothing is searched for, and no wrong value has slack to
hide in.  Cost: linear in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from struct import iter_unpack

from tcc_certs.artifact import ArtifactFile, read_artifact, unpack_limbs
from tcc_certs.automaton import Automaton, listed
from tcc_certs.container import Tensor
from tcc_certs.core import core_of, decode_core
from tcc_certs.errors import Code, require
from tcc_certs.grammar import Core
from tcc_certs.rules.bounds import (
    check_cost_max,
    check_cost_to_go,
    check_range,
    check_residual_to_go,
)
from tcc_certs.rules.calls import CallTable, check_calls
from tcc_certs.rules.finiteness import check_ranks, check_targets, rises
from tcc_certs.rules.leaf_ids import check_leaf_ids
from tcc_certs.rules.minimal import Usage, check_digests, check_minimal
from tcc_certs.rules.partition import check_accept, check_calls_known, check_order, check_starts
from tcc_certs.rules.plans import check_plans, check_width
from tcc_certs.rules.race_counts import OneScale, check_presence, check_race_counts
from tcc_certs.rules.rounded import RoundedCounts, check_rounded
from tcc_certs.rules.source import check_relaxed, check_source, check_tools
from tcc_certs.rules.sweep import Block, Rule, sweep

_LISTED = 1 << 17  # items; an item of a list takes 40 bytes, of a view 8


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
        kept: what its readers have made of it and want again, by name; it says nothing new.
    """

    file: ArtifactFile
    automaton: Automaton
    core: Core
    table: CallTable
    core_calls: tuple[int, ...]
    plans: Sequence[int]
    race_count: Sequence[int]
    kept: dict[str, object] = field(init=False, default_factory=dict, compare=False, repr=False)

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
    check_range(table.residual)
    automaton = listed(file)
    check_starts(automaton)
    plans = _counts(columns["plans"])
    race_count = race_counts(file, plans)
    digests = list(chain.from_iterable(iter_unpack("32s", columns["state_digest"].data)))
    accept, ends = automaton.accept, manifest.nondeterministic
    cost_to_go, residual_to_go = (_numbers(columns[n]) for n in ("cost_to_go", "residual_to_go"))
    rising = rises(automaton.rank)
    usage = Usage(manifest.states, manifest.calls)
    rules: list[Rule] = [
        lambda block: check_calls_known(block, manifest.calls),
        lambda block: check_order(block, manifest.nondeterministic),
        lambda block: check_accept(block, accept),
        check_targets,
        lambda block: check_ranks(block, automaton.rank, rising),
        lambda block: check_plans(block, accept, plans),
        *race_rules(file, automaton, table, plans, race_count),
        lambda block: check_cost_to_go(block, accept, table.cost_low, cost_to_go),
        lambda block: check_residual_to_go(block, accept, table.residual, residual_to_go),
        lambda block: check_digests(block, accept, table.digest, digests, ends),
        usage.note,
    ]
    sweep(automaton, rules)
    check_width(plans, columns["plans"].shape[1], "plans", Code.PLAN_WIDTH)
    if "race_count" in columns:
        check_width(race_count, columns["race_count"].shape[1], "race_count", Code.RACE_WIDTH)
        check_presence(plans, race_count)
    check_cost_max(table.cost_high, manifest.cost_max)
    check_minimal(automaton, digests, manifest.root, usage)
    core, core_calls = check_documents(file, table)
    return CheckedArtifact(
        file=file,
        automaton=automaton,
        core=core,
        table=table,
        core_calls=core_calls,
        plans=plans,
        race_count=race_count,
    )


def race_counts(file: ArtifactFile, plans: Sequence[int]) -> Sequence[int]:
    """The race counts: rounded, in a column of their own, or `plans` where there is none."""
    columns = file.columns
    if file.manifest.round_counts is not None:
        mantissa = columns["race_mantissa"].items().tolist()
        return RoundedCounts(mantissa, columns["race_exponent"].items().tolist())
    return _counts(columns["race_count"]) if "race_count" in columns else plans


def _counts(tensor: Tensor) -> Sequence[int]:
    return _numbers(tensor) if tensor.shape[1] == 1 else unpack_limbs(tensor)


def _numbers(tensor: Tensor) -> Sequence[int]:
    """A flat column as it is read fastest in no order: listed while lists fit the caches."""
    return tensor.items().tolist() if tensor.shape[0] <= _LISTED else tensor.items()


def race_rules(
    file: ArtifactFile,
    automaton: Automaton,
    table: CallTable,
    plans: Sequence[int],
    counts: Sequence[int],
) -> list[Rule]:
    """C4 over :func:`race_counts`; no rule where it is C3 of `plans` word for word."""
    bits, weight = file.manifest.fraction_bits, table.weight
    if counts is plans and bits == 0 and set(weight) <= {1}:
        return []
    accept, scale = automaton.accept, [bits * rank for rank in automaton.rank]
    rounding = file.manifest.round_counts
    if rounding is not None and isinstance(counts, RoundedCounts):
        mantissa, exponent = counts.mantissa, counts.exponent
        return [
            lambda block: check_rounded(
                block, accept, scale, mantissa, exponent, weight, bits, rounding
            )
        ]
    width = file.columns.get("race_count", file.columns["plans"]).shape[1]
    one_scale = OneScale(scale, counts, bits) if max(scale) < 64 * width else None

    def exact(block: Block) -> None:
        if one_scale is None or not one_scale.holds(block, accept, weight, bits):
            check_race_counts(block, accept, scale, counts, weight, bits, width)

    return [exact]


def check_documents(file: ArtifactFile, table: CallTable) -> tuple[Core, tuple[int, ...]]:
    """C7 and C8: the core, the root context, what is relaxed, the calls, the tools.

    Returns:
        the core, and for each call of the artifact its index in it.

    Raises:
        Rejected: C702, C801, C802, C803, M303.
    """
    manifest, columns = file.manifest, file.columns
    value = decode_core(bytes(columns["core"].data))
    core = core_of(value)
    check_leaf_ids(manifest, core)
    check_relaxed(manifest.relaxed, core)
    core_calls = check_source(manifest, table, core)
    owners = {core.calls[index].tool for index in core_calls}
    check_tools(bytes(columns["tools"].data), value["tools"], owners)
    return core, core_calls
