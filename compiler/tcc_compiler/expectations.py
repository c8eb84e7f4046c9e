"""Whether the examples and expectations of a grammar hold for the compiled automaton.

Specification: docs/spec/language.md, `accept`, `reject`, `expect`.  An example, a sequence of
call sets, is followed through the automaton, with one witness for each state; the statements that
were relaxed are followed beside it, by an automaton of their own.  An expectation is compared with
the exact figure, or with a bound where there is no more: a bound may not decide it, which is a
warning.  Reasons name the statements that let a plan through.
Cost: patterns of the example times edges of the states that it reaches; of reasons, statements
times calls of the plan with a bisection each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from tcc_certs.core import model
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.formats.codec import format_decimal
from tcc_compiler.automata.constraint.statements import Control, statement_text
from tcc_compiler.automata.letters import Letters, partition
from tcc_compiler.automata.table import Table
from tcc_compiler.frontend import Example, Expect
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.source import Span
from tcc_compiler.relax.attempts import only, statements
from tcc_compiler.resources import Statement, place_of

# A state of the automaton, and a state of the automaton of the relaxed statements.
_Pair: TypeAlias = "tuple[int, int]"
_MOST_PAIRS = 1 << 18
_MOST_AHEAD = 6


@frozen
class Built:
    """The result of the passes: the artifact, and what examples and expectations are compared with.

    Attributes:
        artifact: the bytes.
        checked: the artifact digest, hex, that the kernel found as it checked these bytes; None
            where they were not checked.
        relaxed: the statements that `table` leaves out, None where it leaves none.
        table: the smallest table, over `letters`.
        plans: the number of plans; an upper bound where the artifact counts upper bounds.
        bounds_plans: whether it was rounded up, for a gate, as it has more bits than are kept.
        min_cost: the least cost of a plan, nano-units; a lower bound where statements are relaxed.
        max_depth: the most calls of a plan; an upper bound where statements are relaxed.
    """

    artifact: bytes
    checked: str | None
    core: model.Core
    relaxed: Relaxed | None
    letters: Letters
    table: Table
    plans: int
    bounds_plans: bool
    min_cost: int
    max_depth: int


@frozen
class Unmet:
    """An `accept` line that does not hold.

    Attributes:
        diagnostic: what is reported of it.
        word: calls of the core, as many as a plan may begin with and one more; all of the line
            where only its end is no plan's (`ends`).
    """

    diagnostic: Diagnostic
    word: tuple[int, ...]
    ends: bool


@frozen
class Compared:
    """What was found, in the order of the text: examples, then expectations."""

    diagnostics: tuple[Diagnostic, ...]
    unmet: tuple[Unmet, ...]


def compare(
    made: Built,
    examples: Iterable[Example],
    expects: Iterable[Expect],
    check_time: Callable[[], None] = lambda: None,
    places: Mapping[str, Span] | None = None,
) -> Compared:
    """A diagnostic for each example and each expectation that does not hold.

    Args:
        check_time: called at each call of an example; it ends the comparison by raising.
        places: the span of each statement, by its place.
    """
    walk = _Walk(made, check_time)
    found = [_example(made, walk, example, places or {}) for example in examples]
    unmet = tuple(one for one in found if isinstance(one, Unmet))
    outcomes = [one.diagnostic if isinstance(one, Unmet) else one for one in found]
    outcomes += [_expect(made, expect) for expect in expects]
    diagnostics = tuple(diagnostic for diagnostic in outcomes if diagnostic is not None)
    return Compared(diagnostics=diagnostics, unmet=unmet)


def _example(
    made: Built, walk: _Walk, example: Example, places: Mapping[str, Span]
) -> Diagnostic | Unmet | None:
    try:
        found = walk.follow(example.patterns)
    except _TooManyPairs:
        return Diagnostic(
            code="TCC504",
            severity="warning",
            message="this line was not decided: what is relaxed adds up in too many ways",
            span=example.span,
            hint="write its calls with all their arguments, or relax less",
        )
    if example.accept and found.plan is None:
        return _unmet(made, walk, example, found)
    if not example.accept and found.plan is not None:
        text = calls_line(made.core, found.plan)
        return Diagnostic(
            code="TCC502",
            message=f"a plan matches this line: {text or 'the empty plan'}",
            span=example.span,
            hint="rule it out by a `forbid`, a `limit` or a narrower `plan`; if it is meant, "
            "write `accept`",
            notes=reasons_for(made.core, found.plan, places),
        )
    return None


def _unmet(made: Built, walk: _Walk, example: Example, found: _Found) -> Unmet:
    """What could be where the line stops."""
    size = len(example.patterns)
    ends = found.reached == size
    after = f"after `{shortened(made.core, found.before)}` " if found.before else ""
    span = example.span
    if ends:
        message = f"{after}a plan has to go on" if size else "the empty sequence is no plan"
        word = found.before
    else:
        call = next(iter(model.members(example.patterns[found.reached])))
        one = made.core.calls[call].text
        others = sum(stop - start for start, stop in example.patterns[found.reached]) - 1
        shown = f"`{one}`" + (f" (or the {others} other calls of this pattern)" if others else "")
        message = f"{after}no plan goes on with {shown}"
        if not found.before:
            message = f"no plan begins with {shown}"
        word = [*found.before, call]
        span = example.spans[found.reached] if example.spans else example.span
    ahead, stops = walk.ahead(found.pairs)
    texts = [f"`{made.core.calls[call].text}`" for call in ahead[:_MOST_AHEAD]]
    if len(ahead) > _MOST_AHEAD:
        texts.append("others")
    if stops and not ends:
        texts.append("the end of the plan")
    listed = ", ".join(texts[:-1]) + (" or " if len(texts) > 1 else "") + "".join(texts[-1:])
    diagnostic = Diagnostic(
        code="TCC501",
        message=f"no plan matches this line: {message}",
        span=span,
        hint=f"what can be there: {listed}" if texts else "nothing can be there",
    )
    return Unmet(diagnostic=diagnostic, word=tuple(word), ends=ends)


class _TooManyPairs(Exception):
    """An example reaches more pairs of states than the limit."""


@frozen(kw_only=False)
class _Found:
    """How far a line could be followed.

    Attributes:
        reached: how many of its patterns can be matched from the start.
        before: calls that match these.
        pairs: a few of the pairs that they lead to.
        plan: calls that match the whole line and are a plan; None where there are none.
    """

    reached: int
    before: list[int]
    pairs: list[_Pair]
    plan: list[int] | None


class _Walk:
    """Follows calls through the automaton and the relaxed statements together."""

    def __init__(self, made: Built, check_time: Callable[[], None]) -> None:
        self._check_time = check_time
        self._calls_of: dict[model.CallSet, dict[int, dict[int, int]]] = {}
        self._table = made.table
        self._letters = made.letters
        # Calls that are one letter of the automaton may differ for the relaxed statements.
        left = None if made.relaxed is None else only(made.core, made.relaxed)
        self._relaxed_letters = made.letters if left is None else partition(left)
        self._control = None if left is None else Control(left, self._relaxed_letters, limits=True)

    def follow(self, patterns: Sequence[model.CallSet]) -> _Found:
        """Match the patterns one after the other, as far as plans go on so.

        Raises:
            _TooManyPairs: past the limit on pairs.
        """
        came: list[dict[_Pair, tuple[_Pair, int]]] = []
        pairs: Iterable[_Pair] = ((self._table.start, 0),)
        made = 0
        for pattern in patterns:
            step = self._step(pairs, pattern)
            if not step:
                return self._found(came, pairs, None)
            made += len(step)
            if made > _MOST_PAIRS:
                raise _TooManyPairs
            came.append(step)
            pairs = step
        last = next((pair for pair in pairs if self._accepts(pair)), None)
        return self._found(came, pairs, None if last is None else _trace(came, last))

    def _found(
        self,
        came: Sequence[Mapping[_Pair, tuple[_Pair, int]]],
        pairs: Iterable[_Pair],
        plan: list[int] | None,
    ) -> _Found:
        first = next(iter(pairs))
        return _Found(len(came), _trace(came, first), list(islice(pairs, _MOST_AHEAD)), plan)

    def ahead(self, pairs: Iterable[_Pair]) -> tuple[list[int], bool]:
        """A few calls that can come next, at most _MOST_AHEAD + 1; whether a plan may end there."""
        calls: dict[int, None] = {}
        stops = False
        for pair in pairs:
            stops |= self._accepts(pair)
            for letter, _ in self._table.row(pair[0]):
                for call in islice(self._letters.calls[letter], _MOST_AHEAD + 1):
                    relaxed = self._relaxed_letters.letter[call]
                    if self._control is None or self._control.step(pair[1], relaxed) is not None:
                        calls[call] = None
        return sorted(calls)[: _MOST_AHEAD + 1], stops

    def _step(
        self, pairs: Iterable[_Pair], pattern: model.CallSet
    ) -> dict[_Pair, tuple[_Pair, int]]:
        """The pairs after one call of `pattern`, each with the pair before and the call."""
        self._check_time()
        calls = self._calls_of.get(pattern)
        if calls is None:
            calls = self._calls_of[pattern] = self._classes(pattern)
        reached: dict[_Pair, tuple[_Pair, int]] = {}
        for q, seen in pairs:
            for letter, target in self._table.row(q):
                for relaxed_letter, call in calls.get(letter, {}).items():
                    after = (
                        seen if self._control is None else self._control.step(seen, relaxed_letter)
                    )
                    if after is not None:
                        reached.setdefault((target, after), ((q, seen), call))
        return reached

    def _classes(self, pattern: model.CallSet) -> dict[int, dict[int, int]]:
        """For each letter of the automaton, then of the relaxed statements, the first such call."""
        calls: dict[int, dict[int, int]] = {}
        for call in model.members(pattern):
            calls.setdefault(self._letters.letter[call], {}).setdefault(
                self._relaxed_letters.letter[call], call
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


def _expect(made: Built, expect: Expect) -> Diagnostic | None:
    figure = {"plans": made.plans, "min_cost": made.min_cost, "max_depth": made.max_depth}[
        expect.what
    ]
    side = _side(made, expect.what)
    holds = _decide(expect, figure, side)
    if holds:
        return None
    shown = f"{side} {_figure(expect.what, figure)}".lstrip()
    expected = f"{expect.op} {_figure(expect.what, expect.value)}"
    if holds is None:
        return Diagnostic(
            code="TCC504",
            severity="warning",
            message=f"{expect.what} is {shown}: whether it is {expected} is not decided by bounds",
            span=expect.span,
            hint="relax less, so that the figure is exact",
        )
    return Diagnostic(
        code="TCC503",
        message=f"{expect.what} is {shown}, not {expected}",
        span=expect.span,
        hint=f"if this is meant, write `expect {expect.what} {_meant(expect, side, figure)}`; "
        "else correct the grammar",
    )


def _meant(expect: Expect, side: str, figure: int) -> str:
    operator = {"": expect.op, "at most": "<=", "at least": ">="}[side]
    return f"{operator} {_figure(expect.what, figure)}"


def _decide(expect: Expect, figure: int, side: str) -> bool | None:
    """Whether the expectation holds; None where the bound does not decide it."""
    least = None if side == "at most" else figure
    most = None if side == "at least" else figure
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


def _side(made: Built, what: str) -> str:
    """``at most`` or ``at least`` where the compiled figure is a bound; empty where it is exact."""
    if what == "plans":
        bounds = made.relaxed or made.table.nondeterministic or made.bounds_plans
        return "at most" if bounds else ""
    if made.relaxed is None:
        return ""
    return "at least" if what == "min_cost" else "at most"


def _figure(what: str, value: int) -> str:
    if what == "min_cost":
        return format_decimal(value, 9)
    # The decimal text of a huge number takes quadratic time.
    return str(value) if value.bit_length() <= 8192 else f"a number of {value.bit_length()} bits"


# Why a sequence of calls is a plan: the statements that are about its calls, and let it through.

_MOST = 4  # statements that are named
_MOST_LOOKED_AT = 1000
_MOST_CALLS = 12


def calls_line(core: model.Core, calls: Sequence[int]) -> str:
    """The calls as a plan is written."""
    return " ".join(core.calls[call].text for call in calls)


def shortened(core: model.Core, calls: Sequence[int]) -> str:
    """The same; of many calls the last ones."""
    cut = "... " if len(calls) > _MOST_CALLS else ""
    return cut + calls_line(core, calls[-_MOST_CALLS:])


def reasons_for(
    core: model.Core, plan: Sequence[int], places: Mapping[str, Span]
) -> tuple[Note, ...]:
    """Notes on the statements that let `plan` through: the plan expression, and a few others."""
    notes = [Note(message="the plan expression derives it", span=places.get("plan"))]
    if "plan" not in places:
        notes = [Note(message="no `plan` says what a plan is")]
    distinct = sorted(set(plan))[:_MOST_LOOKED_AT]
    for statement in _about(core, distinct):
        text = statement_text(core, statement)
        notes.append(Note(message=f"`{text}` allows it", span=places.get(place_of(statement))))
        if len(notes) > _MOST:
            break
    return tuple(notes)


def _about(core: model.Core, calls: Sequence[int]) -> Iterator[Statement]:
    """The statements that could be about these calls."""
    for at, statement in enumerate(statements(core)):
        if at >= _MOST_LOOKED_AT:
            return
        if any(_has(some, calls) for some in _call_sets(core, statement)):
            yield statement


def _call_sets(core: model.Core, statement: Statement) -> Sequence[model.CallSet]:
    match statement:
        case model.Limit():
            return () if statement.calls is None else (statement.calls,)
        case model.Require():
            return (core.patterns[statement.second],)
        case model.ForbidNext(patterns):
            return [core.patterns[pattern] for pattern in patterns]
        case model.ForbidWith(first, second) | model.ForbidBefore(first, second):
            return core.patterns[first], core.patterns[second]


def _has(pattern: model.CallSet, calls: Sequence[int]) -> bool:
    return any(start <= call < stop for call in calls for start, stop in pattern)
