"""The next attempt after one that reached a limit: fewer statements, or bounds for exact counts.

A statement costs as many states as it adds when it is applied
(:mod:`tcc_compiler.automata.constraint.apply`); for the statement at which the limit was reached,
the states made so far count.  Each attempt relaxes one statement more, the costliest; limits on
depth come last, since without them the sums of other limits grow.  Never relaxed is a statement
that a run cannot enforce, that adds no states, or without which there may be infinitely many plans;
and none at all where a tool is strict: whether an answer leads on is then known of no automaton
that has other plans too, or several states for one prefix.
Where the plan expression itself is too large, it becomes a nondeterministic automaton of partial
derivatives; where that is too large too, it is determinised up to the limit on states.  Where
counts are too large, race counts are rounded.
This is done where the caller asked for it (``auto``); otherwise the error says what it would give
(:mod:`tcc_compiler.relax.alternatives`).
The clock decides nothing here but whether a rule is named: the same guard gives the same next
attempt.
Specification: docs/spec/artifact.md, section 7.
"""

from __future__ import annotations

from dataclasses import replace

from tcc_certs.core.model import Core, Limit, Tool
from tcc_certs.formats.manifest import MAX_ROUND_BITS, Relaxed
from tcc_certs.formats.names import written
from tcc_compiler.automata.constraint.statements import statement_text
from tcc_compiler.automata.letters import partition
from tcc_compiler.frozen import frozen
from tcc_compiler.options import Options
from tcc_compiler.relax.names import may_relax, relaxed_of, relaxed_statements, without
from tcc_compiler.resources.guard import Guard, Size
from tcc_compiler.resources.place import Statement, place_of
from tcc_compiler.resources.refusal import Refused

# Refusals after which an attempt with bounds in place of counts may succeed.
GUARDED = ("TCC403", "TCC404", "TCC407")


@frozen
class Attempt:
    """How one attempt compiles.

    Attributes:
        relaxed: the statements that it leaves to the run, None for none.
        nondeterministic: whether the states are partial derivatives, not sets of them.
        exhaustive: whether it determinises up to the limit on states, however sets multiply.
        round_counts: bits of race counts, None for exact ones.
    """

    relaxed: Relaxed | None
    nondeterministic: bool
    exhaustive: bool
    round_counts: int | None


@frozen
class NextAttempt:
    """The attempt after one that reached a limit, and the warning that belongs to it.

    Attributes:
        warning: what is given up; None where this attempt withdraws the last one that was given.
        place: the statement that the warning is about (:mod:`tcc_compiler.resources.place`).
        derivations: whether it counts derivations in place of plans.
    """

    attempt: Attempt
    warning: str | None
    place: str | None = None
    derivations: bool = False


def next_attempt(
    core: Core,
    attempt: Attempt,
    refusal: Refused,
    guard: Guard,
    options: Options,
    allowed: float | None = None,
) -> NextAttempt | None:
    """The next attempt; None where there is nothing left to try.

    Args:
        refusal: why `attempt` stopped.
        guard: its guard, as it stood then.
        allowed: seconds for finding out which rule to name, None for no limit.
    """
    if not options.auto_relax or refusal.code not in GUARDED:
        return None
    guard.stopped()
    if refusal.code == "TCC407":
        return _round(attempt, refusal, options.count_bits)
    if first_strict(core) is not None:
        return None
    if guard.in_plan and attempt.nondeterministic:
        return _determinise_fully(attempt)
    if guard.in_plan:
        return _go_nondeterministic(core, attempt, refusal, options, allowed)
    size = _costliest(core, attempt, guard)
    if size is None:
        return _go_nondeterministic(core, attempt, refusal, options, allowed)
    left_out = [*relaxed_statements(core, attempt.relaxed), size.statement]
    text = statement_text(core, size.statement)
    place = place_of(size.statement)
    behind = "it" if place == guard.place else f"`{text}` is behind it and"
    return NextAttempt(
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
        exhaustive=not options.auto_relax,
        round_counts=options.round_counts,
    )


def first_strict(core: Core) -> Tool | None:
    """A strict tool, None where there is none."""
    return next((tool for tool in core.tools if tool.strict), None)


def check_exact(core: Core, attempt: Attempt) -> None:
    """Refuse an attempt that leaves open what a strict tool asks for.

    Raises:
        Refused: TCC415.
    """
    tool = first_strict(core)
    if tool is None or (attempt.relaxed is None and not attempt.nondeterministic):
        return
    raise Refused(
        "TCC415",
        f"nothing can be relaxed beside the strict tool `{written(tool.name)}`: only the "
        "exact automaton shows which answers lead on",
        hint="leave --relax out, or take `strict` away",
        place=f"tool {tool.name}",
    )


def _figure(refusal: Refused, guard: Guard) -> str:
    reached = f" ({guard.reached} states reached)" if guard.reached else ""
    return f"{refusal.message}{reached}"


def _costliest(core: Core, attempt: Attempt, guard: Guard) -> Size | None:
    """The statement that adds the most states, of those that may be relaxed; depth comes last."""
    # Among equals, the one that was applied later.
    sizes = [size for size in reversed(guard.sizes) if size.after > size.before]
    sizes.sort(key=lambda size: (_is_depth(size.statement), size.before - size.after))
    for size in sizes:
        if may_relax(core, size.statement) and _can_be_spared(core, attempt, size.statement):
            return size
    return None


def _is_depth(statement: Statement) -> bool:
    return isinstance(statement, Limit) and statement.kind == "depth"


def _can_be_spared(core: Core, attempt: Attempt, statement: Statement) -> bool:
    """Whether there are certainly finitely many plans without `statement` too."""
    left_out = [*relaxed_statements(core, attempt.relaxed), statement]
    kept = without(core, relaxed_of(core, left_out))
    # A guard of its own, since the other has reached its limit; this question takes linear time.
    from tcc_compiler.relax.finite import stays_finite

    return stays_finite(kept, partition(kept), Guard(Options()))


def _go_nondeterministic(
    core: Core, attempt: Attempt, refusal: Refused, options: Options, allowed: float | None
) -> NextAttempt | None:
    if attempt.nondeterministic or attempt.exhaustive:
        return None
    kept = without(core, attempt.relaxed)
    from tcc_compiler.relax.large_rule import find_large_rule

    name = find_large_rule(kept, partition(kept), options, allowed)
    behind = "" if name is None else f"; rule `{name}` does so by itself"
    return NextAttempt(
        attempt=replace(attempt, nondeterministic=True),
        warning=f"{refusal.message}{behind}; the artifact is nondeterministic: it counts "
        "derivations, upper bounds of plans",
        place="plan" if name is None else f"rule {name}",
        derivations=True,
    )


def _determinise_fully(attempt: Attempt) -> NextAttempt:
    return NextAttempt(
        attempt=replace(attempt, nondeterministic=False, exhaustive=True), warning=None
    )


def _round(attempt: Attempt, refusal: Refused, limit: int | None) -> NextAttempt | None:
    if attempt.round_counts is not None:
        return None
    bits = min(limit or MAX_ROUND_BITS, MAX_ROUND_BITS)
    return NextAttempt(
        attempt=replace(attempt, round_counts=bits),
        warning=f"{refusal.message}; race counts are rounded up to {bits} bits: they are upper "
        "bounds",
    )
