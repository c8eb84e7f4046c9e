"""The arguments that a LangChain tool is run with, as JSON values that a gate decides on.

A tool's schema turns the text of a model into the arguments of the function: it coerces, renames
and fills in.  A gate must decide on the arguments of the function, so they are read after the
schema was applied.  Arguments that a graph injects, and the name of the model that makes a call,
come only from the graph and from the gate.  If a caller writes them, they are undeclared arguments.
Text: docs/langgraph.md.  Cost: linear in the arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from langchain_core.tools import BaseTool, Tool
from langchain_core.tools.base import get_all_basemodel_annotations
from langchain_core.utils.pydantic import get_fields
from langgraph.prebuilt import InjectedState, ToolRuntime
from pydantic import BaseModel, create_model

from tcc_certs.policy.core import Tool as CoreTool
from tcc_certs.policy.plans import executing
from tcc_runtime.errors import BindingError
from tcc_runtime.gate.arguments import is_member
from tcc_runtime.gate.arguments.pydantic_values import json_and_copy
from tcc_runtime.gate.wrapping import MODEL

# Names that langchain leaves out of the arguments that it reports, although a model may write them.
_DROPPED = ("run_manager", "callbacks")
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolParameters:
    """The parameters of a LangChain tool, compared with those of the grammar's tool.

    Attributes:
        tool: the LangChain tool.
        optional, required: the names that the grammar declares.
        defaults: the defaults of the schema, by field name.
        aliases: the names that a model writes, by field name.
        injected: the annotations of arguments that a graph injects, by parameter name.
        chosen: the parameter for the model that makes the call; None: the tool has none.
    """

    tool: BaseTool
    optional: frozenset[str]
    required: frozenset[str]
    defaults: Mapping[str, object]
    aliases: Mapping[str, str]
    injected: Mapping[str, object]
    chosen: ModelParameter | None

    def foreign(self, written: Mapping[str, Any]) -> frozenset[str]:
        """Return the names that a caller wrote although only a graph or the gate may fill them in.

        A graph passes its runtime, an object that no text can represent.  The graph has already
        removed other values under such names.
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
        """Return the arguments with copies for the tool.  Injected arguments are not copied.

        A default that is left out of the call's arguments is not copied either.
        """
        own = self.tool._filter_injected_args(dict(keywords))
        copies = {
            field: json_and_copy(value)[1]
            for field, value in own.items()
            if value is not self.defaults.get(field, _MISSING) or self._name(field) in self.required
        }
        return tuple([json_and_copy(value)[1] for value in args]), {**keywords, **copies}

    def given(
        self, args: tuple[Any, ...], keywords: Mapping[str, Any], wrote: Collection[str]
    ) -> dict[str, Any]:
        """Return the arguments as JSON values by name, without those that a graph injects.

        Args:
            args, keywords: the arguments of the function.
            wrote: the names that the caller wrote.

        Raises:
            ValueError: one of `args` has no name.
        """
        visible = self.tool._filter_injected_args(dict(keywords))
        visible |= {name: keywords[name] for name in _DROPPED if name in keywords}
        found = {}
        for field, value in visible.items():
            name = self._name(field)
            left_out = field not in wrote and value is self.defaults.get(field, _MISSING)
            if not (left_out or self._is_absent(name, field, value)) or name in self.required:
                found[name] = json_and_copy(value)[0]
        if args:
            names = self._positions()
            if len(args) > len(names):
                raise ValueError(f"{self.tool.name}: an argument has no name")
            found |= {
                name: json_and_copy(value)[0] for name, value in zip(names, args, strict=False)
            }
        return found

    def _is_absent(self, name: str, field: str, value: object) -> bool:
        """Return whether None stands for an optional argument that was left out."""
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
    """The parameter of a tool that gets the model that makes the call.

    Attributes:
        shown: whether the tool's own schema has the parameter.
        written: the name under which the schema parses it; empty: the schema does not parse it.
        names: the names that callers of the tool may not write.
        required: whether the function requires it.
        models: the models that may make calls, in the grammar's order.
    """

    shown: bool
    written: str
    names: frozenset[str]
    required: bool
    models: tuple[str, ...]


def parameters_of(tool: BaseTool, declared: CoreTool | None) -> ToolParameters:
    """Return the parameters of a tool.

    Args:
        declared: the grammar's tool; None: the grammar is not known yet, or has no such tool.

    Raises:
        BindingError: the grammar declares an argument that a graph injects.
    """
    fields: Mapping[str, Any] = getattr(tool.get_input_schema(), "model_fields", {})
    known: dict[str, bool] = {}
    if declared is not None:
        known = {one.name: one.optional for one in declared.arguments if is_member(one)}
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
    """Return the functions that run in the end: those given to the tool, else those of its
    class.
    """
    given = [getattr(tool, name, None) for name in ("func", "coroutine")]
    own = type(tool)._arun is not BaseTool._arun
    return [found for found in given if found is not None] or [tool._run, *[tool._arun] * own]


def _injected(tool: BaseTool) -> dict[str, object]:
    """Return the annotations of parameters that a graph injects, by name."""
    found: dict[str, object] = {}
    for function in _functions(tool):
        found |= annotations_of(function)
    schema = tool.args_schema
    if isinstance(schema, type):
        found |= get_all_basemodel_annotations(schema)
    kept = tool._filter_injected_args(dict.fromkeys(found))
    return {name: kind for name, kind in found.items() if name not in (*kept, *_DROPPED)}


def annotations_of(function: Any) -> dict[str, Any]:
    """Return the annotations of a function's parameters; those that cannot be resolved stay
    texts.
    """
    parameters = inspect.signature(function).parameters
    found: dict[str, Any] = {name: one.annotation for name, one in parameters.items()}
    # Names that only a type checker sees cannot be resolved.
    with suppress(AttributeError, NameError, TypeError):
        found |= get_type_hints(function, include_extras=True)
    found.pop("return", None)
    return found


def is_runtime(name: str, kind: object) -> bool:
    """Return whether a graph passes its runtime to a parameter of this name and annotation."""
    return name == "runtime" or ToolRuntime in (kind, get_origin(kind), *get_args(kind))


def _chosen(tool: BaseTool, declared: CoreTool) -> ModelParameter | None:
    """Return the parameter `model` of a tool whose calls models make; None: the tool has none."""
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
    """Return a tool's schema for callers, without the parameter `model`.

    Raises:
        BindingError: the schema is of pydantic 1.
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
    """Return whether a value is the one that a graph with this runtime injects for an
    annotation.
    """
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
