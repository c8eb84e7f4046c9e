"""The next attempt after a limit was reached, and alternatives that fit, for the error message.

The cost of a statement is the number of states that it adds when it is applied
(:mod:`tcc_compiler.automata.constraint.apply`). For the statement at which the limit was reached,
the states made so far count. Each attempt relaxes one more statement, the one with the highest
cost. Limits on depth come last, because without them the sums of other limits grow.

Some statements are never relaxed: those that a run cannot enforce, those that add no states, and
those without which there may be infinitely many plans. If there is a strict tool nothing is
relaxed, because only the exact automaton shows which answers have a continuation.

If the plan expression is too large, it becomes a nondeterministic automaton of partial derivatives.
If that is too large too, it is determinised up to the limit on states. Race counts that are too
large are rounded.

With ``--relax auto`` the compilation makes these attempts. Without it nothing is relaxed. The same
attempts are then made, within the same limits, until one fits or the time is over, so that the
error can say what would fit (`with_alternatives`).

A name for `--relax` is a kind (`KINDS`: all statements of that kind), the text of a statement, or
its number in the core.
The next attempt depends only on the guard, except that the clock decides whether a rule is named.
Specification: docs/spec/artifact.md, section 7. Cost: that of the attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from tcc_certs.formats.artifact import MAX_ROUND_BITS
from tcc_certs.formats.codec import written
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.nodes import TOTALS
from tcc_certs.policy.places import StatementPart, parts_of
from tcc_compiler.automata.constraint.statements import kind_of
from tcc_compiler.automata.letters import partition
from tcc_compiler.frozen import frozen
from tcc_compiler.options import AUTO, Options
from tcc_compiler.relax.estimates import find_large_rule, stays_finite
from tcc_compiler.resources import CompileRefused, Guard, Place, StatementSize, Timer

KINDS = (*TOTALS, "count", "sum", "require", "forbid", "owe")
_MOST_KNOWN = 12


def statements_named(core: Core, names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the statements of `core` that `names` select, increasing.

    Raises:
        CompileRefused: TCC412, a name selects nothing or a statement that cannot be relaxed.
    """
    chosen: set[int] = set()
    for name in names:
        found = [at for at, known in enumerate(_names(core)) if _plain(name) in known]
        if not found:
            raise _unknown(core, name)
        for number in found:
            _check(core, number, alone=len(found) == 1)
        chosen.update(number for number in found if is_held(parts_of(core)[number]))
    return tuple(sorted(chosen))


def is_held(part: StatementPart) -> bool:
    """Return whether the automaton has to enforce a part of a statement."""
    return part.place != "gate"


def may_relax(core: Core, number: int) -> bool:
    """Return whether a run can enforce a statement; it cannot for `cost` if a cost is negative."""
    is_cost = kind_of(core.statements[number]) == "cost"
    return not is_cost or all(call.cost_low >= 0 for call in core.calls)


def kept_parts(core: Core, relaxed: Sequence[int]) -> tuple[StatementPart, ...]:
    """Return the parts that the automaton has to enforce if these statements are relaxed."""
    left_out = set(relaxed)
    return tuple([p for p in parts_of(core) if is_held(p) and p.number not in left_out])


def text_of(core: Core, number: int) -> str:
    """Return a statement as messages show it."""
    return f"`{parts_of(core)[number].text}`"


def explained(refusal: CompileRefused, core: Core, asked: Sequence[int]) -> CompileRefused:
    """Return the refusal; if there are infinitely many plans, it names the relaxed statements."""
    if not asked or refusal.code not in ("TCC401", "TCC406"):
        return refusal
    texts = " and ".join([text_of(core, number) for number in asked])
    return CompileRefused(
        "TCC412",
        f"{texts} cannot be relaxed: without, {refusal.message}",
        hint="relax another statement; or " + (refusal.hint or "keep a limit"),
        place=refusal.place,
    )


def _plain(text: str) -> str:
    """Return a name of statements without white space, and without `limit`."""
    return "".join(text.split()).removeprefix("limit")


def _names(core: Core) -> list[set[str]]:
    """Return, for each statement, the names that select it: its kind, its text and its number."""
    return [
        {kind_of(statement), _plain(part.text), str(part.number)}
        for statement, part in zip(core.statements, parts_of(core), strict=True)
    ]


def _check(core: Core, number: int, *, alone: bool) -> None:
    """Raise TCC412 if a statement cannot be relaxed; `alone`: a name selects it alone."""
    if alone and not is_held(parts_of(core)[number]):
        raise CompileRefused(
            "TCC412",
            f"{text_of(core, number)} is no part of plans: the gate decides it",
            hint="leave it out of --relax",
            place=number,
        )
    if may_relax(core, number):
        return
    worst = min(core.calls, key=lambda call: call.cost_low)
    raise CompileRefused(
        "TCC412",
        f"{text_of(core, number)} cannot be relaxed: `{worst.text}` may cost less than nothing, "
        "so a plan past the limit could still come back below it",
        hint="relax another statement, or make every cost at least 0",
        place=number,
    )


def _unknown(core: Core, name: str) -> CompileRefused:
    parts = parts_of(core)
    known = [parts[at].text for at in range(len(parts)) if is_held(parts[at])]
    if name in KINDS:
        message = f"there is no {name} statement to relax"
    else:
        message = f"`{name}` is no kind, no text and no number of a statement of this grammar"
    close = get_close_matches(name[:64], [*known, *KINDS], n=1)
    if close and name not in KINDS:
        hint = f"did you mean '{close[0]}'?"
    elif known:
        more = ", .." if len(known) > _MOST_KNOWN else ""
        texts = ", ".join([f"'{text}'" for text in known[:_MOST_KNOWN]])
        hint = f"name a kind ({', '.join(KINDS)}), or one of: {texts}{more}"
    else:
        hint = "the automaton of this grammar holds no statement"
    return CompileRefused("TCC412", message, hint=hint)


# Refusals after which an attempt with bounds instead of counts may succeed.
GUARDED = ("TCC403", "TCC404", "TCC407")


@frozen
class Attempt:
    """How one attempt compiles.

    Attributes:
        relaxed: the numbers of the statements that a run has to enforce.
        nondeterministic: True: states are partial derivatives, not sets of them.
        exhaustive: True: determinise up to the limit on states, however sets multiply.
        round_counts: the bits of race counts; None for exact counts.
    """

    relaxed: tuple[int, ...]
    nondeterministic: bool
    exhaustive: bool
    round_counts: int | None


@frozen
class NextAttempt:
    """The attempt after a limit was reached, with its warning.

    Attributes:
        attempt: the next attempt.
        warning: the relaxed statement or the rounding. None: it withdraws the last warning.
        place: the statement that the warning is about, as in :class:`CompileRefused`.
        derivations: whether the attempt counts derivations instead of plans.
    """

    attempt: Attempt
    warning: str | None
    place: Place | None = None
    derivations: bool = False


def next_attempt(
    core: Core,
    attempt: Attempt,
    refusal: CompileRefused,
    guard: Guard,
    options: Options,
    allowed: float | None = None,
) -> NextAttempt | None:
    """Return the next attempt; None after the last one.

    Args:
        refusal: the reason why `attempt` stopped.
        guard: the guard of `attempt`, in its last state.
        allowed: the seconds for finding a rule to name; None for no limit.
    """
    if not options.auto_relax or refusal.code not in GUARDED:
        return None
    guard.stopped()
    if refusal.code == "TCC407":
        return _round(attempt, refusal, options.count_bits)
    if strict_tool(core) is not None:
        return None
    if guard.in_plan and attempt.nondeterministic:
        return _determinise_fully(attempt)
    if guard.in_plan:
        return _go_nondeterministic(core, attempt, refusal, options, allowed)
    size = _costliest(core, attempt, guard)
    if size is None:
        return _go_nondeterministic(core, attempt, refusal, options, allowed)
    number = size.number
    text = text_of(core, number)
    behind = "it" if number == guard.place else f"{text} is behind it and"
    return NextAttempt(
        attempt=replace(attempt, relaxed=_with(attempt.relaxed, number)),
        warning=f"{_figure(refusal, guard)}; {behind} takes {size.before} states to {size.after}: "
        f"{text} is relaxed, counts are upper bounds, and a run enforces it",
        place=number,
    )


def _with(relaxed: Sequence[int], number: int) -> tuple[int, ...]:
    return tuple(sorted({*relaxed, number}))


def first_attempt(relaxed: tuple[int, ...], options: Options) -> Attempt:
    """Return the attempt that the options select."""
    return Attempt(
        relaxed=relaxed,
        nondeterministic=False,
        exhaustive=not options.auto_relax,
        round_counts=options.round_counts,
    )


def strict_tool(core: Core) -> Tool | None:
    """Return a strict tool; None if there is none."""
    return next((tool for tool in core.tools if tool.strict), None)


def check_exact(core: Core, attempt: Attempt) -> None:
    """Check that an attempt for a grammar with a strict tool is exact.

    Raises:
        CompileRefused: TCC415, it is not.
    """
    tool = strict_tool(core)
    if tool is None or not (attempt.relaxed or attempt.nondeterministic):
        return
    raise CompileRefused(
        "TCC415",
        f"nothing can be relaxed beside the strict tool `{written(tool.name)}`: only the "
        "exact automaton shows which answers lead on",
        hint="leave --relax out, or take `strict` away",
        place=f"tool {tool.name}",
    )


def _figure(refusal: CompileRefused, guard: Guard) -> str:
    reached = f" ({guard.reached} states reached)" if guard.reached else ""
    return f"{refusal.message}{reached}"


def _costliest(core: Core, attempt: Attempt, guard: Guard) -> StatementSize | None:
    """Return the statement that adds most states and may be relaxed; limits on depth come last."""
    # Of equal statements, the last applied one comes first.
    sizes = [size for size in reversed(guard.sizes) if size.after > size.before]
    sizes.sort(key=lambda size: (_is_depth(core, size.number), size.before - size.after))
    for size in sizes:
        if may_relax(core, size.number) and _can_be_spared(core, attempt, size.number):
            return size
    return None


def _is_depth(core: Core, number: int) -> bool:
    return kind_of(core.statements[number]) == "depth"


def _can_be_spared(core: Core, attempt: Attempt, number: int) -> bool:
    """Return whether there are certainly finitely many plans without this statement."""
    letters = partition(core, kept_parts(core, _with(attempt.relaxed, number)))
    # Use a new guard, because the other one has reached its limit. This takes linear time.
    return stays_finite(core, letters, Guard(Options()))


def _go_nondeterministic(
    core: Core, attempt: Attempt, refusal: CompileRefused, options: Options, allowed: float | None
) -> NextAttempt | None:
    if attempt.nondeterministic or attempt.exhaustive:
        return None
    letters = partition(core, kept_parts(core, attempt.relaxed))
    name = find_large_rule(core, letters, options, allowed)
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


def _round(attempt: Attempt, refusal: CompileRefused, limit: int | None) -> NextAttempt | None:
    if attempt.round_counts is not None:
        return None
    bits = min(limit or MAX_ROUND_BITS, MAX_ROUND_BITS)
    return NextAttempt(
        attempt=replace(attempt, round_counts=bits),
        warning=f"{refusal.message}; race counts are rounded up to {bits} bits: they are upper "
        "bounds",
    )


# Makes an attempt, and returns the number of states of its artifact.
Take = Callable[[Attempt, Guard], int]
_Note = tuple[str, "Place | None"]


def with_alternatives(
    core: Core,
    attempt: Attempt,
    refusal: CompileRefused,
    guard: Guard,
    options: Options,
    timer: Timer,
    take: Take,
) -> CompileRefused:
    """Return the refusal of a limit, with alternatives that fit as notes and hint.

    Any other refusal is returned unchanged.

    Args:
        attempt, guard: the attempt that reached a limit, and its guard.
        take: makes an attempt; raises CompileRefused.
    """
    if refusal.code not in GUARDED or refusal.final:
        return refusal
    fits, notes = _tried(core, attempt, refusal, guard, options, timer, take)
    if fits is not None:
        on = f"or `--relax auto`: {fits}"
    elif strict_tool(core) is not None and refusal.code != "TCC407":
        on = "a strict tool leaves nothing to relax (TCC415)"
    elif timer.is_over():
        on = "or `--relax auto`; what that takes was not found out in the time there was"
    else:
        on = "no way of relaxing it fits these limits"
    hint = f"{refusal.hint}; {on}" if refusal.hint else on
    return CompileRefused(refusal.code, refusal.message, hint, refusal.place, notes)


def _tried(
    core: Core,
    attempt: Attempt,
    refusal: CompileRefused,
    guard: Guard,
    options: Options,
    timer: Timer,
    take: Take,
) -> tuple[str | None, list[_Note]]:
    """Return the first attempt that fits, in words, or None; and a note on each attempt."""
    asking = replace(options, relax=(*options.relax, AUTO))
    # The exact attempt has reached the limit on states; the following attempts need not.
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
        except CompileRefused as again:
            notes.append((f"too large as well: {given_up}: {again.message}", following.place))
            refusal = again
            continue
        notes.append((f"this fits: {fits}", following.place))
        return fits, notes


def _given_up(core: Core, before: Attempt, attempt: Attempt) -> str:
    """Return in words what `attempt` relaxes or rounds, with the options that ask for the same."""
    left = [number for number in attempt.relaxed if number not in before.relaxed]
    parts = []
    if left:
        texts = " and ".join([text_of(core, number) for number in left])
        names = "".join([f" --relax '{parts_of(core)[number].text}'" for number in left])
        parts.append(f"{texts} left to the run (also by{names}), counts are upper bounds")
    if attempt.nondeterministic:
        parts.append("state sets kept apart, derivations are counted in place of plans")
    if attempt.round_counts is not None and before.round_counts is None:
        bits = attempt.round_counts
        parts.append(f"race counts rounded up to {bits} bits (also by --round-counts {bits})")
    return "; ".join(parts)
