"""Questions to persons, their verdicts, and the calls that approvals allow.

Normative text: docs/spec/session.md, section 6.  A gate and a validator both keep one
:class:`Approvals` for a session, and query it at the time of each decision.

Cost: one look-up for each question, verdict and call.  Questions without further effect are
removed, so the memory depends only on open questions and on verdicts that still count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.history import FAILED

DEFAULT_TERM_MS = 7 * 86_400_000
MAX_OPEN = 10_000  # most open questions of a session
_MIN_SWEPT = 1024  # number of questions before the first removal of old questions


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
    """Return the call of a record.

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
        who: the role of the statement.
        expires_ms: the last time at which the question is open, or its denial counts.
        verdict: ``approved`` or ``denied``, or empty while the question is undecided.
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

    def is_open(self, now_ms: int) -> bool:
        """Return whether a person may still decide."""
        return not self.verdict and now_ms <= self.expires_ms

    def allows(self, now_ms: int) -> bool:
        """Return whether a call may use its approval."""
        return self.verdict == "approved" and not self.used and now_ms <= self.until_ms

    def denies(self, now_ms: int) -> bool:
        """Return whether its denial refuses the call."""
        return self.verdict == "denied" and now_ms <= self.expires_ms

    def has_ended(self, now_ms: int) -> bool:
        """Return whether it has no further effect, even if a call gives its approval back."""
        return now_ms > (self.until_ms if self.verdict == "approved" else self.expires_ms)


class _About:
    """The questions of one statement about one call.

    Attributes:
        latest: the latest question, or None if it was approved.  Earlier questions are neither open
            nor denied, because the gate asks only if no such question exists.
        approved: the unused approvals, by id.
    """

    __slots__ = ("approved", "latest")

    def __init__(self) -> None:
        self.latest: Question | None = None
        self.approved: dict[str, Question] = {}

    def usable(self, now_ms: int) -> Question | None:
        """Return the first approval that a call may use, or None."""
        while self.approved:
            question = next(iter(self.approved.values()))
            if question.allows(now_ms):
                return question
            del self.approved[question.id]
        return None


class Standing(NamedTuple):
    """The decision of persons about a call to which `ask` statements apply.

    Exactly one of the four members is set.

    Attributes:
        denied: the question that a person denied; the call is refused.
        waiting: the open question that the call waits for.
        due: the number of the statement for which the gate must ask a person now.
        approvals: the ids of the approvals that allow the call, one for each statement.
    """

    denied: Question | None = None
    waiting: Question | None = None
    due: int | None = None
    approvals: tuple[str, ...] = ()


def term_of(rule: Rule) -> int:
    """Return how long a question of an `ask` statement is open, and an approval is valid, in ms."""
    return DEFAULT_TERM_MS if rule.within is None else rule.within


class Approvals:
    """The questions of one session.

    The times that callers pass in must never decrease.

    Args:
        rules: the rules of the core's statements.

    Attributes:
        questions: by id, the oldest first.  Questions that have ended are removed later.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self.questions: dict[str, Question] = {}
        self._about: dict[tuple[int, Asked], _About] = {}
        self._used: dict[int, Sequence[str]] = {}  # by the number of the call, the ids that it used
        self._open: dict[str, Question] = {}  # questions without a verdict; some may have expired
        # a heap of the times when these questions expire
        self._expiries: list[tuple[int, str]] = []
        self._sweep_at = _MIN_SWEPT

    # Decisions.

    def standing(self, asks: Sequence[int], asked: Asked, now_ms: int) -> Standing:
        """Return the decision of persons about a call.

        A denial refuses the call, whatever else persons decided.  Otherwise the first statement
        without an approval decides: the call waits for its open question, or the gate asks.

        Args:
            asks: the numbers of the `ask` statements that apply, in the order of the core.
        """
        about = [self._about.get((statement, asked), _NONE) for statement in asks]
        for one in about:
            if one.latest is not None and one.latest.denies(now_ms):
                return Standing(denied=one.latest)
        ids = []
        for statement, one in zip(asks, about, strict=True):
            approved = one.usable(now_ms)
            if approved is not None:
                ids.append(approved.id)
            elif one.latest is not None and one.latest.is_open(now_ms):
                return Standing(waiting=one.latest)
            else:
                return Standing(due=statement)
        return Standing(approvals=tuple(ids))

    def open(self, now_ms: int) -> list[Question]:
        """Return the open questions, the oldest first."""
        while self._expiries and self._expiries[0][0] < now_ms:
            self._open.pop(heappop(self._expiries)[1], None)
        return list(self._open.values())

    def is_full(self, now_ms: int) -> bool:
        """Return whether the session has `MAX_OPEN` open questions."""
        return len(self._open) >= MAX_OPEN and len(self.open(now_ms)) >= MAX_OPEN

    # Records.

    def ask(self, question: Question, now_ms: int) -> None:
        """Add a new question."""
        if len(self.questions) >= self._sweep_at:
            self._sweep(now_ms)
        self.questions[question.id] = self._open[question.id] = question
        heappush(self._expiries, (question.expires_ms, question.id))
        self._about_of(question).latest = question

    def decide(self, question_id: str, verdict: str, at_ms: int) -> Question:
        """Add a verdict.

        Raises:
            Rejected: S215: the question does not exist, has a verdict, or has expired.
        """
        question = self.questions.get(question_id)
        if question is None:
            raise Rejected(Code.SESSION_APPROVAL, "id", "the id of a question", question_id)
        expected = "a question without a verdict, not expired"
        ensure(question.is_open(at_ms), Code.SESSION_APPROVAL, "id", expected, question_id)
        question.verdict = verdict
        question.until_ms = at_ms + term_of(self._rules[question.statement])
        self._open.pop(question_id, None)
        if verdict == "approved":
            about = self._about_of(question)
            about.latest, about.approved[question_id] = None, question
        return question

    def use(self, seq: int, ids: Sequence[str]) -> None:
        """Mark approvals as used by a call."""
        for question_id in ids:
            question = self.questions[question_id]
            question.used = True
            self._about_of(question).approved.pop(question_id, None)
        self._used[seq] = ids

    def settle(self, seq: int, outcome: str) -> None:
        """Process the outcome of a call.

        A call that failed, without an error that the agent read, gives back the approvals that it
        used.

        Args:
            outcome: DONE, FAILED or ANSWERED of :mod:`tcc_certs.policy.history`.
        """
        for question_id in self._used.pop(seq, ()):
            question = self.questions.get(question_id)
            if outcome == FAILED and question is not None:
                question.used = False
                self._about_of(question).approved[question_id] = question

    def check(self, ids: Sequence[str], asks: Sequence[int], asked: Asked, now_ms: int) -> None:
        """Check that the approvals with these ids allow a call.

        Args:
            asks: the numbers of the `ask` statements that apply to it.

        Raises:
            Rejected: S216: an approval is missing, expired, used or about another call, or a person
                denied the call.
        """
        expected = f"{len(asks)} ids, one for each ask that applies" if asks else "no member"
        ensure(len(ids) == len(asks), Code.SESSION_APPROVALS, "approvals", expected, list(ids))
        denied = self.standing(asks, asked, now_ms).denied
        if denied is not None:
            expected = "no call: a person denied it"
            raise Rejected(Code.SESSION_APPROVALS, "approvals", expected, denied.id)
        for statement, question_id in zip(asks, ids, strict=True):
            question = self.questions.get(question_id)
            holds = (
                question is not None
                and (question.statement, question.asked) == (statement, asked)
                and question.allows(now_ms)
            )
            expected = f"an approval of this call for statement {statement}, in its term and unused"
            ensure(holds, Code.SESSION_APPROVALS, "approvals", expected, question_id)

    def _about_of(self, question: Question) -> _About:
        return self._about.setdefault((question.statement, question.asked), _About())

    def _sweep(self, now_ms: int) -> None:
        """Remove the questions that have ended."""
        kept = [one for one in self.questions.values() if not one.has_ended(now_ms)]
        self.questions = {one.id: one for one in kept}
        self._about = {}
        for one in kept:
            if one.verdict != "approved":
                self._about_of(one).latest = one
            elif not one.used:
                self._about_of(one).approved[one.id] = one
        self._open = {one.id: one for one in kept if not one.verdict}
        self._expiries = [(one.expires_ms, one.id) for one in self._open.values()]
        heapify(self._expiries)
        self._sweep_at = max(_MIN_SWEPT, 2 * len(kept))


_NONE = _About()
