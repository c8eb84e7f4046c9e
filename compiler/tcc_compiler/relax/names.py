"""The names that `--relax` takes, and the statements of the core that they stand for.

A name is a kind (``price``, ``latency``, ``cost``, ``epsilon``, ``uses``, ``sum``, ``depth``,
``require``, ``forbid``: all statements of that kind) or the canonical text of one limit.
Specification: docs/spec/artifact.md, section 7.  Cost: linear in the statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tcc_certs.core.model import Core, ForbidBefore, ForbidNext, ForbidWith, Limit, Require
from tcc_certs.formats.artifact import Relaxed
from tcc_compiler.automata.constraint.statements import statement_text
from tcc_compiler.resources import CompileRefused, Statement

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
