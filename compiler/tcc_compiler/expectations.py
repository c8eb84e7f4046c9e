"""Check the examples and expectations of a grammar against the compiled automaton.

Specification: docs/spec/language.md, `accept`, `reject`, `expect`.

An example is a sequence of sets of calls, or an automaton over such sets. `_Walk` follows it and
the compiled automaton together. Relaxed statements are not part of that automaton, so an automaton
of their own is followed with them. An expectation is compared with the exact figure, or with a
bound if the compiler has only a bound. A bound may be too weak to decide it, which is a warning.
Notes name the statements that let a plan through.
Cost: patterns of the example times edges of the states that it reaches. For the notes: statements
times calls of the plan, with a bisection each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeAlias, cast

from tcc_certs.formats.codec import format_decimal
from tcc_certs.policy import plans
from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import Total
from tcc_certs.policy.places import StatementPart, parts_of
from tcc_compiler.automata.constraint.statements import Control
from tcc_compiler.automata.letters import Letters, join_calls, partition
from tcc_compiler.automata.regular.explore import explore
from tcc_compiler.automata.table import Machine, Table, trim
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.source import Span
from tcc_compiler.names.compile import Expectation
from tcc_compiler.names.plans import Example
from tcc_compiler.options import Options
from tcc_compiler.resources import CompileRefused, Guard, Place

# (automaton state, state of the relaxed statements, example state).
_Triple: TypeAlias = "tuple[int, int, int]"
_MOST_TRIPLES = 1 << 18
_MOST_AHEAD = 6


@frozen(eq=False)
class Built:
    """The result of the passes: the artifact, and what examples and expectations are checked with.

    Attributes:
        artifact: its bytes.
        checked: the digest of the artifact, hex, returned by the kernel that checked these bytes.
            None if nothing was checked.
        core: the grammar that was compiled.
        relaxed: the numbers of the statements that `table` does not enforce, increasing.
        letters: the letters of `table`.
        table: the smallest automaton; a `Machine` if it has cycles.
        plans: the number of plans, or an upper bound where the artifact counts upper bounds. None
            if the automaton has cycles.
        bounds_plans: True if `plans` was rounded up, because in an artifact for a gate it has too
            many bits.
        min_cost: the least cost of a plan, nano-units; a lower bound if statements are relaxed.
            None if the automaton has cycles.
        max_depth: the most calls of a plan; an upper bound if statements are relaxed. None if there
            are cycles and no statement bounds the depth.
    """

    artifact: bytes
    checked: str | None
    core: Core
    relaxed: tuple[int, ...]
    letters: Letters
    table: Machine | Table
    plans: int | None
    bounds_plans: bool
    min_cost: int | None
    max_depth: int | None


@frozen
class Unmet:
    """An `accept` line that does not hold.

    Attributes:
        diagnostic: the error to report.
        word: the longest part of the line that begins a plan, then the call that no plan goes on
            with. The whole line where all its calls begin a plan.
        ends: True where the line may not end: all its calls begin a plan, but a plan has to go on.
    """

    diagnostic: Diagnostic
    word: tuple[int, ...]
    ends: bool


@frozen
class Compared:
    """The result of all checks, in the order of the text: examples, then expectations.

    Attributes:
        undecided: how many examples, and how many expectations, could not be decided.
    """

    diagnostics: tuple[Diagnostic, ...]
    unmet: tuple[Unmet, ...]
    undecided: tuple[int, int] = (0, 0)


def compare(
    made: Built,
    examples: Iterable[Example],
    expects: Iterable[Expectation],
    options: Options,
    check_time: Callable[[], None] = lambda: None,
    places: Mapping[Place, Span] | None = None,
) -> Compared:
    """Return a diagnostic for each example and each expectation that does not hold.

    Args:
        options: the limits on the automaton of an example.
        check_time: called at each call of an example. It ends the comparison by raising.
        places: the span of each statement.

    Raises:
        CompileRefused: TCC403 or TCC404, an example is too large.
    """
    walk = _Walk(made, check_time)
    found = [_example(made, walk, example, options, places or {}) for example in examples]
    unmet = tuple([one for one in found if isinstance(one, Unmet)])
    of_examples = [one.diagnostic if isinstance(one, Unmet) else one for one in found]
    of_expectations = [_expect(made, expect, options) for expect in expects]
    outcomes = (of_examples, of_expectations)
    diagnostics = [one for some in outcomes for one in some if one is not None]
    first, second = [
        sum(one is not None and one.severity != "error" for one in some) for some in outcomes
    ]
    return Compared(diagnostics=tuple(diagnostics), unmet=unmet, undecided=(first, second))


def _example(
    made: Built, walk: _Walk, example: Example, options: Options, places: Mapping[Place, Span]
) -> Diagnostic | Unmet | None:
    try:
        found = walk.follow(_line_of(made, example, options))
    except _TooMany:
        return Diagnostic(
            code="TCC504",
            severity="warning",
            message="this line was not decided: what is relaxed adds up in too many ways",
            span=example.span,
            hint="write its calls with all their arguments, or relax less",
        )
    except _Empty:
        if not example.accept:
            return None
        return Diagnostic(
            code="TCC501",
            message="no plan matches this line: its expression derives no plan that is so short",
            span=example.span,
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


# An example as an automaton. In a plain sequence of calls it has one state per place.


@frozen(eq=False)
class _Line:
    """An example as an automaton over sets of calls; state 0 is its start.

    Attributes:
        edges: [states], pairs (set of calls, next state).
        accept: [states], whether the example may end.
        spans: the span of each call, if the example is a plain sequence of calls; else empty.
    """

    edges: Sequence[Sequence[tuple[plans.CallSet, int]]]
    accept: Sequence[bool]
    spans: Sequence[Span] = ()


class _Empty(Exception):
    """Raised if an example derives no sequence of calls."""


def _line_of(made: Built, example: Example, options: Options) -> _Line:
    """Return the automaton of an example, for at most as many calls as a plan has.

    Raises:
        _Empty: the example matches no sequence of that length, so no plan can match it.
        CompileRefused: TCC403 or TCC404, the automaton is too large.
    """
    steps = example.steps
    if steps is not None:
        edges = [[(example.patterns[step], at + 1)] for at, step in enumerate(steps)]
        accept = [*(False for _ in steps), True]
        return _Line(edges=[*edges, []], accept=accept, spans=example.spans)
    deepest = made.max_depth
    alone = replace(
        made.core,
        plan=example.plans,
        patterns=example.patterns,
        rules=example.rules,
        start=None,
        goals=(),
        statements=() if deepest is None else (Total(what="depth", most=str(deepest)),),
    )
    joined = join_calls(alone)
    letters = partition(joined, parts_of(alone))
    guard = Guard(options)
    guard.enter("an example")
    try:
        machine = trim(explore(joined, letters, guard))
    except CompileRefused as refusal:
        if refusal.code != "TCC402":
            raise
        machine = None
    if machine is None:
        raise _Empty
    return _over_calls(machine, letters)


def _over_calls(machine: Machine, letters: Letters) -> _Line:
    sets: dict[int, plans.CallSet] = {}
    number = {machine.start: 0}
    order = [machine.start]
    edges = []
    for q in order:
        row = []
        for letter, target in machine.edges[q]:
            if letter not in sets:
                sets[letter] = _ranges(letters.calls[letter])
            if target not in number:
                number[target] = len(order)
                order.append(target)
            row.append((sets[letter], number[target]))
        edges.append(row)
    return _Line(edges=edges, accept=[bool(machine.accept[q]) for q in order])


def _ranges(calls: Sequence[int]) -> plans.CallSet:
    found: list[tuple[int, int]] = []
    for call in calls:
        if found and found[-1][1] == call:
            found[-1] = (found[-1][0], call + 1)
        else:
            found.append((call, call + 1))
    return tuple(found)


def _unmet(made: Built, walk: _Walk, example: Example, found: _Found) -> Unmet:
    """Return the error for an `accept` line, with the possible continuations where it fails."""
    line = found.line
    next_calls = [calls for _, _, e in found.triples for calls, _ in line.edges[e]]
    ends = any(line.accept[e] for _, _, e in found.triples) or not next_calls
    after = f"after `{shortened(made.core, found.before)}` " if found.before else ""
    span = example.span
    if ends:
        message = f"{after}a plan has to go on" if found.before else "the empty sequence is no plan"
        word = found.before
    else:
        call = next(plans.members(next_calls[0]))
        one = made.core.calls[call].text
        others = sum(stop - start for start, stop in next_calls[0]) - 1
        shown = f"`{one}`" + (f" (or the {others} other calls of this pattern)" if others else "")
        message = f"{after}no plan goes on with {shown}"
        if not found.before:
            message = f"no plan begins with {shown}"
        word = [*found.before, call]
        span = line.spans[len(found.before)] if line.spans else example.span
    ahead, stops = walk.ahead(found.triples)
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


class _TooMany(Exception):
    """Raised if an example reaches more triples of states than the limit."""


@frozen(eq=False)
class _Found:
    """How far a line could be followed.

    Attributes:
        line: the example.
        before: a longest sequence of calls that begins the line and begins a plan.
        triples: some of the triples that `before` leads to.
        plan: a plan that matches the whole line, or None.
    """

    line: _Line
    before: list[int]
    triples: list[_Triple]
    plan: list[int] | None


_Came: TypeAlias = "dict[_Triple, tuple[_Triple, int] | None]"


class _Walk:
    """Follows the automaton, the relaxed statements and an example together, call by call."""

    def __init__(self, made: Built, check_time: Callable[[], None]) -> None:
        self._check_time = check_time
        self._calls_of: dict[plans.CallSet, dict[int, dict[int, int]]] = {}
        self._table = made.table
        self._letters = made.letters
        # Calls with the same letter in the automaton may differ for the relaxed statements.
        self._relaxed_letters = made.letters
        self._control = None
        if made.relaxed:
            left = [parts_of(made.core)[number] for number in made.relaxed]
            bare = replace(made.core, start=None, goals=())
            self._relaxed_letters = partition(bare, left)
            self._control = Control(bare, self._relaxed_letters, limits=True)

    def follow(self, line: _Line) -> _Found:
        """Follow the line breadth-first until a plan matches it or no plan goes on.

        Raises:
            _TooMany: past the limit on triples.
        """
        first = (self._table.start, 0, 0)
        came: _Came = {first: None}
        layer = [first]
        while layer:
            last = next((triple for triple in layer if self._accepts(triple, line)), None)
            if last is not None:
                return _Found(line=line, before=[], triples=[last], plan=_trace(came, last))
            following = self._step(layer, line, came)
            if len(came) > _MOST_TRIPLES:
                raise _TooMany
            if not following:
                break
            layer = following
        before = _trace(came, layer[0])
        return _Found(line=line, before=before, triples=layer[:_MOST_AHEAD], plan=None)

    def ahead(self, triples: Iterable[_Triple]) -> tuple[list[int], bool]:
        """Return some calls that can come next, sorted, and whether a plan may end here."""
        calls: dict[int, None] = {}
        stops = False
        for q, seen, _ in triples:
            stops |= self._stops(q, seen)
            for letter, _ in self._table.row(q):
                for call in islice(self._letters.calls[letter], _MOST_AHEAD + 1):
                    relaxed = self._relaxed_letters.letter[call]
                    if self._control is None or self._control.step(seen, relaxed) is not None:
                        calls[call] = None
        return sorted(calls)[: _MOST_AHEAD + 1], stops

    def _step(self, layer: Sequence[_Triple], line: _Line, came: _Came) -> list[_Triple]:
        """Return the new triples one call further; `came` records how each is reached."""
        self._check_time()
        following = []
        for triple in layer:
            q, seen, e = triple
            for pattern, place in line.edges[e]:
                calls = self._calls_of.get(pattern)
                if calls is None:
                    calls = self._calls_of[pattern] = self._classes(pattern)
                for letter, target in self._table.row(q):
                    for relaxed_letter, call in calls.get(letter, {}).items():
                        after: int | None = seen
                        if self._control is not None:
                            after = self._control.step(seen, relaxed_letter)
                        if after is None or (target, after, place) in came:
                            continue
                        came[target, after, place] = triple, call
                        following.append((target, after, place))
        return following

    def _classes(self, pattern: plans.CallSet) -> dict[int, dict[int, int]]:
        """Return the first call of each pair (letter, letter for the relaxed statements)."""
        calls: dict[int, dict[int, int]] = {}
        for call in plans.members(pattern):
            calls.setdefault(self._letters.letter[call], {}).setdefault(
                self._relaxed_letters.letter[call], call
            )
        return calls

    def _accepts(self, triple: _Triple, line: _Line) -> bool:
        q, seen, e = triple
        return line.accept[e] and self._stops(q, seen)

    def _stops(self, q: int, seen: int) -> bool:
        """Return whether a plan may end here."""
        met = self._control is None or self._control.accepts(seen)
        return bool(self._table.accept[q]) and met


def _trace(came: _Came, last: _Triple) -> list[int]:
    plan: list[int] = []
    while (step := came[last]) is not None:
        last, call = step
        plan.append(call)
    return plan[::-1]


@frozen
class Answered:
    """The answer to an expectation about all sessions.

    Attributes:
        holds: None if it was not decided.
        session: where it does not hold, a session that shows this, as `tcc replay` reads it. Empty
            if none is needed.
        because: texts of the statements that refuse the session or exclude the calls.
        missing: where it was not decided, a sentence on the missing information.
    """

    holds: bool | None
    session: str = ""
    because: tuple[str, ...] = ()
    missing: str = ""


_NO_ENGINE = "the compiler alone does not answer questions about sessions"


def _expect_sessions(made: Built, expect: Expectation, options: Options) -> Diagnostic | None:
    found = Answered(holds=None, missing=_NO_ENGINE)
    if options.answers is not None:
        found = cast("Answered", options.answers(made, expect))
    if found.holds:
        return None
    if found.holds is None:
        return Diagnostic(
            code="TCC506",
            severity="note",
            message=f"`expect {expect.text}` was not decided",
            span=expect.span,
            notes=(Note(message=found.missing),),
        )
    notes = [Note(message=f"by `{text}`") for text in found.because]
    if found.session:
        notes.append(Note(message=f"a session that the gate allows: {found.session}"))
    what = {
        "always": "a session breaks the statement",
        "reachable": "no session has such a call",
        "implies": "the other grammar refuses a session of this one",
    }[expect.what]
    return Diagnostic(
        code="TCC505",
        message=f"`expect {expect.text}` does not hold: {what}",
        span=expect.span,
        hint="correct the grammar, or take the expectation away",
        notes=tuple(notes),
    )


def _expect(made: Built, expect: Expectation, options: Options) -> Diagnostic | None:
    if expect.op is None:
        return _expect_sessions(made, expect, options)
    figure = {"plans": made.plans, "min_cost": made.min_cost, "max_depth": made.max_depth}[
        expect.what
    ]
    if figure is None:
        return _uncounted(made, expect)
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


def _uncounted(made: Built, expect: Expectation) -> Diagnostic | None:
    """Return the diagnostic of an expectation on an automaton with cycles, which counts nothing."""
    expected = f"{expect.op} {_figure(expect.what, expect.value)}"
    endless = made.max_depth is None and not made.relaxed
    if not endless or expect.what == "min_cost":
        return Diagnostic(
            code="TCC504",
            severity="warning",
            message=f"whether {expect.what} is {expected} was not decided: the artifact is for a"
            " gate, and does not count plans",
            span=expect.span,
            hint="compile without --for gate",
        )
    if expect.op == ">=":
        return None
    return Diagnostic(
        code="TCC503",
        message=f"{expect.what} has no bound, so it is not {expected}",
        span=expect.span,
        hint="add `limit depth <= N`, or take the line away",
    )


def _meant(expect: Expectation, side: str, figure: int) -> str:
    operator = {"": expect.op, "at most": "<=", "at least": ">="}[side]
    return f"{operator} {_figure(expect.what, figure)}"


def _decide(expect: Expectation, figure: int, side: str) -> bool | None:
    """Return whether the expectation holds; None if `figure` is a bound that does not decide it."""
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
    """Return ``at most`` or ``at least`` if the figure is a bound; empty if it is exact."""
    if what == "plans":
        bounds = made.relaxed or made.table.nondeterministic or made.bounds_plans
        return "at most" if bounds else ""
    if not made.relaxed:
        return ""
    return "at least" if what == "min_cost" else "at most"


def _figure(what: str, value: int) -> str:
    if what == "min_cost":
        return format_decimal(value, 9)
    # Writing a huge number in decimal takes quadratic time.
    return str(value) if value.bit_length() <= 8192 else f"a number of {value.bit_length()} bits"


# Why a sequence of calls is a plan: the statements that are about its calls and allow it.

_MOST = 4  # the most statements that are named
_MOST_LOOKED_AT = 1000
_MOST_CALLS = 12


def calls_line(core: Core, calls: Sequence[int]) -> str:
    """Return the calls as a plan is written: texts separated by spaces."""
    return " ".join([core.calls[call].text for call in calls])


def shortened(core: Core, calls: Sequence[int]) -> str:
    """Return :func:`calls_line`, of a long plan the last calls only, after ``...``."""
    cut = "... " if len(calls) > _MOST_CALLS else ""
    return cut + calls_line(core, calls[-_MOST_CALLS:])


def reasons_for(core: Core, plan: Sequence[int], places: Mapping[Place, Span]) -> tuple[Note, ...]:
    """Return notes on why `plan` is allowed: the plan expression and up to _MOST statements."""
    notes = [Note(message="the plan expression derives it", span=places.get("plan"))]
    if "plan" not in places:
        notes = [Note(message="no `plan` says what a plan is")]
    distinct = sorted(set(plan))[:_MOST_LOOKED_AT]
    for part in _about(core, distinct):
        notes.append(Note(message=f"`{part.text}` allows it", span=places.get(part.number)))
        if len(notes) > _MOST:
            break
    return tuple(notes)


def _about(core: Core, calls: Sequence[int]) -> Iterator[StatementPart]:
    """Yield the statements that put some of these calls into different classes."""
    for part in parts_of(core)[:_MOST_LOOKED_AT]:
        if part.place != "gate" and len({part.class_of[call] for call in calls}) > 1:
            yield part
