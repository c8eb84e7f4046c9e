"""Signatures, `require` and `forbid` as small automata over letters.

Specification: docs/spec/core.md, section 5.  Cost: a step is constant, but for `forbid` of k
neighbours, which keeps a set of k bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tcc_certs.core.model import (
    CallSet,
    Core,
    Forbid,
    ForbidBefore,
    ForbidNext,
    ForbidWith,
    Limit,
    Require,
)
from tcc_certs.formats.names import written
from tcc_compiler.automata.constraint.product import Constraint
from tcc_compiler.automata.letters import Letters
from tcc_compiler.resources.place import Statement


def constraints(core: Core, letters: Letters) -> Iterator[Constraint]:
    """The constraints of a core, in the order in which they are applied."""
    if core.start is not None:
        yield signature(core, letters)
    for forbid in core.forbids:
        if isinstance(forbid, ForbidNext):
            yield forbid_next(core, letters, forbid)
    for require in core.requires:
        yield _REQUIRE[require.order](core, letters, require)
    for forbid in core.forbids:
        if isinstance(forbid, ForbidWith):
            yield forbid_with(core, letters, forbid)
        elif isinstance(forbid, ForbidBefore):
            yield forbid_before(core, letters, forbid)


def signature(core: Core, letters: Letters) -> Constraint:
    """The state flows from `start` through `IN -> OUT` of each call to one of the goals."""
    tools = [core.tools[core.calls[group[0]].tool] for group in letters.calls]
    names = sorted(
        {core.start or "", *core.goals}
        | {name for tool in tools for name in (tool.takes, tool.gives) if name is not None}
    )
    number = {name: at for at, name in enumerate(names)}
    takes = [None if tool.takes is None else number[tool.takes] for tool in tools]
    gives = [None if tool.gives is None else number[tool.gives] for tool in tools]
    goals = {number[name] for name in core.goals}

    def step(state: int, letter: int) -> int | None:
        if takes[letter] is None:
            return state
        return gives[letter] if takes[letter] == state else None

    return Constraint(
        text="start and goal",
        start=number[core.start or ""],
        step=step,
        accepts=lambda state: state in goals,
    )


def require_before(core: Core, letters: Letters, require: Require) -> Constraint:
    """State 1 once an A was seen.  A call in both does not serve itself."""
    first = frozenset(letters.patterns[require.first])
    second = frozenset(letters.patterns[require.second])

    def step(state: int, letter: int) -> int | None:
        if not state and letter in second:
            return None
        return 1 if letter in first else state

    return _constraint(core, require, step)


def require_after(core: Core, letters: Letters, require: Require) -> Constraint:
    """State 1 while a B waits for its A.  A call in both serves the ones before, not itself."""
    first = frozenset(letters.patterns[require.first])
    second = frozenset(letters.patterns[require.second])

    def step(state: int, letter: int) -> int | None:
        if letter in second:
            return 1
        return 0 if letter in first else state

    return _constraint(core, require, step, accepts=lambda state: state == 0)


def require_each(core: Core, letters: Letters, require: Require) -> Constraint:
    """State 1 once an A was seen since the last B.  A call in both is a B, and serves nobody."""
    first = frozenset(letters.patterns[require.first])
    second = frozenset(letters.patterns[require.second])

    def step(state: int, letter: int) -> int | None:
        if letter in second:
            return 0 if state else None
        return 1 if letter in first else state

    return _constraint(core, require, step)


_REQUIRE = {"before": require_before, "after": require_after, "each": require_each}


def forbid_next(core: Core, letters: Letters, forbid: ForbidNext) -> Constraint:
    """Bit i of the state: the last i + 1 calls match the first i + 1 patterns."""
    holds = [0] * len(letters.calls)
    for at, pattern in enumerate(forbid.patterns):
        for letter in letters.patterns[pattern]:
            holds[letter] |= 1 << at
    last = 1 << (len(forbid.patterns) - 1)

    def step(state: int, letter: int) -> int | None:
        after = (state << 1 | 1) & holds[letter]
        return None if after & last else after

    return _constraint(core, forbid, step)


def forbid_with(core: Core, letters: Letters, forbid: ForbidWith) -> Constraint:
    """Bits of the state: an A was seen, a B was seen; both together are forbidden."""
    seen = [0] * len(letters.calls)
    for bit, pattern in ((1, forbid.first), (2, forbid.second)):
        for letter in letters.patterns[pattern]:
            seen[letter] |= bit

    def step(state: int, letter: int) -> int | None:
        after = state | seen[letter]
        return None if after == 3 else after

    return _constraint(core, forbid, step)


def forbid_before(core: Core, letters: Letters, forbid: ForbidBefore) -> Constraint:
    """State 1 once an A was seen.  One call in both may stand, a second one not."""
    first = frozenset(letters.patterns[forbid.first])
    second = frozenset(letters.patterns[forbid.second])

    def step(state: int, letter: int) -> int | None:
        if state and letter in second:
            return None
        return 1 if letter in first else state

    return _constraint(core, forbid, step)


def _constraint(
    core: Core,
    statement: Require | Forbid,
    step: Callable[[int, int], int | None],
    accepts: Callable[[int], bool] = lambda _: True,
) -> Constraint:
    text = statement_text(core, statement)
    return Constraint(text=text, statement=statement, start=0, step=step, accepts=accepts)


def statement_text(core: Core, statement: Statement) -> str:
    """A statement as the grammar would write it, with short patterns."""
    match statement:
        case Limit():
            return f"limit {statement.text}"
        case Require(order, first, second):
            words = "before each" if order == "each" else order
            return f"require {pattern_text(core, first)} {words} {pattern_text(core, second)}"
        case ForbidNext(patterns):
            shown = " ".join(pattern_text(core, pattern) for pattern in patterns[:8])
            return f"forbid {shown}{' ...' if len(patterns) > 8 else ''}"
        case ForbidWith(first, second):
            return f"forbid {pattern_text(core, first)} with {pattern_text(core, second)}"
        case ForbidBefore(first, second):
            return f"forbid {pattern_text(core, first)} before {pattern_text(core, second)}"


def pattern_text(core: Core, pattern: int) -> str:
    """A pattern in messages: the tool if it has all its calls, else the first call and a count."""
    return call_set_text(core, core.patterns[pattern])


def call_set_text(core: Core, calls: CallSet) -> str:
    """A call set in messages; see :func:`pattern_text`."""
    if not calls:
        return "(no call)"
    low, high = calls[0]
    size = sum(end - start for start, end in calls)
    tool = core.calls[low].tool
    whole = (low == 0 or core.calls[low - 1].tool != tool) and (
        high == len(core.calls) or core.calls[high].tool != tool
    )
    if len(calls) == 1 and whole and core.calls[high - 1].tool == tool:
        return written(core.tools[tool].name)
    return core.calls[low].text if size == 1 else f"{core.calls[low].text}|...({size} calls)"
