"""Mutants of a policy: cores with one changed statement.

A mutant drops a statement, moves a bound by one, removes a key or flips a comparison.  A mutated
`let` of the file changes every statement that names it.  Totals are not mutated.  The tests of a
grammar should notice each mutant (:mod:`tcc.library.mutation`).
Cost: one core for each mutant, which the reader of cores checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Context, Decimal
from typing import Any, Final, TypeAlias

from tcc_certs.errors import Rejected
from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core
from tcc_certs.policy.reader import core_bytes, read_core
from tcc_runtime.analysis.statements import kind_of

Changed: TypeAlias = "tuple[str, Any]"  # a description of the change, and the result

_FLIPPED: Final[Mapping[str, str]] = {
    "=": "!=", "!=": "=", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "~": "!~", "!~": "~",
    "in": "not in", "not in": "in", "under": "not under", "not under": "under",
}  # fmt: skip
_ORDERS: Final = ("<", "<=", ">", ">=")
_COLLECTIONS: Final = (
    n.Word, n.Get, n.Where, n.Within, n.Since, n.Minus, n.Union, n.AnyTool, n.Unused
)  # fmt: skip
_EXACT: Final = Context(prec=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A policy with one change.

    Attributes:
        statement: canonical text of the statement, or of the `let`, that was changed.
        change: a description of the change.
        mutant: the text afterwards; None: the statement was dropped.
        before: the statements of the original core that differ in meaning.
        after: their counterparts in `core`; empty for a dropped statement.
        core: the whole policy after the change.
    """

    statement: str
    change: str
    mutant: str | None
    before: tuple[n.Statement, ...]
    after: tuple[n.Statement, ...]
    core: Core


def mutants(core: Core) -> Iterator[Mutant]:
    """Yield the mutants of a core in the order of its `let`s and statements, each resulting core
    once.
    """
    seen = {core_bytes(core)}
    for made in (*_of_lets(core), *_of_statements(core)):
        if not made.before:
            continue
        data = core_bytes(made.core)
        if data in seen:
            continue
        seen.add(data)
        try:
            yield replace(made, core=read_core(data))
        except Rejected:
            continue  # the language has no such statement


def _of_lets(core: Core) -> Iterator[Mutant]:
    for at, let in enumerate(core.lets):
        users = _users(core, let.name)
        for change, body in _changes(let.body, False):
            after = replace(let, body=body)
            lets = (*core.lets[:at], after, *core.lets[at + 1 :])
            yield Mutant(
                statement=n.definition_text(let),
                change=change,
                mutant=n.definition_text(after),
                before=users,
                after=users,
                core=replace(core, lets=lets),
            )


def _users(core: Core, name: str) -> tuple[n.Statement, ...]:
    """Return the statements that name a `let`, directly or through other `let`s."""
    names, before = {name}, 0
    while before < len(names):
        before = len(names)
        names |= {let.name for let in core.lets if not names.isdisjoint(names_in(let))}
    return tuple([one for one in core.statements if not names.isdisjoint(names_in(one))])


def names_in(part: object) -> set[str]:
    """Return the bare names in a statement, a `let` or a tuple of them."""
    found: set[str] = set()
    stack = [part]
    while stack:
        one = stack.pop()
        if isinstance(one, n.Word):
            found.add(one.name)
        elif isinstance(one, tuple):
            stack += one
        elif is_dataclass(one):
            stack += [getattr(one, member.name) for member in fields(one)]
    return found


def _of_statements(core: Core) -> Iterator[Mutant]:
    for at, statement in enumerate(core.statements):
        if kind_of(statement) == "total":
            continue
        text = n.statement_text(statement)
        before, behind = core.statements[:at], core.statements[at + 1 :]
        yield Mutant(
            statement=text,
            change="dropped",
            mutant=None,
            before=(statement,),
            after=(),
            core=replace(core, statements=(*before, *behind)),
        )
        for change, changed in _of_statement(statement):
            after = _tidy(changed)
            yield Mutant(
                statement=text,
                change=change,
                mutant=n.statement_text(after),
                before=(statement,),
                after=(after,),
                core=replace(core, statements=(*before, after, *behind)),
            )


def _of_statement(statement: n.Statement) -> Iterator[Changed]:
    match statement:
        case n.Require():
            yield from _filters(statement, "where")
            yield from _block(statement)
            yield from _member(statement, "then", _changes(statement.then, True))
        case n.Ask():
            yield from _filters(statement, "where")
            yield from _block(statement)
            yield from _member(statement, "within", _moved_span(statement.within))
        case n.Forbid():
            yield from _filters(statement, "where")
        case n.Owe():
            yield from _filters(statement, "where")
            yield from _filters(statement, "pays")
            yield from _member(statement, "within", _moved_span(statement.within))
        case n.Limit():
            yield from _filters(statement, "where")
            for at, term in enumerate(statement.per):
                per = (*statement.per[:at], *statement.per[at + 1 :])
                yield f"key `{n.text_of(term)}` removed", replace(statement, per=per)
            yield from _member(statement, "within", _moved_span(statement.within))
            yield from _member(statement, "most", _bound(statement.most))


def _member(statement: n.Statement, name: str, changes: Iterator[Changed]) -> Iterator[Changed]:
    for change, value in changes:
        yield change, replace(statement, **{name: value})


def _filters(statement: n.Statement, name: str) -> Iterator[Changed]:
    yield from _member(statement, name, _conditions(getattr(statement, name)))


def _block(statement: n.Require | n.Ask) -> Iterator[Changed]:
    for at, let in enumerate(statement.lets):
        for change, body in _changes(let.body, False):
            after = replace(let, body=body)
            lets = (*statement.lets[:at], after, *statement.lets[at + 1 :])
            yield change, replace(statement, lets=lets)


def _tidy(statement: n.Statement) -> n.Statement:
    """Return a statement without those `let`s of its block that it no longer names."""
    if not isinstance(statement, n.Require | n.Ask) or not statement.lets:
        return statement
    used = names_in(statement.where)
    if isinstance(statement, n.Require):
        used |= names_in(statement.then)
    before = -1
    while before < len(used):
        before = len(used)
        for let in statement.lets:
            used |= names_in(let.body) if let.name in used else set()
    return replace(statement, lets=tuple([let for let in statement.lets if let.name in used]))


# Nodes.


def _changes(node: n.Node, is_condition: bool) -> Iterator[Changed]:
    """Yield the changes of a node and of the nodes inside it.

    Args:
        is_condition: whether the node is a condition, where a collection means that it has an
            element.
    """
    yield from _own(node, is_condition)
    if isinstance(node, n.Where):
        for change, of in _changes(node.of, False):
            yield change, replace(node, of=of)
        for change, conditions in _conditions(node.conditions):
            yield change, replace(node, conditions=conditions) if conditions else node.of
        return
    inside = isinstance(node, n.And | n.Or | n.Not)
    parts = n.parts_of(node)
    for at, part in enumerate(parts):
        for change, changed in _changes(part, inside):
            yield change, n.with_parts(node, (*parts[:at], changed, *parts[at + 1 :]))


def _own(node: n.Node, is_condition: bool) -> Iterator[Changed]:
    match node:
        case n.Compare(operator, left, right):
            flipped = _FLIPPED[operator]
            yield f"`{operator}` becomes `{flipped}`", replace(node, operator=flipped)
            if operator in _ORDERS:
                for change, moved in _moved(left):
                    yield change, replace(node, left=moved)
                for change, moved in _moved(right):
                    yield change, replace(node, right=moved)
        case n.Between(operator, _, low, high):
            flipped = _FLIPPED[operator]
            yield f"`{operator}` becomes `{flipped}`", replace(node, operator=flipped)
            for change, moved in _moved(low):
                yield change, replace(node, low=moved)
            for change, moved in _moved(high):
                yield change, replace(node, high=moved)
        case n.And(parts):
            yield "`and` becomes `or`", n.Or(parts)
        case n.Or(parts):
            yield "`or` becomes `and`", n.And(parts)
        case n.No(of):
            yield "`no` becomes some", of
        case n.Not(of):
            yield "`not` removed", of
        case n.Every(of):
            yield "`every` becomes some", of
        case n.Unused(of):
            yield "`unused` removed", of
        case n.Since(of, mark):
            yield f"`since {n.text_of(mark)}` removed", of
        case n.Within(of, amount, unit):
            for change, span in _moved_span(n.Duration(amount, unit)):
                yield change, n.Within(of, span.amount, span.unit)
    if is_condition and isinstance(node, _COLLECTIONS):
        yield "some becomes `no`", n.No(node)
        yield "`not` added", n.Not(node)  # the reader of cores accepts `no` or `not`


def _conditions(conditions: Sequence[n.Node]) -> Iterator[tuple[str, tuple[n.Node, ...]]]:
    """Yield the changes of a filter: a changed condition, or one condition less."""
    for at, condition in enumerate(conditions):
        before, behind = tuple(conditions[:at]), tuple(conditions[at + 1 :])
        match condition:
            case n.Same(names):
                for place, name in enumerate(names):
                    left = (*names[:place], *names[place + 1 :])
                    kept = (n.Same(left),) if left else ()
                    key = n.text_of(n.Same((name,)))
                    yield f"key `{key}` removed", (*before, *kept, *behind)
            case n.Compare("="):
                yield f"key `{n.text_of(condition)}` removed", (*before, *behind)
        for change, changed in _changes(condition, True):
            yield change, (*before, changed, *behind)


def _bound(most: n.Node) -> Iterator[Changed]:
    """Yield a bound that is one higher or one lower: its constants, or the whole term without
    constants.
    """
    moved = list(_moved(most))
    if moved:
        yield from moved
    else:
        text, one = n.text_of(most), n.Number("1")
        yield f"bound `{text}` becomes `{text} + 1`", n.Add(most, one)
        yield f"bound `{text}` becomes `{text} - 1`", n.Minus(most, one)
    yield from _changes(most, False)


def _moved(term: n.Node) -> Iterator[Changed]:
    """Yield the terms in which one constant is one higher or one lower."""
    match term:
        case n.Number(value):
            for other in _neighbours(value):
                yield f"bound `{value}` becomes `{other}`", n.Number(other)
        case n.Duration():
            yield from _moved_span(term)
        case n.Add() | n.Minus() | n.Times() | n.Negative() | n.Match() | n.Arm() | n.Else():
            parts = n.parts_of(term)
            for at, part in enumerate(parts):
                for change, moved in _moved(part):
                    yield change, n.with_parts(term, (*parts[:at], moved, *parts[at + 1 :]))


def _moved_span(span: n.Duration | None) -> Iterator[Changed]:
    if span is None:
        return
    for other in _neighbours(span.amount):
        changed = n.Duration(other, span.unit)
        yield f"bound `{n.text_of(span)}` becomes `{n.text_of(changed)}`", changed


def _neighbours(value: str) -> tuple[str, str]:
    """Return a canonical decimal plus one, and minus one."""
    number = Decimal(value)
    step: Callable[[Decimal, Decimal], Decimal]
    found = []
    for step in (_EXACT.add, _EXACT.subtract):
        text = f"{step(number, Decimal(1)):f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        found.append("0" if text == "-0" else text)
    return found[0], found[1]


__all__ = ["Mutant", "mutants", "names_in"]
