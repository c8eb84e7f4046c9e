"""MCP servers over stdio, all of them started before the first call and ended after the last.

Text: docs/execute.md.  The SDK is imported where there is a server.  An answer with `isError` is an
error like any other; whether it means that nothing happened is for the grammar to say.
Cost: a process a server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

from tcc_runtime.errors import BindingError


class ToolError(Exception):
    """A server answered a call with an error."""


class Servers:
    """The servers of one execution.

    Args:
        commands: of each by its name in the grammar.
    """

    def __init__(self, commands: Mapping[str, Sequence[str]]) -> None:
        self._commands = commands
        self._stack = AsyncExitStack()
        self._clients: dict[str, Any] = {}

    async def __aenter__(self) -> Servers:
        try:
            for name in self._commands:
                self._clients[name] = await self._start(name)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    def has(self, server: str) -> bool:
        """Whether there is a server of that name."""
        return server in self._clients

    async def call(
        self, server: str, tool: str, arguments: dict[str, Any], key: str, model: str
    ) -> Any:
        """What a call gives back: its structured content, else the text of its content.

        Key and model go in `_meta`: they are no arguments of the tool, and a server that does not
        know them may pass them over.

        Raises:
            ToolError: the server answered with an error.
            KeyError: there is no such server.
        """
        meta = {"tcc/idempotency-key": key, **({"tcc/model": model} if model else {})}
        answer = await self._clients[server].call_tool(tool, arguments, meta=meta)
        texts = [part.text for part in answer.content if getattr(part, "type", "") == "text"]
        if answer.is_error:
            raise ToolError(f"{tool}: {' '.join(texts)[:200]}")
        return answer.structured_content if answer.structured_content is not None else texts

    async def _start(self, name: str) -> Any:
        command = self._commands[name]
        if isinstance(command, str) or not command:
            raise BindingError(name, "a command is a list of texts, not empty")
        try:
            from mcp import Client, StdioServerParameters
        except ImportError:
            said = "MCP servers need the extra: pip install '.[mcp]' from a checkout"
            raise BindingError(name, said) from None
        told = StdioServerParameters(command=command[0], args=list(command[1:]))
        return await self._stack.enter_async_context(Client(told))
