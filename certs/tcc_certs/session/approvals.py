"""Questions to persons, their verdicts, and the calls that approvals let through.

Normative text: docs/spec/session.md, section 6.  A gate and a validator both keep one
:class:`Approvals` for a session, and ask it at the time of each decision.

Cost: one look-up for each question, verdict and call; each question is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.policy.forms import Rule

DEFAULT_TERM_MS = 7 * 86_400_000


class Asked(NamedTuple):
    """The call that a question is about.

    Attributes:
        call: its canonical text, without listed answers.
        digests: pairs of an open argument and its digest, in order of names.
    """

    tool: str
    call: str
    digests: tuple[tuple[str, str], ...]


def asked_of(tool: str, call: str, opened: Mapping[str, Json]) -> Asked:
    """The call of a record.

    Args:
        opened: the member `open`.
    """
    digests = [
        (name, str(entry["digest"])) for name, entry in opened.items() if isinstance(entry, dict)
    ]
    return Asked(tool, call, tuple(sorted(digests)))


@dataclass(slots=True, eq=False)
class Question:
    """A question about a call.

    Attributes:
        statement: the number of the `ask` statement.
        expires_ms: the last time at which the question is open.
        verdict: ``approved`` or ``denied``; empty: there is none yet.
        until_ms: the last time at which an approval allows the call.
        used: whether a call uses the approval.
    """

    id: str
    statement: int
    who: str
    asked: Asked
    expires_ms: int
    verdict: str = ""
    until_ms: int = 0
    used: bool = False


def term_of(rule: Rule) -> int:
    """How long a question of an `ask` statement is open, and an approval allows the call."""
    return DEFAULT_TERM_MS if rule.within is None else rule.within


class Approvals:
    """The questions of one session.

    Args:
        rules: the statements of the core.

    Attributes:
        questions: by their ids, in the order in which they were asked.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self.questions: dict[str, Question] = {}
        # The latest questions of each statement about each call; older ones are expired or used.
        self._latest: dict[tuple[int, Asked], list[Question]] = {}
        self._used: dict[int, Sequence[str]] = {}  # ids by the numbers of calls

    def ask(self, question: Question) -> None:
        """Keep a question."""
        self.questions[question.id] = question
        latest = self._latest.setdefault((question.statement, question.asked), [])
        latest.append(question)

    def decide(self, question_id: str, verdict: str, at_ms: int) -> Question:
        """Keep a verdict.

        Raises:
            Rejected: S215: there is no such question, it has a verdict, or it is expired.
        """
        question = self.questions.get(question_id)
        if question is None:
            raise Rejected(Code.SESSION_APPROVAL, "id", "the id of a question", question_id)
        is_open = not question.verdict and at_ms <= question.expires_ms
        expected = "a question without a verdict, not expired"
        ensure(is_open, Code.SESSION_APPROVAL, "id", expected, question_id)
        question.verdict = verdict
        question.until_ms = at_ms + term_of(self._rules[question.statement])
        return question

    def standing(self, statement: int, asked: Asked, now_ms: int) -> Question | None:
        """The question that decides about a call now; None: the gate asks anew.

        It is an approved question that the call may use, or else a denied or open question.
        """
        latest = self._latest.get((statement, asked), [])
        kept = [question for question in latest if _counts(question, now_ms)]
        if len(kept) < len(latest):
            # Of the others, an approval may be given back: only used ones in term are kept.
            latest[:] = [one for one in latest if _counts(one, now_ms) or _may_count(one, now_ms)]
        approved = [question for question in kept if question.verdict == "approved"]
        return next(iter([*approved, *kept]), None)

    def use(self, seq: int, ids: Sequence[str]) -> None:
        """A call uses approvals."""
        for question_id in ids:
            self.questions[question_id].used = True
        self._used[seq] = ids

    def give_back(self, seq: int) -> None:
        """A call failed, and no error was read: the approvals that it used can be used again."""
        for question_id in self._used.pop(seq, ()):
            self.questions[question_id].used = False

    def check(self, ids: Sequence[str], asks: Sequence[int], asked: Asked, now_ms: int) -> None:
        """The ids let a call through.

        Args:
            asks: the `ask` statements that apply to it.

        Raises:
            Rejected: S216: an approval is missing, of another call, out of its term or used.
        """
        expected = f"{len(asks)} ids, one for each ask that applies" if asks else "no member"
        ensure(len(ids) == len(asks), Code.SESSION_APPROVALS, "approvals", expected, list(ids))
        for statement, question_id in zip(asks, ids, strict=True):
            question = self.questions.get(question_id)
            holds = (
                question is not None
                and (question.statement, question.asked) == (statement, asked)
                and question.verdict == "approved"
                and _counts(question, now_ms)
            )
            expected = f"an approval of this call for statement {statement}, in its term and unused"
            ensure(holds, Code.SESSION_APPROVALS, "approvals", expected, question_id)


def _counts(question: Question, now_ms: int) -> bool:
    """Whether a question is open, denied, or has an approval that a call may use."""
    if question.verdict == "approved":
        return not question.used and now_ms <= question.until_ms
    return now_ms <= question.expires_ms


def _may_count(question: Question, now_ms: int) -> bool:
    """Whether an approval that is used would allow the call if it were given back."""
    return question.verdict == "approved" and now_ms <= question.until_ms
