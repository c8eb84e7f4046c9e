"""What is enforced where: the statements that the automaton holds, and those left to a run.

Whoever walks an automaton sees plans that break what is left to a run.
Text: docs/spec/artifact.md, section 7.  Cost: linear in the statements and in
the call sets; texts of call sets are shortened.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_certs.core import model
from tcc_certs.errors import clip
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.formats.codec import written

_SHOWN = 8
_WIDEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforced:
    """Texts of statements, in the order of the core.

    Attributes:
        automaton: no walk over the artifact breaks these; ``plan`` stands for the plan expression.
        run: these are kept by a run alone, or by who looks them up with the artifact's help.
        gate: these are kept where a call is made, and by no automaton: monitors, and the types of
            open parameters.
    """

    automaton: tuple[str, ...]
    run: tuple[str, ...]
    gate: tuple[str, ...] = ()


def enforced(core: model.Core, relaxed: Relaxed | None) -> Enforced:
    """Where each statement of `core` is enforced in an artifact that relaxes `relaxed`."""
    left = Relaxed() if relaxed is None else relaxed
    texts = EnforcedTexts(core)
    held = ["plan"]
    if core.start is not None:
        held += [f"start {core.start}", f"goal {' | '.join(core.goals)}"]
    held += [f"strict {written(tool.name)}" for tool in core.tools if tool.strict]
    run: list[str] = []
    for statements, indices in (
        (core.limits, left.limits),
        (core.requires, left.requires),
        (core.forbids, left.forbids),
    ):
        chosen = frozenset(indices)
        for at, statement in enumerate(statements):
            (run if at in chosen else held).append(texts.of(statement))
    gate = [monitor.text for monitor in core.monitors]
    if any(tool.opened or tool.answers for tool in core.tools):
        from tcc_certs.core.type_texts import open_types

        gate += open_types(core)
    return Enforced(automaton=tuple(held), run=tuple(run), gate=tuple(gate))


class EnforcedTexts:
    """Texts of statements; each call set is looked at once, however many statements name it."""

    def __init__(self, core: model.Core) -> None:
        self._core = core
        self._patterns: dict[int, str] = {}

    def of(self, statement: model.Limit | model.Require | model.Forbid) -> str:
        """A limit's canonical text; others as a grammar has them, with call sets shortened."""
        match statement:
            case model.Limit():
                return statement.text
            case model.Require(order, first, second):
                words = "before each" if order == "each" else order
                return f"require {self._pattern(first)} {words} {self._pattern(second)}"
            case model.ForbidNext(patterns):
                shown = " ".join([self._pattern(pattern) for pattern in patterns[:_SHOWN]])
                return f"forbid {shown}{' ...' if len(patterns) > _SHOWN else ''}"
            case model.ForbidBefore(first, second):
                return f"forbid {self._pattern(first)} before {self._pattern(second)}"
            case model.ForbidWith(first, second):
                return f"forbid {self._pattern(first)} with {self._pattern(second)}"

    def _pattern(self, number: int) -> str:
        found = self._patterns.get(number)
        if found is None:
            found = self._patterns[number] = clip(_call_set_text(self._core, number), _WIDEST)
        return found


def _call_set_text(core: model.Core, number: int) -> str:
    """The tool where a call set is all of its calls, else its first call and how many there are."""
    calls = core.patterns[number]
    if not calls:
        return "(no call)"
    low, _ = calls[0]
    tool = core.calls[low].tool
    if _is_whole(core, calls, tool):
        return written(core.tools[tool].name)
    size = sum(end - start for start, end in calls)
    return core.calls[low].text if size == 1 else f"{core.calls[low].text}|...({size} calls)"


def _is_whole(core: model.Core, calls: model.CallSet, tool: int) -> bool:
    if len(calls) > 1:
        return False
    low, high = calls[0]
    starts = low == 0 or core.calls[low - 1].tool != tool
    ends = high == len(core.calls) or core.calls[high].tool != tool
    return starts and ends and core.calls[high - 1].tool == tool


def shortened(texts: tuple[str, ...]) -> str:
    """The texts for people: the first ones, and how many more there are."""
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return ", ".join([*(clip(text, _WIDEST) for text in texts[:_SHOWN]), *more])
