"""Answers that a ledger has already: a run that is taken up again does not ask for them.

Text: docs/spec/race.md, sections 17 and 19.  Cost: one answer of memory for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcc_certs.core.atoms import Atom, canonical_atom
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_runtime.account.amounts import Left
from tcc_runtime.asking.drawing import Told
from tcc_runtime.asking.quotes import Answer, Question, Quoter, nano
from tcc_runtime.errors import AnswerError, ResumeError


class Answered:
    """Gives the answers of a ledger, one after the other, and then asks.

    The run is the same, so its questions are; an answer of another one would not fit the lines.
    """

    def __init__(self, answers: Sequence[Answer], quoter: Quoter | None) -> None:
        self._answers = iter(answers)
        self._quoter = quoter

    def __call__(self, question: Question, /) -> Answer | None:
        """The next answer.

        Raises:
            ResumeError: the ledger has none left, and there is nobody to ask.
        """
        known = next(self._answers, None)
        if known is not None:
            return known
        if self._quoter is None:
            raise ResumeError("quotes", f"somebody to ask for {question.call}", "nobody")
        return self._quoter(question)


def told_of(record: Mapping[str, Json], line: int) -> Told:
    """What the `budget` or `refine` record on that line says of the account of the run.

    Raises:
        ResumeError: its amounts are none.
    """
    left = left_in(record["account_left"], line)
    return Told(event=str(record.get("budget_event", "refine")), left=left)


def left_in(stated: Any, line: int) -> Left:
    """What a member `account_left` on that line says.

    Raises:
        ResumeError: its amounts are none.
    """
    try:
        return Left(
            **{
                name: nano(number, name) if name == "epsilon" else int(number)
                for name, number in stated.items()
            }
        )
    except (AnswerError, ValueError):
        raise ResumeError(f"line {line}: account_left", "amounts", stated) from None


def answer_of(record: Mapping[str, Json], line: int) -> Answer:
    """What the `refine` record on that line was answered.

    Raises:
        ResumeError: it is no answer.
    """
    try:
        ends = [
            nano(str(record[name]), name) for name in ("cost_low", "cost_high") if name in record
        ]
        return Answer(
            low=ends[0] if ends else None,
            high=ends[-1] if len(ends) == 2 else None,
            latency_ms=int(str(record["latency"])),
            price=int(str(record["price"])),
            epsilon=nano(str(record["epsilon"]), "epsilon"),
            atom=_atom(record),
        )
    except AnswerError as error:
        raise ResumeError(f"line {line}: {error.field}", error.expected, error.found) from None
    except Rejected as refusal:
        path = f"line {line}: {refusal.path}"
        raise ResumeError(path, refusal.expected, refusal.found) from None


def _atom(record: Mapping[str, Json]) -> Atom | None:
    stated = record.get("atom")
    return None if stated is None else canonical_atom(stated, "atom", Code.LEDGER_SCHEMA)
