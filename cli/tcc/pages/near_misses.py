"""Near misses: sequences that are one edit away from a plan but refused, and the reasons.

The edits of the plans are tried in a fixed order.  Edits that break statements of the core come
first, one for each set of statements.  The function of `tcc why` finds the statements to blame.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from tcc.library.plan_questions import Why, why
from tcc.pages import Html, Section, calls, code, element, joined, numbered, under
from tcc_certs.errors import clip
from tcc_certs.statements import Constraint
from tcc_runtime.analysis.graph import PlanGraph, Row, graph_of
from tcc_runtime.analysis.statements import WrittenStatement
from tcc_runtime.artifact.constraints import every_statement
from tcc_runtime.artifact.load import Artifact

# Limits that bound the search for near misses.

_SHOWN: Final = 5
_MOST_EDITS: Final = 4000
_MOST_STEPS: Final = 1_000_000  # steps of statements over the calls of all edits
_MOST_BROKEN: Final = 24
_MOST_ASKED: Final = 32
_MOST_CALLS: Final = 200  # calls of a plan to edit
_MOST_OTHERS: Final = 64  # calls that are tried in place of another
_MOST_PLACES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """A sequence of calls that is almost a plan.

    Attributes:
        edit: how it differs from a plan, in words.
        found: why it is not a plan.
    """

    edit: str
    found: Why


def near_misses(artifact: Artifact, plans: Sequence[Sequence[str]]) -> list[NearMiss]:
    """Return at most five near misses, each with a different reason.

    Args:
        plans: plans of the artifact, which are edited.

    Raises:
        tcc_certs.errors.Rejected: D201, the artifact is too large to be unfolded.
    """
    graph = graph_of(artifact)
    chosen: dict[tuple[str, ...], NearMiss] = {}
    for edit, sequence in _candidates(artifact, graph, plans):
        miss = NearMiss(edit=edit, found=why(artifact, sequence))
        because = tuple(statement.text for statement in miss.found.because)
        if because not in chosen or _rank(miss) < _rank(chosen[because]):
            chosen[because] = miss
        if sum(not _rank(found)[0] for found in chosen.values()) == _SHOWN:
            break
    return sorted(chosen.values(), key=_rank)[:_SHOWN]


def _rank(miss: NearMiss) -> tuple[bool, int, int]:
    """Sort key: other reasons before the plan's shape, then few statements, then few calls."""
    because = miss.found.because
    shaped = not because or any(statement.kind == "plan" for statement in because)
    return shaped, len(because), len(miss.found.calls)


def near_miss_section(found: Sequence[NearMiss]) -> Section:
    """Return the section of near misses with their reasons."""
    items = [_item(miss) for miss in found]
    body = numbered(items) if items else element("p", "No edit of the plans above is refused.")
    return Section(
        name="near-misses",
        title="Near misses",
        lead="One edit away from a plan, and refused. Marked is the call that cannot be there.",
        body=body,
    )


def _reason(one: WrittenStatement) -> Html:
    """Return the author's reason, then the statement."""
    text = code(clip(" ".join(one.text.split()), 120))
    return text if one.because is None else joined([one.because, " ", text])


def _item(miss: NearMiss) -> Html:
    found = miss.found
    ends = found.position == len(found.calls)
    row = calls(found.calls, wrong=None if ends else found.position)
    why_not = [_reason(one) for one in found.because]
    reason = (
        joined(why_not, " and ") if why_not else element("em", "it is not known what forbids it")
    )
    where = "no plan ends here" if ends else f"call {found.position + 1} cannot be there"
    nearest = (
        under(element("b", "allowed instead: "), calls(found.nearest))
        if found.nearest is not None
        else ""
    )
    return joined([row, under(f"{miss.edit}; {where}, because of ", reason), nearest])


def _candidates(
    artifact: Artifact, graph: PlanGraph, plans: Sequence[Sequence[str]]
) -> list[tuple[str, Sequence[str]]]:
    """Return edits that are not plans, each as a description and a sequence.

    First one edit for each set of statements that edits break, small sets first.  Then edits that
    only the plan's shape refuses, one for each kind of edit and each pair of tools at the refused
    place.
    """
    number = {text: call for call, text in enumerate(graph.texts)}
    statements = every_statement(artifact)
    breaking: dict[frozenset[int], tuple[str, Sequence[str]]] = {}
    shaped: dict[tuple[str, str], tuple[str, Sequence[str]]] = {}
    spent = 0
    for edit, sequence in islice(_edits(graph, plans), _MOST_EDITS):
        refused = _refused(graph, number, sequence)
        if refused is None:
            continue
        position, pair = refused
        spent += len(statements) * position
        if spent > _MOST_STEPS:
            break
        calls = [number[text] for text in sequence[: position + 1]]
        broken = _broken(statements, calls, ends=position == len(sequence))
        found = breaking.get(broken)
        if broken and (found is None or len(sequence) < len(found[1])):
            breaking[broken] = edit, sequence
        elif not broken:
            shaped.setdefault((edit, pair), (edit, sequence))
    ordered = [breaking[broken] for broken in sorted(breaking, key=_fewest)]
    return [*ordered[:_MOST_BROKEN], *shaped.values()][:_MOST_ASKED]


def _fewest(broken: frozenset[int]) -> tuple[int, list[int]]:
    return len(broken), sorted(broken)


def _broken(
    statements: Sequence[Constraint], calls: Sequence[int], *, ends: bool
) -> frozenset[int]:
    """Return the numbers of the statements that these calls break, without the plan expression."""
    return frozenset(
        at for at, statement in enumerate(statements) if _breaks(statement, calls, ends)
    )


def _breaks(statement: Constraint, calls: Sequence[int], ends: bool) -> bool:
    seen = 0
    for call in calls:
        after = statement.step(seen, statement.class_of(call))
        if after is None:
            return True
        seen = after
    return ends and not statement.accepts(seen)


def _refused(
    graph: PlanGraph, number: Mapping[str, int], sequence: Sequence[str]
) -> tuple[int, str] | None:
    """Return the index where a sequence stops being a plan and the tools there; None for a plan."""
    q = graph.root
    before = ""
    for at, text in enumerate(sequence):
        q = None if q is None else _after(graph.edges(q), number[text])
        if q is None:
            return at, f"{before} {_tool(text)}"
        before = _tool(text)
    return None if q is not None and graph.accepts(q) else (len(sequence), before)


def _after(row: Row, call: int) -> int | None:
    """Return the state after a call, or None; `row` is sorted by call."""
    at = bisect_left(row, (call, -1))
    return row[at][1] if at < len(row) and row[at][0] == call else None


def _edits(graph: PlanGraph, plans: Sequence[Sequence[str]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield edits of the plans, with all edits of a plan before the next plan."""
    texts = graph.used()
    sisters: dict[str, list[str]] = {}
    for text in texts:
        sisters.setdefault(_tool(text), []).append(text)
    for plan in plans:
        if len(plan) > _MOST_CALLS:
            continue
        for at, made in enumerate(plan):
            before, after = plan[:at], plan[at + 1 :]
            for text in sisters[_tool(made)][:_MOST_OTHERS]:
                if text != made:
                    yield "A call has another value", [*before, text, *after]
            yield "A call is left out", [*before, *after]
            yield "A call is made twice", [*before, made, made, *after]
            if after and after[0] != made:
                yield "Two calls change places", [*before, after[0], made, *after[1:]]
        yield from _ends(plan, texts[:_MOST_OTHERS])


def _ends(plan: Sequence[str], texts: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield plans without the last call, with a call added at the end, or with a call replaced."""
    if plan:
        yield "The last call is left out", list(plan[:-1])
    for text in texts:
        yield "A call is put at the end", [*plan, text]
        for at in range(min(len(plan), _MOST_PLACES)):
            if plan[at] != text:
                yield "A call takes another's place", [*plan[:at], text, *plan[at + 1 :]]


def _tool(text: str) -> str:
    """Return the name of a call's tool, up to the first bracket."""
    return text.partition("(")[0]
