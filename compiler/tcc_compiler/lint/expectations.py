"""Lint rule TCC711: expectations that can no longer fail.

An `accept` or `reject` that another one implies; a `reject` of a call that no expression names; an
`expect` that another one, or a limit, or the tools alone imply.
Specification: docs/lint.md. Cost: linear in the lines; examples of one kind and length are compared
in pairs, within a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcc_certs.core.model import CallSet, Core, OneCall
from tcc_certs.policy.expressions import walk
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.source import Span
from tcc_compiler.lint.finding import LintFinding
from tcc_compiler.resolve.statements import Example, Expect

_MOST_PAIRS = 200_000


def vacuous_examples(core: Core, examples: Sequence[Example]) -> tuple[list[LintFinding], bool]:
    """TCC711 of `accept` and `reject`; and whether every pair was compared."""
    named = _named(core)
    found = []
    first: dict[tuple[bool, tuple[CallSet, ...]], Example] = {}
    groups: dict[tuple[bool, int], list[Example]] = {}
    for example in examples:
        key = example.accept, example.patterns
        word = "accept" if example.accept else "reject"
        stranger = next((p for p in example.patterns if not _meet(p, named)), None)
        if key in first:
            message = f"this `{word}` stands here already"
            found.append(_finding(message, example.span, first[key].span, "the first"))
        elif not example.accept and stranger is not None:
            text = core.calls[stranger[0][0]].text if stranger else "a call that there is not"
            message = f"this `reject` cannot fail: nothing of `plan` names `{text}`"
            found.append(_finding(message, example.span))
        else:
            first[key] = example
            groups.setdefault((example.accept, len(example.patterns)), []).append(example)
    complete = True
    left = _MOST_PAIRS
    for group in groups.values():
        left -= len(group) ** 2 * (1 + len(group[0].patterns))
        if left < 0:
            complete = False
            break
        found += _implied(group)
    return found, complete


def _named(core: Core) -> CallSet:
    """The calls that an expression of the core names."""
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


def _implied(group: Sequence[Example]) -> Iterator[LintFinding]:
    for example in group:
        for other in group:
            narrow, wide = (other, example) if example.accept else (example, other)
            if other is not example and all(map(_within, narrow.patterns, wide.patterns)):
                word = "accept" if example.accept else "reject"
                message = f"this `{word}` cannot fail where another one holds"
                yield _finding(message, example.span, other.span, "it follows from this one")
                break


def vacuous_expects(core: Core, expects: Sequence[Expect]) -> Iterator[LintFinding]:
    """TCC711 of `expect`; all of them hold."""
    strongest = _strongest(expects)
    for expect in expects:
        what, op, value = expect.what, expect.op, expect.value
        exact, same = strongest.get((what, "==")), strongest[what, op]
        stronger = same if same is not expect else exact
        shown = f"this `expect {what}` cannot fail"
        if stronger is not None and stronger is not expect:
            yield _finding(shown, expect.span, stronger.span, "it follows from this one")
        elif op == ">=" and value <= _least(core, what):
            yield _finding(f"{shown}: no grammar with these tools has less", expect.span)
        elif op == "<=" and what == "max_depth":
            depths = [limit.value for limit in core.limits if limit.kind == "depth"]
            if depths and value >= min(depths):
                message = f"{shown}: `limit depth <= {min(depths)}` says so"
                yield _finding(message, expect.span)


def _strongest(expects: Sequence[Expect]) -> dict[tuple[str, str], Expect]:
    """For each quantity and comparison the strongest `expect`, the first of equal ones."""
    found: dict[tuple[str, str], Expect] = {}
    for expect in expects:
        known = found.setdefault((expect.what, expect.op), expect)
        narrower = {"<=": expect.value < known.value, ">=": expect.value > known.value}
        if narrower.get(expect.op):
            found[expect.what, expect.op] = expect
    return found


def _least(core: Core, what: str) -> int:
    """The least value for a grammar over these tools, which has a plan."""
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
