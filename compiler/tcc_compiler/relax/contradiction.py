"""Which statements leave no plan together: a set of them in which each is needed.

Found by taking statements away in halves (QuickXplain: Junker, AAAI 2004), so that a few dozen
trials are enough however many statements there are.  A trial makes the automaton of what is left,
within a bound on its states; what is not known to be empty counts as not empty, so that the set
that is found leaves no plan for certain, and may have a statement too many.
Cost: at most _MOST_TRIALS automata of at most _MOST_STATES states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tcc_certs.core.model import Core, OneCall, Repeat
from tcc_compiler.automata.constraint.apply import constrain
from tcc_compiler.automata.constraint.statements import statement_text
from tcc_compiler.automata.letters import partition
from tcc_compiler.automata.regular.explore import explore
from tcc_compiler.automata.regular.joined_calls import join_calls
from tcc_compiler.options import Options
from tcc_compiler.relax.names import statements
from tcc_compiler.resources.guard import Guard
from tcc_compiler.resources.place import Statement, place_of
from tcc_compiler.resources.refusal import Refused
from tcc_compiler.resources.timer import Timer

_MOST_STATES = 4096
_MOST_TRIALS = 48
_LEAST_TRIALS = 6
_WORK = 200_000  # statements, and calls in sixteens, of all trials together
_MOST_NOTES = 6
_MOST_NAMED = 4
_PLAN, _SIGNATURE = "plan", "start"
_Part = Statement | str  # a statement, or the place of the plan or of `start` and `goal`


@dataclass(slots=True)
class _Trials:
    """The trials that are left, and what each is made with."""

    core: Core
    options: Options
    timer: Timer
    left: int

    def is_empty(self, parts: Sequence[_Part]) -> bool:
        """Whether these statements by themselves are known to leave no plan."""
        if self.left == 0 or self.timer.is_over():
            return False
        self.left -= 1
        kept = join_calls(_only(self.core, parts))
        letters = partition(kept)
        guard = Guard(self.options, self.timer.half())
        try:
            constrain(kept, letters, explore(kept, letters, guard), guard)
        except Refused as refusal:
            return refusal.code == "TCC402"
        return False


def with_contradiction(core: Core, refusal: Refused, options: Options, timer: Timer) -> Refused:
    """`refusal`; if it is that of no plan, with the statements that leave none together."""
    if refusal.code != "TCC402":
        return refusal
    signature = [] if core.start is None else [_SIGNATURE]
    parts: list[_Part] = [*statements(core), *signature, _PLAN]
    bounded = replace(options, max_states=min(_MOST_STATES, options.max_states), progress=None)
    size = len(parts) + len(core.calls) // 16
    trials = _Trials(
        core, bounded, timer, left=max(_LEAST_TRIALS, min(_MOST_TRIALS, _WORK // size))
    )
    if not trials.is_empty(parts):
        return refusal
    return _told(core, _needed([], False, parts, trials.is_empty))


def _needed(
    kept: list[_Part],
    more: bool,
    parts: list[_Part],
    is_empty: Callable[[Sequence[_Part]], bool],
) -> list[_Part]:
    """Those of `parts` that are needed for no plan, beside `kept`; `more`: some were kept last."""
    if more and is_empty(kept):
        return []
    if len(parts) == 1:
        return parts
    half = len(parts) // 2
    second = _needed([*kept, *parts[:half]], True, parts[half:], is_empty)
    first = _needed([*kept, *second], bool(second), parts[:half], is_empty)
    return first + second


def _only(core: Core, parts: Sequence[_Part]) -> Core:
    """The core with these statements alone; without its plan every sequence of calls is one."""
    # The very objects of the core: to compare them all would take the square of their number.
    chosen = {id(part) for part in parts}
    core = replace(
        core,
        limits=tuple(item for item in core.limits if id(item) in chosen),
        requires=tuple(item for item in core.requires if id(item) in chosen),
        forbids=tuple(item for item in core.forbids if id(item) in chosen),
    )
    if _SIGNATURE not in parts:
        core = replace(core, start=None, goals=())
    if _PLAN in parts:
        return core
    every = ((0, len(core.calls)),)
    # The patterns of a core differ from each other.
    patterns = core.patterns if every in core.patterns else (*core.patterns, every)
    any_calls = Repeat(OneCall(patterns.index(every)), 0, None)
    return replace(core, patterns=patterns, rules={}, plan=any_calls)


def _told(core: Core, parts: Sequence[_Part]) -> Refused:
    named = [part for part in parts if not isinstance(part, str)]
    texts = [_text(core, part) for part in parts]
    places = [part if isinstance(part, str) else place_of(part) for part in parts]
    if not named:
        message = "the plan expression derives none"
        if _SIGNATURE in parts:
            message += " that leads from `start` to a `goal`"
        hint = "follow the states of the calls through the plan" if _SIGNATURE in parts else _NONE
        return Refused("TCC402", f"there is no plan: {message}", hint, _PLAN)
    if len(parts) == 1:
        message = f"{texts[0]} alone leaves none"
    elif len(parts) == 2 and _PLAN in parts:
        message = f"{texts[0]} rules out all that the plan expression derives"
    elif len(parts) == 2:
        message = f"{texts[1]} contradicts {texts[0]}"
    else:
        shown = texts if len(texts) <= _MOST_NAMED else [*texts[: _MOST_NAMED - 1], "others"]
        message = f"{', '.join(shown[:-1])} and {shown[-1]} leave none together"
    main = len(named) - 1
    notes = [
        (f"together with {text}", place)
        for at, (text, place) in enumerate(zip(texts, places, strict=True))
        if at != main
    ]
    hint = "change one of them, or take it away" if notes else "change it, or take it away"
    rest = len(notes) - _MOST_NOTES
    more = [(f"and with {rest} more", None)] if rest > 0 else []
    return Refused(
        "TCC402", f"there is no plan: {message}", hint, places[main], [*notes[:_MOST_NOTES], *more]
    )


_NONE = "give each part of it a way to be made: an operand of `&` or `-` may leave nothing over"


def _text(core: Core, part: _Part) -> str:
    if part == _PLAN:
        return "the plan expression"
    if isinstance(part, str):
        return "`start` and `goal`"
    return f"`{statement_text(core, part)}`"
