"""Comparison of two grammars, plans and whole sessions: `tcc.diff`.

:mod:`tcc.library.proving` gives every answer; a question that is already decided is not asked: for
equal cores, and for grammars whose plans and monitors decide.
Text: docs/questions.md.  Cost: two questions, each bounded by states and time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from tcc.library import Given, artifact_of
from tcc.library.plan_questions import compare_written
from tcc.library.proving import alone, prove
from tcc_certs.core.model import Core
from tcc_runtime.analysis.comparison import Comparison, SessionComparison
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.exact.atoms import OpenQuestion
from tcc_runtime.exact.search import MAX_STATES
from tcc_runtime.exact.sides import ensure_covered
from tcc_runtime.exact.writing import WitnessSession

_OVER = ("P507", "the time of --timeout is over")


def diff(
    old: Given, new: Given, *, max_states: int = MAX_STATES, timeout: float | None = None
) -> Comparison:
    """Compare `new` with `old`: plans, exactly and without listing any, sessions, and all else.

    Args:
        old, new: artifacts, or files of artifacts or grammars.
        max_states: limit on the states of each of the two questions about sessions (P503).
        timeout: limit in seconds on both questions about sessions (P507).

    Returns:
        the verdict on `new`, numbers and witnesses, sessions, and other changes.

    Raises:
        CompileError: a grammar was refused, or a limit was reached.
        tcc_certs.errors.Rejected: an artifact is refused or declined.
        OSError: a file cannot be read.
    """
    before, after = artifact_of(old), artifact_of(new)
    found = compare_written(before, after)
    return with_sessions(found, before, after, Bounds(states=max_states, seconds=timeout))


def _unbounded(seconds: float | None) -> AbstractContextManager[None]:
    """The clock of the search alone ends it."""
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of exact questions.

    Attributes:
        states: limit for each question.
        seconds: for all questions; None: no limit.
        at_most: ends work that does not read the clock, by raising one of `over`.
    """

    states: int = MAX_STATES
    seconds: float | None = None
    at_most: Callable[[float | None], AbstractContextManager[None]] = _unbounded
    over: tuple[type[Exception], ...] = ()


def with_sessions(
    found: Comparison, old: Artifact, new: Artifact, bounds: Bounds | None = None
) -> Comparison:
    """The comparison of two artifacts, with their sessions compared as well."""
    bounds = bounds or Bounds()
    begun = time.monotonic()
    known = found.reason is None
    added, open_added = _alone(new, old, found.added.plans if known else None, bounds, 0.5)
    if bounds.seconds is not None:
        left = max(0.001, bounds.seconds - (time.monotonic() - begun))
        bounds = replace(bounds, seconds=left)
    removed, open_removed = _alone(old, new, found.removed.plans if known else None, bounds, 1.0)
    sessions = SessionComparison(
        added=added, removed=removed, open_added=open_added, open_removed=open_removed
    )
    return replace(found, sessions=sessions)


def _alone(
    one: Artifact, other: Artifact, plans: int | None, bounds: Bounds, share: float
) -> tuple[WitnessSession | None, tuple[tuple[str, str], ...]]:
    """A shortest session of `one` alone, and why it is not known whether there is one.

    Args:
        plans: of `one` alone; None: not known.
        share: of the seconds that are left.
    """
    exact, alike = one.manifest.relaxed is None, one.manifest.relaxed == other.manifest.relaxed
    if (_same_core(one, other) and (exact or alike)) or (
        exact and plans == 0 and _held_alike(one.core, other.core)
    ):
        return None, ()
    seconds = None if bounds.seconds is None else bounds.seconds * share
    try:
        with bounds.at_most(seconds):
            found = (
                alone(one, other, max_states=bounds.states, timeout=seconds)
                if plans
                else prove(one, implies=other, max_states=bounds.states, timeout=seconds)
            )
    except bounds.over:
        return None, (_OVER,)
    return found.session, tuple(zip(found.codes, found.whys, strict=True))


def _same_core(one: Artifact, other: Artifact) -> bool:
    """Whether two artifacts are of one core.

    What is left to the run lets beginnings through that no whole plan has; it takes none away.
    """
    return bytes(one.file.columns["core"].data) == bytes(other.file.columns["core"].data)


def _held_alike(one: Core, other: Core) -> bool:
    """Whether, of two grammars whose plans are within one another, the sessions are as well.

    They have the same tools and calls, and `one` every monitor of `other`: of a session of `one`
    each beginning is that of a plan of both.
    """
    try:
        ensure_covered(one)
        ensure_covered(other)
    except OpenQuestion:
        return False
    tools, others = (
        [(t.name, t.parameters, t.opened) for t in core.tools] for core in (one, other)
    )
    calls, same = ([(c.text, c.tool, c.values) for c in core.calls] for core in (one, other))
    held = set(one.monitors)
    return tools == others and calls == same and held.issuperset(other.monitors)
