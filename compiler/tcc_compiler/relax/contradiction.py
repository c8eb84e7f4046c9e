"""Contradictions: irreducible sets of statements that leave no plan, found by QuickXplain.

The question must be monotone: if a set of statements is enough, every larger set is enough.
`quick_explain` searches for a set that is enough, for any such question.
`with_contradiction` explains a refusal. A trial makes the automaton of some of the statements,
within a bound on its states. If it is not known to be empty, it counts as not empty. So the set
that is found certainly leaves no plan, but it may have a statement too many.
Cost: about k log(n/k) questions for an irreducible set of k out of n. For a refusal, at most
_MOST_TRIALS automata of at most _MOST_STATES states.
Source: Junker, QUICKXPLAIN: preferred explanations and relaxations, AAAI 2004.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from tcc_certs.policy.core import Core
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.plans import OneCall, Repeat
from tcc_compiler.automata.constraint.apply import constrain
from tcc_compiler.automata.letters import join_calls, partition
from tcc_compiler.automata.regular.explore import explore
from tcc_compiler.options import Options
from tcc_compiler.relax.attempts import kept_parts, text_of
from tcc_compiler.resources import CompileRefused, Guard, Place, Timer

_MOST_STATES = 4096
_MOST_TRIALS = 48
_LEAST_TRIALS = 6
_WORK = 200_000  # statements, plus a sixteenth of the calls, of all trials together
_MOST_NOTES = 6
_MOST_NAMED = 4
_PLAN, _SIGNATURE = "plan", "start"
_Part: TypeAlias = Place  # a statement, the plan, or `start` and `goal`
_NONE = "give each part of it a way to be made: an operand of `&` or `-` may leave nothing over"

T = TypeVar("T")
Test: TypeAlias = Callable[[Sequence[T]], bool]


def quick_explain(items: Sequence[T], enough: Test[T]) -> list[T]:
    """Return an irreducible list of items that are enough, in their order.

    Args:
        items: together they must be enough. The empty list is not tested.
    """
    return _needed([], items, enough, grown=False)


def _needed(kept: Sequence[T], items: Sequence[T], enough: Test[T], *, grown: bool) -> list[T]:
    """Return the needed `items` besides `kept`; `grown`: `kept` grew since its last test."""
    if grown and enough(kept):
        return []
    if len(items) == 1:
        return list(items)
    first, second = items[: len(items) // 2], items[len(items) // 2 :]
    late = _needed([*kept, *first], second, enough, grown=True)
    return [*_needed([*kept, *late], first, enough, grown=bool(late)), *late]


@dataclass(slots=True)
class _Trials:
    """The number of remaining trials, and the input of each trial."""

    core: Core
    options: Options
    timer: Timer
    remaining: int

    def is_empty(self, parts: Sequence[_Part]) -> bool:
        """Return whether these statements alone are known to leave no plan."""
        if self.remaining == 0 or self.timer.is_over():
            return False
        self.remaining -= 1
        kept = join_calls(_only(self.core, parts))
        statements = parts_of(self.core)
        letters = partition(kept, [statements[at] for at in parts if isinstance(at, int)])
        guard = Guard(self.options, self.timer.half())
        try:
            constrain(kept, letters, explore(kept, letters, guard), guard)
        except CompileRefused as refusal:
            return refusal.code == "TCC402"
        return False


def with_contradiction(
    core: Core, refusal: CompileRefused, options: Options, timer: Timer
) -> CompileRefused:
    """Return the refusal; if there is no plan (TCC402), it names the contradicting statements."""
    if refusal.code != "TCC402":
        return refusal
    signature = [] if core.start is None else [_SIGNATURE]
    held = [part.number for part in kept_parts(core, ())]
    parts: list[_Part] = [*held, *signature, _PLAN]
    bounded = replace(options, max_states=min(_MOST_STATES, options.max_states), progress=None)
    size = len(parts) + len(core.calls) // 16
    trials = _Trials(
        core, bounded, timer, remaining=max(_LEAST_TRIALS, min(_MOST_TRIALS, _WORK // size))
    )
    if not trials.is_empty(parts):
        return refusal
    return _explained(core, quick_explain(parts, trials.is_empty))


def _only(core: Core, parts: Sequence[_Part]) -> Core:
    """Return the core with only these parts; without the plan, all sequences of calls are plans."""
    if _SIGNATURE not in parts:
        core = replace(core, start=None, goals=())
    if _PLAN in parts:
        return core
    every = ((0, len(core.calls)),)
    # The patterns of a core are distinct.
    patterns = core.patterns if every in core.patterns else (*core.patterns, every)
    any_calls = Repeat(OneCall(patterns.index(every)), 0, None)
    return replace(core, patterns=patterns, rules={}, plan=any_calls)


def _explained(core: Core, parts: Sequence[_Part]) -> CompileRefused:
    named = [part for part in parts if not isinstance(part, str)]
    texts = [_text(core, part) for part in parts]
    if not named:
        message = "the plan expression derives none"
        if _SIGNATURE in parts:
            message += " that leads from `start` to a `goal`"
        hint = "follow the states of the calls through the plan" if _SIGNATURE in parts else _NONE
        return CompileRefused("TCC402", f"there is no plan: {message}", hint, _PLAN)
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
        for at, (text, place) in enumerate(zip(texts, parts, strict=True))
        if at != main
    ]
    hint = "change one of them, or take it away" if notes else "change it, or take it away"
    rest = len(notes) - _MOST_NOTES
    more = [(f"and with {rest} more", None)] if rest > 0 else []
    return CompileRefused(
        "TCC402", f"there is no plan: {message}", hint, parts[main], [*notes[:_MOST_NOTES], *more]
    )


def _text(core: Core, part: _Part) -> str:
    if part == _PLAN:
        return "the plan expression"
    if isinstance(part, str):
        return "`start` and `goal`"
    return text_of(core, part)
