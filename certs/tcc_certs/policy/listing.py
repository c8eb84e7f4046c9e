"""The statements of an artifact as commands list them: each once, by the author's text.

Text: docs/spec/artifact.md, section 9.  Cost: that of the places of the
statements (:mod:`tcc_certs.policy.places`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tcc_certs.errors import clip
from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import statement_text
from tcc_certs.policy.places import Place, parts_of

_SHOWN = 8
_WIDEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedStatement:
    """A statement of a core, as listings show it.

    Attributes:
        text: its canonical text, without the reason.
        because: the reason that its author gives.
        place: what holds the statement in plans.
        holds: of ``both`` the text with ``_`` in place of what the automaton does not hold.
        relaxed: whether this artifact leaves to a run what its automaton could hold.
    """

    text: str
    because: str | None
    place: Place
    holds: str | None
    relaxed: bool


def listed_statements(core: Core, relaxed: Collection[int] = ()) -> tuple[ListedStatement, ...]:
    """Return the statements of a core in order.

    Args:
        relaxed: the numbers of the statements that the artifact relaxed.
    """
    return tuple(
        [
            ListedStatement(
                text=part.text,
                because=core.statements[part.number].because,
                place=part.place,
                holds=part.holds,
                relaxed=part.number in relaxed,
            )
            for part in parts_of(core)
        ]
    )


def statements_json(
    statements: Sequence[ListedStatement], lines: Sequence[int | None] = ()
) -> list[Any]:
    """The member `statements` of reports.

    Args:
        lines: of the statements in the grammar; empty if only the artifact is known.
    """
    found: list[Any] = []
    for number, one in enumerate(statements):
        listed = {
            "text": one.text, "because": one.because, "place": one.place,
            **({} if one.holds is None else {"holds": one.holds}),
            "line": lines[number] if lines else None,
            **({"relaxed": True} if one.relaxed else {}),
        }  # fmt: skip
        found.append(listed)
    return found


def relaxed_texts(core: Core, relaxed: Iterable[int]) -> tuple[str, ...]:
    """Return the texts of the relaxed statements: plans of the automaton may break them."""
    return tuple([statement_text(core.statements[number]) for number in relaxed])


def enforced_json(statements: Sequence[ListedStatement]) -> dict[str, Any]:
    """The member `enforced` of reports: texts of statements by what holds them.

    A statement that the automaton and the gate hold is in both lists.
    """
    kept = [one for one in statements if not one.relaxed]
    return {
        "automaton": [one.text for one in kept if one.place != "gate"],
        "run": [one.text for one in statements if one.relaxed],
        "gate": [one.text for one in kept if one.place != "automaton"],
    }


def statement_rows(statements: Sequence[ListedStatement]) -> list[tuple[str, str]]:
    """What holds the statements, and their texts, for people; each statement is there once."""
    kept = [one for one in statements if not one.relaxed]
    rows = [
        ("the automaton", [one.text for one in kept if one.place == "automaton"]),
        ("the automaton in part, and the gate", [one.text for one in kept if one.place == "both"]),
        ("the gate", [one.text for one in kept if one.place == "gate"]),
        ("a run", [one.text for one in statements if one.relaxed]),
    ]
    return [(holder, shortened(tuple(texts))) for holder, texts in rows if texts]


def shortened(texts: tuple[str, ...]) -> str:
    """The first texts for people, and how many more there are."""
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return ", ".join([*(clip(text, _WIDEST) for text in texts[:_SHOWN]), *more])
