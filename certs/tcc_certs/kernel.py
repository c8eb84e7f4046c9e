"""The kernel: from the bytes of an artifact to a checked artifact, or the first rule that fails.

Normative text: docs/spec/artifact.md, section 5, which also gives the order of the rules.  A
certificate has one equation for each state, over the edges of that state, and exactly one solution.
So the kernel only evaluates equations and never searches.  Cost: linear in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tcc_certs import call_rules
from tcc_certs.errors import Code, Rejected, require
from tcc_certs.formats.artifact import ArtifactFile, Automaton, read_artifact, unpack_limbs, view
from tcc_certs.policy.core import Core
from tcc_certs.policy.meaning import Policy, policy_of
from tcc_certs.policy.places import omitted
from tcc_certs.policy.reader import read_core
from tcc_certs.state_rules import check_states, check_widths


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedArtifact:
    """An artifact whose certificates all hold.

    Attributes:
        file: manifest and columns.
        automaton: states, edges, acceptance and ranks.
        core: the core of the artifact.  Only :mod:`tcc_certs.corecheck.check` shows that the
            automaton has the plans of this core.
        table: the calls of the artifact.
        core_calls: for each call of the artifact its index in the core.
        plans: [n], the number of plans from each state.  For a nondeterministic artifact it counts
            derivations.  It is empty for an automaton with cycles.
        race_count: [n], m(q), or upper bounds of it if the manifest says so; empty for a gate.
        kept: a cache for values that readers compute from the artifact, by name.
    """

    file: ArtifactFile
    automaton: Automaton
    core: Core
    table: call_rules.CallTable
    core_calls: tuple[int, ...]
    plans: Sequence[int]
    race_count: Sequence[int]
    kept: dict[str, object] = field(init=False, default_factory=dict, compare=False, repr=False)

    @property
    def policy(self) -> Policy:
        """The statements of the core, ready to decide calls."""
        return policy_of(self.core)

    @property
    def omitted(self) -> frozenset[int]:
        """The numbers of the statements that the automaton omits although it could contain them."""
        manifest = self.file.manifest
        return omitted(self.core, manifest.relaxed, cyclic=manifest.cyclic)

    @property
    def calls(self) -> tuple[str, ...]:
        """The canonical texts of the calls."""
        return self.table.texts


def check(data: bytes | memoryview, *, pin: str | None = None) -> CheckedArtifact:
    """Return the artifact in `data`, after all its certificates were found to hold.

    Args:
        data: the whole file, from an untrusted source.
        pin: the required artifact digest in lower-case hex.

    Raises:
        Rejected: the first rule that fails.
    """
    file = read_artifact(data)
    if pin is not None:
        require(pin, file.digest.hex(), Code.PIN, "artifact digest")
    table = call_rules.check_calls(file)
    automaton = view(file)
    plans, race_count = _check_automaton(file, automaton, table)
    core, core_calls = check_json(file, table)
    if automaton.cyclic:
        _check_depth(automaton, core)
    if any(tool.strict for tool in core.tools):
        # imported here because other artifacts do not need it
        from tcc_certs.strict import check_strict

        check_strict(file.manifest, automaton, core, core_calls)
    return CheckedArtifact(
        file=file,
        automaton=automaton,
        core=core,
        table=table,
        core_calls=core_calls,
        plans=plans,
        race_count=race_count,
    )


def _check_automaton(
    file: ArtifactFile, automaton: Automaton, table: call_rules.CallTable
) -> tuple[Sequence[int], Sequence[int]]:
    """Check C1 to C6; return the numbers of plans and the race counts."""
    if file.manifest.cyclic:
        # imported here because other artifacts do not need it
        from tcc_certs.cyclic_rules import check_cyclic

        check_cyclic(file, automaton, table)
        return (), ()
    plans = plan_counts(file)
    race_count = race_counts(file, plans)
    check_states(file, automaton, table, plans, race_count)
    check_widths(file, plans, race_count)
    return plans, race_count


def _check_depth(automaton: Automaton, core: Core) -> None:
    """Check that the root can reach an end within the depth that the core allows."""
    fewest, most = automaton.calls_to_go[automaton.root], core.depth
    if most is not None and fewest > max(0, most):
        raise Rejected(Code.CALLS_TO_GO, "calls_to_go[0]", f"{most} at most: `limit depth`", fewest)


def plan_counts(file: ArtifactFile) -> Sequence[int]:
    """The number of plans of each state; for a gate these are rounded up."""
    return _rounded(file, "plans") if file.manifest.gate else unpack_limbs(file.columns["plans"])


def race_counts(file: ArtifactFile, plans: Sequence[int]) -> Sequence[int]:
    """The race count of each state.

    It is a rounded column, the column ``race_count``, or `plans` if there is no such column.  A
    gate has no race counts.
    """
    if file.manifest.gate:
        return ()
    if file.manifest.round_counts is not None:
        return _rounded(file, "race")
    return unpack_limbs(file.columns["race_count"]) if "race_count" in file.columns else plans


def _rounded(file: ArtifactFile, name: str) -> Sequence[int]:
    from tcc_certs.rounded import RoundedCounts  # imported here because exact counts do not need it

    mantissa, exponent = (
        file.columns[f"{name}_{part}"].items() for part in ("mantissa", "exponent")
    )
    return RoundedCounts(mantissa.tolist(), exponent.tolist())


def check_json(file: ArtifactFile, table: call_rules.CallTable) -> tuple[Core, tuple[int, ...]]:
    """Check C7 and C8: the core, the root context, the relaxed statements, the calls, the tools.

    Returns:
        the core, and for each call of the artifact its index in the core.

    Raises:
        Rejected: C702, C801, C802, C803, M303.
    """
    manifest, columns = file.manifest, file.columns
    try:
        core = read_core(bytes(columns["core"].data))
    except Rejected as refusal:
        place = f"core{refusal.path}"
        raise Rejected(refusal.code, place, refusal.expected, refusal.found) from None
    call_rules.check_leaf_ids(manifest, core)
    call_rules.check_relaxed(manifest, core)
    core_calls = call_rules.check_source(manifest, table, core)
    owners = {core.calls[index].tool for index in core_calls}
    call_rules.check_tools(bytes(columns["tools"].data), core, owners)
    return core, core_calls
