"""Lint rules on earlier calls and lists: TCC732, TCC733, TCC734, TCC736 and TCC737.

Wrong earlier calls can satisfy a statement that does not look at the last one, or that ties them by
no field to the decided call.
Specification: docs/lint.md. Cost: linear in the statements and their tools.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcc_certs.policy import forms, nodes as n
from tcc_certs.values.fields import Field, ListType
from tcc_compiler.lint.approvals import merged_same
from tcc_compiler.lint.finding import LintFinding, listed
from tcc_compiler.lint.policies import (
    Policy,
    Stated,
    Use,
    fields_of_element,
    finding,
    last_text,
    same_node,
    shown,
    with_condition,
)


def sources(policy: Policy) -> Iterator[LintFinding]:
    """Yield TCC732, TCC733, TCC734, TCC736 and TCC737 of all statements."""
    for stated in policy.stated:
        if stated.rule.then is None:
            continue
        for use in stated.uses:
            yield from _not_last(policy, stated, use)
            yield from _untied(policy, stated, use)
            yield from _unkeyed_mark(policy, stated, use)
            yield from _may_be_empty(policy, stated, use)


def _not_last(policy: Policy, stated: Stated, use: Use) -> Iterator[LintFinding]:
    """Yield TCC732 or TCC733: any earlier answer counts, even if a later answer was different."""
    if use.kind != "some" or not use.wanted or not use.tools:
        return
    if any(_is_last(other) and set(other.tools) & set(use.tools) for other in stated.uses):
        return
    compared = fields_of_element(use.source.conditions, use.source.level)
    answers = [name for name in _answers(policy, use) if name in compared]
    if not answers:
        return
    meant = last_text(use.node, answers[0])
    hint = f"write: {meant}" if meant else f"write: last({shown(use.node)}).{answers[0]} = .."
    since = _since(use.node)
    if since is not None:
        message = f"`{use.text}` is true even if a later {listed(use.tools)} answered otherwise"
        yield finding("TCC733", stated, message, hint)
    elif policy.verdict_of(use) is None and not use.source.marks and use.source.within is None:
        message = f"`{use.text}` is true if any earlier answer was so, even if the last one is not"
        yield finding("TCC732", stated, message, hint)


def _is_last(use: Use) -> bool:
    return use.kind == "last"


def _answers(policy: Policy, use: Use) -> list[str]:
    """Return the answers that all tools of a source have."""
    first, *rest = [policy.core.tool_of[name] for name in use.tools]
    names = [{one.name for one in tool.answers} for tool in rest]
    return [one.name for one in first.answers if all(one.name in other for other in names)]


def _since(node: n.Node) -> n.Since | None:
    """Return the `since` of a collection, if the author wrote one."""
    while isinstance(node, n.Within):
        node = node.of
    return node if isinstance(node, n.Since) else None


def _untied(policy: Policy, stated: Stated, use: Use) -> Iterator[LintFinding]:
    """Yield TCC734: earlier calls are not tied to the decided call, but a field could do so."""
    if use.kind == "rows" or not use.tools or not stated.tools or use.source.level != 1:
        return
    if set(use.tools) & set(stated.tools) or policy.has_key(stated, use):
        return
    shared = policy.shared(stated.tools, use.tools)
    compared = fields_of_element(use.source.conditions, use.source.level)
    shared = [name for name in shared if name not in compared]
    tied = all(
        any((tool, name) in policy.read.get(restricted, ()) for tool in use.tools)
        for restricted in stated.tools
        for name in shared
    )
    if not shared or (tied and use.wanted):
        return
    better = merged_same(with_condition(use.node, same_node(shared), policy.lets))
    names = listed(shared)
    yield finding(
        "TCC734",
        stated,
        f"`{use.text}` may be about any {names}: nothing ties it to the {names} of the call",
        f"write: {shown(better)}",
    )


def _unkeyed_mark(policy: Policy, stated: Stated, use: Use) -> Iterator[LintFinding]:
    """Yield TCC737: in `C since S`, a key of C that S lacks."""
    since = _since(use.node)
    if since is None or not use.tools:
        return
    keys = [key.name for key in use.source.keys if _is_own(key)]
    for mark in use.source.marks:
        base = mark.base
        if not isinstance(base, forms.Calls) or mark.conditions or not keys:
            continue
        lacks = [key for key in keys if _all_have(policy, base, key)]
        if not lacks:
            continue
        marked = with_condition(since.mark, same_node(lacks), policy.lets)
        hint = f"write: {shown(n.Since(since.of, marked))}"
        if use.wanted and use.kind == "some" and set(base.tools) == set(stated.tools):
            hint = f"write: {shown(n.Unused(since.of))}"
        names = listed(lacks)
        message = f"in `{use.text}` a call of {shown(since.mark)} with another {names} counts, too"
        yield finding("TCC737", stated, message, hint)


def _is_own(key: forms.Key) -> bool:
    return isinstance(key.term, forms.Get) and key.term.of == forms.Element(0)


def _all_have(policy: Policy, base: forms.Calls, name: str) -> bool:
    return all(
        any(one.name == name for one in policy.core.tool_of[tool].arguments) for tool in base.tools
    )


def _may_be_empty(policy: Policy, stated: Stated, use: Use) -> Iterator[LintFinding]:
    """Yield TCC736: `every` over a list of the decided call that may be empty."""
    if use.kind != "every" or not use.wanted:
        return
    base = use.source.base
    terms = {forms.Items: ("of",), forms.Pairs: ("left",)}.get(type(base), ())
    for member in terms:
        term = getattr(base, member)
        if not (isinstance(term, forms.Get) and term.of == forms.Element(0)):
            continue
        for tool in stated.tools:
            field = policy.field(tool, term.name)
            # An optional list is expected to be empty sometimes.
            if field is None or field.optional or (tool, term.name) in policy.nonempty:
                continue
            if not _is_empty_list(field):
                continue
            yield finding(
                "TCC736",
                stated,
                f"`every {use.text}` is true for a `{tool}` whose `{term.name}` is empty",
                f"write: {term.name}: list min 1 of .. in `tool {tool}`",
            )
            break


def _is_empty_list(field: Field) -> bool:
    return isinstance(field.type, ListType) and field.type.least == 0
