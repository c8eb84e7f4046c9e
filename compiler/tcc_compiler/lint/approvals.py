"""Lint rules on answers of people and tests: TCC730, TCC731, TCC735 and TCC742.

An approval is a call whose tool answers with a yes or a no. A statement that asks for an approval
protects less than intended if it leaves out the answer, the time, the number or an argument.
Specification: docs/lint.md. Cost: linear in the statements and their tools.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcc_certs.policy import forms, nodes as n
from tcc_certs.policy.kinds import walk
from tcc_certs.values.declared import json_of
from tcc_certs.values.fields import Field
from tcc_compiler.lint.finding import LintFinding, listed
from tcc_compiler.lint.policies import (
    Policy,
    Stated,
    Use,
    equals,
    fields_of_element,
    finding,
    same_node,
    shown,
    value_node,
    with_condition,
)

_PEOPLE = frozenset({
    "who", "by", "user", "person", "approver", "reviewer", "author", "name", "email", "role",
    "sender", "customer", "owner", "id", "reviewer_id", "user_id", "approver_id",
})  # fmt: skip
_WANTED = ("some", "last", "count")


def approvals(policy: Policy) -> Iterator[LintFinding]:
    """Yield TCC730, TCC731, TCC735 and TCC742 of all statements."""
    for stated in policy.stated:
        if stated.rule.then is None or not stated.tools:
            continue
        seen: set[tuple[str, ...]] = set()
        for use in stated.uses:
            verdict = policy.verdict_of(use) if use.wanted and use.kind in _WANTED else None
            if verdict is None or set(use.tools) & set(stated.tools):
                continue
            if _asks_for_no(use, *verdict) or (use.kind == "count" and _least(use) < 1):
                continue
            if tuple(use.tools) not in seen:
                seen.add(tuple(use.tools))
                yield from _unread(policy, stated, use, *verdict)
                yield from _endless(policy, stated, use, *verdict)
                yield from _left_out(policy, stated, use)
            yield from _counted_twice(policy, stated, use, verdict[0])


def _asks_for_no(use: Use, answer: str, good: str) -> bool:
    """Return whether conditions compare the answer only with values other than the yes."""
    own = (forms.Element(use.source.level), forms.Last(use.source))
    compared = [
        one
        for condition in (*use.source.conditions, use.around)
        for one in walk(condition)
        if isinstance(one, forms.Compare)
        and isinstance(one.left, forms.Get)
        and one.left.name == answer
        and one.left.of in own
    ]
    states = [
        term.state for one in compared for term in one.options if isinstance(term, forms.Constant)
    ]
    return bool(states) and all(json_of(good) != state[1] for state in states)


def _reads(policy: Policy, stated: Stated, use: Use, field: str) -> bool:
    """Return whether, for each restricted tool, statements read this field of the source."""
    return all(
        any((tool, field) in policy.read.get(restricted, ()) for tool in use.tools)
        for restricted in stated.tools
    )


def _unread(
    policy: Policy, stated: Stated, use: Use, answer: str, good: str
) -> Iterator[LintFinding]:
    if _reads(policy, stated, use, answer):
        return
    better = with_condition(use.node, equals(answer, good), policy.lets)
    if use.kind == "last":
        of = n.Get(n.Apply("last", (use.node,)), answer)
        hint = f"write, too: {shown(n.Compare('=', of, value_node(good)))}"
    else:
        hint = f"write: {shown(better)}"
    message = f"`{use.text}` counts whatever was answered: no condition reads its `{answer}`"
    yield finding("TCC730", stated, message, hint)


def _endless(
    policy: Policy, stated: Stated, use: Use, answer: str, good: str
) -> Iterator[LintFinding]:
    """Yield TCC731: an approval that is valid for ever, for calls that may be made repeatedly."""
    if all(policy.bounded.get(tool, set()) & set(use.tools) for tool in stated.tools):
        return
    if use.kind == "count" or _is_once(policy, stated, use):
        return
    if all(policy.marking.get(tool, set()) & set(use.tools) for tool in stated.tools):
        return  # a statement such as `no edit since run_tests` requires a new approval
    node = use.node
    if not _reads(policy, stated, use, answer) or use.kind == "last":
        node, _ = with_answer(policy, node, answer, good)
    calls = listed(stated.tools)
    message = f"`{use.text}` allows {calls} again and again: it is not used up, and has no window"
    if policy.has_key(stated, use):
        used = shown(n.Unused(node))
        around = stated.node(use.around) if use.kind == "last" else None
        if around is not None:
            used = f"{used} and {shown(around)}"
        hint = f"write: {used}, so that each serves one call; or: {shown(_within(node))}"
    else:
        keys = policy.shared(stated.tools, use.tools)
        keyed = with_condition(node, same_node(keys), policy.lets) if keys else None
        if keyed is not None:
            used = shown(n.Unused(merged_same(keyed)))
            hint = f"write: {used}, so that each serves one call"
        else:
            since = n.Since(node, getattr(stated.statement, "on", None) or n.AnyTool())
            hint = (
                f"write: {shown(since)}, so that each serves one call; or: {shown(_within(node))}"
            )
    yield finding("TCC731", stated, message, hint)


def with_answer(policy: Policy, node: n.Node, answer: str, good: str) -> tuple[n.Node, bool]:
    """Return a set of calls that compares the answer, and whether the comparison was added."""
    for one in n.walk(node):
        if isinstance(one, n.Compare) and one.left == n.Word(answer):
            return node, False
    return with_condition(node, equals(answer, good), policy.lets), True


def _within(node: n.Node) -> n.Node:
    return n.Within(node, "1", "h")


def _is_once(policy: Policy, stated: Stated, use: Use) -> bool:
    """Return whether limits allow only one restricted call for each key of the approval."""
    keys = {key.name for key in use.source.keys}
    own = {
        one.name
        for key in use.source.keys
        for one in [key.term]
        if isinstance(one, forms.Get) and one.of == forms.Element(0)
    }
    once: set[str] = set()
    for other in policy.once:
        per = {one.name if isinstance(one, forms.Get) else "" for one in other.per}
        if per <= (own or keys):
            once |= set(other.tools or ())
    return set(stated.tools) <= once


def _counted_twice(policy: Policy, stated: Stated, use: Use, answer: str) -> Iterator[LintFinding]:
    """Yield TCC735: `count(approve(..)) >= 2`, which two answers of one person satisfy."""
    around = use.around
    if use.kind != "count" or not isinstance(around, forms.Compare):
        return
    least = _least(use)
    term = around.left if isinstance(around.left, forms.Count) else around.options[0]
    if least < 2 or not isinstance(term, forms.Count) or term.distinct:
        return
    bound = fields_of_element(use.source.conditions, use.source.level)
    who = next((one.name for one in _people(policy, use) if one.name not in bound), None)
    if who is None:
        return
    distinct = n.Apply("distinct", (n.Get(use.node, who),))
    better = n.Compare(">=", n.Apply("count", (distinct,)), n.Number(str(least)))
    yield finding(
        "TCC735",
        stated,
        f"`{use.text}` may be {least} calls of one `{who}`: `count` counts calls",
        f"write: {shown(better)}",
    )


def _least(use: Use) -> int:
    """Return the least count that a comparison asks for; 0 if it asks for none."""
    around = use.around
    if not isinstance(around, forms.Compare):
        return 0
    for one, other, signs in (
        (around.left, around.options[0], {">=": 0, ">": 1, "=": 0}),
        (around.options[0], around.left, {"<=": 0, "<": 1, "=": 0}),
    ):
        is_count = isinstance(one, forms.Count) and one.of is use.source
        if is_count and isinstance(other, forms.Constant) and other.state[0] == "n":
            more = signs.get(around.operator)
            return 0 if more is None else int(other.state[1]) + more
    return 0


def _people(policy: Policy, use: Use) -> list[Field]:
    """Return the fields that name the person who answered, if all tools of a source have them."""
    first, *rest = [policy.core.tool_of[name] for name in use.tools]
    fields = [one for one in (*first.answers, *first.arguments) if one.name in _PEOPLE]
    return [
        one
        for one in fields
        if all(any(one.name == other.name for other in (*t.answers, *t.arguments)) for t in rest)
    ]


def _left_out(policy: Policy, stated: Stated, use: Use) -> Iterator[LintFinding]:
    """Yield TCC742: an approval that compares one argument but not another shared argument."""
    if not policy.has_key(stated, use):
        return
    shared = policy.shared(stated.tools, use.tools)
    missing = [name for name in shared if not _reads(policy, stated, use, name)]
    if not missing:
        return
    better = with_condition(use.node, same_node(missing), policy.lets)
    names = listed(missing)
    yield finding(
        "TCC742",
        stated,
        f"`{use.text}` serves any {names}: nothing compares what was approved with the call",
        f"write: {shown(merged_same(better))}",
    )


def merged_same(node: n.Node) -> n.Node:
    """Return a set of calls in whose filter all `same` conditions are merged and come first."""
    match node:
        case n.Within(of, amount, unit):
            return n.Within(merged_same(of), amount, unit)
        case n.Since(of, mark):
            return n.Since(merged_same(of), mark)
        case n.Unused(of):
            return n.Unused(merged_same(of))
        case n.Where(of, conditions):
            names = [name for one in conditions if isinstance(one, n.Same) for name in one.names]
            rest = [one for one in conditions if not isinstance(one, n.Same)]
            return n.Where(of, (n.Same(tuple(dict.fromkeys(names))), *rest)) if names else node
    return node
