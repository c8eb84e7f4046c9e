"""One call of a guarded tool: what is asked of the gate, and what its record says came of it.

Text: docs/langgraph.md.  Cost: linear in the arguments and in the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from tcc_runtime.gate import AlreadyDone, Gate, Permit, Refused

Observe: TypeAlias = Callable[[str, Any], Mapping[str, object]]
Results: TypeAlias = MutableMapping[str, Any]
Interrupts: TypeAlias = Literal["unknown", "failed"]


class ToolCallIdMissing(ValueError):
    """A guarded tool was run without the id of a tool call, where `results` needs one."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool as it arrived.

    Attributes:
        tool: the tool inside.
        arguments: what the model chose; what a graph injects is left out.
        ref: the id of the tool call, None where a tool is run by hand.
    """

    tool: BaseTool
    arguments: Mapping[str, Any]
    ref: str | None

    def refused(self, refusal: Refused) -> Any:
        """The refusal as the model reads it: a message with status ``error``, or its text."""
        text = refusal_text(refusal)
        if self.ref is None:
            return text
        return ToolMessage(
            content=text, name=self.tool.name, tool_call_id=self.ref, status="error"
        )


def call_of(tool: BaseTool, tool_input: str | dict[str, Any], ref: str | None) -> Call:
    """The call, its arguments held to the tool's own schema first.

    What the schema refuses never reaches the tool, and so it is no call.

    Raises:
        pydantic.ValidationError: the tool's own schema does not take the arguments.
    """
    if isinstance(tool_input, str):
        names = list(tool.args)
        arguments: dict[str, Any] = {names[0]: tool_input} if len(names) == 1 else {}
    else:
        arguments = tool._filter_injected_args(tool_input)
        schema = tool.tool_call_schema
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            schema.model_validate(arguments)
    return Call(tool, arguments, ref)


def refusal_text(refusal: Refused) -> str:
    """What was refused, why, and what is allowed: text that helps a model to go on."""
    allowed = [
        f"{one.tool}({', '.join(f'{name}={json.dumps(value, default=str)}' for name, value in one.arguments.items())})"
        for one in refusal.allowed_next[:20]
    ]
    because = "; ".join(reason["text"] for reason in refusal.because)
    parts = [f"Refused ({refusal.code}): {refusal}."]
    if because:
        parts.append(f"Because of: {because}.")
    parts.append(f"Allowed now: {', '.join(allowed) or 'nothing'}.")
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Recorder:
    """Turns what a tool did into the outcome of its call."""

    gate: Gate
    results: Results | None
    observe: Observe
    interrupts: Interrupts

    def note(self, permit: Permit, call: Call, output: Any) -> Any:
        """Record the outcome that `output` tells of, and give `output` back."""
        if isinstance(output, ToolMessage) and output.status == "error":
            if self.gate.errors_mean_failed(call.tool.name):
                permit.failed("the tool answered with an error")
            else:
                permit.unknown("the tool answered with an error")
            return output
        if self.results is not None and call.ref is not None:
            # First the answer, then the record: a call that is done can always be answered again.
            self.results[call.ref] = output
        permit.done(_plain(output), observed=self.observe(call.tool.name, output))
        return output

    def answer(self, call: Call, refusal: AlreadyDone) -> Any:
        """The answer of a call that the ledger has: from the store, or else the refusal."""
        if self.results is not None and call.ref is not None and call.ref in self.results:
            return self.results[call.ref]
        return call.refused(refusal)


def members(_tool: str, output: Any) -> Mapping[str, object]:
    """The members of an answer that is an object, or whose content is the JSON of one."""
    plain = _plain(output)
    return plain if isinstance(plain, dict) else {}


def _plain(output: Any) -> Any:
    """What a tool answered, without the message around it."""
    if isinstance(output, ToolMessage):
        if isinstance(output.artifact, dict):
            return output.artifact
        output = output.content
    if isinstance(output, str):
        try:
            value = json.loads(output)
        except ValueError:
            return output
        return value if isinstance(value, dict) else output
    return output
