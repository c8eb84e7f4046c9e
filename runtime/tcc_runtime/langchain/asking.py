"""Calls that wait for a person: a graph interrupts with the question, and resumes with a verdict.

LangGraph runs a tool again from its beginning when a graph resumes, and `interrupt` then returns
the value of `Command(resume=..)`.  It matches values to interrupts by their order in the task.  So
after a crash, or if a task makes several calls, a value can reach another question than its author
saw.  A value with the member `id` names its question.  A value without it is used only if no other
question can be meant.
Text: docs/ask.md.  Cost: a record for each verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from langgraph.types import interrupt

from tcc_runtime.gate.asking.questions import Pending, VerdictError
from tcc_runtime.gate.gate import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The verdict with which a graph was resumed.

    Attributes:
        verdict: `approved` or `denied`.
        who: the name of the person.
        reason: the reason of a denial.
    """

    verdict: Literal["approved", "denied"]
    who: str
    reason: str = ""

    def record(self, gate: Gate, question: Pending) -> str:
        """Record the verdict; return the reason if it cannot be recorded, else ''.

        Raises:
            Refused: the session has ended, or its ledger cannot be written.
        """
        try:
            if self.verdict == "approved":
                gate.approve(question.id, who=self.who)
            else:
                gate.deny(question.id, who=self.who, reason=self.reason)
        except VerdictError as error:
            return str(error)
        except ValueError as error:
            return f"the verdict is not recorded: {error}"
        return ""


def ask(gate: Gate, question: Pending) -> Answer | str:
    """Interrupt the graph with a question, or return the verdict that the graph was resumed with.

    Returns:
        The verdict; or a text with the reason why there is no verdict.

    Raises:
        GraphInterrupt: the graph stops here, and its caller gets `question.to_json()`.
    """
    try:
        value = interrupt(question.to_json())
    except (KeyError, RuntimeError):  # LangGraph raises these outside of a running graph
        return "no graph runs this tool, so nobody was asked here"
    if question.is_new:
        return "the graph was resumed with a verdict on an earlier question"
    return answer_of(gate, question, value)


def answer_of(gate: Gate, question: Pending, value: object) -> Answer | str:
    """Return the verdict in a value of `Command(resume=..)`, or the reason why it has none."""
    if not isinstance(value, Mapping):
        return 'resume with {"id": .., "verdict": "approved" or "denied", "who": NAME}'
    verdict, who, reason = value.get("verdict"), value.get("who"), value.get("reason", "")
    if verdict not in ("approved", "denied"):
        return 'the member "verdict" of the value is neither "approved" nor "denied"'
    if not isinstance(who, str) or not isinstance(reason, str):
        return 'the member "who" of the value is no text: it is the name of the person'
    if "id" in value:
        if value["id"] != question.id:
            return "the graph was resumed with a verdict on another question"
    elif not gate.is_only_question(question.id):
        return 'several questions may be meant: resume with the member "id" of the question'
    return Answer(verdict=verdict, who=who, reason=reason)
