"""Examples and expectations, resolved: what a grammar's author says must hold.

Normative text: docs/spec/language.md, section 10.  Cost: that of the patterns.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from tcc_certs.core.model import CallSet
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.statements import ExampleStatement, ExpectStatement
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.spans import Span
from tcc_compiler.resolve.amounts import in_unit
from tcc_compiler.resolve.calls import CallList, Selection
from tcc_compiler.resolve.limits import count_of
from tcc_compiler.resolve.patterns import Scope

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


def selections_of(statement: ExampleStatement, scope: Scope) -> tuple[Selection, ...] | None:
    """The patterns of an example, resolved; None after an error."""
    selections = [scope.selection(pattern) for pattern in statement.patterns]
    sound = [selection for selection in selections if selection is not None]
    return tuple(sound) if len(sound) == len(selections) else None


def example_of(
    statement: ExampleStatement,
    selections: tuple[Selection, ...],
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


def expect_of(statement: ExpectStatement, scope: Scope) -> Expect | None:
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
