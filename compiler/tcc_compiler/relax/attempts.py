"""What to try after a guard has stopped an attempt: fewer statements, or fewer promises.

A statement costs the states that it adds: those after it less those before it, the statements
applied in the order of :mod:`tcc_compiler.constrain`; the one at which the guard stopped counts
with what it had reached.  The costliest is relaxed first, one an attempt, limits on depth after all
others (without them the sums of the others grow), and never one that may not be relaxed, that adds
no states, or without which there could be infinitely many plans.  Where the plan expression itself
is too large, its partial derivatives are kept apart (nondeterministic); where they are too large as
well, it is determinised after all, up to the last state.  Where counts are too large, race counts
are rounded.
All of it is for a caller who asked for it (``auto``); what it would take is told to others
(:mod:`tcc_compiler.relax.ways`).
Nothing here looks at the clock: the same guard at the same place gives the same next attempt.
Specification: docs/spec/artifact.md, section 7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcc_certs.core.model import Core, Limit
from tcc_certs.formats.manifest import MAX_ROUND_BITS, Relaxed
from tcc_compiler.constraint.statements import statement_text
from tcc_compiler.guard import Guard, Size
from tcc_compiler.letters import partition
from tcc_compiler.options import Options
from tcc_compiler.place import Statement, place_of
from tcc_compiler.refusal import Refused
from tcc_compiler.relax.culprit import find_culprit
from tcc_compiler.relax.finite import stays_finite
from tcc_compiler.relax.names import may_relax, relaxed_of, relaxed_statements, without

# What a guard may stop and an attempt with bounds may still reach.
GUARDED = ("TCC403", "TCC404", "TCC407")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How one attempt compiles.

    Attributes:
        relaxed: what it leaves to the run.
        nondeterministic: whether it keeps partial derivatives apart.
        patient: whether it determinises up to the last state, however state sets multiply.
        round_counts: bits of race counts, None for exact ones.
    """

    relaxed: Relaxed | None
    nondeterministic: bool
    patient: bool
    round_counts: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The attempt after one that was stopped, and what to say of it.

    Attributes:
        warning: what is given up; None where the last thing that was given up is taken back.
        place: of the statement behind it (:mod:`tcc_compiler.place`).
        apart: whether it gives up counting plans for counting derivations.
    """

    attempt: Attempt
    warning: str | None
    place: str | None = None
    apart: bool = False


def next_attempt(
    core: Core, attempt: Attempt, refusal: Refused, guard: Guard, options: Options
) -> Next | None:
    """The next attempt; None where there is nothing left to try.

    Args:
        refusal: why `attempt` stopped.
        guard: its guard, as it stood then.
    """
    if not options.auto_relax or refusal.code not in GUARDED:
        return None
    guard.stopped()
    if refusal.code == "TCC407":
        return _round(attempt, refusal, options.count_bits)
    if guard.in_plan and attempt.nondeterministic:
        return _be_patient(attempt)
    if guard.in_plan:
        return _keep_apart(core, attempt, refusal)
    size = _costliest(core, attempt, guard)
    if size is None:
        return _keep_apart(core, attempt, refusal)
    left_out = [*relaxed_statements(core, attempt.relaxed), size.statement]
    text = statement_text(core, size.statement)
    place = place_of(size.statement)
    behind = "it" if place == guard.place else f"`{text}` is behind it and"
    return Next(
        attempt=replace(attempt, relaxed=relaxed_of(core, left_out)),
        warning=f"{_figure(refusal, guard)}; {behind} takes {size.before} states to {size.after}: "
        f"`{text}` is relaxed, counts are upper bounds, and a run enforces it",
        place=place,
    )


def first_attempt(relaxed: Relaxed | None, options: Options) -> Attempt:
    """What the options ask for."""
    return Attempt(
        relaxed=relaxed,
        nondeterministic=False,
        patient=not options.auto_relax,
        round_counts=options.round_counts,
    )


def _figure(refusal: Refused, guard: Guard) -> str:
    reached = f" ({guard.reached} states reached)" if guard.reached else ""
    return f"{refusal.message}{reached}"


def _costliest(core: Core, attempt: Attempt, guard: Guard) -> Size | None:
    """The statement that adds the most states, of those that may be relaxed; depth comes last."""
    # Of two that cost the same, the later one.
    sizes = [size for size in reversed(guard.sizes) if size.after > size.before]
    sizes.sort(key=lambda size: (_is_depth(size.statement), size.before - size.after))
    for size in sizes:
        if may_relax(core, size.statement) and _is_spare(core, attempt, size.statement):
            return size
    return None


def _is_depth(statement: Statement) -> bool:
    return isinstance(statement, Limit) and statement.kind == "depth"


def _is_spare(core: Core, attempt: Attempt, statement: Statement) -> bool:
    """Whether there are surely finitely many plans without `statement`, too."""
    left_out = [*relaxed_statements(core, attempt.relaxed), statement]
    kept = without(core, relaxed_of(core, left_out))
    # The look has limits of its own: it is linear, and must not be stopped by what has fired.
    return stays_finite(kept, partition(kept), Guard(Options()))


def _keep_apart(core: Core, attempt: Attempt, refusal: Refused) -> Next | None:
    if attempt.nondeterministic or attempt.patient:
        return None
    kept = without(core, attempt.relaxed)
    name = find_culprit(kept, partition(kept))
    behind = "" if name is None else f"; rule `{name}` does so by itself"
    return Next(
        attempt=replace(attempt, nondeterministic=True),
        warning=f"{refusal.message}{behind}; the artifact is nondeterministic: it counts "
        "derivations, upper bounds of plans",
        place="plan" if name is None else f"rule {name}",
        apart=True,
    )


def _be_patient(attempt: Attempt) -> Next:
    return Next(attempt=replace(attempt, nondeterministic=False, patient=True), warning=None)


def _round(attempt: Attempt, refusal: Refused, limit: int | None) -> Next | None:
    if attempt.round_counts is not None:
        return None
    bits = min(limit or MAX_ROUND_BITS, MAX_ROUND_BITS)
    return Next(
        attempt=replace(attempt, round_counts=bits),
        warning=f"{refusal.message}; race counts are rounded up to {bits} bits: they are upper "
        "bounds",
    )
