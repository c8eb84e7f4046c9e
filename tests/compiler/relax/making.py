"""Artifacts with bounds, made by one attempt of the compiler and checked by the kernel."""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.corecheck.check import check_core
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.core import Core
from tcc_compiler.options import Options
from tcc_compiler.pipeline import _check_options, _read, compile_core, run_passes
from tcc_compiler.relax.attempts import Attempt, statements_named
from tcc_compiler.resources import CompileRefused, Guard

KINDS = ("price", "latency", "cost", "epsilon", "count", "require", "forbid", "owe")


def made(
    core: Core | bytes,
    names: Sequence[str] = (),
    *,
    relaxed: tuple[int, ...] = (),
    nondeterministic: bool = False,
    round_counts: int | None = None,
) -> bytes | str:
    """The artifact of one attempt, or the code of its refusal."""
    options = Options()
    given = _read(core) if isinstance(core, bytes) else core
    try:
        attempt = Attempt(
            relaxed=statements_named(given, names) if names else relaxed,
            nondeterministic=nondeterministic,
            exhaustive=True,
            round_counts=round_counts,
        )
        beta = _check_options(options)
        return run_passes(given, beta, attempt, options, Guard(options)).artifact
    except CompileRefused as refusal:
        return refusal.code


def valid(data: bytes) -> CheckedArtifact:
    """The artifact, its certificates checked, and held against its core."""
    checked = check(data)
    check_core(checked)
    return checked


def exact(core: Core | bytes) -> CheckedArtifact | None:
    """The exact artifact, None where there is no plan."""
    artifact = compile_core(core, Options()).artifact
    return None if artifact is None else check(artifact)


def words(checked: CheckedArtifact) -> set[tuple[str, ...]]:
    """The plans of the automaton, relaxed or not, as texts of calls."""
    automaton = checked.automaton
    found: list[set[tuple[str, ...]]] = []
    for q in range(automaton.states):
        here = {()} if automaton.accept[q] else set()
        for call, target in automaton.edges(q):
            here |= {(checked.calls[call], *rest) for rest in found[target]}
        found.append(here)
    return found[-1]
