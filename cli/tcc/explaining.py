"""Why a sequence of calls is no plan, and what could be there instead: `tcc.why`, its fields."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tcc.written import Given, artifact_of, statement_fields, written_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.typed import read_calls, typed_calls
from tcc_runtime.questions.blame import Blame, blame
from tcc_runtime.questions.graph import PlanGraph, graph_of
from tcc_runtime.questions.nearest import nearest_plan
from tcc_runtime.questions.statements import Statement, statements_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Whether a sequence of calls is a plan, and if not, why.

    Attributes:
        calls: what was asked about.
        allowed: whether it is a plan; of a prefix, whether a plan begins with it.
        position: the index of the first call that cannot be there; the number of calls where all
            of them can.
        may_stop: whether a plan may end before the call at `position`.
        allowed_next: the calls that can be at `position`, canonical texts.
        because: a smallest set of statements without which it would be possible; empty where it is
            allowed, and where the call is none of the grammar's.
        others: all other smallest sets, where they were asked for.
        smallest: whether it is known that no smaller set will do; False past a bound of work.
        nearest: an allowed plan (or prefix) with the fewest edits; None where there is none, or it
            is too far to be found.
        hint: what may have been meant by a call that the grammar has not.
    """

    calls: tuple[str, ...]
    allowed: bool
    position: int
    may_stop: bool
    allowed_next: tuple[str, ...]
    because: tuple[Statement, ...]
    others: tuple[tuple[Statement, ...], ...]
    smallest: bool
    nearest: tuple[str, ...] | None
    hint: str | None


def why(
    source: Given,
    plan: str | Sequence[str],
    *,
    prefix: bool = False,
    every: bool = False,
) -> Why:
    """Whether `plan` is a plan of `source`, and if not, which statements forbid it.

    Args:
        source: an artifact, or a file of one or of a grammar; of a grammar, and of an artifact
            compiled in this process, the statements come with their places.
        plan: calls, written as a grammar writes patterns; a text has spaces between them.
        prefix: ask whether a plan begins so.
        every: find all smallest sets of statements to blame.

    Raises:
        CompileError: the grammar was refused.
        tcc_runtime.artifact.typed.CallTextError: TCC904, a text is no call.
        tcc_certs.errors.Rejected: the artifact is refused; D201 it is too large to be unfolded.
        OSError: the file cannot be read.
    """
    artifact = artifact_of(source)
    typed = typed_calls(plan) if isinstance(plan, str) else tuple(plan)
    calls = read_calls(artifact.core, typed, "plan")
    graph = graph_of(artifact)
    position, q = _walked(graph, calls)
    stops = q is not None and graph.accepts(q)
    allowed = position == len(calls) and q is not None and (prefix or stops)
    found = Blame(sets=((),), smallest=True)
    hint = None
    if not allowed:
        hint = _hint(artifact, calls, position)
        if hint is None:
            found = _blamed(artifact, calls[: position + 1], position == len(calls), every)
    return Why(
        calls=calls,
        allowed=allowed,
        position=position,
        may_stop=stops,
        allowed_next=() if q is None else tuple(graph.texts[call] for call, _ in graph.edges(q)),
        because=found.sets[0],
        others=found.sets[1:],
        smallest=found.smallest,
        nearest=calls if allowed else nearest_plan(graph, calls, prefix=prefix),
        hint=hint,
    )


def _walked(graph: PlanGraph, calls: Sequence[str]) -> tuple[int, int | None]:
    """How many of the calls can be taken, and the state after them; None where there is no plan."""
    q = graph.root
    for position, text in enumerate(calls):
        ahead = [] if q is None else graph.edges(q)
        after = next((target for call, target in ahead if graph.texts[call] == text), None)
        if after is None:
            return position, q
        q = after
    return len(calls), q


def _hint(artifact: Artifact, calls: Sequence[str], position: int) -> str | None:
    """What to say of a call that the grammar has not; None where it has it."""
    if position == len(calls):
        return None
    known = [call.text for call in artifact.core.calls]
    asked = calls[position]
    if asked in known:
        return None
    near = difflib.get_close_matches(asked, known[:_MOST_CALLS], n=1)
    meant = f": did you mean {near[0]}?" if near else ""
    return f"the grammar has no call {asked}{meant}"


_MOST_CALLS = 4096  # that a misspelt one is compared with


def _blamed(artifact: Artifact, calls: Sequence[str], ends: bool, every: bool) -> Blame:
    core = artifact.core
    number = {call.text: index for index, call in enumerate(core.calls)}
    statements = statements_of(core, written_of(artifact))
    word = [number[text] for text in calls]
    return blame(core, statements, word, ends=ends, every=every)


def why_fields(found: Why) -> dict[str, Any]:
    """The JSON fields of ``why``."""
    fields: dict[str, Any] = {
        "allowed": found.allowed,
        "position": found.position,
        "may_stop": found.may_stop,
        "allowed_next": list(found.allowed_next),
        "because": [statement_fields(statement) for statement in found.because],
        "smallest": found.smallest,
        "nearest": None if found.nearest is None else list(found.nearest),
    }
    if found.others:
        fields["others"] = [[statement_fields(one) for one in chosen] for chosen in found.others]
    if found.hint is not None:
        fields["hint"] = found.hint
    return fields
