"""The kernel: bytes in, a checked artifact out, or the first rule that fails.

This page is the order of the rules; normative text in docs/spec/artifact.md, section 5.  Every
certificate is one equation a state over that state's own edges, and has one solution: nothing is
searched for, and no wrong value has slack to hide in.  Cost: linear in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tcc_certs import call_rules
from tcc_certs.core.model import Core
from tcc_certs.core.reader import core_of, decode_core
from tcc_certs.errors import Code, require
from tcc_certs.formats.artifact import ArtifactFile, Automaton, read_artifact, unpack_limbs, view
from tcc_certs.state_rules import check_states, check_widths


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedArtifact:
    """An artifact all of whose certificates hold.

    Attributes:
        file: manifest and columns.
        automaton: states, edges, acceptance, ranks.
        core: the grammar that it says it is of; :mod:`tcc_certs.corecheck.check` shows that it is.
        table: the calls of the artifact.
        core_calls: for each call of the artifact its index in the core.
        plans: [n], number of plans below each state; of derivations in a nondeterministic one.
        race_count: [n], m(q); upper bounds where the manifest's counts are; nothing for a gate.
        kept: what its readers have made of it and want again, by name; it says nothing new.
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
    if pin is not None:
        require(pin, file.digest.hex(), Code.PIN, "artifact digest")
    table = call_rules.check_calls(file)
    automaton = view(file)
    plans = plan_counts(file)
    race_count = race_counts(file, plans)
    check_states(file, automaton, table, plans, race_count)
    check_widths(file, plans, race_count)
    core, core_calls = check_json(file, table)
    if any(tool.strict for tool in core.tools):
        from tcc_certs.strict import check_strict  # here: nobody else has it to trust, nor to load

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


def plan_counts(file: ArtifactFile) -> Sequence[int]:
    """The numbers of plans: exact, or rounded up for a gate."""
    return _rounded(file, "plans") if file.manifest.gate else unpack_limbs(file.columns["plans"])


def race_counts(file: ArtifactFile, plans: Sequence[int]) -> Sequence[int]:
    """The race counts: rounded, in a column of their own, or `plans` where there is none.

    Nothing for a gate.
    """
    if file.manifest.gate:
        return ()
    if file.manifest.round_counts is not None:
        return _rounded(file, "race")
    return unpack_limbs(file.columns["race_count"]) if "race_count" in file.columns else plans


def _rounded(file: ArtifactFile, name: str) -> Sequence[int]:
    from tcc_certs.rounded import RoundedCounts  # here: exact counts need none of it

    mantissa, exponent = (
        file.columns[f"{name}_{part}"].items() for part in ("mantissa", "exponent")
    )
    return RoundedCounts(mantissa.tolist(), exponent.tolist())


def check_json(file: ArtifactFile, table: call_rules.CallTable) -> tuple[Core, tuple[int, ...]]:
    """C7 and C8: the core, the root context, what is relaxed, the calls, the tools.

    Returns:
        the core, and for each call of the artifact its index in it.

    Raises:
        Rejected: C702, C801, C802, C803, M303.
    """
    manifest, columns = file.manifest, file.columns
    value = decode_core(bytes(columns["core"].data))
    core = core_of(value)
    call_rules.check_leaf_ids(manifest, core)
    call_rules.check_relaxed(manifest.relaxed, core)
    core_calls = call_rules.check_source(manifest, table, core)
    owners = {core.calls[index].tool for index in core_calls}
    call_rules.check_tools(bytes(columns["tools"].data), value["tools"], owners)
    return core, core_calls
