"""The next attempt after one that reached a limit, and what would fit, for the error message.

A statement costs the states that it adds when it is applied
(:mod:`tcc_compiler.automata.constraint.apply`); for the statement at which the limit was reached,
the states made so far count. Each attempt relaxes one more statement, the costliest; limits on
depth come last, since without them the sums of other limits grow. Never relaxed is a statement that
a run cannot enforce, that adds no states, or without which there may be infinitely many plans; and
none at all beside a strict tool, since only the exact automaton shows which answers have a
continuation.
A plan expression that is too large becomes a nondeterministic automaton of partial derivatives; if
that is too large too, it is determinised up to the limit on states. Race counts that are too large
are rounded.
With ``--relax auto`` the compilation takes these attempts. Without, nothing is relaxed: the same
attempts are made under the same limits until one fits or the time is over, and the error says what
would fit (`with_alternatives`).
A name that `--relax` takes is a kind (`KINDS`: all statements of that kind), the text of a
statement, or its number in the core.
The clock decides only whether a rule is named: the same guard gives the same next attempt.
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
    """The numbers of the statements of `core` that `names` select, increasing.

    Raises:
        CompileRefused: TCC412 a name that selects nothing, or a statement that may not be relaxed.
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
    """Whether the automaton holds some of a statement."""
    return part.place != "gate"


def may_relax(core: Core, number: int) -> bool:
    """Whether a run can enforce a statement: costs below 0 could bring a run back below a limit."""
    is_cost = kind_of(core.statements[number]) == "cost"
    return not is_cost or all(call.cost_low >= 0 for call in core.calls)


def kept_parts(core: Core, relaxed: Sequence[int]) -> tuple[StatementPart, ...]:
    """What the automaton has to hold where these statements are relaxed."""
    left_out = set(relaxed)
    return tuple([p for p in parts_of(core) if is_held(p) and p.number not in left_out])


def text_of(core: Core, number: int) -> str:
    """A statement as messages show it."""
    return f"`{parts_of(core)[number].text}`"


def explained(refusal: CompileRefused, core: Core, asked: Sequence[int]) -> CompileRefused:
    """The refusal; one for infinitely many plans names the relaxed statements."""
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
    """A name of statements without white space, and without `limit`."""
    return "".join(text.split()).removeprefix("limit")


def _names(core: Core) -> list[set[str]]:
    """For each statement the names that select it: its kind, its text and its number."""
    return [
        {kind_of(statement), _plain(part.text), str(part.number)}
        for statement, part in zip(core.statements, parts_of(core), strict=True)
    ]


def _check(core: Core, number: int, *, alone: bool) -> None:
    """Args: alone: whether a name selects this statement and no other."""
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


# Refusals after which an attempt with bounds in place of counts may succeed.
GUARDED = ("TCC403", "TCC404", "TCC407")


@frozen
class Attempt:
    """How one attempt compiles.

    Attributes:
        relaxed: the statements that a run has to enforce, None for none.
        nondeterministic: whether the states are partial derivatives, not sets of them.
        exhaustive: whether it determinises up to the limit on states, however sets multiply.
        round_counts: bits of race counts, None for exact ones.
    """

    relaxed: tuple[int, ...]
    nondeterministic: bool
    exhaustive: bool
    round_counts: int | None


@frozen
class NextAttempt:
    """The attempt after one that reached a limit, and the warning that belongs to it.

    Attributes:
        warning: what the attempt gives up; None where it withdraws the last warning.
        place: the statement that the warning is about, as in :class:`CompileRefused`.
        derivations: whether it counts derivations in place of plans.
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
    """The next attempt; None after the last one.

    Args:
        refusal: why `attempt` stopped.
        guard: its guard, as it stood then.
        allowed: seconds for finding the rule to name, None for no limit.
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
    """The attempt that the options select."""
    return Attempt(
        relaxed=relaxed,
        nondeterministic=False,
        exhaustive=not options.auto_relax,
        round_counts=options.round_counts,
    )


def strict_tool(core: Core) -> Tool | None:
    """A strict tool, None where there is none."""
    return next((tool for tool in core.tools if tool.strict), None)


def check_exact(core: Core, attempt: Attempt) -> None:
    """Refuse an inexact attempt beside a strict tool.

    Raises:
        CompileRefused: TCC415.
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
    """The statement that adds the most states, of those that may be relaxed; depth comes last."""
    # Among equals, the one that was applied later.
    sizes = [size for size in reversed(guard.sizes) if size.after > size.before]
    sizes.sort(key=lambda size: (_is_depth(core, size.number), size.before - size.after))
    for size in sizes:
        if may_relax(core, size.number) and _can_be_spared(core, attempt, size.number):
            return size
    return None


def _is_depth(core: Core, number: int) -> bool:
    return kind_of(core.statements[number]) == "depth"


def _can_be_spared(core: Core, attempt: Attempt, number: int) -> bool:
    """Whether there are certainly finitely many plans without a statement too."""
    letters = partition(core, kept_parts(core, _with(attempt.relaxed, number)))
    # A guard of its own, since the other has reached its limit; this question takes linear time.
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
    """The refusal with alternatives that fit, as notes and hint; unchanged without a limit reached.

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
        except CompileRefused as again:
            notes.append((f"too large as well: {given_up}: {again.message}", following.place))
            refusal = again
            continue
        notes.append((f"this fits: {fits}", following.place))
        return fits, notes


def _given_up(core: Core, before: Attempt, attempt: Attempt) -> str:
    """What `attempt` gives up, in words, with the `--relax` options that ask for the same."""
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
