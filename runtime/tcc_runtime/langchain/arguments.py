"""What a tool is run with, as the JSON values that a gate decides on.

A tool's schema turns what a model wrote into what the function gets: it coerces, renames and fills
in.  A gate has to decide on what the function gets, so this is read off after the schema.
Text: docs/langgraph.md.  Cost: linear in the arguments.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from langchain_core.tools import BaseTool, Tool
from langchain_core.utils.pydantic import get_fields
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from tcc_certs.core.model import Tool as CoreTool
from tcc_runtime.gate.snapshot import snapshot

_DEPTH = 64
# Names that langchain drops from what it reports, though a model may write them.
_DROPPED = ("run_manager", "callbacks")
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of a tool of LangChain, beside those of the grammar's tool.

    Attributes:
        tool: the one of LangChain.
        optional, required: names that the grammar declares.
        defaults: what the schema fills in, by the names of its fields.
        aliases: names that a model writes, by the names of fields.
    """

    tool: BaseTool
    optional: frozenset[str]
    required: frozenset[str]
    defaults: Mapping[str, object]
    aliases: Mapping[str, str]

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


def parameters_of(tool: BaseTool, declared: CoreTool) -> Parameters:
    """The parameters of a tool, read once."""
    fields: Mapping[str, Any] = getattr(tool.get_input_schema(), "model_fields", {})
    known = {p.name: p.optional for p in declared.parameters if not p.observed}
    known |= {p.name: p.optional for p in declared.opened}
    return Parameters(
        tool=tool,
        optional=frozenset(name for name, optional in known.items() if optional),
        required=frozenset(name for name, optional in known.items() if not optional),
        defaults={
            name: field.default
            for name, field in fields.items()
            if not field.is_required() and field.default_factory is None
        },
        aliases={name: field.alias for name, field in fields.items() if field.alias},
    )


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
