"""Examples and expectations of a grammar, held against its compiled machine.

Specification: docs/spec/language.md, `accept`, `reject`, `expect`.  An example is walked over the
machine as a sequence of call sets, keeping one witness a state, and beside it what the statements
that the machine leaves to a run have seen.  An expectation is held against the number or, where
there are bounds alone, against the bound: then it may stay open, which is a warning.
Cost: patterns of the example times edges of the states that it reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcc_certs.core.model import CallSet, Core, members
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.formats.manifest import Relaxed
from tcc_compiler.constraint.control import Control
from tcc_compiler.diagnostics import Diagnostic
from tcc_compiler.frontend import Example, Expect
from tcc_compiler.letters import Letters, partition
from tcc_compiler.relax.names import only
from tcc_compiler.table import Table

# A state of the machine and one of the relaxed statements.
_Pair: TypeAlias = "tuple[int, int]"
_MOST_PAIRS = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a compilation found out, for examples and expectations to be held against.

    Attributes:
        artifact: the bytes.
        relaxed: the statements that `table` leaves out, None where it leaves none.
        table: the smallest table, over `letters`.
        plans: how many plans there are, or at most that many.
        min_cost: the least cost of a plan, nano-units; at least that where statements are relaxed.
        max_depth: the most calls of a plan; at most that where statements are relaxed.
    """

    artifact: bytes
    core: Core
    relaxed: Relaxed | None
    letters: Letters
    table: Table
    plans: int
    min_cost: int
    max_depth: int


def compare(
    made: Compared,
    examples: Iterable[Example],
    expects: Iterable[Expect],
    look: Callable[[], None] = lambda: None,
) -> list[Diagnostic]:
    """A diagnostic for each example and each expectation that does not hold, in their order.

    Args:
        look: called at each call of an example; it ends the comparison by raising.
    """
    walk = _Walk(made, look)
    found = [_example(made, walk, example) for example in examples]
    found += [_expect(made, expect) for expect in expects]
    return [diagnostic for diagnostic in found if diagnostic is not None]


def _example(made: Compared, walk: _Walk, example: Example) -> Diagnostic | None:
    try:
        reached, plan = walk.find_plan(example.patterns)
    except _TooMany:
        return Diagnostic(
            code="TCC504",
            severity="warning",
            message="this line was not decided: what is relaxed adds up in too many ways",
            span=example.span,
        )
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


class _TooMany(Exception):
    """An example leads to too many pairs."""


class _Walk:
    """Walks over the machine and, beside it, the statements that it leaves out."""

    def __init__(self, made: Compared, look: Callable[[], None]) -> None:
        self._look = look
        self._calls_of: dict[CallSet, dict[int, dict[int, int]]] = {}
        self._table = made.table
        self._letters = made.letters
        # The relaxed statements tell calls apart that are one letter of the machine.
        left = None if made.relaxed is None else only(made.core, made.relaxed)
        self._fine = made.letters if left is None else partition(left)
        self._control = None if left is None else Control(left, self._fine, limits=True)

    def find_plan(self, patterns: Sequence[CallSet]) -> tuple[int, list[int] | None]:
        """How many patterns can be matched from the start, and a plan that matches all of them.

        The plan is None where there is none; calls are indices of the core's calls.

        Raises:
            _TooMany: past a bound on pairs.
        """
        came: list[dict[_Pair, tuple[_Pair, int]]] = []
        pairs: Iterable[_Pair] = ((self._table.start, 0),)
        made = 0
        for pattern in patterns:
            step = self._step(pairs, pattern)
            if not step:
                return len(came), None
            made += len(step)
            if made > _MOST_PAIRS:
                raise _TooMany
            came.append(step)
            pairs = step
        last = next((pair for pair in pairs if self._accepts(pair)), None)
        return len(came), None if last is None else _trace(came, last)

    def _step(self, pairs: Iterable[_Pair], pattern: CallSet) -> dict[_Pair, tuple[_Pair, int]]:
        """The pairs after one call of `pattern`, each with the pair before and the call."""
        self._look()
        calls = self._calls_of.get(pattern)
        if calls is None:
            calls = self._calls_of[pattern] = self._classes(pattern)
        found: dict[_Pair, tuple[_Pair, int]] = {}
        for q, seen in pairs:
            for letter, target in self._table.row(q):
                for fine, call in calls.get(letter, {}).items():
                    after = seen if self._control is None else self._control.step(seen, fine)
                    if after is not None:
                        found.setdefault((target, after), ((q, seen), call))
        return found

    def _classes(self, pattern: CallSet) -> dict[int, dict[int, int]]:
        """The first call of the pattern for each letter, and each class of calls beside it."""
        calls: dict[int, dict[int, int]] = {}
        for call in members(pattern):
            calls.setdefault(self._letters.letter[call], {}).setdefault(
                self._fine.letter[call], call
            )
        return calls

    def _accepts(self, pair: _Pair) -> bool:
        q, seen = pair
        met = self._control is None or self._control.accepts(seen)
        return bool(self._table.accept[q]) and met


def _trace(came: Sequence[Mapping[_Pair, tuple[_Pair, int]]], last: _Pair) -> list[int]:
    plan: list[int] = []
    for step in reversed(came):
        last, call = step[last]
        plan.append(call)
    return plan[::-1]


def _expect(made: Compared, expect: Expect) -> Diagnostic | None:
    found = {"plans": made.plans, "min_cost": made.min_cost, "max_depth": made.max_depth}[
        expect.what
    ]
    side = _side(made, expect.what)
    holds = _decide(expect, found, side)
    if holds:
        return None
    shown = f"{side} {_figure(expect.what, found)}".lstrip()
    due = f"{expect.op} {_figure(expect.what, expect.value)}"
    if holds is None:
        return Diagnostic(
            code="TCC504",
            severity="warning",
            message=f"{expect.what} is {shown}: whether it is {due} is not decided by bounds",
            span=expect.span,
        )
    return Diagnostic(
        code="TCC503", message=f"{expect.what} is {shown}, not {due}", span=expect.span
    )


def _decide(expect: Expect, found: int, side: str) -> bool | None:
    """Whether the expectation holds; None where a bound leaves it open."""
    least = None if side == "at most" else found
    most = None if side == "at least" else found
    above = least is not None and least > expect.value
    below = most is not None and most < expect.value
    match expect.op:
        case "<=":
            broken, held = above, most is not None and most <= expect.value
        case ">=":
            broken, held = below, least is not None and least >= expect.value
        case _:
            broken, held = above or below, not side
    return True if held and not broken else False if broken else None


def _side(made: Compared, what: str) -> str:
    """On which side of the number the compiled figure is; empty where it is the number."""
    if what == "plans":
        return "at most" if made.relaxed or made.table.nondeterministic else ""
    if made.relaxed is None:
        return ""
    return "at least" if what == "min_cost" else "at most"


def _figure(what: str, value: int) -> str:
    if what == "min_cost":
        return format_decimal(value, 9)
    # The decimal text of a huge number of plans would take too long to make.
    return str(value) if value.bit_length() <= 8192 else f"a number of {value.bit_length()} bits"
