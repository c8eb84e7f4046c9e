"""Tools that ask a gate: each call is decided inside the tool, after everything that may change it.

A graph may call tools in parallel, rewrite their arguments, jump, retry, resume and travel back
in time.  None of this is trusted: what a tool's function is about to be run with is decided there,
one call at a time, and recorded in the session's ledger before the function is run.  A call that
the ledger has by its id is not made again.

A tool's schema turns what a model wrote into what the function gets: it coerces, renames and fills
in.  A gate has to decide on what the function gets, so this is read off after the schema.  What a
graph injects, and the name of the model that makes a call, come from the graph and from the gate
alone: a caller that writes them writes an argument that nobody has declared.
Text: docs/langgraph.md.  Cost: linear in the arguments, one decision of the gate, and its records.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, get_args, get_origin, get_type_hints

from langchain_core.callbacks import AsyncCallbackManagerForToolRun, CallbackManagerForToolRun
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.tools.base import get_all_basemodel_annotations
from langchain_core.utils.pydantic import TypeBaseModel, get_fields
from langgraph.prebuilt import InjectedState, ToolRuntime
from pydantic import BaseModel, PrivateAttr, create_model
from pydantic_core import PydanticSerializationError, to_jsonable_python

from tcc_certs.core.model import Tool as CoreTool
from tcc_certs.core.model import executing
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import NEEDS_MODEL, OWN_MODEL, BindingError
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.policy import snapshot
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.wrapping import MODEL
from tcc_runtime.langchain.middleware import (
    CallRecorder,
    GateSource,
    GuardedCall,
    Interrupts,
    Observe,
    PermitRecorder,
    Results,
    members,
)

# What a tool is run with, as the JSON values that a gate decides on.

_DEPTH = 64
# Names that langchain drops from what it reports, though a model may write them.
_DROPPED = ("run_manager", "callbacks")
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolParameters:
    """The parameters of a tool of LangChain, beside those of the grammar's tool.

    Attributes:
        tool: the one of LangChain.
        optional, required: names that the grammar declares.
        defaults: what the schema fills in, by the names of its fields.
        aliases: names that a model writes, by the names of fields.
        injected: annotations of what a graph injects, by the names of parameters.
        chosen: the parameter that is given the model that makes the call; None: there is none.
    """

    tool: BaseTool
    optional: frozenset[str]
    required: frozenset[str]
    defaults: Mapping[str, object]
    aliases: Mapping[str, str]
    injected: Mapping[str, object]
    chosen: ModelParameter | None

    def foreign(self, written: Mapping[str, Any]) -> frozenset[str]:
        """The names that a caller wrote, and that a graph or the gate alone may fill in.

        A graph shows itself by its runtime, an object that no text stands for; it has taken out
        what else was written under such a name.
        """
        hidden = frozenset[str]() if self.chosen is None else self.chosen.names
        runtime = next((v for v in written.values() if isinstance(v, ToolRuntime)), None)
        names = {self.aliases.get(name, name): kind for name, kind in self.injected.items()}
        names |= self.injected
        return frozenset(
            name
            for name, value in written.items()
            if name in hidden or (name in names and not _is_of(runtime, names[name], value))
        )

    def copied(
        self, args: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same, with copies of what others may change; what a graph injects stays as it is."""
        own = self.tool._filter_injected_args(dict(keywords))
        copies = {
            name: value if value is self.defaults.get(name, _MISSING) else _copy(value)
            for name, value in own.items()
        }
        return tuple([_copy(value) for value in args]), {**keywords, **copies}

    def given(
        self, args: tuple[Any, ...], keywords: Mapping[str, Any], wrote: Collection[str]
    ) -> dict[str, Any]:
        """The arguments by name, without what a graph injects.

        Args:
            args, keywords: what the function gets.
            wrote: the names that the caller wrote.

        Raises:
            ValueError: there is no name for one of `args`.
        """
        visible = self.tool._filter_injected_args(dict(keywords))
        visible |= {name: keywords[name] for name in _DROPPED if name in keywords}
        found = {}
        for field, value in visible.items():
            name = self._name(field)
            left_out = field not in wrote and value is self.defaults.get(field, _MISSING)
            if not (left_out or self._is_absent(name, field, value)) or name in self.required:
                found[name] = json_value(value)
        if args:
            names = self._positions()
            if len(args) > len(names):
                raise ValueError(f"{self.tool.name}: an argument has no name")
            found |= {name: json_value(value) for name, value in zip(names, args, strict=False)}
        return found

    def _is_absent(self, name: str, field: str, value: object) -> bool:
        """Whether None is written for what the tool takes as left out, too."""
        return value is None and name in self.optional and self.defaults.get(field, 0) is None

    def _name(self, field: str) -> str:
        if field in self.required or field in self.optional:
            return field
        alias = self.aliases.get(field, field)
        return alias if alias in self.required or alias in self.optional else field

    def _positions(self) -> list[str]:
        if isinstance(self.tool, Tool) or isinstance(self.tool.args_schema, dict):
            return list(self.tool.args)
        return list(get_fields(self.tool.get_input_schema()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParameter:
    """The parameter of a tool that is given the model that makes its call.

    Attributes:
        shown: whether the tool's own schema shows it.
        written: the name that its arguments are parsed under; empty where nothing parses it.
        names: those that whoever calls the tool may not write.
        required: whether the function cannot be called without.
        models: that may make calls, in the grammar's order.
    """

    shown: bool
    written: str
    names: frozenset[str]
    required: bool
    models: tuple[str, ...]


def parameters_of(tool: BaseTool, declared: CoreTool | None) -> ToolParameters:
    """The parameters of a tool, read once.

    Args:
        declared: the grammar's tool; None: the grammar is not known yet, or has no such tool.

    Raises:
        BindingError: the grammar declares a parameter that a graph injects.
    """
    fields: Mapping[str, Any] = getattr(tool.get_input_schema(), "model_fields", {})
    known: dict[str, bool] = {}
    if declared is not None:
        known = {p.name: p.optional for p in declared.parameters if not p.observed and p.at is None}
        known |= {p.name: p.optional for p in declared.opened if p.at is None}
    injected = _injected(tool)
    both = sorted(injected.keys() & known.keys())
    if both:
        raise BindingError(tool.name, f"{both[0]!r} is declared, and it is injected by a graph")
    return ToolParameters(
        tool=tool,
        optional=frozenset(name for name, optional in known.items() if optional),
        required=frozenset(name for name, optional in known.items() if not optional),
        defaults={
            name: field.default
            for name, field in fields.items()
            if not field.is_required() and field.default_factory is None
        },
        aliases={name: field.alias for name, field in fields.items() if field.alias},
        injected=injected,
        chosen=None if declared is None or MODEL in known else _chosen(tool, declared),
    )


def _functions(tool: BaseTool) -> list[Any]:
    """What is called in the end: functions that were handed in, else those of the tool's class."""
    given = [getattr(tool, name, None) for name in ("func", "coroutine")]
    own = type(tool)._arun is not BaseTool._arun
    return [found for found in given if found is not None] or [tool._run, *[tool._arun] * own]


def _injected(tool: BaseTool) -> dict[str, object]:
    """The annotations of parameters that a graph injects, by name."""
    found: dict[str, object] = {}
    for function in _functions(tool):
        found |= annotations_of(function)
    schema = tool.args_schema
    if isinstance(schema, type):
        found |= get_all_basemodel_annotations(schema)
    kept = tool._filter_injected_args(dict.fromkeys(found))
    return {name: kind for name, kind in found.items() if name not in (*kept, *_DROPPED)}


def annotations_of(function: Any) -> dict[str, Any]:
    """The annotations of a function's parameters, as texts where they mean nothing here."""
    parameters = inspect.signature(function).parameters
    found: dict[str, Any] = {name: one.annotation for name, one in parameters.items()}
    # Without them, names stay that only a type checker sees.
    with suppress(AttributeError, NameError, TypeError):
        found |= get_type_hints(function, include_extras=True)
    found.pop("return", None)
    return found


def is_runtime(name: str, kind: object) -> bool:
    """Whether a graph gives a parameter of that name and annotation its runtime."""
    return name == "runtime" or ToolRuntime in (kind, get_origin(kind), *get_args(kind))


def _chosen(tool: BaseTool, declared: CoreTool) -> ModelParameter | None:
    """The parameter `model` of a tool whose calls models make; None: it has none."""
    models = tuple(model.name for model in executing(declared.models))
    taking = [inspect.signature(function).parameters.get(MODEL) for function in _functions(tool)]
    schema = tool.args_schema
    fields: Mapping[str, Any] = {}
    if isinstance(schema, dict):
        fields = schema.get("properties", {})
    elif schema is not None:
        fields = get_fields(schema)
    if not models or (MODEL not in fields and not all(taking)):
        return None
    written = MODEL if MODEL in fields else ""
    if isinstance(schema, dict):
        required = MODEL in schema.get("required", ())
    elif written:
        required = fields[MODEL].is_required()
        written = fields[MODEL].alias or written
    else:
        required = any(one is not None and one.default is one.empty for one in taking)
    names = frozenset((MODEL, written)) - {""}
    shown = bool(written) or (schema is None and not isinstance(tool, Tool))
    return ModelParameter(
        shown=shown, written=written, names=names, required=required, models=models
    )


def without_model(schema: Any, name: str) -> Any:
    """A tool's schema as callers are shown it: without the parameter `model`.

    Raises:
        BindingError: it is of pydantic's first version.
    """
    if isinstance(schema, dict):
        rest = {key: value for key, value in schema["properties"].items() if key != MODEL}
        required = [one for one in schema.get("required", ()) if one != MODEL]
        return {**schema, "properties": rest, "required": required}
    if not issubclass(schema, BaseModel):
        raise BindingError(name, "models make its calls: its schema has to be one of pydantic 2")
    kept: dict[str, Any] = {
        field: (info.annotation, info)
        for field, info in schema.model_fields.items()
        if field != MODEL
    }
    told: dict[str, Any] = {"__config__": schema.model_config, "__doc__": schema.__doc__}
    return create_model(schema.__name__, **told, **kept)


def _is_of(runtime: ToolRuntime[Any, Any] | None, kind: object, value: object) -> bool:
    """Whether a value is what a graph of that runtime injects for an annotation."""
    if runtime is None:
        return False
    if value is runtime or value is runtime.store:
        return True
    state: Any = runtime.state
    marks = [mark for mark in get_args(kind) if isinstance(mark, InjectedState)]
    field = marks[0].field if marks else None
    if field:
        found = state.get(field) if isinstance(state, dict) else getattr(state, field, state)
        return value is found
    whole = [*value.values()] if isinstance(value, dict) and len(value) == 1 else []
    return value is state or (isinstance(state, list) and [id(one) for one in whole] == [id(state)])


def _copy(value: Any) -> Any:
    return value.model_copy(deep=True) if isinstance(value, BaseModel) else snapshot(value)


def json_value(value: object, depth: int = _DEPTH) -> Any:
    """A value as one of JSON's own types; what has no such form stays, and a gate refuses it."""
    if depth <= 0 or value is None or type(value) in (bool, str, int, float, Decimal):
        return value
    if isinstance(value, enum.Enum):
        return json_value(value.value, depth - 1)
    if isinstance(value, BaseModel):
        return json_value(value.model_dump(by_alias=True), depth - 1)
    if isinstance(value, dict):
        return {json_value(name, 1): json_value(item, depth - 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item, depth - 1) for item in value]
    if isinstance(value, set | frozenset | bytes | bytearray):
        return value
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, TypeError, ValueError):
        return value


# Tools that ask a gate.

_RUNTIME: Final = "tcc_runtime_of_the_graph"  # of a graph: a parameter that no tool has
_OWN = ("run", "arun", "invoke", "ainvoke", "stream", "astream", "batch", "abatch")


def guard(
    tools: Sequence[BaseTool],
    gate: Gate | Callable[[RunnableConfig], Gate],
    *,
    artifact: Artifact | None = None,
    results: Results | None = None,
    observe: Observe | None = None,
    interrupts: Interrupts = "unknown",
) -> list[BaseTool]:
    """The same tools, each of which asks `gate` before it runs.

    Args:
        tools: tools of LangChain; their names are those of the grammar's tools.
        gate: the session: one gate for all tools of an agent; or a callable that gives the gate for
            the `RunnableConfig` of a call, for one graph that serves many threads.  A call without
            a config, or for which it gives no gate of the same artifact, is not made.
        artifact: with a callable, what its gates hold to, so that tools are compared with the
            grammar here; None compares each at its first call.  Where models make calls it is
            needed.
        results: the owner's store of answers by tool-call id: a call that was done before, such as
            after travelling back in time, is answered from it and not made again.  Without it such
            a call is refused.
        observe: from a tool's name and its answer to its observed values.  Without it they are the
            members of the answer, where it is an object or a text that is the JSON of one.
        interrupts: what an interrupt raised inside a tool means: ``unknown``, for it may have
            acted; or ``failed``, where your tools interrupt before they act, and then the call is
            made when the graph is resumed.

    Raises:
        BindingError: a tool that the grammar does not have, one that is given twice, or one whose
            class does something around its `_run` that no gate would see; one whose calls models
            make by the gate's budget, and that has no parameter `model` beside the grammar's.
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
    recorder = PermitRecorder(
        source=GateSource(gate=gate, digest=None if held is None else held.digest),
        results=results,
        observe=members if observe is None else observe,
        interrupts=interrupts,
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
    """A class that replaces how tools are run may never come to where the gate is asked."""
    if isinstance(tool, GuardedTool):
        raise BindingError(tool.name, "it is guarded already")
    for name in _OWN:
        own = getattr(type(tool), name)
        if all(own is not getattr(known, name) for known in (BaseTool, StructuredTool, Tool)):
            raise BindingError(tool.name, f"its class replaces {name}: give a plain tool")


def _guarded(
    tool: BaseTool, recorder: PermitRecorder, parameters: ToolParameters, *, is_known: bool
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
    """A tool that runs only what its gate lets through; made by :func:`guard`."""

    _inner: BaseTool = PrivateAttr()
    _recorder: PermitRecorder = PrivateAttr()
    _parameters: ToolParameters = PrivateAttr()
    _is_known: bool = PrivateAttr()  # whether the grammar's tool is in `_parameters`
    _takes: Takes = PrivateAttr()
    _takes_in_task: Takes = PrivateAttr()

    # What others read off a tool is the tool's inside.

    @property
    def func(self) -> object:
        """Where a graph looks for the arguments that it injects; not to be called."""
        inner = getattr(self._inner, "func", None) or getattr(self._inner, "coroutine", None)
        if not self._parameters.injected:
            return inner

        def told() -> None:
            """Asks for the graph's runtime beside them: so a call by hand is told from one."""

        told.__annotations__ = {} if inner is None else annotations_of(inner)
        if not any(is_runtime(name, kind) for name, kind in self._parameters.injected.items()):
            told.__annotations__[_RUNTIME] = ToolRuntime
        return told

    @property
    def tool_call_schema(self) -> Any:
        """What a model is told of the arguments."""
        inner, shown = self._inner, self._is_shown_whole
        return inner.tool_call_schema if shown and inner.args_schema else super().tool_call_schema

    @property
    def _is_shown_whole(self) -> bool:
        chosen = self._parameters.chosen
        return chosen is None or not chosen.shown

    def get_input_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """The schema of the tool inside, without the parameter `model`."""
        whole = self._is_shown_whole
        return self._inner.get_input_schema(config) if whole else super().get_input_schema(config)

    def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        kept = self._inner._filter_injected_args(tool_input)
        return {name: value for name, value in kept.items() if name != _RUNTIME}

    # What runs.

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The tool's own schema comes first: what it refuses is no call.

        Before it, what only a graph or the gate may write: no schema can tell who wrote it.
        """
        parameters, chosen = self._parameters, self._parameters.chosen
        told: dict[str, Any] = {"tool": self._inner, "ref": tool_call_id}
        wrote = frozenset(tool_input) if isinstance(tool_input, dict) else frozenset[str]()
        if isinstance(tool_input, dict):
            foreign = set(parameters.foreign(tool_input))
            if _RUNTIME in tool_input and not isinstance(tool_input[_RUNTIME], ToolRuntime):
                foreign.add(_RUNTIME)
            if foreign:
                # Nothing declares them, so no gate lets this through.
                undeclared = dict.fromkeys(sorted(foreign))
                return (GuardedCall(args=(), keywords={}, arguments=undeclared, **told),), {}
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
        call = GuardedCall(
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
        self, call: GuardedCall, config: RunnableConfig
    ) -> tuple[CallRecorder, GuardedCall]:
        """The gate of a call, and the call as that gate's grammar has its arguments.

        Raises:
            BindingError: there is no gate; or the grammar declares what a graph injects.
        """
        name = self._inner.name
        gate = self._recorder.source.of(config, name)
        if call.wrote is not None:
            declared = next((one for one in gate.artifact.core.tools if one.name == name), None)
            parameters = parameters_of(self._inner, declared)
            if parameters.chosen is not None:
                raise BindingError(name, "models make its calls: give `artifact` to `guard`, too")
            arguments = parameters.given(call.args, call.keywords, call.wrote)
            call = replace(call, arguments=arguments, wrote=None)
        return self._recorder.of(gate), call

    def _run(
        self,
        call: GuardedCall,
        *,
        config: RunnableConfig,
        run_manager: CallbackManagerForToolRun | None = None,
    ) -> Any:
        """Asks, runs the tool inside, records its outcome."""
        inner = self._inner
        recorder, call = self._at_gate(call, config)
        permit = recorder.permit(call)
        try:
            with permit:
                try:
                    more = self._takes.given(config, run_manager)
                    output = inner._run(*call.args, **{**call.given(permit), **more})
                except Exception as error:
                    recorder.raised(permit, call, error)
                    raise
                recorder.answered(permit, call, output)
                return output
        except Refused as refusal:
            if permit.outcome is not None:  # of something else that the tool asked for inside
                raise
            return recorder.refused(call, refusal)

    async def _arun(
        self,
        call: GuardedCall,
        *,
        config: RunnableConfig,
        run_manager: AsyncCallbackManagerForToolRun | None = None,
    ) -> Any:
        """As :meth:`_run`; waits for its turn without holding up the loop."""
        inner = self._inner
        recorder, call = self._at_gate(call, config)
        permit = recorder.permit(call)
        try:
            async with permit:
                try:
                    more = self._takes_in_task.given(config, run_manager)
                    output = await inner._arun(*call.args, **{**call.given(permit), **more})
                except Exception as error:
                    recorder.raised(permit, call, error)
                    raise
                recorder.answered(permit, call, output)
                return output
        except Refused as refusal:
            if permit.outcome is not None:
                raise
            return recorder.refused(call, refusal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """What a tool's `_run` takes beside its arguments.

    Attributes:
        config: the name of the parameter for the configuration; None: there is none.
        manager: whether it takes the manager of callbacks.
    """

    config: str | None
    manager: bool

    def given(self, config: RunnableConfig, run_manager: object) -> dict[str, Any]:
        """The same, as LangChain would give it."""
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
    """What the gate is told of the tool's parameter `model`."""
    if chosen is None:
        return False
    return True if chosen.required else None
