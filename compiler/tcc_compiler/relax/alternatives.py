"""What would fit the limits, added to the error of a compilation that reached one.

Nothing is relaxed unless it was asked for.  So that the caller can choose, the attempts that
``--relax auto`` would make are made here, under the same limits, until one fits or the
time is over; only their sizes are kept.  Cost: that of the attempts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcc_certs.core.model import Core, Limit
from tcc_compiler.automata.constraint.statements import statement_text
from tcc_compiler.options import AUTO, Options
from tcc_compiler.relax.attempts import GUARDED, Attempt, first_strict, next_attempt
from tcc_compiler.relax.names import relaxed_statements
from tcc_compiler.resources.guard import Guard
from tcc_compiler.resources.refusal import Refused
from tcc_compiler.resources.timer import Timer

# Makes an attempt, and returns the number of states of its artifact.
Take = Callable[[Attempt, Guard], int]
_Note = tuple[str, "str | None"]


def with_alternatives(
    core: Core,
    attempt: Attempt,
    refusal: Refused,
    guard: Guard,
    options: Options,
    timer: Timer,
    take: Take,
) -> Refused:
    """`refusal` with what would fit as notes and hint; unchanged where no limit was reached.

    Args:
        attempt, guard: the attempt that reached a limit, and its guard.
        take: makes an attempt; raises Refused.
    """
    if refusal.code not in GUARDED:
        return refusal
    fits, notes = _tried(core, attempt, refusal, guard, options, timer, take)
    if fits is not None:
        on = f"or `--relax auto`: {fits}"
    elif first_strict(core) is not None and refusal.code != "TCC407":
        on = "a strict tool leaves nothing to relax (TCC415)"
    elif timer.is_over():
        on = "or `--relax auto`; what that takes was not found out in the time there was"
    else:
        on = "no way of relaxing it fits these limits"
    hint = f"{refusal.hint}; {on}" if refusal.hint else on
    return Refused(refusal.code, refusal.message, hint, refusal.place, notes)


def _tried(
    core: Core,
    attempt: Attempt,
    refusal: Refused,
    guard: Guard,
    options: Options,
    timer: Timer,
    take: Take,
) -> tuple[str | None, list[_Note]]:
    """The first attempt that fits, in words, None if none does; and a note on each attempt."""
    asking = replace(options, relax=(*options.relax, AUTO))
    # The exact attempt has reached the limit on states; those that follow need not.
    at = replace(attempt, exhaustive=False)
    notes: list[_Note] = []
    while True:
        following = next_attempt(core, at, refusal, guard, asking, timer.half())
        if following is None or following.warning is None:
            return None, notes
        at = following.attempt
        given_up = _given_up(core, attempt, at)
        if timer.is_over():
            notes.append((f"not tried for want of time: {given_up}", following.place))
            return None, notes
        guard = Guard(options, timer.half(), at.exhaustive)
        try:
            fits = f"{given_up}; it takes {take(at, guard)} states"
        except Refused as again:
            notes.append((f"too large as well: {given_up}: {again.message}", following.place))
            refusal = again
            continue
        notes.append((f"this fits: {fits}", following.place))
        return fits, notes


def _given_up(core: Core, before: Attempt, attempt: Attempt) -> str:
    """What `attempt` gives up, in words, with the `--relax` options that ask for the same."""
    held = relaxed_statements(core, before.relaxed)
    left = [s for s in relaxed_statements(core, attempt.relaxed) if s not in held]
    parts = []
    if left:
        texts = " and ".join(f"`{statement_text(core, statement)}`" for statement in left)
        limits = [statement.text for statement in left if isinstance(statement, Limit)]
        names = "".join(f" --relax '{text}'" for text in limits)
        by_name = f" (also by{names})" if len(limits) == len(left) else ""
        parts.append(f"{texts} left to the run{by_name}, counts are upper bounds")
    if attempt.nondeterministic:
        parts.append("state sets kept apart, derivations are counted in place of plans")
    if attempt.round_counts is not None and before.round_counts is None:
        bits = attempt.round_counts
        parts.append(f"race counts rounded up to {bits} bits (also by --round-counts {bits})")
    return "; ".join(parts)
