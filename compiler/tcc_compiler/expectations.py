"""Examples and expectations of a grammar, held against its compiled machine.

Specification: docs/spec/language.md, `accept`, `reject`, `expect`.  An example is walked over the
machine as a sequence of call sets, keeping one witness a state.
Cost: patterns of the example times edges of the states that it reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcc_certs.fixed import format_decimal
from tcc_certs.grammar import CallSet, Core, members
from tcc_compiler.diagnostics import Diagnostic
from tcc_compiler.frontend import Example, Expect
from tcc_compiler.letters import Letters
from tcc_compiler.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a compilation found out, for examples and expectations to be held against.

    Attributes:
        artifact: the bytes.
        machine: the minimal machine, over `letters`.
        plans: how many plans there are.
        min_cost: the least cost of a plan, nano-units.
        max_depth: the most calls of a plan.
    """

    artifact: bytes
    core: Core
    letters: Letters
    machine: Machine
    plans: int
    min_cost: int
    max_depth: int


def compare(
    made: Compared, examples: Iterable[Example], expects: Iterable[Expect]
) -> list[Diagnostic]:
    """A diagnostic for each example and each expectation that does not hold, in their order."""
    found = [_example(made, example) for example in examples]
    found += [_expect(made, expect) for expect in expects]
    return [diagnostic for diagnostic in found if diagnostic is not None]


def _example(made: Compared, example: Example) -> Diagnostic | None:
    reached, plan = find_plan(made.machine, made.letters, example.patterns)
    if example.accept and plan is None:
        return Diagnostic(
            code="TCC501",
            message=f"no plan matches this line: {_stuck(reached, len(example.patterns))}",
            span=example.span,
        )
    if not example.accept and plan is not None:
        text = " ".join(made.core.calls[call].text for call in plan) or "the empty plan"
        return Diagnostic(
            code="TCC502", message=f"a plan matches this line: {text}", span=example.span
        )
    return None


def _stuck(reached: int, size: int) -> str:
    if reached == size:
        return "no plan ends there" if size else "the empty sequence is no plan"
    return f"after {reached} of its {size} calls no plan goes on so"


def find_plan(
    machine: Machine, letters: Letters, patterns: Sequence[CallSet]
) -> tuple[int, list[int] | None]:
    """How many patterns can be matched from the start, and a plan that matches all of them.

    The plan is None where there is none; calls are indices of the core's calls.
    """
    came: list[dict[int, tuple[int, int]]] = []
    states: Iterable[int] = (machine.start,)
    for pattern in patterns:
        # The first call of the pattern in each letter.
        calls = {letters.letter[call]: call for call in reversed(list(members(pattern)))}
        step: dict[int, tuple[int, int]] = {}
        for q in states:
            for letter, target in machine.edges[q]:
                if letter in calls and target not in step:
                    step[target] = (q, calls[letter])
        if not step:
            return len(came), None
        came.append(step)
        states = step
    last = next((q for q in states if machine.accept[q]), None)
    return len(came), None if last is None else _trace(came, last)


def _trace(came: Sequence[Mapping[int, tuple[int, int]]], last: int) -> list[int]:
    plan: list[int] = []
    for step in reversed(came):
        last, call = step[last]
        plan.append(call)
    return plan[::-1]


def _expect(made: Compared, expect: Expect) -> Diagnostic | None:
    found = {"plans": made.plans, "min_cost": made.min_cost, "max_depth": made.max_depth}[
        expect.what
    ]
    holds = {
        "==": found == expect.value,
        "<=": found <= expect.value,
        ">=": found >= expect.value,
    }[expect.op]
    if holds:
        return None
    return Diagnostic(
        code="TCC503",
        message=f"{expect.what} is {_figure(expect.what, found)}, "
        f"not {expect.op} {_figure(expect.what, expect.value)}",
        span=expect.span,
    )


def _figure(what: str, value: int) -> str:
    if what == "min_cost":
        return format_decimal(value, 9)
    # The decimal text of a huge number of plans would take too long to make.
    return str(value) if value.bit_length() <= 8192 else f"a number of {value.bit_length()} bits"
