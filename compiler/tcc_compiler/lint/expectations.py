"""Lint rule TCC711: expectations that can no longer fail.

An example never fails if another example implies it. A `reject` never fails if no expression names
one of its calls. An `expect` never fails if another `expect`, a limit or the tools imply it.
Specification: docs/lint.md. Cost: linear in the lines; examples of one kind and length are compared
in pairs, within a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tcc_certs.policy.core import Core
from tcc_certs.policy.expressions import walk
from tcc_certs.policy.nodes import Total
from tcc_certs.policy.plans import CallSet, Empty, Expr, OneCall, Seq
from tcc_certs.values.places import exact_number
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.source import Span
from tcc_compiler.lint.finding import LintFinding
from tcc_compiler.names.compile import Expectation
from tcc_compiler.names.plans import Example

_MOST_PAIRS = 200_000
_Steps: TypeAlias = "tuple[CallSet, ...]"


def vacuous_examples(core: Core, examples: Sequence[Example]) -> tuple[list[LintFinding], bool]:
    """Return TCC711 of `accept` and `reject` lines, and whether every pair was compared."""
    named = named_calls(core)
    found = []
    first: dict[tuple[bool, Expr, tuple[CallSet, ...]], Example] = {}
    groups: dict[tuple[bool, int], list[tuple[Example, _Steps]]] = {}
    for example in examples:
        key = example.accept, example.plans, example.patterns
        word = "accept" if example.accept else "reject"
        steps = _steps(example)
        stranger = next((calls for calls in steps or () if not _meet(calls, named)), None)
        if key in first:
            message = f"the grammar has this `{word}` already"
            found.append(_finding(message, example.span, first[key].span, "the first"))
        elif not example.accept and stranger is not None:
            text = core.calls[stranger[0][0]].text if stranger else "a call without values"
            message = f"this `reject` cannot fail: `plan` does not name `{text}`"
            found.append(_finding(message, example.span))
        else:
            first[key] = example
            if steps is not None:
                groups.setdefault((example.accept, len(steps)), []).append((example, steps))
    left = _MOST_PAIRS
    for group in groups.values():
        left -= len(group) ** 2 * (1 + len(group[0][1]))
        if left < 0:
            return found, False
        found += _implied(group)
    return found, True


def _steps(example: Example) -> _Steps | None:
    """Return the call sets of a plain sequence of calls; None for another expression."""
    items: Sequence[Expr]
    match example.plans:
        case Empty():
            items = ()
        case Seq(items=several):
            items = several
        case single:
            items = (single,)
    calls = [example.patterns[one.pattern] for one in items if isinstance(one, OneCall)]
    return tuple(calls) if len(calls) == len(items) else None


def named_calls(core: Core) -> CallSet:
    """Return the calls that an expression of the core names, as sorted ranges that may overlap."""
    used = {
        part.pattern
        for body in (core.plan, *core.rules.values())
        for part in walk(body)
        if isinstance(part, OneCall)
    }
    return tuple(sorted(pair for pattern in used for pair in core.patterns[pattern]))


def _meet(left: CallSet, right: CallSet) -> bool:
    at = 0
    # The ranges of `right` are sorted by their starts and may overlap.
    reach = 0
    for low, high in left:
        while at < len(right) and right[at][0] < high:
            reach = max(reach, right[at][1])
            at += 1
        if reach > low:
            return True
    return False


def _within(inner: CallSet, outer: CallSet) -> bool:
    at = 0
    for low, high in inner:
        while at < len(outer) and outer[at][1] <= low:
            at += 1
        if at == len(outer) or outer[at][0] > low or outer[at][1] < high:
            return False
    return True


def _implied(group: Sequence[tuple[Example, _Steps]]) -> Iterator[LintFinding]:
    for example, steps in group:
        for other, others in group:
            narrow, wide = (others, steps) if example.accept else (steps, others)
            if other is not example and all(map(_within, narrow, wide)):
                word = "accept" if example.accept else "reject"
                message = f"this `{word}` cannot fail where another one holds"
                yield _finding(message, example.span, other.span, "it follows from this one")
                break


def vacuous_expects(core: Core, expects: Sequence[Expectation]) -> Iterator[LintFinding]:
    """Yield TCC711 of `expect` lines about numbers, all of which hold."""
    numbers = [expect for expect in expects if expect.op is not None]
    strongest = _strongest(numbers)
    for expect in numbers:
        what, op, value = expect.what, str(expect.op), expect.value
        exact, same = strongest.get((what, "=")), strongest[what, op]
        stronger = same if same is not expect else exact
        shown = f"this `expect {what}` cannot fail"
        if stronger is not None and stronger is not expect:
            yield _finding(shown, expect.span, stronger.span, "it follows from this one")
        elif op == ">=" and value <= _least(core, what):
            yield _finding(f"{shown}: no grammar with these tools has less", expect.span)
        elif op == "<=" and what == "max_depth":
            depth = _depth(core)
            if depth is not None and value >= depth:
                message = f"{shown}: `limit depth <= {depth}` says so"
                yield _finding(message, expect.span)


def _depth(core: Core) -> int | None:
    """Return the least bound of a `limit depth`; None if there is no such limit."""
    bounds = [
        int(exact_number(one.most))
        for one in core.statements
        if isinstance(one, Total) and one.what == "depth"
    ]
    return min(bounds, default=None)


def _strongest(expects: Sequence[Expectation]) -> dict[tuple[str, str], Expectation]:
    """Return the strongest `expect` for each quantity and comparison; of equal ones the first."""
    found: dict[tuple[str, str], Expectation] = {}
    for expect in expects:
        key = expect.what, str(expect.op)
        known = found.setdefault(key, expect)
        narrower = {"<=": expect.value < known.value, ">=": expect.value > known.value}
        if narrower.get(key[1]):
            found[key] = expect
    return found


def _least(core: Core, what: str) -> int:
    """Return the least possible value for a grammar over these tools that has a plan."""
    if what == "plans":
        return 1
    if what == "min_cost" and any(call.cost_low < 0 for call in core.calls):
        return -(1 << 80)
    return 0


def _finding(message: str, span: Span, related: Span | None = None, note: str = "") -> LintFinding:
    notes = () if related is None else (Note(message=note, span=related),)
    return LintFinding(
        diagnostic=Diagnostic(
            code="TCC711", severity="warning", message=message, span=span, notes=notes,
            hint="take it out, or say more",
        )
    )  # fmt: skip
