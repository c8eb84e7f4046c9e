"""The statements of an artifact as commands list them, each by its author's text.

Text: docs/spec/artifact.md, section 9.  Cost: the cost of :mod:`tcc_certs.policy.places`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tcc_certs.errors import clip
from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import quoted, statement_text
from tcc_certs.policy.places import Place, left_out, parts_of

_SHOWN = 8
_WIDEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedStatement:
    """A statement of a core for listings.

    Attributes:
        text: canonical text, without `because`.
        because: the author's sentence, or None.
        place: ``automaton``, ``gate`` or ``both``.
        holds: for ``both``, the text with ``_`` for each part that plans leave open.
        relaxed: whether the artifact leaves the statement to a run, although an automaton could
            enforce it.
    """

    text: str
    because: str | None
    place: Place
    holds: str | None
    relaxed: bool


def listed_statements(
    core: Core, relaxed: Collection[int] = (), *, cyclic: bool = False
) -> tuple[ListedStatement, ...]:
    """Return the statements of a core in order.

    Args:
        relaxed: the numbers of the statements that the artifact relaxed.
        cyclic: whether its automaton has cycles; then it leaves some statements to the gate.
    """
    left = left_out(core) if cyclic else ()
    return tuple(
        [
            ListedStatement(
                text=part.text,
                because=core.statements[part.number].because,
                place="gate" if part.number in left else part.place,
                holds=None if part.number in left else part.holds,
                relaxed=part.number in relaxed,
            )
            for part in parts_of(core)
        ]
    )


def statements_json(
    statements: Sequence[ListedStatement], lines: Sequence[int | None] = ()
) -> list[Any]:
    """Return the member `statements` of reports.

    Args:
        lines: line of each statement in the grammar; empty if only the artifact is known.
    """
    found: list[Any] = []
    for number, one in enumerate(statements):
        item: dict[str, Any] = {"text": one.text, "because": one.because, "place": one.place}
        if one.holds is not None:
            item["holds"] = one.holds
        item["line"] = lines[number] if lines else None
        found.append(item | ({"relaxed": True} if one.relaxed else {}))
    return found


def relaxed_texts(core: Core, relaxed: Iterable[int]) -> tuple[str, ...]:
    """Return the texts of the relaxed statements: plans of the automaton may break them."""
    return tuple([statement_text(core.statements[number]) for number in relaxed])


def enforced_json(statements: Sequence[ListedStatement]) -> dict[str, Any]:
    """Return the member `enforced` of reports: texts of statements by place.

    A statement of place ``both`` is in two lists.
    """
    kept = [one for one in statements if not one.relaxed]
    return {
        "automaton": [one.text for one in kept if one.place != "gate"],
        "run": [one.text for one in statements if one.relaxed],
        "gate": [one.text for one in kept if one.place != "automaton"],
    }


def statement_lines(statements: Sequence[ListedStatement]) -> list[str]:
    """Return lines for people: each statement, then the meaning of each place that occurs."""
    found = [f"statements: {len(statements)}"] if statements else []
    for one in statements[:_LISTED]:
        place = _place_of(one)
        found.append(f"  {place:<{_WIDTH}}  {clip(one.text, _LONGEST)}")
        more = [] if one.because is None else [f"because {quoted(one.because)}"]
        if one.holds is not None and not one.relaxed:
            more.append(f"plans: {one.holds}")
        found += [f"  {'':<{_WIDTH}}    {clip(text, _LONGEST)}" for text in more]
    if len(statements) > _LISTED:
        found.append(f"  and {len(statements) - _LISTED} more; the JSON has all")
    places = {_place_of(one) for one in statements}
    return found + [f"  ({name}: {text})" for name, text in _PLACES.items() if name in places]


_LISTED = 200
_LONGEST = 2000
_PLACES = {
    "automaton": "every plan satisfies it",
    "gate": "only the gate decides it: plans lack its values or times, or no look ahead needs it",
    "both": "plans satisfy the text after `plans:`, where _ is open; the gate decides the whole",
    "run": "the artifact leaves it to a run, which drops the plans that break it",
}
_WIDTH = max(map(len, _PLACES))


def _place_of(one: ListedStatement) -> str:
    return "run" if one.relaxed else one.place


def shortened(texts: tuple[str, ...]) -> str:
    """Return the first texts on one line, and the number of the others."""
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return ", ".join([*(clip(text, _WIDEST) for text in texts[:_SHOWN]), *more])
