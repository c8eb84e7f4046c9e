"""Limits, requires, forbids, examples and expectations, resolved; which of them are of 1.2.

Normative text: docs/spec/language.md, sections 7 and 10.  `same` and `per` over listed parameters
are written out here; over open ones they become monitors, of which a `require` leaves its order
behind for the automaton.  Cost: linear in the statements that come out, and that of the patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

from tcc_certs.policy.plans import CallSet
from tcc_certs.values.declared import NumberType
from tcc_certs.values.numbers import is_decimal
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.source import Region, Span
from tcc_compiler.language.values import NANO, decimal_text, scaled
from tcc_compiler.resolve import core
from tcc_compiler.resolve.amounts import MILLISECONDS, count_of, in_unit
from tcc_compiler.resolve.calls import CallList, ResolvedSelection, Scope, is_void
from tcc_compiler.resolve.parameters import ResolvedParameter
from tcc_compiler.resolve.policies import Attributes, ResolvedPolicy, attributes_of, policy_of
from tcc_compiler.resolve.program import Program
from tcc_compiler.resolve.relations import field_of
from tcc_compiler.resolve.same import (
    Room,
    Side,
    present,
    report_observed,
    same_of,
    side_of,
    split_by,
    split_same,
)
from tcc_compiler.resolve.tools import ResolvedTool


@frozen
class Stated:
    """The statements, each with its region; one that was written out stands there many times.

    Attributes:
        requires: order (``after``, ``before``, ``each``) and two patterns.
        forbids: kind (``before``, ``next``, ``with``) and the patterns.
    """

    limits: list[tuple[core.ResolvedLimit, Region]] = field(default_factory=list)
    requires: list[tuple[str, ResolvedSelection, ResolvedSelection, Region]] = field(
        default_factory=list
    )
    forbids: list[tuple[str, tuple[ResolvedSelection, ...], Region]] = field(default_factory=list)
    monitors: list[tuple[core.Monitor, Region]] = field(default_factory=list)
    policies: list[ResolvedPolicy] = field(default_factory=list)
    session: Attributes = field(default_factory=Attributes)


def stated(program: Program, scope: Scope) -> Stated:
    """The statements of a grammar; those with an error are reported and left out."""
    reader = _Reader(scope, attributes_of(program, scope))
    for limit in program.limits:
        reader.limit(limit)
    for require in program.requires:
        reader.require(require)
    for forbid in program.forbids:
        reader.forbid(forbid)
    for policy in program.policies:
        reader.policy(policy)
    for statement in program.monitors:
        inner = monitored(statement, scope)
        if inner is not None:
            reader.policy(inner)
    return reader.found


class _Reader:
    """One pass over the statements, which share the room for what is written out."""

    def __init__(self, scope: Scope, session: Attributes) -> None:
        self.scope = scope
        self.report = scope.report
        self.room = Room()
        self.found = Stated(session=session)

    # Limits.

    def limit(self, statement: ast.LimitStatement) -> None:
        """``limit ..``."""
        self.report.tick()
        again = policy_form(statement, self.scope)
        if again is not None:
            self.policy(again)
            return
        selection = self.scope.selection(statement.pattern) if statement.pattern else None
        if statement.total is not None:
            self._sum(statement, *statement.total)
            return
        limit = limit_of(statement, selection, self.report)
        if limit is None or (statement.pattern and selection is None):
            return
        if selection is None or statement.per is None:
            self.found.limits.append((limit, statement.region))
        else:
            self._uses_per(statement, statement.per, limit, selection)

    def _uses_per(
        self,
        statement: ast.LimitStatement,
        per: ast.Word,
        limit: core.ResolvedLimit,
        of: ResolvedSelection,
    ) -> None:
        tool = self._tool(of)
        side = side_of(tool, per, self.report)
        if side is None or not present(side, per, self.report):
            return
        if side.place is not None:
            for selection in split_by(
                tool, of, side.place, statement.region, self.room, self.report
            ):
                one = core.ResolvedLimit(kind="uses", op=limit.op, value=limit.value, of=selection)
                self.found.limits.append((one, statement.region))
            return
        if self._foreseen(statement.pattern, tool):
            monitor = core.ResolvedUses(of=of, per=per.text, value=limit.value)
            self.found.monitors.append((monitor, statement.region))

    def policy(self, statement: ast.PolicyStatement) -> None:
        """A statement in a form of 1.2."""
        found = policy_of(statement, self.scope, self.found.session)
        if found is not None:
            self.found.policies.append(found)

    def _sum(self, statement: ast.LimitStatement, name: ast.Word, parameter: ast.Word) -> None:
        selection = self.scope.selection(ast.Pattern(name, (), name.region))
        if selection is None:
            return
        tool = self._tool(selection)
        side = side_of(tool, parameter, self.report)
        if side is None:
            return
        if side.place is None:
            monitor = sum_of_open(statement, tool, side, parameter, self.report)
            if monitor is not None:
                self.found.monitors.append((monitor, statement.region))
            return
        limit = limit_of(statement, None, self.report)
        if limit is not None and adds_up(tool.parameters[side.place], parameter, self.report):
            total = (tool.name, side.place)
            listed = core.ResolvedLimit(kind="sum", op="<=", value=limit.value, total=total)
            self.found.limits.append((listed, statement.region))

    # Orders.

    def require(self, statement: ast.RequireStatement) -> None:
        """``require A before B``, ``before each B`` or ``after B``."""
        self.report.tick()
        again = policy_form(statement, self.scope)
        if again is not None:
            self.policy(again)
            return
        patterns = (statement.first, statement.second)
        first, second = (
            self.scope.selection(statement.first),
            self.scope.selection(statement.second),
        )
        if first is None or second is None:
            return
        order, region = statement.order, statement.region
        if not statement.same:
            self.found.requires.append((order, first, second, region))
            return
        same = same_of(statement.same, self._tool(first), self._tool(second), self.report)
        if same is None:
            return
        if same.opened:
            if self._foreseen(patterns[1], self._tool(second)):
                monitor = core.ResolvedOrder(
                    kind="require", order=order, first=first, second=second, same=same.names
                )
                self.found.monitors.append((monitor, region))
                # What the automaton can hold of it.  `before each` without `same` would be too
                # much: it forbids two calls of A and then two of B, each with a key of its own.
                self.found.requires.append(("before", first, second, region))
            return
        for one, other in self._split(first, second, same.listed, region):
            self.found.requires.append((order, one, other, region))

    def forbid(self, statement: ast.ForbidStatement) -> None:
        """``forbid P1 P2 ..``, ``forbid A with B`` or ``forbid A before B``."""
        self.report.tick()
        again = policy_form(statement, self.scope)
        if again is not None:
            self.policy(again)
            return
        chain = [self.scope.selection(pattern) for pattern in statement.patterns]
        selections = tuple(selection for selection in chain if selection is not None)
        order, region = statement.order, statement.region
        if len(selections) < len(chain):
            return
        if not statement.same:
            self.found.forbids.append((order, selections, region))
            return
        first, second = selections
        same = same_of(statement.same, self._tool(first), self._tool(second), self.report)
        if same is None:
            return
        if same.opened:
            # With `before` the first is over when the second is decided on; with `with` either
            # may come last.
            late = list(zip(statement.patterns, selections, strict=True))[order == "before" :]
            known = [self._foreseen(pattern, self._tool(one)) for pattern, one in late]
            if all(known):
                monitor = core.ResolvedOrder(
                    kind="forbid", order=order, first=first, second=second, same=same.names
                )
                self.found.monitors.append((monitor, region))
            return
        for one, other in self._split(first, second, same.listed, region):
            # With no call in one of them there is nothing to forbid.
            if not is_void(one):
                self.found.forbids.append((order, (one, other), region))

    def _split(
        self,
        first: ResolvedSelection,
        second: ResolvedSelection,
        pairs: Sequence[tuple[int, int]],
        region: Region,
    ) -> list[tuple[ResolvedSelection, ResolvedSelection]]:
        tools = (self._tool(first), self._tool(second))
        found = split_same(tools, (first, second), pairs, region, self.room, self.report)
        return list(found)

    def _foreseen(self, pattern: ast.Pattern | None, tool: ResolvedTool) -> bool:
        """Whether a pattern names nothing that is known only after a call; else reported."""
        sound = True
        for argument in pattern.arguments if pattern else ():
            place = tool.places.get(argument.name.text)
            if place is not None and tool.parameters[place].observed:
                report_observed(argument.name, self.report)
                sound = False
        return sound

    def _tool(self, selection: ResolvedSelection) -> ResolvedTool:
        tool = self.scope.tools[selection.tool]
        if tool is None:  # a pattern of a tool with an error is not resolved
            raise ValueError("a selection without its tool")
        return tool


# Examples and expectations: what a grammar's author says must hold.

Quantity: TypeAlias = 'Literal["plans", "min_cost", "max_depth"]'
Comparison: TypeAlias = 'Literal["==", "<=", ">="]'
_QUANTITIES: dict[str, Quantity] = {
    "plans": "plans", "min_cost": "min_cost", "max_depth": "max_depth",
}  # fmt: skip
_COMPARISONS: dict[str, Comparison] = {"==": "==", "<=": "<=", ">=": ">="}


@frozen
class Example:
    """`accept`: at least one sequence that matches is a plan.  Otherwise: none is.

    Attributes:
        patterns: one call set a position; none for the empty plan.
        span: the statement.
        spans: its patterns.
    """

    accept: bool
    patterns: tuple[CallSet, ...]
    span: Span
    spans: tuple[Span, ...] = ()


@frozen
class Expect:
    """A comparison that must hold of the counted grammar.

    Attributes:
        value: plans, nano-units of cost, or calls.
        span: the statement.
    """

    what: Quantity
    op: Comparison
    value: int
    span: Span


def selections_of(
    statement: ast.ExampleStatement, scope: Scope
) -> tuple[ResolvedSelection, ...] | None:
    """The patterns of an example, resolved; None after an error."""
    selections = [scope.selection(pattern) for pattern in statement.patterns]
    sound = [selection for selection in selections if selection is not None]
    return tuple(sound) if len(sound) == len(selections) else None


def example_of(
    statement: ast.ExampleStatement,
    selections: tuple[ResolvedSelection, ...],
    call_list: CallList,
    report: Report,
) -> Example:
    """The example over call sets.

    Raises:
        TooManyMembers: see :meth:`CallList.calls_of`.
    """
    patterns = tuple(call_list.calls_of(selection) for selection in selections)
    return Example(
        accept=statement.accept,
        patterns=patterns,
        span=report.span(statement.region),
        spans=tuple(report.span(pattern.region) for pattern in statement.patterns),
    )


def expect_of(statement: ast.ExpectStatement, scope: Scope) -> Expect | None:
    """The expectation, None after an error."""
    report = scope.report
    number = statement.number
    if statement.what == "min_cost":
        value = in_unit("cost", number.value, number.region, report)
    else:
        value = count_of(number, report)
    if value is None:
        return None
    return Expect(
        what=_QUANTITIES[statement.what],
        op=_COMPARISONS[statement.op],
        value=value,
        span=report.span(statement.region),
    )


def policy_form(
    statement: ast.RequireStatement | ast.ForbidStatement | ast.LimitStatement, scope: Scope
) -> ast.PolicyStatement | None:
    """The statement as one of 1.2, where it names a rule, or a listed key that may be left out."""
    patterns: tuple[ast.Pattern, ...]
    pairs: tuple[ast.Pair, ...] = ()
    match statement:
        case ast.RequireStatement():
            patterns, pairs = (statement.first, statement.second), statement.same
        case ast.ForbidStatement():
            patterns, pairs = statement.patterns, statement.same
        case ast.LimitStatement(pattern=ast.Pattern() as pattern):
            patterns = (pattern,)
        case ast.LimitStatement(total=(tool, parameter)):
            of = ast.Pattern(tool, (), tool.region)
            new = _may_be_absent(of, parameter, scope) and not _is_listed(of, parameter, scope)
            return _as_policy(statement) if new else None
        case _:
            return None
    names = [(patterns[0], pair.first) for pair in pairs]
    names += [(patterns[-1], pair.second) for pair in pairs]
    if isinstance(statement, ast.LimitStatement) and statement.per is not None:
        names.append((patterns[0], statement.per))
    named = any(_names_rule(pattern, scope) for pattern in patterns)
    mixed = any(_mixes(patterns[0], patterns[-1], pair, scope) for pair in pairs)
    new = named or mixed or any(_is_of_policies(*one, scope) for one in names)
    return _as_policy(statement) if new else None


def _mixes(first: ast.Pattern, second: ast.Pattern, pair: ast.Pair, scope: Scope) -> bool:
    """Whether a listed field is compared with an open one of its kind."""
    tools = scope.tools.get(first.name.text), scope.tools.get(second.name.text)
    one = None if tools[0] is None else field_of(tools[0], pair.first.text)
    other = None if tools[1] is None else field_of(tools[1], pair.second.text)
    if one is None or other is None or one.listed is other.listed:
        return False
    return one.kind == other.kind


def _is_of_policies(pattern: ast.Pattern, name: ast.Word, scope: Scope) -> bool:
    """Whether no statement of 1.1 compares a field: it may be left out, or is JSON."""
    tool = scope.tools.get(pattern.name.text)
    found = None if tool is None else field_of(tool, name.text)
    return _may_be_absent(pattern, name, scope) or (found is not None and found.kind == "json")


def _is_listed(pattern: ast.Pattern, name: ast.Word, scope: Scope) -> bool:
    tool = scope.tools.get(pattern.name.text)
    found = None if tool is None else field_of(tool, name.text)
    return found is not None and found.listed


def _as_policy(
    statement: ast.RequireStatement | ast.ForbidStatement | ast.LimitStatement,
) -> ast.PolicyStatement | None:
    """The statement in the form of 1.2; None for a limit on amounts of plans."""
    patterns: tuple[ast.Pattern, ...] = ()
    pairs: tuple[ast.Pair, ...] = ()
    per: tuple[ast.Term, ...] = ()
    total = None
    match statement:
        case ast.RequireStatement():
            kind, order, patterns = "require", statement.order, (statement.first, statement.second)
            pairs = statement.same
        case ast.ForbidStatement():
            kind, order, patterns = "forbid", statement.order, statement.patterns
            pairs = statement.same
        case ast.LimitStatement():
            kind, order, total = statement.kind, statement.op, statement.total
            patterns = () if statement.pattern is None else (statement.pattern,)
            per = () if statement.per is None else (_field_term(statement.per),)
            if not patterns and total is None:
                return None
    parts = [
        ast.Alternative(
            calls=one, last=False, count=None, keys=(), where=(), within=None, region=one.region
        )
        for one in patterns
    ]
    alone = kind in ("uses", "sum") or order == "next"
    return ast.PolicyStatement(
        kind=kind,
        order=order,
        before=tuple(parts if alone else parts[:1]),
        calls=None if alone else patterns[1],
        region=statement.region,
        word=ast.Word(kind, statement.region),
        keys=tuple(ast.KeyPair(pair.first, _field_term(pair.second)) for pair in pairs),
        total=total,
        per=per,
        number=statement.number if isinstance(statement, ast.LimitStatement) else None,
    )


def _field_term(name: ast.Word) -> ast.Term:
    return ast.FieldTerm("own", (name,), name.region)


def _names_rule(pattern: ast.Pattern, scope: Scope) -> bool:
    name = pattern.name.text
    return name in scope.program.rules and name not in scope.tools and not pattern.arguments


def _may_be_absent(pattern: ast.Pattern, name: ast.Word, scope: Scope) -> bool:
    """Whether a key may be left out, or is of a type or an answer that 1.1 does not know."""
    tool = scope.tools.get(pattern.name.text)
    found = None if tool is None else field_of(tool, name.text)
    if tool is None or found is None:
        return False
    return found.optional or (not found.listed and name.text not in tool.opened)


def monitored(statement: ast.MonitorStatement, scope: Scope) -> ast.PolicyStatement | None:
    """``monitor`` before a statement of 1.1 as one of 1.2; None, reported, where it can be none."""
    inner = statement.statement
    found = _as_policy(inner)
    if found is None:
        message = "`monitor` stands before a `require`, a `forbid`, or a limit on calls or a sum"
        scope.report.error("TCC227", statement.region, message, "take the `monitor` away")
        return None
    return replace(found, monitored=statement.region, region=statement.region)


# Values of limits: within 63 bits; for sums, amounts that only add up.


MAX_LIMIT = (1 << 63) - 1
_SMALL = "write a smaller number, or leave the limit out if it is never reached"


def limit_of(
    statement: ast.LimitStatement, selection: ResolvedSelection | None, report: Report
) -> core.ResolvedLimit | None:
    """The limit with its value, None after an error; what ``sum`` adds up is left to the caller.

    Args:
        selection: the pattern of ``uses``, resolved.
    """
    value = _value(statement, report)
    if value is None:
        return None
    if not -MAX_LIMIT <= value <= MAX_LIMIT:
        report.error(
            "TCC307", statement.number.region, "this limit does not fit into 63 bits", _SMALL
        )
        return None
    return core.ResolvedLimit(kind=statement.kind, op=statement.op, value=value, of=selection)


def _value(statement: ast.LimitStatement, report: Report) -> int | None:
    number = statement.number
    if statement.kind in ("depth", "uses"):
        return count_of(number, report)
    value = number.value * MILLISECONDS[statement.unit]
    return in_unit(statement.kind, value, number.region, report)


def sum_of_open(
    statement: ast.LimitStatement, tool: ResolvedTool, side: Side, name: ast.Word, report: Report
) -> core.ResolvedSum | None:
    """The monitor of a sum of an open parameter, None after an error."""
    kind, number = side.type, statement.number
    if not isinstance(kind, NumberType) or kind.low is None or kind.low.startswith("-"):
        message = f"{quote(side.name)} is no number from 0 up, so its sum may go down again"
        hint = "declare it `number 0 .. HIGH` or `integer 0 .. HIGH`"
        report.error("TCC321", name.region, message, hint)
        return None
    if number.value < 0:
        report.error("TCC308", number.region, "this sum is negative", "write 0 or more")
        return None
    if not present(side, name, report):
        return None
    text = decimal_text(number.value)
    if not is_decimal(text):
        message = "this limit has more digits than a number may have"
        report.error("TCC307", number.region, message, "write a shorter number")
        return None
    return core.ResolvedSum(tool=tool.name, parameter=side.name, value=text)


def adds_up(parameter: ResolvedParameter, name: ast.Word, report: Report) -> bool:
    """Whether the values of a listed parameter are amounts from 0 up; else reported."""
    numbers = [number for number in parameter.numbers if number is not None]
    message = None
    if not parameter.numeric:
        message = f"the values of {quote(name.text)} are not all numbers"
    elif min(numbers) < 0:
        message = f"a value of {quote(name.text)} is negative, so the sum may go down again"
    else:
        units = [scaled(number, NANO) for number in numbers]
        if any(unit is None or unit >= 1 << 64 for unit in units):
            message = f"a value of {quote(name.text)} is not whole in nano-units of 64 bits"
    if message is not None:
        hint = "every value of it has to be a number from 0 up, with at most 9 fractional digits"
        report.error("TCC321", name.region, message, hint)
    return message is None
