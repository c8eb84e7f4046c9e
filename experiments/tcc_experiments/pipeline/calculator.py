"""Arithmetic on numbers, by simpleeval with nothing in it but arithmetic.

There are numbers, parentheses, ``+ - * / **`` and signs: no names, no calls, no attributes, no
texts.  A power is taken in floating point, so that none can grow beyond its range.
Cost: bounded by the length of the expression.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from tcc_experiments.pipeline.codes import Code
from tcc_experiments.pipeline.errors import PipelineError, bring

LONGEST = 200  # characters
_DUE = "numbers, parentheses and + - * / **"
_NODES = ("Expr", "Expression", "Constant", "UnaryOp", "BinOp")


def calculate(expression: str) -> float:
    """The value of an expression.

    Raises:
        PipelineError: X301, it is too long; X302, there is something else in it than arithmetic;
            X303, it has no finite real value.
        MissingExtra: simpleeval is not installed.
    """
    if len(expression) > LONGEST:
        due = f"at most {LONGEST} characters"
        raise PipelineError(Code.TOO_LONG, "expression", due, len(expression))
    _parse(expression)
    simpleeval = bring("simpleeval")
    reader = simpleeval.SimpleEval(operators=_OPERATORS, functions={}, names={})
    reader.nodes = {node: do for node, do in reader.nodes.items() if node.__name__ in _NODES}
    try:
        value = _number(reader.eval(expression))
    except (ZeroDivisionError, OverflowError) as error:
        raise _no_value(expression, error) from None
    except (simpleeval.InvalidExpression, SyntaxError, TypeError, ValueError, KeyError,
            RecursionError, MemoryError):  # fmt: skip
        raise PipelineError(Code.NOT_ARITHMETIC, "expression", _DUE, expression) from None
    if not math.isfinite(value):
        raise _no_value(expression, value)
    return float(value)


def _parse(expression: str) -> None:
    """One expression, and not several, of which simpleeval would take the first."""
    try:
        ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PipelineError(Code.NOT_ARITHMETIC, "expression", _DUE, expression) from None


def _no_value(expression: str, why: object) -> PipelineError:
    return PipelineError(Code.NO_VALUE, "expression", "a finite value", f"{expression[:60]}: {why}")


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(type(value).__name__)
    return float(value)


def _of_numbers(do: Callable[..., Any]) -> Callable[..., float]:
    """The operation on numbers alone, in floating point."""
    return lambda *given: _number(do(*map(_number, given)))


_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: _of_numbers(operator.add),
    ast.Sub: _of_numbers(operator.sub),
    ast.Mult: _of_numbers(operator.mul),
    ast.Div: _of_numbers(operator.truediv),
    ast.Pow: _of_numbers(operator.pow),
    ast.USub: _of_numbers(operator.neg),
    ast.UAdd: _of_numbers(operator.pos),
}
