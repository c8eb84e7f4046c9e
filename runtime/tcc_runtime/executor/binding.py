"""Functions of tools: the caller passes them, or the grammar binds them.

Text: docs/execute.md.  A function takes the arguments by name.  If it has an additional parameter
``idempotency_key``, it also gets the key of the call.  Such a function is trusted to act only once
for each key.  If models make the calls of a tool, its function needs an additional parameter
``model``, which gets the chosen model.  ``bind python "module:function"`` is imported.
``bind mcp "server" "tool"`` is called on a server that the caller names.  Cost: the import of a
module.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from tcc_certs.formats.codec import decode
from tcc_certs.policy.plans import executing
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import NEEDS_MODEL, OWN_MODEL, BindingError
from tcc_runtime.gate.wrapping import KEY, MODEL

Function: TypeAlias = "Callable[..., Any]"


class RemoteTools(Protocol):
    """Tools of MCP servers."""

    def has(self, server: str) -> bool:
        """Return whether a server with this name exists."""
        ...

    def call(
        self, server: str, tool: str, arguments: dict[str, Any], key: str, model: str
    ) -> Awaitable[Any]:
        """Make a call and return an awaitable of its result; `model` is empty if no model was
        chosen.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The function of a tool.

    Attributes:
        function: takes the arguments by name.
        in_task: whether its result has to be awaited.
        takes_key: whether it gets the key.
        takes_model: whether it gets the name of the model that makes the call.
        once: whether it acts once for each key.
        errors_failed: whether an error means that nothing happened.
        error_text: the pattern of answers that are texts and report an error.
    """

    function: Function
    in_task: bool
    takes_key: bool
    takes_model: bool
    once: bool
    errors_failed: bool
    error_text: str | None = None


class Bindings:
    """The tools of an artifact, each bound when it is first called.

    Args:
        tools: functions of the caller, by tool name; they override the grammar.
        once: names of tools that act once for each key.
        remote: the tools of servers; None: the caller passed no server.
    """

    def __init__(
        self,
        artifact: Artifact,
        tools: Mapping[str, Function] | None,
        once: Collection[str],
        remote: RemoteTools | None,
    ) -> None:
        self._core = {tool.name: tool for tool in artifact.core.tools}
        self._given = {} if tools is None else dict(tools)
        self._once = frozenset(once)
        self._remote = remote
        self._declared = declared_bindings(artifact)
        self._bound: dict[str, Bound] = {}
        for name in (*self._given, *self._once):
            if name not in self._core:
                raise BindingError(name, "the grammar has no such tool")

    def of(self, name: str) -> Bound:
        """Return the function of a tool.

        Raises:
            BindingError: nothing is bound to the tool.
        """
        found = self._bound.get(name)
        if found is None:
            found = self._bound[name] = self._bind(name)
        return found

    def _bind(self, name: str) -> Bound:
        function, declared = self._given.get(name), self._declared.get(name, {})
        if function is None and declared.get("kind") == "mcp":
            return self._served(name, str(declared["server"]), str(declared["tool"]))
        if function is None and declared.get("kind") == "python":
            function = imported(name, str(declared["target"]))
        if function is None:
            raise BindingError(name, "give a function for it, or bind it in the grammar")
        if not callable(function):
            raise BindingError(name, f"{type(function).__name__} is nothing to call")
        tool = self._core[name]
        own = {field.name for field in tool.arguments if field.steps == (field.name,)}
        takes_key = KEY not in own and _takes(function, KEY)
        made = bool(executing(tool.models))
        if made and MODEL in own:
            raise BindingError(name, OWN_MODEL)
        if made and not _takes(function, MODEL):
            raise BindingError(name, NEEDS_MODEL)
        return Bound(
            function=function,
            in_task=inspect.iscoroutinefunction(function),
            takes_key=takes_key,
            takes_model=made,
            once=takes_key or name in self._once,
            errors_failed=tool.errors_failed,
            error_text=tool.error_text,
        )

    def _served(self, name: str, server: str, tool: str) -> Bound:
        remote = self._remote
        if remote is None or not remote.has(server):
            raise BindingError(name, f"no command was given for the server {server!r}")

        async def call(key: str, model: str, arguments: dict[str, Any]) -> Any:
            return await remote.call(server, tool, arguments, key, model)

        made = bool(executing(self._core[name].models))

        def function(**arguments: Any) -> Awaitable[Any]:
            model = arguments.pop(MODEL) if made else ""
            return call(arguments.pop(KEY), model, arguments)

        return Bound(
            function=function,
            in_task=True,
            takes_key=True,
            takes_model=made,
            once=name in self._once,
            errors_failed=self._core[name].errors_failed,
            error_text=self._core[name].error_text,
        )


def imported(name: str, target: str) -> Function:
    """Import the function that the grammar binds a tool to.

    Raises:
        BindingError: the function does not exist, or the module cannot be imported.
    """
    module, _, path = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise BindingError(name, f"the import of {module}: {error}") from error
        raise BindingError(name, f"there is no module {module}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # foreign code, which may even exit
        said = f"{type(error).__name__}: {error}"
        raise BindingError(name, f"the import of {module}: {said}") from error
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise BindingError(name, f"{target} is no function")
    function: Function = found
    return function


def _takes(function: Function, name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a built-in function may have no signature
        return False
    return name in parameters


def declared_bindings(artifact: Artifact) -> dict[str, Mapping[str, Any]]:
    """Return the bindings of the grammar by the names of tools."""
    tools = decode(bytes(artifact.file.columns["tools"].data), "tools")
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(bind := tool.get("bind"), dict):
            found[str(tool["name"])] = bind
    return found
