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
A name that `--relax` takes is a kind (``price``, ``latency``, ``cost``, ``epsilon``, ``uses``,
``sum``, ``depth``, ``require``, ``forbid``: all statements of that kind) or the canonical text of
one limit.
The clock decides only whether a rule is named: the same guard gives the same next attempt.
Specification: docs/spec/artifact.md, section 7. Cost: that of the attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tcc_certs.core.model import Core, ForbidBefore, ForbidNext, ForbidWith, Limit, Require, Tool
from tcc_certs.formats.artifact import MAX_ROUND_BITS, Relaxed
from tcc_certs.formats.codec import written
from tcc_compiler.automata.constraint.statements import statement_text
from tcc_compiler.automata.letters import partition
from tcc_compiler.frozen import frozen
from tcc_compiler.options import AUTO, Options
from tcc_compiler.resources import CompileRefused, Guard, Statement, StatementSize, Timer, place_of

KINDS = ("price", "latency", "cost", "epsilon", "uses", "sum", "depth", "require", "forbid")


def statements_named(core: Core, names: Sequence[str]) -> Relaxed | None:
    """The statements of `core` that `names` select; None without names.

    Raises:
        Refused: TCC412 a name that selects nothing, or a statement that may not be relaxed.
    """
    chosen_statements: list[Statement] = []
    for name in names:
        chosen = [statement for statement in statements(core) if name in _names(statement)]
        if not chosen:
            raise _unknown(core, name)
        for statement in chosen:
            _check(core, statement)
        chosen_statements += chosen
    return relaxed_of(core, chosen_statements)


def statements(core: Core) -> Iterable[Statement]:
    """Every statement of `core` that a run could enforce in place of the automaton."""
    yield from core.limits
    yield from core.requires
    yield from core.forbids


def may_relax(core: Core, statement: Statement) -> bool:
    """Whether a run can enforce `statement`: its sum never decreases along a plan."""
    is_cost = isinstance(statement, Limit) and statement.kind == "cost"
    return not is_cost or all(call.cost_low >= 0 for call in core.calls)


def relaxed_of(core: Core, chosen: Iterable[Statement]) -> Relaxed | None:
    """`chosen` in the form of the manifest; None without any."""
    marked = list(chosen)
    if not marked:
        return None

    def indices(items: Sequence[Statement]) -> tuple[int, ...]:
        return tuple(at for at, item in enumerate(items) if item in marked)

    return Relaxed(
        forbids=indices(core.forbids),
        limits=indices(core.limits),
        requires=indices(core.requires),
    )


def relaxed_statements(core: Core, relaxed: Relaxed | None) -> list[Statement]:
    """The statements that `relaxed` names, in the order of the core."""
    if relaxed is None:
        return []
    return [
        *(core.limits[at] for at in relaxed.limits),
        *(core.requires[at] for at in relaxed.requires),
        *(core.forbids[at] for at in relaxed.forbids),
    ]


def without(core: Core, relaxed: Relaxed | None) -> Core:
    """`core` without its relaxed statements."""
    if relaxed is None:
        return core
    left_out = relaxed_statements(core, relaxed)
    return replace(
        core,
        limits=tuple(item for item in core.limits if item not in left_out),
        requires=tuple(item for item in core.requires if item not in left_out),
        forbids=tuple(item for item in core.forbids if item not in left_out),
    )


def only(core: Core, relaxed: Relaxed) -> Core:
    """`core` with its relaxed statements alone, and without `start` and `goal`."""
    left = relaxed_statements(core, relaxed)
    return replace(
        core,
        start=None,
        goals=(),
        limits=tuple(item for item in core.limits if item in left),
        requires=tuple(item for item in core.requires if item in left),
        forbids=tuple(item for item in core.forbids if item in left),
    )


def explained(refusal: CompileRefused, core: Core, asked: Relaxed | None) -> CompileRefused:
    """The refusal; one for infinitely many plans names the relaxed statements."""
    if asked is None or refusal.code not in ("TCC401", "TCC406"):
        return refusal
    texts = " and ".join(f"`{statement_text(core, s)}`" for s in relaxed_statements(core, asked))
    return CompileRefused(
        "TCC412",
        f"{texts} cannot be relaxed: without, {refusal.message}",
        hint="relax another statement; or " + (refusal.hint or "keep a limit"),
        place=refusal.place,
    )


def _names(statement: Statement) -> tuple[str, ...]:
    match statement:
        case Limit():
            return statement.kind, statement.text
        case Require():
            return ("require",)
        case ForbidNext() | ForbidWith() | ForbidBefore():
            return ("forbid",)


def _check(core: Core, statement: Statement) -> None:
    if may_relax(core, statement):
        return
    worst = min(core.calls, key=lambda call: call.cost_low)
    raise CompileRefused(
        "TCC412",
        f"`{statement_text(core, statement)}` cannot be relaxed: `{worst.text}` may cost less than "
        "nothing, so a plan past the limit could still come back below it",
        hint="relax another statement, or make every cost at least 0",
    )


def _unknown(core: Core, name: str) -> CompileRefused:
    known = list(dict.fromkeys(n for statement in statements(core) for n in _names(statement)))
    from difflib import get_close_matches

    spaceless = "".join(name.split())
    close = [spaceless] if spaceless in known else get_close_matches(name[:64], known, n=1)
    if name in KINDS:
        message = f"there is no {name} statement to relax"
    else:
        message = f"`{name}` is no kind of statement and no limit of this grammar"
    if close:
        hint = f"did you mean '{close[0]}'?"
    elif known:
        hint = "name one of: " + ", ".join(known[:12])
    else:
        hint = "this grammar has no limit, require or forbid"
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

    relaxed: Relaxed | None
    nondeterministic: bool
    exhaustive: bool
    round_counts: int | None


@frozen
class NextAttempt:
    """The attempt after one that reached a limit, and the warning that belongs to it.

    Attributes:
        warning: what the attempt gives up; None where it withdraws the last warning.
        place: the statement that the warning is about, as in :class:`Refused`.
        derivations: whether it counts derivations in place of plans.
    """

    attempt: Attempt
    warning: str | None
    place: str | None = None
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
        Refused: TCC415.
    """
    tool = strict_tool(core)
    if tool is None or (attempt.relaxed is None and not attempt.nondeterministic):
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
    from tcc_compiler.relax.estimates import stays_finite

    return stays_finite(kept, partition(kept), Guard(Options()))


def _go_nondeterministic(
    core: Core, attempt: Attempt, refusal: CompileRefused, options: Options, allowed: float | None
) -> NextAttempt | None:
    if attempt.nondeterministic or attempt.exhaustive:
        return None
    kept = without(core, attempt.relaxed)
    from tcc_compiler.relax.estimates import find_large_rule

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
_Note = tuple[str, "str | None"]


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
        take: makes an attempt; raises Refused.
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
