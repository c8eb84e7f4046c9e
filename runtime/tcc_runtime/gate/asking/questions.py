"""The questions of a session, as its gate keeps and shows them.

Text: docs/ask.md; docs/spec/session.md, section 6.  Cost: constant time for each question and
verdict.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from tcc_certs.errors import clip
from tcc_certs.formats.codec import Json
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.history import ANSWERED, DONE, FAILED
from tcc_certs.session.approvals import Approvals, Asked, Question, Standing, term_of
from tcc_runtime.gate.remedies import time_text

Verdict: TypeAlias = Literal["approved", "denied"]
Why: TypeAlias = Literal["unknown", "decided", "expired"]

MOST_REASON: Final = 1000
_KNOWN: Final = frozenset({DONE, FAILED, ANSWERED})
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_WHY: Final[Mapping[Why, str]] = {
    "unknown": "this session has no open question of this id",
    "decided": "a person has decided already, and a verdict stands",
    "expired": "the question has expired; make the call again, and a person is asked anew",
}


class Pending(Exception):
    """A call waits for the verdict of a person.  It was neither made nor refused.

    Attributes:
        id: the id of the question, 32 hex digits.
        who: the role that the statement names.
        text, because: the `ask` statement, and its reason or None.
        tool: the tool of the call.
        arguments: the arguments whose values the ledger has, as texts.
        hidden: the names of the other arguments that the call has.
        asked_ms: the time of the question, UTC.
        expires_ms: the last time at which it is open, UTC.
        is_new: whether this call asked the question; False: it was open before.
    """

    code: Final = "R211"

    def __init__(
        self,
        *,
        id: str,
        who: str,
        text: str,
        because: str | None,
        tool: str,
        arguments: Mapping[str, str],
        hidden: tuple[str, ...],
        asked_ms: int,
        expires_ms: int,
        is_new: bool = False,
    ) -> None:
        self.id, self.who, self.text, self.because = id, who, text, because
        self.tool, self.arguments, self.hidden = tool, arguments, hidden
        self.asked_ms, self.expires_ms, self.is_new = asked_ms, expires_ms, is_new
        said = f"{because} ({text})" if because else text
        until = time_text(expires_ms) or f"{expires_ms} ms since 1970"
        super().__init__(
            f"R211: {clip(tool, 80)}: a person has to decide first: {said}. Question {id} for"
            f" {clip(who, 80)!r} is open until {until}. Make the same call again after the approval"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the members as plain JSON values."""
        return {
            "id": self.id,
            "who": self.who,
            "text": self.text,
            "expires_ms": self.expires_ms,
            "because": self.because,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "hidden": list(self.hidden),
            "asked_ms": self.asked_ms,
        }

    def again(self, *, is_new: bool = False) -> Pending:
        """Return a new exception for the same question."""
        return _again({**self.to_json(), "is_new": is_new})

    def __reduce__(self) -> tuple[Callable[..., Pending], tuple[dict[str, Any]]]:
        return _again, ({**self.to_json(), "is_new": self.is_new},)


def _again(members: dict[str, Any]) -> Pending:
    return Pending(**{**members, "hidden": tuple(members["hidden"])})


class VerdictError(ValueError):
    """A verdict cannot be recorded.  Nothing was changed.

    Attributes:
        why: ``unknown`` if no open question has the id, ``decided`` if it has a verdict, or
            ``expired``.
    """

    code: Final = "S215"

    def __init__(self, question_id: object, why: Why) -> None:
        self.why: Why = why
        self._id = clip(question_id, 80)
        super().__init__(f"{self.code}: question {self._id}: {_WHY[why]}")

    def __reduce__(self) -> tuple[type[VerdictError], tuple[str, Why]]:
        return VerdictError, (self._id, self.why)


@dataclass(slots=True, eq=False)
class ShownQuestion(Question):
    """A question that the gate can show.

    Attributes:
        pending: the exception that callers get for the question.
        reason: why a person denied the call; '' if this process does not know.
    """

    pending: Pending | None = None
    reason: str = ""


class Questions:
    """The questions of one session.

    Args:
        rules: the statements of the core.
        texts: the canonical texts of the statements.
        reasons: the `because` of each statement, or None.
    """

    __slots__ = ("_approvals", "_reasons", "_rules", "_texts")

    def __init__(
        self, rules: Sequence[Rule], texts: Sequence[str], reasons: Sequence[str | None]
    ) -> None:
        self._rules, self._texts, self._reasons = rules, texts, reasons
        self._approvals = Approvals(rules)

    # Look-ups.

    def standing(self, asks: Sequence[int], asked: Asked, now_ms: int) -> Standing:
        """See :meth:`tcc_certs.session.approvals.Approvals.standing`."""
        return self._approvals.standing(asks, asked, now_ms)

    def is_full(self, now_ms: int) -> bool:
        """See :meth:`tcc_certs.session.approvals.Approvals.is_full`."""
        return self._approvals.is_full(now_ms)

    def open(self, now_ms: int) -> tuple[Pending, ...]:
        """Return the open questions, the oldest first."""
        found = map(pending_of, self._approvals.open(now_ms))
        return tuple([one for one in found if one is not None])

    def is_only(self, question_id: str, now_ms: int) -> bool:
        """Return whether a verdict without an id can only mean this question.

        True if no other question is open, and the same call has no usable approval of another
        statement.
        """
        asked = self._approvals.questions[question_id].asked
        return [one.id for one in self._approvals.open(now_ms)] == [question_id] and not any(
            one.asked == asked and one.allows(now_ms) for one in self._approvals.questions.values()
        )

    def why_not(self, question_id: object, now_ms: int) -> Why | None:
        """Return why a verdict on a question cannot be recorded now; None: it can be recorded."""
        known = self._approvals.questions
        question = known.get(question_id) if isinstance(question_id, str) else None
        if question is None:
            return "unknown"
        if question.verdict:
            return "decided"
        return None if question.is_open(now_ms) else "expired"

    # Records.

    def record(
        self,
        statement: int,
        asked: Asked,
        opened: Mapping[str, Json],
        now_ms: int,
    ) -> dict[str, Json]:
        """Return an `ask` record with a new random id.

        Args:
            statement: the number of the `ask` statement.
            opened: the entries of the open arguments, by name.
        """
        rule = self._rules[statement]
        return {
            "kind": "ask",
            "id": os.urandom(16).hex(),
            "statement": statement,
            "who": rule.who,
            "tool": asked.tool,
            "call": asked.call,
            "open": dict(opened),
            "at_ms": now_ms,
            "expires_ms": now_ms + term_of(rule),
        }

    def ask(
        self,
        record: Mapping[str, Any],
        asked: Asked,
        arguments: Mapping[str, str] = _NOTHING,
        hidden: tuple[str, ...] = (),
    ) -> Pending:
        """Add the question of an `ask` record; return it as callers see it.

        Args:
            arguments, hidden: see :class:`Pending`.
        """
        statement, at_ms, expires_ms = record["statement"], record["at_ms"], record["expires_ms"]
        pending = Pending(
            id=record["id"],
            who=record["who"],
            text=self._texts[statement],
            because=self._reasons[statement],
            tool=asked.tool,
            arguments=arguments,
            hidden=hidden,
            asked_ms=at_ms,
            expires_ms=expires_ms,
        )
        question = ShownQuestion(
            pending.id, statement, pending.who, asked, expires_ms, pending=pending
        )
        self._approvals.ask(question, at_ms)
        return pending

    def decide(self, question_id: str, verdict: str, at_ms: int, reason: str = "") -> None:
        """Store the verdict on a question.  :meth:`why_not` must have returned None."""
        question = self._approvals.decide(question_id, verdict, at_ms)
        if isinstance(question, ShownQuestion):
            question.reason = reason

    def use(self, seq: int, ids: Sequence[str]) -> None:
        """Note that call `seq` uses these approvals."""
        self._approvals.use(seq, ids)

    def settle(self, seq: int, outcome: str) -> None:
        """Note the outcome of a call.  If it failed, it gives its approvals back.  Unknown outcomes
        are ignored.
        """
        if outcome in _KNOWN:
            self._approvals.settle(seq, outcome)


def pending_of(question: Question | None) -> Pending | None:
    """Return a question as callers see it; None if there is no question."""
    return question.pending if isinstance(question, ShownQuestion) else None


def reason_of(question: Question) -> str:
    """Return why a person denied the call; '' if this process does not know."""
    return question.reason if isinstance(question, ShownQuestion) else ""


def argument_texts(
    names: Sequence[str], listed: Mapping[str, object], opened: Mapping[str, Json]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the texts of the arguments whose values a ledger has, and the names of the others.

    Args:
        names: the declared arguments, in their order.
        listed: the listed arguments of the call as JSON values.
        opened: the entries of its open arguments.
    """
    texts: dict[str, str] = {}
    hidden = []
    for name in names:
        if name in listed:
            texts[name] = _text(listed[name])
        elif name in opened:
            entry = opened[name]
            if isinstance(entry, dict) and "value" in entry:
                texts[name] = value_text(str(entry.get("type")), str(entry["value"]))
            else:
                hidden.append(name)
    return texts, tuple(hidden)


def value_text(kind: str, canonical: str) -> str:
    """Return the text of a value for a person.

    Args:
        kind: the type byte, such as ``t`` for a time.
        canonical: the canonical text of the value.
    """
    if kind == "t":
        return time_text(canonical) or canonical
    return "null" if kind == "z" else canonical


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
