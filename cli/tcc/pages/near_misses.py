"""Near misses: sequences one edit away from a plan that are none, each with what forbids it.

Plans are taken in a fixed order; of each, calls are left out, doubled, swapped with the next one
and replaced by another call, and the end is cut.  Of those that are no plans the first is kept for
each two calls that cannot stand so.  Statements are blamed by :mod:`tcc.explaining`, and one is
shown for each set of them, as far as these go.
Cost: a walk for each edit, at most `_MOST_EDITS`; blame for at most `_MOST_ASKED`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import Final

from tcc.explaining import Why, why
from tcc.pages.blocks import calls, code, numbered, under
from tcc.pages.frame import Section
from tcc.pages.markup import Html, element, joined
from tcc_certs.errors import clip
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.questions.graph import PlanGraph, Row, graph_of

_SHOWN: Final = 5
_MOST_EDITS: Final = 4000
_MOST_ASKED: Final = 24
_MOST_CALLS: Final = 200  # of a plan that is edited


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """A sequence that is no plan.

    Attributes:
        edit: what was done to a plan, in words.
        found: why it is none.
    """

    edit: str
    found: Why


def near_misses(artifact: Artifact, plans: Sequence[Sequence[str]]) -> list[NearMiss]:
    """At most five of them, those with reasons of their own first.

    Raises:
        tcc_certs.errors.Rejected: D201 the artifact is too large to be unfolded.
    """
    graph = graph_of(artifact)
    asked = [
        NearMiss(edit=edit, found=why(artifact, sequence))
        for edit, sequence in _candidates(graph, plans)
    ]
    chosen: dict[tuple[str, ...], NearMiss] = {}
    for miss in sorted(asked, key=_rank):
        chosen.setdefault(tuple(statement.text for statement in miss.found.because), miss)
    others = [miss for miss in asked if miss not in chosen.values()]
    return [*chosen.values(), *others][:_SHOWN]


def _rank(miss: NearMiss) -> tuple[bool, int, int]:
    """Reasons that a statement of its own gives come first, and short sequences."""
    because = miss.found.because
    shaped = not because or any(statement.kind == "plan" for statement in because)
    return shaped, len(because), len(miss.found.calls)


def near_miss_section(found: Sequence[NearMiss]) -> Section:
    """The near misses with their reasons."""
    items = [_item(miss) for miss in found]
    body = numbered(items) if items else element("p", "No edit of the plans above is refused.")
    return Section(
        name="near-misses",
        title="Near misses",
        lead="One edit away from a plan, and refused. Marked is the call that cannot be there.",
        body=body,
    )


def _item(miss: NearMiss) -> Html:
    found = miss.found
    ends = found.position == len(found.calls)
    row = calls(found.calls, wrong=None if ends else found.position)
    why_not = [code(clip(" ".join(one.text.split()), 120)) for one in found.because]
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
    graph: PlanGraph, plans: Sequence[Sequence[str]]
) -> list[tuple[str, Sequence[str]]]:
    """Edits that are no plans, the first for each call that is refused, kinds of edits mixed."""
    number = {text: call for call, text in enumerate(graph.texts)}
    fresh: dict[tuple[str, str], tuple[str, Sequence[str]]] = {}
    for edit, sequence in islice(_edits(graph, plans), _MOST_EDITS):
        refused = _refused(graph, number, sequence)
        if refused is not None:
            fresh.setdefault((edit, refused), (edit, sequence))
    by_kind: dict[str, list[tuple[str, Sequence[str]]]] = {}
    for (edit, _), candidate in fresh.items():
        by_kind.setdefault(edit, []).append(candidate)
    mixed = chain.from_iterable(zip_longest(*by_kind.values()))
    return [candidate for candidate in mixed if candidate is not None][:_MOST_ASKED]


def _refused(graph: PlanGraph, number: Mapping[str, int], sequence: Sequence[str]) -> str | None:
    """The call that cannot be there, with the one before; None of a plan."""
    q = graph.root
    before = ""
    for text in sequence:
        q = None if q is None else _after(graph.edges(q), number[text])
        if q is None:
            return f"{before} {text}"
        before = text
    return None if q is not None and graph.accepts(q) else ""


def _after(row: Row, call: int) -> int | None:
    """Where a call leads; a row is in call order."""
    at = bisect_left(row, (call, -1))
    return row[at][1] if at < len(row) and row[at][0] == call else None


def _edits(graph: PlanGraph, plans: Sequence[Sequence[str]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Edits of the plans, one kind after the other for each of them."""
    texts = graph.used()
    for plan in plans:
        if len(plan) > _MOST_CALLS:
            continue
        for at in range(len(plan)):
            yield "A call is left out", [*plan[:at], *plan[at + 1 :]]
            yield "A call is made twice", [*plan[: at + 1], *plan[at:]]
            if at + 1 < len(plan) and plan[at] != plan[at + 1]:
                swapped = [*plan[:at], plan[at + 1], plan[at], *plan[at + 2 :]]
                yield "Two calls change places", swapped
        if plan:
            yield "The last call is left out", list(plan[:-1])
        for text in texts[:64]:
            yield "A call is put at the end", [*plan, text]
            for at in range(min(len(plan), 16)):
                if plan[at] != text:
                    yield "A call takes another's place", [*plan[:at], text, *plan[at + 1 :]]
