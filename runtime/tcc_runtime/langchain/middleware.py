"""Middleware that tells a model which calls its gate allows; and single calls of guarded tools.

The tools themselves ask the gate (:mod:`tcc_runtime.langchain.guard`), so the middleware is
optional.  It hides tools that no plan allows now, and tells the model which calls are allowed.  It
also keeps the head of the session's ledger in the graph's state, so that a checkpoint of another
session, or of a replaced ledger, is rejected.
Text: docs/langgraph.md.
Cost: linear in arguments and answer; one listing of the allowed calls for each call of the model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias

from langchain.agents.middleware import AgentMiddleware, types
from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import BaseModel

from tcc_certs.errors import Code, clip
from tcc_runtime.errors import BindingError
from tcc_runtime.gate import wrapping
from tcc_runtime.gate.answers import ToolAnswer, answer_of
from tcc_runtime.gate.arguments.json_reader import UNREADABLE
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.permit import Permit
from tcc_runtime.gate.refusals import AlreadyDone, Refused
from tcc_runtime.langchain import asking

# One call of a guarded tool.

Observe: TypeAlias = "Callable[[str, Any], Mapping[str, object]]"
Results: TypeAlias = "MutableMapping[str, Any]"
Interrupts: TypeAlias = Literal["unknown", "failed"]
WhenPending: TypeAlias = Literal["interrupt", "tell"]
REFUSAL: Final = "tcc_refusal"
PENDING: Final = "tcc_pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedCall:
    """A call that is about to be made.

    Attributes:
        tool: the inner tool that is run.
        args, keywords: the arguments that the tool is run with.
        arguments: the same arguments as JSON values by name, without those that a graph injects.
        ref: the id of the tool call; None: a program runs the tool directly.
        models: the value of the parameter `model`, by the name of the model that makes the call;
            None: the tool has no such parameter.
        takes_model: see :meth:`tcc_runtime.gate.gate.Gate.call`.
        wrote: the argument names that the caller wrote, if `arguments` has to be read once the
            grammar is known; None: `arguments` is complete.
    """

    tool: BaseTool
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]
    arguments: dict[str, Any]
    ref: str | None
    models: Mapping[str, Any] | None = None
    takes_model: bool | None = None
    wrote: frozenset[str] | None = None

    def given(self, permit: Permit) -> dict[str, Any]:
        """Return the keyword arguments of the tool, with the model that makes the call."""
        if self.models is None or not permit.model:
            return dict(self.keywords)
        return {**self.keywords, wrapping.MODEL: self.models[permit.model]}

    @property
    def in_pair(self) -> bool:
        """True if the tool returns a pair of content and artifact."""
        return self.tool.response_format == "content_and_artifact"


@dataclass(slots=True, kw_only=True)
class GateSource:
    """The source of a call's gate: one gate, or one for each configuration of a graph.

    Attributes:
        gate: a gate; or a callable that returns the gate for the configuration of a call.
        digest: the digest of the artifact of all these gates; None: not known yet.
    """

    gate: Gate | Callable[[RunnableConfig], Gate]
    digest: bytes | None

    @property
    def fixed(self) -> Gate | None:
        """The one gate; None if gates depend on the configuration."""
        return self.gate if isinstance(self.gate, Gate) else None

    def of(self, config: RunnableConfig | None, name: str) -> Gate:
        """Return the gate of a call.

        Args:
            name: the name of the caller, for errors.

        Raises:
            BindingError: the call has no configuration, or no gate of the same artifact.
        """
        if isinstance(self.gate, Gate):
            return self.gate
        told = () if config is None else ("configurable", "metadata", "tags", "run_name")
        if config is None or not any(config.get(member) for member in told):
            raise BindingError(name, "it was run without a config, which says whose gate decides")
        try:
            found = self.gate(config)
        except Exception as error:  # the callable is the owner's
            said = f"no gate for this config: {type(error).__name__}"
            raise BindingError(name, said) from error
        if not isinstance(found, Gate):
            raise BindingError(name, f"for this config there is {type(found).__name__}, no gate")
        if self.digest is None:
            self.digest = found.artifact.digest
        if found.artifact.digest != self.digest:
            raise BindingError(name, "the gate for this config holds to another artifact")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitRecorder:
    """Options for asking gates and reporting outcomes; see
    :func:`tcc_runtime.langchain.guard.guard`.

    Attributes:
        source: the source of a call's gate.
        results: the owner's store of answers by tool-call id; or None.
        observe: returns the values of an answer; None: :mod:`tcc_runtime.gate.answers` reads them.
        interrupts: the outcome of a call whose tool raises an interrupt.
        pending: the treatment of a call that waits for a person.
    """

    source: GateSource
    results: Results | None
    observe: Observe | None
    interrupts: Interrupts
    pending: WhenPending

    def of(self, gate: Gate) -> CallRecorder:
        """Return the recorder for one gate."""
        return CallRecorder(told=self, gate=gate, failing=wrapping.errors_failed(gate.artifact))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecorder:
    """Asks one gate for permits, and reports the outcomes of calls to it.

    Attributes:
        told: the options.
        failing: the names of the tools with `errors mean failed`.
    """

    told: PermitRecorder
    gate: Gate
    failing: frozenset[str]

    def permit(self, call: GuardedCall) -> Permit:
        """Return a permit for a call, which is not entered yet.

        If the call with this id failed, the repeated call gets another id.
        """
        ref = call.ref
        again = 2
        while ref is not None and self.gate.outcome_of(ref) == "failed":
            ref = f"{call.ref}#{again}"
            again += 1
        return self.gate.call(call.tool.name, call.arguments, ref=ref, takes_model=call.takes_model)

    def raised(self, permit: Permit, call: GuardedCall, error: Exception) -> None:
        """Report a tool that raised: failed if it surely did not act, else nothing, so that it is
        unknown.
        """
        if isinstance(error, GraphInterrupt):
            if permit.outcome is None and self.told.interrupts == "failed":
                permit.failed("the tool interrupted before it acted")
        else:
            wrapping.raised(permit, call.tool.name, error, self.failing)

    def answered(self, permit: Permit, call: GuardedCall, output: Any) -> None:
        """Report the value that the tool returned."""
        answer = read_answer(output, call.in_pair)
        if answer.error is False:
            if self.told.results is not None and call.ref is not None:
                # Store the answer before the record, so that a call that is done can always be
                # answered again.
                self.told.results[call.ref] = output
            if self.told.observe is not None:
                answer = replace(answer, value=dict(self.told.observe(call.tool.name, output)))
        permit.done(plain(output), answer)

    def refused(self, call: GuardedCall, refusal: Refused) -> Any:
        """Return the answer for a call that was not made.

        If the call was done before and the store has its answer, this is the stored answer.

        Raises:
            Refused: a program made the call directly, and would take a text for an answer.
        """
        if call.ref is None:
            raise refusal
        if isinstance(refusal, AlreadyDone) and self._has_answer(call, refusal):
            return (self.told.results or {})[call.ref]
        return _told(call, wrapping.refusal_text(refusal), {REFUSAL: refusal.code})

    def asked(self, call: GuardedCall, question: Pending) -> asking.Answer | str:
        """Ask the caller of the graph; return the verdict, or a text if no person is asked here.

        Raises:
            GraphInterrupt: the graph stops, and resumes with a verdict.
            Pending: a program made the call directly.
        """
        if call.ref is None:
            raise question
        if self.told.pending == "tell":
            return ""
        return asking.ask(self.gate, question)

    def waiting(self, call: GuardedCall, question: Pending, why: str = "") -> Any:
        """Return the answer for a call that waits for a person.

        Raises:
            Pending: a program made the call directly.
        """
        if call.ref is None:
            raise question
        text = f"Not called. {question}." + (f" Nothing is decided: {why}." if why else "")
        return _told(call, text, {REFUSAL: question.code, PENDING: question.to_json()})

    def _has_answer(self, call: GuardedCall, refusal: AlreadyDone) -> bool:
        """Return whether the store has the answer of this call.  The arguments are compared, too,
        because ids may repeat.
        """
        if self.told.results is None or call.ref not in self.told.results:
            return False
        return self.gate.is_call(refusal.seq, call.tool.name, call.arguments)


def _told(call: GuardedCall, text: str, artifact: dict[str, Any]) -> Any:
    """Return an error for the model, in the form in which the tool answers."""
    message = ToolMessage(
        content=text,
        name=call.tool.name,
        tool_call_id=call.ref or "",
        status="error",
        artifact=artifact,
    )
    return (message, None) if call.in_pair else message


def read_answer(output: Any, in_pair: bool) -> ToolAnswer:
    """Return the answer in the value that a tool returned: content, with an artifact, or messages.

    A model reads only the content.  Structured content of MCP in an artifact is compared with it,
    too.

    Args:
        in_pair: whether the tool returns its content and an artifact.
    """
    artifact: Any = None
    if in_pair and type(output) is tuple and len(output) == 2:
        output, artifact = output
    read = _messages(output)
    answers = [message for message in read if isinstance(message, ToolMessage)]
    errors = {message.status == "error" for message in answers}
    error = (True in errors) if len(errors) < 2 else None
    if not read:
        return _beside(() if isinstance(output, Command) else (output,), artifact, error)
    if len(answers) != 1:
        return answer_of(*[message.content for message in read], value=UNREADABLE, error=error)
    read.sort(key=lambda message: message is not answers[0])
    return _beside([one.content for one in read], artifact or answers[0].artifact, error)


def _beside(contents: Sequence[Any], artifact: Any, error: bool | None) -> ToolAnswer:
    """Return the answer in the contents that a model reads, and in the artifact."""
    contents = contents or ({},)
    if isinstance(artifact, BaseModel):
        artifact = artifact.model_dump()
    if not isinstance(artifact, dict):
        return answer_of(*contents, error=error)
    inside = artifact.get("structured_content")
    if isinstance(inside, dict):  # the key that the adapters of MCP use for structured content
        return answer_of(*contents, structured=inside, error=error)
    return answer_of(*contents, value=artifact, error=error)


def _messages(output: Any) -> list[BaseMessage]:
    """Return the messages in a tool's value: one message, those of a command, or lists of these."""
    if isinstance(output, BaseMessage):
        return [output]
    if isinstance(output, Command):
        update = output.update
        return _messages(list(update.values()) if isinstance(update, dict) else update)
    if not isinstance(output, list | tuple):
        return []
    kinds = (BaseMessage, Command, list, tuple)
    return [message for one in output if isinstance(one, kinds) for message in _messages(one)]


def plain(output: Any) -> Any:
    """Return a tool's value without LangChain's wrappers; an artifact is preferred to its
    content.
    """
    artifact: object = None
    if type(output) is tuple and len(output) == 2:
        output, artifact = output
    if isinstance(output, ToolMessage):
        output, artifact = output.content, artifact or output.artifact
    if isinstance(artifact, BaseModel):
        artifact = artifact.model_dump()
    if isinstance(artifact, dict):
        # The key that the adapters of MCP use for structured content.
        inside = artifact.get("structured_content")
        return inside if isinstance(inside, dict) else artifact
    return output.model_dump() if isinstance(output, BaseModel) else output


Answer: TypeAlias = "ToolMessage | Command[Any]"


class ForeignHead(RuntimeError):
    """The head in a checkpoint was never the head of this session's ledger."""


def check_head(gate: Gate, head: str | None) -> None:
    """Require that a head is the current or an earlier head of the gate's ledger.

    Args:
        head: the head in a graph's state, hex; None: the state has none yet.

    Raises:
        ForeignHead: the checkpoint belongs to another session.
    """
    if head is not None and not gate.is_ancestor(head):
        raise ForeignHead(
            "this checkpoint belongs to another session: its head is not in the ledger;"
            " open the gate on the ledger of that session, or start a new thread"
        )


def head_of(state: object) -> str | None:
    """Return the head in a graph's state, or None."""
    found = state.get("tcc_head") if isinstance(state, dict) else getattr(state, "tcc_head", None)
    return found if found is None else str(found)


class GatedState(types.AgentState[Any]):
    """The state of an agent, and the head of its session's ledger."""

    tcc_head: NotRequired[Annotated[str, types.PrivateStateAttr]]


class TccMiddleware(AgentMiddleware[GatedState, Any, Any]):
    """Hides tools, tells the model which calls are allowed, and keeps the ledger's head in the
    state.

    Args:
        gate: the gate of the agent's tools; or the callable that returns it for a configuration, as
            for :func:`guard`.
        mask: whether to hide tools that no plan allows now from the model.
        tell: whether to add a system message with the calls that are allowed now, and whether the
            plan may end here.
        strict: whether to hide tools that this gate does not guard, refuse their calls, and not
            offer tools that the model's provider runs.  Put this middleware last in the list,
            because a later one may still add or replace tools.
    """

    state_schema = GatedState

    def __init__(
        self,
        gate: Gate | Callable[[RunnableConfig], Gate],
        *,
        mask: bool = True,
        tell: bool = True,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self._source = GateSource(
            gate=gate, digest=gate.artifact.digest if isinstance(gate, Gate) else None
        )
        self._mask = mask
        self._tell = tell
        self._strict = strict

    @property
    def _gate(self) -> Gate:
        """The gate of the current run."""
        fixed = self._source.fixed
        if fixed is not None:
            return fixed
        try:
            config = get_config()
        except RuntimeError:
            config = None
        return self._source.of(config, "TccMiddleware")

    def before_model(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Refuse a checkpoint of another session, and store the current head of the ledger."""
        gate = self._gate
        check_head(gate, state.get("tcc_head"))
        return {"tcc_head": gate.head}

    async def abefore_model(
        self, state: GatedState, runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """See :meth:`before_model`."""
        return self.before_model(state, runtime)

    def after_agent(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store the head of the ledger at the end."""
        return self.before_model(state, runtime)

    async def aafter_agent(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """See :meth:`after_agent`."""
        return self.before_model(state, runtime)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]
    ) -> Answer:
        """Refuse a call from a checkpoint of another session, or one that no gate decides."""
        return self._unguarded(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """See :meth:`wrap_tool_call`."""
        return self._unguarded(request) or await handler(request)

    def _unguarded(self, request: ToolCallRequest) -> ToolMessage | None:
        """Return the answer to a call of a tool that this gate does not guard; None: the call may
        be made.
        """
        gate = self._gate
        check_head(gate, head_of(request.state))
        if not self._strict or self._guards(request.tool):
            return None
        name = str(request.tool_call["name"])
        said = f"Refused, and not called: {clip(name, 80)} is guarded by no gate."
        return ToolMessage(
            content=f"{said} {wrapping.allowed_text(gate.allowed())}",
            name=name,
            tool_call_id=request.tool_call["id"],
            status="error",
            artifact={REFUSAL: Code.UNKNOWN_TOOL.value},
        )

    def _guards(self, tool: object) -> bool:
        """Return whether a tool asks the gate that this middleware has."""
        recorder = getattr(tool, "_recorder", None)
        return isinstance(recorder, PermitRecorder) and recorder.source.gate == self._source.gate

    def wrap_model_call(
        self,
        request: types.ModelRequest[Any],
        handler: Callable[[types.ModelRequest[Any]], types.ModelResponse[Any]],
    ) -> types.ModelResponse[Any]:
        """Call the model with the current tools and system message."""
        return handler(self._narrowed(request))

    async def awrap_model_call(
        self,
        request: types.ModelRequest[Any],
        handler: Callable[[types.ModelRequest[Any]], Awaitable[types.ModelResponse[Any]]],
    ) -> types.ModelResponse[Any]:
        """See :meth:`wrap_model_call`."""
        return await handler(self._narrowed(request))

    def _narrowed(self, request: types.ModelRequest[Any]) -> types.ModelRequest[Any]:
        gate = self._gate
        allowed = gate.allowed()
        changes: dict[str, Any] = {}
        tools = list(request.tools)
        if self._strict:
            tools = [tool for tool in tools if self._guards(tool)]
        if self._mask:
            known = {tool.name for tool in gate.artifact.core.tools}
            hidden = known - {one.tool for one in allowed}
            tools = [t for t in tools if not isinstance(t, BaseTool) or t.name not in hidden]
        if self._mask or self._strict:
            changes["tools"] = tools
        if self._tell:
            told = f"{wrapping.allowed_text(allowed)} {_end_text(gate.may_finish)}"
            changes["system_message"] = _with(request.system_message, told)
        return request.override(**changes)


def _with(before: SystemMessage | None, told: str) -> SystemMessage:
    """Return the system message with a text appended; its own blocks stay unchanged."""
    if before is None:
        return SystemMessage(content=told)
    if isinstance(before.content, str):
        return SystemMessage(content=f"{before.content}\n\n{told}")
    return SystemMessage(content=[*before.content, {"type": "text", "text": told}])


def _end_text(may_finish: bool) -> str:
    return "You may stop here." if may_finish else "You may not stop here: no plan ends here."
