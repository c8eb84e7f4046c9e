"""The gate's decisions on calls, and the outcomes that answers mean; without I/O.

A call is decided once and recorded once: with the server's answer, or as unknown.  It is unknown if
no answer comes in time, the client cancels it, or its link ends.  Only a plain result means that a
call is done.  An error may have happened before or after the effect, so the outcome is unknown,
unless the grammar says that errors of the tool mean failure.  An answer that comes after its call
was given up resolves the call.
Text: docs/mcp.md.  Cost: that of the gate's records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal

from tcc_certs.errors import Code
from tcc_certs.policy.core import Core
from tcc_runtime.errors import LedgerError
from tcc_runtime.gate.answers import ToolAnswer, answer_of, outcome_of
from tcc_runtime.gate.arguments import is_kept, plain
from tcc_runtime.gate.asking.questions import Pending, VerdictError
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.permit import Permit, Ticket
from tcc_runtime.gate.refusals import Decision, Refused
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.asking import Told

_MAX_NEXT = 24
_MAX_TOOLS = 256
_MAX_LATE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTraits:
    """The properties of a tool of the grammar that a relay needs.

    Attributes:
        observed: the names of its listed answers.
        errors_failed: whether its errors mean that nothing happened.
        error_text: the pattern of texts that are errors.
        parallel: whether other calls may be under way at the same time.
    """

    observed: tuple[str, ...] = ()
    errors_failed: bool = False
    error_text: str | None = None
    parallel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a call ended.

    Attributes:
        answer: the answer of a call that is done, as the gate reads it.
        result: the members of the result, which the client gets.
        reason: why the call is not done, in the gate's words; also for logs.
        said: the server's words, only for the client, because they may quote the call.
        unsent: whether the call did not reach the server.
    """

    outcome: Literal["done", "failed", "unknown"]
    answer: ToolAnswer | None = None
    result: Mapping[str, wire.Member] | None = None
    reason: str = ""
    said: str = ""
    unsent: bool = False

    @property
    def because(self) -> str:
        """The reason, as the client gets it: with the server's words."""
        return f"{self.reason}: {self.said}" if self.said else self.reason


def unknown(reason: str, said: str = "") -> Ending:
    """Return the end of a call whose outcome is unknown."""
    return Ending(outcome="unknown", reason=reason, said=said)


def unsent(reason: str) -> Ending:
    """Return the end of a call that did not reach the server."""
    return Ending(outcome="failed", reason=reason, unsent=True)


def ending_of(answer: wire.Response, tool: ToolTraits) -> Ending:
    """Return the end of a call of this tool that the server answered so."""
    if answer.error is not None:
        return unknown(f"the server answered with error {answer.error[0]}", answer.error[1])
    members = answer.result
    if members is None:
        return unknown("the server answered with a result that is no object")
    kind = members["resultType"].value if "resultType" in members else "complete"
    if wire.is_input_required(members):
        return unknown("the server asks for more, and nothing may be asked here")
    if kind != "complete":
        return unknown("the server answered with a result of an unknown type")
    error = members["isError"].value if "isError" in members else False
    if not isinstance(error, bool) or not _is_content(members.get("content")):
        return unknown("the server answered with something that is not the result of a tool")
    structured = members["structuredContent"].value if "structuredContent" in members else None
    found = answer_of(members["content"].value, structured=structured, error=error, blocks=True)
    outcome, reason = outcome_of(tool, found)
    answered = found if outcome == "done" else None
    return Ending(outcome=outcome, answer=answered, result=members, reason=reason)


def _is_content(member: wire.Member | None) -> bool:
    blocks = None if member is None else member.value
    return isinstance(blocks, list) and all(isinstance(block, dict) for block in blocks)


def traits_of(core: Core) -> Mapping[str, ToolTraits]:
    """Return the traits of the tools of a grammar."""
    return {
        tool.name: ToolTraits(
            observed=tuple(one.name for one in tool.answers if one.type is None),
            errors_failed=tool.errors_failed,
            error_text=tool.error_text,
            parallel=tool.parallel,
        )
        for tool in core.tools
    }


class Decisions:
    """The decisions of one session.

    Args:
        gate: the gate of the session.
        note: called with messages for the owner.

    Attributes:
        trouble: the reason why no further call is made; None: calls may be made.
    """

    def __init__(self, gate: Gate, note: Callable[[str], None]) -> None:
        self.gate = gate
        self.trouble: str | None = None
        self._tools = traits_of(gate.artifact.core)
        self._note = note
        # Number and tool of given-up calls whose answers may still come, by the ids of their
        # requests; and late answers, by the number of the call.
        self._expected: dict[int, tuple[int, str]] = {}
        self._late: deque[tuple[int, Ending]] = deque()

    def is_parallel(self, tool: str) -> bool:
        """Return whether other calls may be under way together with a call of this tool."""
        return tool in self._tools and self._tools[tool].parallel

    def permit(
        self, tool: str, arguments: Mapping[str, Any], away: str | None, turn: Ticket
    ) -> AbstractAsyncContextManager[Permit]:
        """Return the permit of a call; the gate decides when the block is entered.

        Args:
            away: why the server is not available; None: it is.

        Raises:
            Refused: R307 if the server is away; when the block is entered: the call is not allowed.
            Pending: when the block is entered: a person has to decide.
            NotYet: when the block is entered: the decision depends on a call under way.
        """
        if away is not None:
            self.gate.refuse(Code.SERVER_AWAY, tool, away, turn=turn)
        return self.gate.call(tool, arguments, turn=turn)

    def unsendable(self, permit: Permit) -> str | None:
        """Return why an allowed call cannot be sent exactly as it was decided; None: it can be
        sent.
        """
        if is_kept(permit.arguments):
            return None
        return "a number of which the server would get another one"

    def record(self, permit: Permit, ending: Ending) -> None:
        """Record the end of a call.  If that fails, notify the owner; the gate then refuses all
        calls.
        """
        try:
            if ending.outcome == "done" and ending.result is not None:
                whole = {name: member.value for name, member in ending.result.items()}
                permit.done(whole, observed=ending.answer)
            elif ending.outcome == "failed":
                # The client has read the error, except if the call was not sent.
                permit.failed(ending.reason, answered=not ending.unsent)
            else:
                permit.unknown(ending.reason)
        except LedgerError as error:
            self._note(f"the outcome of call {permit.seq} is not recorded: {error}")

    def ending(self, tool: str, answer: wire.Response) -> Ending:
        """Return the end of a call of this tool that the server answered so."""
        return ending_of(answer, self._tools.get(tool, ToolTraits()))

    # Late answers. If too many are expected, the oldest call is dropped and stays unknown.

    def expect(self, identity: int, seq: int, tool: str) -> None:
        """Note that an answer to a call that was given up may still come."""
        self._expected[identity] = (seq, tool)
        if len(self._expected) > _MAX_LATE:
            del self._expected[next(iter(self._expected))]

    def take_late(self, answer: wire.Response) -> bool:
        """Take an answer to no call under way; return whether one was expected."""
        if not isinstance(answer.identity, int):
            return False
        seq, tool = self._expected.pop(answer.identity, (0, ""))
        if seq:
            ending = self.ending(tool, answer)
            if ending.outcome != "unknown":
                self._late.append((seq, ending))
        return bool(seq)

    def has_late(self, under_way: Collection[int]) -> bool:
        """Return whether a late answer can be recorded; `under_way` has the numbers of the calls
        under way.
        """
        return bool(self._late) and self._late[0][0] not in under_way

    def resolve(self, turn: Ticket) -> None:
        """Record the first late answer, and give the turn back."""
        seq, ending = self._late.popleft()
        if self.gate.happened(seq).outcome != "unknown":
            self.gate.give_back(turn)  # the owner has resolved it
            return
        outcome: Literal["done", "failed"] = "done" if ending.outcome == "done" else "failed"
        observed = None if ending.answer is None else ending.answer.value
        try:
            self.gate.resolve(seq, outcome, observed, turn=turn)
        except (LedgerError, Refused, ValueError) as error:
            # The grammar does not allow such an answer of an unknown call.
            self.trouble = f"call {seq} was answered late, and stays unknown: {error}"
            self._note(self.trouble)

    def decide(self, told: Told, who: str, turn: Ticket) -> None:
        """Record the verdict of the person at the client, and give the turn back.

        If it cannot be recorded, the owner is notified, and the call is decided without it.
        """
        try:
            if told.verdict == "approved":
                self.gate.approve(told.question, who=who, turn=turn)
            else:
                self.gate.deny(told.question, who=who, turn=turn)
        except (VerdictError, Refused, LedgerError) as error:
            self._note(f"the verdict on question {told.question} is not recorded: {error}")

    def forget_late(self) -> None:
        """Forget late answers: the ledger has failed."""
        self._late.clear()


def away(tool: str, reason: str) -> Refused:
    """Return the refusal of a call whose server is away."""
    return Refused(Decision(Code.SERVER_AWAY, reason, list, tuple), tool)


def refusal_result(refusal: Refused) -> dict[str, Any]:
    """Return the tool result for a refusal, with the reasons and the calls that are allowed
    instead.
    """
    following = refusal.allowed_next
    told: dict[str, Any] = {
        "code": str(refusal.code),
        "because": [dict(reason) for reason in refusal.because],
        "allowed_next": [
            {"tool": call.tool, "arguments": plain(dict(call.arguments))}
            for call in following[:_MAX_NEXT]
        ],
    }
    spent = refusal.spent
    if spent is not None:
        told |= {"spent": True, "session": spent.session, "way_on": spent.way_on}
    if len(following) > _MAX_NEXT:
        told["allowed_next_left_out"] = len(following) - _MAX_NEXT
        told["allowed_tools"] = list(dict.fromkeys(call.tool for call in following))[:_MAX_TOOLS]
    text = f"Not allowed, and nothing was called. {refusal}. {wire.dumps(told)}"
    return error_result(text, told)


def pending_result(question: Pending) -> dict[str, Any]:
    """Return the tool result for a call that waits for a person."""
    found = question.to_json()
    shown = {name: found[name] for name in ("id", "who", "text", "expires_ms")}
    told = {"code": question.code, "pending": shown}
    return error_result(f"Not called yet. {question}.", told)


def unknown_result(permit: Permit, ending: Ending) -> dict[str, Any]:
    """Return the tool result for a call with an unknown outcome."""
    said = f"It is not known whether this call happened: {ending.because}. Do not repeat it."
    return error_result(said, unknown_data(permit, ending))


def unknown_data(permit: Permit, ending: Ending) -> dict[str, Any]:
    """Return an outcome as JSON values for programs."""
    return {"outcome": ending.outcome, "seq": permit.seq, "because": ending.because}


def error_result(said: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool result that is an error, with a text and structured content."""
    return {
        "content": [{"type": "text", "text": said}],
        "structuredContent": dict(told),
        "isError": True,
    }
