"""Why a call or an end is refused: statements of the grammar, found when somebody asks.

A statement is named where the call would be allowed without it, as `tcc why` finds it
(:mod:`tcc_runtime.questions.blame`), within a bound.  Where no single statement decides,
or the bound is met, it is the plan as a whole.
Text: docs/gate.md.
Cost: for each of the first statements a walk beside the calls so far; bounded, whatever the core.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from tcc_certs.core.enforced import enforced
from tcc_certs.core.model import Core
from tcc_certs.corecheck.budget import Budget
from tcc_certs.errors import Code, Rejected
from tcc_certs.session.refusals import REFUSALS
from tcc_runtime.gate.refusals import Reason
from tcc_runtime.gate.session import Session
from tcc_runtime.gate.tools import Group
from tcc_runtime.gate.walking import Place
from tcc_runtime.questions.blame import lets_through
from tcc_runtime.questions.statements import Part, without

_STEPS: Final = 60_000  # units of work for one statement
_MOST_STATEMENTS: Final = 32
_MOST_CALLS: Final = 4096

Word: TypeAlias = "tuple[int, ...]"  # calls of the artifact


def reasons(
    session: Session, made: int, code: Code, place: str, group: Group | None
) -> list[Reason]:
    """What forbids a call of `group`, or an end where that is None, after the first `made` calls.

    Args:
        code: of the refusal.
        place: the monitor, where it is one.
    """
    if code is Code.MONITOR_FORBIDS:
        return [{"kind": "monitor", "text": place}]
    planned = code in (Code.NOT_PLANNED, Code.STATEMENT_FORBIDS) and group is not None
    if not planned and code is not Code.MAY_NOT_FINISH:
        return [{"kind": "gate", "text": REFUSALS[code]}]
    if made > _MOST_CALLS:
        return [{"kind": "plan", "text": "plan"}]
    word = _word(session, made, group)
    if word is None:
        return [{"kind": "unknown", "text": "an outcome that may have led where nothing goes on"}]
    found = list(_statements(session, word, None if group is None else group.calls))
    return found or [{"kind": "plan", "text": "plan"}]


def _word(session: Session, made: int, group: Group | None) -> Word | None:
    """Calls that may be all that was done, and that forbid it; None where there are none."""
    walk = session.policy.walk
    ways: dict[Place, Word] = {walk.start: ()}
    for known in session.made[:made]:
        after: dict[Place, Word] = {}
        for place, word in ways.items():
            for call in _may_be(known.outcome, known.observed, known.group):
                target = place if call is None else walk.step(place, call)
                if target is not None and call is not None:
                    after.setdefault(target, (*word, call))
                elif call is None:
                    after.setdefault(place, word)
        ways = after
    for place in sorted(ways):
        calls = () if group is None else group.calls
        allowed = (
            walk.accepts(place)
            if group is None
            else any(walk.step(place, call) is not None for call in calls)
        )
        if not allowed:
            return ways[place]
    return None


def _may_be(outcome: str, observed: tuple[int, ...] | None, group: Group) -> Sequence[int | None]:
    """The calls that one may have been; None: that it did not happen."""
    if outcome == "failed":
        return (None,)
    if outcome == "unknown":
        return (None, *group.calls)
    call = group.by_observed.get(observed or ())
    return () if call is None else (call,)


def _statements(session: Session, word: Word, calls: Sequence[int] | None) -> Iterator[Reason]:
    artifact, core = session.policy.artifact, session.policy.core
    numbers = {call.text: index for index, call in enumerate(core.calls)}
    path = [numbers[artifact.texts[call]] for call in word]
    ahead = None if calls is None else [numbers[artifact.texts[call]] for call in calls]
    for kind, text, part in _parts(core):
        try:
            left, budget = without(core, (part,)), Budget(_STEPS)
            if lets_through(left, path, budget, ends=ahead is None, ahead=ahead):
                yield {"kind": kind, "text": text}
        except Rejected:
            continue  # more work than an explanation is worth


def _parts(core: Core) -> Iterator[tuple[str, str, Part]]:
    """What can be left out of a core by itself, in the order of the texts; the first of them."""
    texts = enforced(core, None).automaton
    at = 1
    if core.start is not None:
        yield "start", f"{texts[1]} {texts[2]}", ("start", 0)
        at = 3
    kinds = (("limit", "limits"), ("require", "requires"), ("forbid", "forbids"))
    found = [("strict", ("tools", i)) for i, tool in enumerate(core.tools) if tool.strict]
    found += [(kind, (name, i)) for kind, name in kinds for i in range(len(getattr(core, name)))]
    for (kind, part), text in zip(found[:_MOST_STATEMENTS], texts[at:], strict=False):
        yield kind, text, part
