"""LangChain tools that ask a gate: each call is decided inside the tool, after all changes to it.

A graph may call tools in parallel, rewrite their arguments, jump, retry, resume and travel back in
time.  None of this is trusted.  The gate decides on the arguments with which the tool's function is
about to run, one call at a time, and records the call before the function runs.  A call whose id is
in the ledger is not made again.
Text: docs/langgraph.md.  Cost: linear in the arguments, one decision of the gate, and its records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from langchain_core.callbacks import AsyncCallbackManagerForToolRun, CallbackManagerForToolRun
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.utils.pydantic import TypeBaseModel
from langgraph.prebuilt import ToolRuntime
from pydantic import PrivateAttr

from tcc_certs.policy.plans import executing
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import NEEDS_MODEL, OWN_MODEL, BindingError
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.wrapping import MODEL
from tcc_runtime.langchain import middleware
from tcc_runtime.langchain.parameters import (
    ModelParameter,
    ToolParameters,
    annotations_of,
    is_runtime,
    parameters_of,
    without_model,
)

# a parameter name for the graph's runtime that no tool uses
_RUNTIME: Final = "tcc_runtime_of_the_graph"
_OWN = ("run", "arun", "invoke", "ainvoke", "stream", "astream", "batch", "abatch")


def guard(
    tools: Sequence[BaseTool],
    gate: Gate | Callable[[RunnableConfig], Gate],
    *,
    artifact: Artifact | None = None,
    results: middleware.Results | None = None,
    observe: middleware.Observe | None = None,
    interrupts: middleware.Interrupts = "unknown",
    pending: middleware.WhenPending = "interrupt",
) -> list[BaseTool]:
    """Return guarded versions of tools, which ask `gate` before they run.

    Args:
        tools: tools of LangChain; their names are those of the grammar's tools.
        gate: one gate for all tools of an agent; or a callable that returns the gate for the
            `RunnableConfig` of a call, for one graph that serves many threads.  A call without a
            config, or without a gate of the same artifact, is not made.
        artifact: with a callable, the artifact of its gates, so that tools are compared with the
            grammar here.  None: each tool is compared at its first call.  Required if models make
            calls.
        results: the owner's store of answers by tool-call id.  A call that was done before, for
            example before travelling back in time, is answered from it.  Without a store such a
            call is refused.
        observe: returns the observed values for a tool's name and answer.  None: they are read from
            the answer (:func:`tcc_runtime.gate.answers.answer_of`).
        interrupts: the outcome of a call whose tool raises an interrupt: ``unknown``, because the
            tool may have acted; or ``failed``, if your tools interrupt before they act.  After
            ``failed`` the call is made when the graph resumes.
        pending: the treatment of a call that waits for a person.  ``interrupt`` stops the graph
            with the question, and `Command(resume={"id":.., "verdict":.., "who":..})` answers it.
            ``tell`` gives the model the question as the answer of its call.

    Raises:
        BindingError: a tool is missing in the grammar, is given twice, or its class replaces how
            tools are run.  Or a model makes its calls, but the tool has no additional parameter
            `model`.
        ValueError: the gate has another artifact.
    """
    fixed = gate if isinstance(gate, Gate) else None
    held = artifact if fixed is None else fixed.artifact
    if fixed is not None and artifact is not None and artifact.digest != fixed.artifact.digest:
        raise ValueError("the gate holds its session to another artifact")
    declared = None if held is None else {tool.name: tool for tool in held.core.tools}
    names: set[str] = set()
    for tool in tools:
        if declared is not None and tool.name not in declared:
            raise BindingError(tool.name, "the grammar has no such tool")
        if tool.name in names:
            raise BindingError(tool.name, "it is given twice")
        names.add(tool.name)
        _require_plain(tool)
    recorder = middleware.PermitRecorder(
        source=middleware.GateSource(gate=gate, digest=None if held is None else held.digest),
        results=results,
        observe=observe,
        interrupts=interrupts,
        pending=pending,
    )
    own = {} if declared is None else declared
    known = [(tool, parameters_of(tool, own.get(tool.name))) for tool in tools]
    for tool, parameters in known if fixed is not None and fixed.spent is not None else ():
        if executing(own[tool.name].models) and parameters.chosen is None:
            taken = MODEL in parameters.required | parameters.optional
            raise BindingError(tool.name, OWN_MODEL if taken else NEEDS_MODEL)
    return [
        _guarded(tool, recorder, parameters, is_known=held is not None)
        for tool, parameters in known
    ]


def _require_plain(tool: BaseTool) -> None:
    """Require a tool whose class does not replace how tools are run, because that could bypass the
    gate.
    """
    if isinstance(tool, GuardedTool):
        raise BindingError(tool.name, "it is guarded already")
    for name in _OWN:
        own = getattr(type(tool), name)
        if all(own is not getattr(known, name) for known in (BaseTool, StructuredTool, Tool)):
            raise BindingError(tool.name, f"its class replaces {name}: give a plain tool")


def _guarded(
    tool: BaseTool,
    recorder: middleware.PermitRecorder,
    parameters: ToolParameters,
    *,
    is_known: bool,
) -> GuardedTool:
    schema = tool.args_schema
    if schema is None and isinstance(tool, Tool):
        schema = {"type": "object", "properties": tool.args, "required": list(tool.args)}
    if parameters.chosen is not None and parameters.chosen.shown:
        schema = without_model(schema or tool.get_input_schema(), tool.name)
    guarded = GuardedTool(
        name=tool.name,
        description=tool.description,
        args_schema=schema,
        return_direct=tool.return_direct,
        verbose=tool.verbose,
        callbacks=tool.callbacks,
        tags=tool.tags,
        metadata=tool.metadata,
        handle_tool_error=tool.handle_tool_error,
        handle_validation_error=tool.handle_validation_error,
        response_format=tool.response_format,
        extras=tool.extras,
    )
    guarded._inner = tool
    guarded._recorder = recorder
    guarded._parameters = parameters
    guarded._is_known = is_known
    own = type(tool)._arun is not BaseTool._arun
    guarded._takes = _takes(tool._run)
    guarded._takes_in_task = _takes(tool._arun) if own else guarded._takes
    return guarded


class GuardedTool(BaseTool):
    """A tool that runs only if its gate allows the call; created by :func:`guard`."""

    _inner: BaseTool = PrivateAttr()
    _recorder: middleware.PermitRecorder = PrivateAttr()
    _parameters: ToolParameters = PrivateAttr()
    _is_known: bool = PrivateAttr()  # whether `_parameters` was built with the grammar's tool
    _takes: Takes = PrivateAttr()
    _takes_in_task: Takes = PrivateAttr()

    # Properties that frameworks read come from the inner tool.

    @property
    def func(self) -> object:
        """A function whose annotations show a graph which arguments to inject.  It is never
        called.
        """
        inner = getattr(self._inner, "func", None) or getattr(self._inner, "coroutine", None)
        if not self._parameters.injected:
            return inner

        def told() -> None:
            """Also request the graph's runtime, which shows that a graph made the call."""

        told.__annotations__ = {} if inner is None else annotations_of(inner)
        if not any(is_runtime(name, kind) for name, kind in self._parameters.injected.items()):
            told.__annotations__[_RUNTIME] = ToolRuntime
        return told

    @property
    def tool_call_schema(self) -> Any:
        """The schema of the arguments that a model sees."""
        inner, shown = self._inner, self._is_shown_whole
        return inner.tool_call_schema if shown and inner.args_schema else super().tool_call_schema

    @property
    def _is_shown_whole(self) -> bool:
        chosen = self._parameters.chosen
        return chosen is None or not chosen.shown

    def get_input_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """Return the schema of the inner tool, without the parameter `model`."""
        whole = self._is_shown_whole
        return self._inner.get_input_schema(config) if whole else super().get_input_schema(config)

    def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        kept = self._inner._filter_injected_args(tool_input)
        return {name: value for name, value in kept.items() if name != _RUNTIME}

    # The call of the inner tool.

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the call that :meth:`_run` gets, after the inner tool has parsed the input by its
        schema.

        Input that the schema refuses is no call.  Arguments that only a graph or the gate may write
        are checked before, because no schema can tell who wrote them.
        """
        parameters, chosen = self._parameters, self._parameters.chosen
        told: dict[str, Any] = {"tool": self._inner, "ref": tool_call_id}
        wrote = frozenset(tool_input) if isinstance(tool_input, dict) else frozenset[str]()
        if isinstance(tool_input, dict):
            foreign = set(parameters.foreign(tool_input))
            if _RUNTIME in tool_input and not isinstance(tool_input[_RUNTIME], ToolRuntime):
                foreign.add(_RUNTIME)
            if foreign:
                # The grammar does not declare these names, so every gate refuses the call (R102).
                undeclared = dict.fromkeys(sorted(foreign))
                return (
                    middleware.GuardedCall(args=(), keywords={}, arguments=undeclared, **told),
                ), {}
            tool_input = {key: one for key, one in tool_input.items() if key != _RUNTIME}
        models = {} if chosen is None else {name: name for name in chosen.models}
        if chosen is not None and chosen.written and isinstance(tool_input, dict):
            for name in chosen.models:
                whole = {**tool_input, chosen.written: name}
                models[name] = self._inner._to_args_and_kwargs(whole, tool_call_id)[1][MODEL]
            if chosen.required:
                tool_input[chosen.written] = chosen.models[0]
        args, keywords = self._inner._to_args_and_kwargs(tool_input, tool_call_id)
        args, keywords = parameters.copied(args, keywords)
        shown = keywords if chosen is None else {k: v for k, v in keywords.items() if k != MODEL}
        call = middleware.GuardedCall(
            args=args,
            keywords=keywords,
            arguments=parameters.given(args, shown, wrote) if self._is_known else {},
            wrote=None if self._is_known else wrote,
            models=None if chosen is None else models,
            takes_model=_takes_model(chosen),
            **told,
        )
        return (call,), {}

    def _at_gate(
        self, call: middleware.GuardedCall, config: RunnableConfig
    ) -> tuple[middleware.CallRecorder, middleware.GuardedCall]:
        """Return the recorder of the gate for a call, and the call with arguments as the grammar
        has them.

        Raises:
            BindingError: no gate is found, or the grammar declares an argument that a graph
                injects.
        """
        name = self._inner.name
        gate = self._recorder.source.of(config, name)
        if call.wrote is not None:
            declared = next((one for one in gate.artifact.core.tools if one.name == name), None)
            parameters = parameters_of(self._inner, declared)
            if parameters.chosen is not None:
                raise BindingError(name, "models make its calls: give `artifact` to `guard`, too")
            args, keywords = parameters.copied(call.args, call.keywords)
            arguments = parameters.given(args, keywords, call.wrote)
            call = replace(call, args=args, keywords=keywords, arguments=arguments, wrote=None)
        return self._recorder.of(gate), call

    def _run(
        self,
        call: middleware.GuardedCall,
        *,
        config: RunnableConfig,
        run_manager: CallbackManagerForToolRun | None = None,
    ) -> Any:
        """Ask the gate, run the inner tool, and record its outcome."""
        recorder, call = self._at_gate(call, config)
        more = self._takes.given(config, run_manager)
        made = self._make(recorder, call, more)
        if not isinstance(made, Pending):
            return made
        answer = recorder.asked(call, made)
        if isinstance(answer, str):
            return recorder.waiting(call, made, answer)
        failed = answer.record(recorder.gate, made)
        again = self._make(recorder, call, more)
        return recorder.waiting(call, again, failed) if isinstance(again, Pending) else again

    def _make(
        self, recorder: middleware.CallRecorder, call: middleware.GuardedCall, more: dict[str, Any]
    ) -> Any:
        """Make the call if the gate allows it; return its answer, or the question it waits for."""
        permit = recorder.permit(call)
        try:
            with permit:
                try:
                    output = self._inner._run(*call.args, **{**call.given(permit), **more})
                except Exception as error:
                    recorder.raised(permit, call, error)
                    raise
                recorder.answered(permit, call, output)
                return output
        except (Refused, Pending) as error:
            if permit.outcome is not None:  # raised by another gated call inside the tool
                raise
            return error if isinstance(error, Pending) else recorder.refused(call, error)

    async def _arun(
        self,
        call: middleware.GuardedCall,
        *,
        config: RunnableConfig,
        run_manager: AsyncCallbackManagerForToolRun | None = None,
    ) -> Any:
        """See :meth:`_run`; waits for its turn without blocking the loop."""
        recorder, call = self._at_gate(call, config)
        more = self._takes_in_task.given(config, run_manager)
        made = await self._amake(recorder, call, more)
        if not isinstance(made, Pending):
            return made
        answer = recorder.asked(call, made)
        if isinstance(answer, str):
            return recorder.waiting(call, made, answer)
        failed = await asyncio.to_thread(answer.record, recorder.gate, made)
        again = await self._amake(recorder, call, more)
        return recorder.waiting(call, again, failed) if isinstance(again, Pending) else again

    async def _amake(
        self, recorder: middleware.CallRecorder, call: middleware.GuardedCall, more: dict[str, Any]
    ) -> Any:
        """See :meth:`_make`."""
        permit = recorder.permit(call)
        try:
            async with permit:
                try:
                    output = await self._inner._arun(*call.args, **{**call.given(permit), **more})
                except Exception as error:
                    recorder.raised(permit, call, error)
                    raise
                recorder.answered(permit, call, output)
                return output
        except (Refused, Pending) as error:
            if permit.outcome is not None:
                raise
            return error if isinstance(error, Pending) else recorder.refused(call, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """The parameters of a tool's `_run` besides the arguments.

    Attributes:
        config: the name of the parameter for the configuration; None: it has none.
        manager: whether it takes the callback manager.
    """

    config: str | None
    manager: bool

    def given(self, config: RunnableConfig, run_manager: object) -> dict[str, Any]:
        """Return these parameters by name, as LangChain would pass them."""
        found: dict[str, Any] = {"run_manager": run_manager} if self.manager else {}
        if self.config is not None:
            found[self.config] = config
        return found


def _takes(function: Callable[..., Any]) -> Takes:
    hints = annotations_of(function)
    ours = (RunnableConfig, RunnableConfig.__name__)
    found = [name for name, hint in hints.items() if getattr(hint, "__origin__", hint) in ours]
    return Takes(
        config=next(iter(found), None),
        manager="run_manager" in hints,
    )


def _takes_model(chosen: ModelParameter | None) -> bool | None:
    """Return `takes_model` of :meth:`Gate.call` for a tool's parameter `model`."""
    if chosen is None:
        return False
    return True if chosen.required else None
