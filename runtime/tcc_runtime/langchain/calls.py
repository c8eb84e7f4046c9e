"""One call of a guarded tool: what is asked of the gate, and what its record says came of it.

Text: docs/langgraph.md.  Cost: linear in the arguments and in the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphInterrupt
from pydantic import BaseModel

from tcc_runtime.executor.binding import MODEL, Failed
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.permit import Permit
from tcc_runtime.gate.refusals import Allowed, AlreadyDone, Refused

Observe: TypeAlias = "Callable[[str, Any], Mapping[str, object]]"
Results: TypeAlias = "MutableMapping[str, Any]"
Interrupts: TypeAlias = Literal["unknown", "failed"]
REFUSAL: Final = "tcc_refusal"
_TOLD: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call as it is about to be made.

    Attributes:
        tool: the one that is run.
        args, keywords: what it is run with.
        arguments: the same as JSON values by name, without what a graph injects.
        ref: the id of the tool call, None where a program runs the tool by hand.
        models: what the parameter `model` is given, by the name of the model that makes the call;
            None: the tool has no such parameter.
        takes_model: as of :meth:`tcc_runtime.gate.gate.Gate.call`.
    """

    tool: BaseTool
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]
    arguments: dict[str, Any]
    ref: str | None
    models: Mapping[str, Any] | None = None
    takes_model: bool | None = None

    def given(self, permit: Permit) -> dict[str, Any]:
        """What the tool is run with, once it is known which model makes the call."""
        if self.models is None or not permit.model:
            return dict(self.keywords)
        return {**self.keywords, MODEL: self.models[permit.model]}

    @property
    def in_pair(self) -> bool:
        """Whether the tool answers with its content and something beside it."""
        return self.tool.response_format == "content_and_artifact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Asks for permits, and tells the gate what came of them.

    Attributes:
        gate: of the session.
        results: the owner's store of answers by tool-call id.
        observe: what an answer of a tool says.
        interrupts: what an interrupt means.
        errors_failed: the tools whose errors mean that nothing happened.
    """

    gate: Gate
    results: Results | None
    observe: Observe
    interrupts: Interrupts
    errors_failed: frozenset[str]

    def permit(self, call: Call) -> Permit:
        """A permit for it, not yet entered; a call that failed is another one when made again."""
        ref = call.ref
        again = 2
        while ref is not None and self.gate.outcome_of(ref) == "failed":
            ref = f"{call.ref}#{again}"
            again += 1
        return self.gate.call(call.tool.name, call.arguments, ref=ref, takes_model=call.takes_model)

    def raised(self, permit: Permit, call: Call, error: Exception) -> None:
        """The tool raised: what is known not to have happened has failed, the rest is unknown."""
        if permit.outcome is not None:
            return
        name = call.tool.name
        if isinstance(error, GraphInterrupt):
            if self.interrupts == "failed":
                permit.failed("the tool interrupted before it acted")
        elif isinstance(error, Failed) or (
            name in self.errors_failed and not isinstance(error, TimeoutError)
        ):
            permit.failed(type(error).__name__)

    def answered(self, permit: Permit, call: Call, output: Any) -> None:
        """The tool answered: done, unless it says itself that it is an error."""
        content = output[0] if call.in_pair and type(output) is tuple and output else output
        if isinstance(content, ToolMessage) and content.status == "error":
            if call.tool.name in self.errors_failed:
                permit.failed("the tool answered with an error")
            else:
                permit.unknown("the tool answered with an error")
            return
        if self.results is not None and call.ref is not None:
            # First the answer, then the record: a call that is done can always be answered again.
            self.results[call.ref] = output
        observed = self.observe(call.tool.name, output)
        permit.done(plain(output), observed=dict(observed))

    def refused(self, call: Call, refusal: Refused) -> Any:
        """What stands for the answer of a call that was not made.

        Raises:
            Refused: the caller is no graph, and would take a text for an answer.
        """
        if call.ref is None:
            raise refusal
        if isinstance(refusal, AlreadyDone) and self._has_answer(call, refusal):
            return (self.results or {})[call.ref]
        message = ToolMessage(
            content=refusal_text(refusal),
            name=call.tool.name,
            tool_call_id=call.ref,
            status="error",
            artifact={REFUSAL: refusal.code},
        )
        return (message, None) if call.in_pair else message

    def _has_answer(self, call: Call, refusal: AlreadyDone) -> bool:
        """Whether the store has the answer of this very call: an id alone is easily given twice."""
        if self.results is None or call.ref not in self.results:
            return False
        return self.gate.is_call(refusal.seq, call.tool.name, call.arguments)


def refusal_text(refusal: Refused) -> str:
    """What was refused, why, and what is allowed: text that helps a model to go on."""
    said = str(refusal)
    because = "; ".join(one["text"] for one in refusal.because if one["text"] not in said)
    parts = [f"Refused, and not called: {said}."]
    if because:
        parts.append(f"Because of: {because}.")
    parts.append(allowed_text(refusal.allowed_next))
    return " ".join(parts)


def allowed_text(allowed: Sequence[Allowed]) -> str:
    """The calls that are allowed, as a sentence for a model; the first twenty of them."""
    told = [_shown(one) for one in allowed[:_TOLD]]
    if len(allowed) > _TOLD:
        told.append(f"and {len(allowed) - _TOLD} more")
    return f"Allowed now: {', '.join(told) or 'nothing'}."


def _shown(one: Allowed) -> str:
    given = [f"{name}={json.dumps(value, default=str)}" for name, value in one.arguments.items()]
    return f"{one.tool}({', '.join(given)})"


def members(_tool: str, output: Any) -> Mapping[str, object]:
    """The members of an answer: of an object, or of a text that is the JSON of one."""
    found = plain(output)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            return {}
    return found if isinstance(found, dict) else {}


def plain(output: Any) -> Any:
    """What a tool answered, without what is around it: an artifact comes before its content."""
    artifact: object = None
    if type(output) is tuple and len(output) == 2:
        output, artifact = output
    if isinstance(output, ToolMessage):
        output, artifact = output.content, artifact or output.artifact
    if isinstance(artifact, BaseModel):
        artifact = artifact.model_dump()
    if isinstance(artifact, dict):
        # Where the adapters of MCP put what the server calls so.
        inside = artifact.get("structured_content")
        return inside if isinstance(inside, dict) else artifact
    return output.model_dump() if isinstance(output, BaseModel) else output
