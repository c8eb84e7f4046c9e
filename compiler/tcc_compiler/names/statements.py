"""Turn the trees of policy statements into the statements of the core.

A `before` block becomes one statement for each of its clauses, with the `let`s that it uses.
Cost: linear in the trees; in a block, clauses times `let`s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from tcc_certs.policy import nodes as n
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import quote
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import decimal_text
from tcc_compiler.names.nodes import Builder, ungrouped
from tcc_compiler.syntax.tokens import string_value
from tcc_compiler.syntax.tree import Tree

_SCOPES = {"across": "across", "in_session": "session"}


@frozen
class Stated:
    """A statement of the core with its place.

    Attributes:
        region: where it is.
        broken: whether a mistake in it was reported.
        lets: the `let`s of its block that it does not use.
    """

    statement: n.Statement
    region: Region
    broken: bool
    lets: tuple[n.Definition, ...] = ()


def policy_of(b: Builder, tree: Tree) -> list[Stated]:
    """Return the statements of a policy tree, one for each clause of a block."""
    return list(_POLICIES[tree.kind](b, tree))


def definition_of(b: Builder, tree: Tree) -> n.Definition:
    """Return the definition of a `let` tree."""
    names = tree.trees()
    body = names.pop()
    name, *parameters = [b.name(one) for one in names]
    for one in names:
        b.is_name(one)
    seen: set[str] = set()
    for one, text in zip(names[1:], parameters, strict=True):
        if text in seen:
            message = f"the parameter {quote(text)} is declared twice"
            b.error("TCC201", one, message, "take one away, or rename it")
        seen.add(text)
    return n.Definition(name=name, parameters=tuple(parameters), body=b.node(body))


def calls_of(b: Builder, tree: Tree) -> tuple[n.Node, tuple[n.Node, ...]]:
    """Return the set of calls that a statement restricts, and its filter."""
    node = b.node(tree)
    if isinstance(node, n.Where) and ungrouped(tree).kind == "apply":
        return node.of, node.conditions
    return node, ()


def _stated(
    b: Builder, tree: Tree, before: int, statement: n.Statement, lets: Sequence[n.Definition] = ()
) -> Stated:
    return Stated(
        statement=statement, region=b.region(tree), broken=b.failed > before, lets=tuple(lets)
    )


def _reason(tree: Tree) -> str | None:
    reason = tree.tree("reason")
    return None if reason is None else string_value(reason.tokens("STRING")[0].text)


def _before(b: Builder, tree: Tree) -> Iterable[Stated]:
    before = b.failed
    on: n.Node | None = None
    where: tuple[n.Node, ...] = ()
    if tree.kind == "before":
        on, where = calls_of(b, tree.trees()[0])
    lets = _block_lets(b, tree)
    headed = b.failed > before
    block = tree.has("{")
    for clause in tree.trees("require", "ask"):
        start = b.failed
        at = clause if block else tree
        made: n.Statement
        if clause.kind == "require":
            then = b.node(clause.trees()[0])
            made = n.Require(
                on=on, where=where, lets=_used(lets, [then, *where]), then=then,
                because=_reason(clause),
            )  # fmt: skip
        else:
            made = _ask(b, clause, on, where, lets)
        used = made.lets
        rest = [let for let in lets if let not in used]
        broken = headed or b.failed > start
        yield Stated(statement=made, region=b.region(at), broken=broken, lets=tuple(rest))


def _ask(
    b: Builder,
    clause: Tree,
    on: n.Node | None,
    where: tuple[n.Node, ...],
    lets: Sequence[n.Definition],
) -> n.Ask:
    if on is None:
        message = "a session that ends makes no call that a person could approve"
        b.error("TCC225", clause, message, "write: before CALLS ask ..")
    within, who = b.duration(clause) if clause.trees("unit") else None, b.string(clause)
    if not who.strip():
        b.error("TCC225", clause, "`ask` names no role", 'write the role: ask "finance"')
    return n.Ask(
        on=n.AnyTool() if on is None else on, where=where, lets=_used(lets, where),
        who=who, within=within, because=_reason(clause),
    )  # fmt: skip


def _block_lets(b: Builder, tree: Tree) -> list[n.Definition]:
    first: dict[str, Tree] = {}
    lets = []
    for one in tree.trees("let"):
        let = definition_of(b, one)
        if let.name in first:
            message = f"`let {let.name}` is defined twice in this block"
            b.error("TCC201", one.trees()[0], message, "take one of them away, or rename it")
        first.setdefault(let.name, one)
        lets.append(let)
    return lets


def _used(lets: Sequence[n.Definition], nodes: Sequence[n.Node]) -> tuple[n.Definition, ...]:
    """Return the `let`s of a block that these nodes use, directly or through other `let`s."""
    by_name = {let.name: let for let in lets}
    used: set[str] = set()
    todo = list(nodes)
    while todo and by_name:
        for node in n.walk(todo.pop()):
            if isinstance(node, n.Word) and node.name in by_name and node.name not in used:
                used.add(node.name)
                todo.append(by_name[node.name].body)
    return tuple([let for let in lets if let.name in used])


def _forbid(b: Builder, tree: Tree) -> Iterable[Stated]:
    before = b.failed
    on, where = calls_of(b, tree.trees()[0])
    yield _stated(b, tree, before, n.Forbid(on=on, where=where, because=_reason(tree)))


def _owe(b: Builder, tree: Tree) -> Iterable[Stated]:
    before = b.failed
    first, then = tree.trees()[:2]
    after, where = calls_of(b, first)
    within: n.Duration | None = None
    if then.kind == "within":
        within = b.duration(then)
        then = then.trees()[0]
    calls, pays = calls_of(b, then)
    yield _stated(
        b, tree, before,
        n.Owe(
            after=after, where=where, calls=calls, pays=pays, within=within, because=_reason(tree)
        ),
    )  # fmt: skip


# Limits.


def _limit(b: Builder, tree: Tree) -> Iterable[Stated]:
    before = b.failed
    head, most = (part for part in tree.trees() if part.kind not in ("per", "reason", *_SCOPES))
    if head.kind == "name" and b.name(head) in n.TOTALS and not _in_backticks(head):
        yield _stated(b, tree, before, _total(b, tree, b.name(head), most))
        return
    counted = _counted(b, head)
    per = tree.tree("per")
    keys = () if per is None else tuple([b.node(term) for term in per.trees()])
    if most.kind == "within":
        _report_window(b, tree, head, most)
        most = most.trees()[0]
    scope = next((_SCOPES[part.kind] for part in tree.trees(*_SCOPES)), None)
    if counted is None:
        b.node(most)
        return
    of, where, field, within = counted
    if scope is None and (keys or within is not None):
        word = "per" if keys else "within"
        message = f"a limit with `{word}` says whether it counts one session or all sessions"
        text = _without_reason(b, tree)
        b.error("TCC230", tree, message, f"write: {text} in session, or: {text} across sessions")
    made = n.Limit(
        of=of, where=where, field=field, per=keys, within=within, most=b.node(most),
        scope="across" if scope == "across" else "session" if scope else None,
        because=_reason(tree),
    )  # fmt: skip
    yield _stated(b, tree, before, made)


def _in_backticks(tree: Tree) -> bool:
    return bool(tree.tokens("QNAME"))


def _without_reason(b: Builder, tree: Tree) -> str:
    """Return the author's text of a statement, without its `because`."""
    reason = tree.tree("reason")
    return b.text(tree) if reason is None else b.text(tree).removesuffix(b.text(reason)).rstrip()


def _report_window(b: Builder, tree: Tree, head: Tree, most: Tree) -> None:
    span = b.duration(most)
    text = b.text(head)
    inside = f"{text[:-1]} within {span.amount} {span.unit})" if text.endswith(")") else text
    per = [b.text(part) for part in tree.trees("per")]
    scope = [b.text(part) for part in tree.trees(*_SCOPES)]
    bound = ["<=", b.text(most.trees()[0])]
    message = "a window is about the calls that are counted, not about the bound"
    meant = " ".join(["limit", inside, *per, *bound, *(scope or ["in session"])])
    b.error("TCC240", most, message, f"write: {meant}{'' if scope else ', or across sessions'}")


_Counted = tuple[n.Node, tuple[n.Node, ...], str | None, n.Duration | None]
_PLAIN = "count calls, with a filter and a window at most: count(CALLS(FILTER) within 30 d)"


def _counted(b: Builder, head: Tree) -> _Counted | None:
    """Return the counted set of a limit, its filter, the summed field, and the window."""
    node = b.node(head)
    if not isinstance(node, n.Apply) or node.function not in ("count", "sum"):
        text = b.text(head)
        meant = f"sum({text})" if isinstance(node, n.Get) else f"count({text})"
        message = f"a limit counts calls or adds up a field of calls, and {quote(text)} is neither"
        near = f"write: limit {meant} <= n, or for whole plans: limit {' | '.join(n.TOTALS)} <= n"
        b.error("TCC225", head, message, near)
        return None
    if len(node.arguments) != 1:
        hint = f"write: limit sum({n.text_of(node.arguments[0])}.field) <= n"
        b.error("TCC225", head, "a limit does not add up a term", hint)
        return None
    inside = node.arguments[0]
    within: n.Duration | None = None
    if isinstance(inside, n.Within):
        within = n.Duration(inside.amount, inside.unit)
        inside = inside.of
    field: str | None = None
    if node.function == "sum":
        if not isinstance(inside, n.Get):
            calls = n.text_of(inside) if isinstance(inside, n.Word | n.Where) else "CALLS"
            declared = [b.name(one.trees()[0]) for one in b.file.statements if one.kind == "tool"]
            is_field = isinstance(inside, n.Word) and declared and calls not in declared
            summed = f"CALLS.{calls}" if is_field else f"{calls}.field"
            hint = f"write: limit sum({summed}) <= n"
            b.error("TCC225", head, "a sum adds up a field", hint)
            return None
        field, inside = inside.name, inside.of
    where: tuple[n.Node, ...] = ()
    if isinstance(inside, n.Where):
        where, inside = inside.conditions, inside.of
    if isinstance(inside, n.Since | n.Within | n.Apply | n.Get):
        b.error("TCC225", head, f"a limit cannot count {quote(b.text(head))}", _PLAIN)
        return None
    return inside, where, field, within


_NANO = 10**9
_TOTAL_UNITS = {"depth": 1, "price": 1, "latency": 1, "cost": _NANO, "epsilon": _NANO}
_TOTAL_NAMES = {
    "depth": "calls",
    "price": "cents",
    "latency": "milliseconds",
    "cost": "nano-units (9 fractional digits)",
    "epsilon": "nano-units (9 fractional digits)",
}


def _total(b: Builder, tree: Tree, what: str, most: Tree) -> n.Total:
    for part in tree.trees("per", *_SCOPES):
        message = f"`limit {what}` is about a whole plan, and has no `{part.parts[0]}`"
        b.error("TCC225", part, message, "take it away")
    value = _bound(b, what, most)
    return n.Total(what=what, most=decimal_text(value), because=_reason(tree))


def _bound(b: Builder, what: str, most: Tree) -> Fraction:
    """Return the bound of a total in calls, cents, milliseconds or cost; 0 after a mistake."""
    before = b.failed
    node = b.node(most)
    unit = isinstance(node, n.Duration)
    if b.failed > before:
        return Fraction(0)
    if not isinstance(node, n.Number | n.Duration) or unit != (what == "latency"):
        wants = "a duration" if what == "latency" else "a number without a unit"
        example = "80 ms" if what == "latency" else "10"
        hint = f"write: limit {what} <= {example}, say"
        b.error("TCC225", most, f"the bound of `limit {what}` is {wants}", hint)
        return Fraction(0)
    if isinstance(node, n.Duration):
        value = Fraction(node.amount) * n.UNITS[node.unit]
    else:
        value = Fraction(node.value)
    whole = value * _TOTAL_UNITS[what]
    if whole.denominator != 1:
        code = "TCC312" if what == "depth" else "TCC306"
        message = f"this bound is no whole number of {_TOTAL_NAMES[what]}"
        b.error(code, most, message, "round it")
    elif value < 0 and what != "cost":
        b.error("TCC308", most, f"a bound of {what} is not negative", "write 0 or more")
    elif abs(whole) >= 1 << 63:
        b.error("TCC307", most, "this bound does not fit into 63 bits", "write a smaller number")
    else:
        return value
    return Fraction(0)


_POLICIES: Mapping[str, Callable[[Builder, Tree], Iterable[Stated]]] = {
    "before": _before,
    "finally_": _before,
    "forbid": _forbid,
    "owe": _owe,
    "limit": _limit,
}
