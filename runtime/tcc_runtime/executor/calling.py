"""Calls a tool with a deadline: in this process, or on an MCP server over stdio.

Text: docs/execute.md.  A call ends as done, failed, or unknown.  A function that is no coroutine
runs in a thread of its own: past its deadline it cannot be stopped, and nothing waits for it.
Servers start before the first call and end after the last one; the MCP SDK is imported only where
there is a server.  An answer with `isError` is an error; whether it means that nothing happened is
for the grammar to say.
Cost: a thread for each call of a plain function; a process for each server.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from tcc_certs.session.machine import Outcome
from tcc_runtime.errors import BindingError
from tcc_runtime.executor.binding import KEY, MODEL, Bound, Failed
from tcc_runtime.gate.permit import Took


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """How a call ended.

    Attributes:
        outcome: as the gate is told.
        result: what came back.
        reason: why it is not known to be done, for who asked for the call: a tool's words may
            quote its arguments.
        logged: the same in words of our own, for logs.
        took: what it took, as it says; None: it says nothing.
    """

    outcome: Outcome
    result: object = None
    reason: str = ""
    logged: str = ""
    took: Took | None = None


async def called(
    bound: Bound, arguments: Mapping[str, Any], key: str, deadline: float | None, model: str = ""
) -> CallResult:
    """Calls a tool and waits for what comes back, `deadline` seconds at most."""
    given = {**arguments, KEY: key} if bound.takes_key else dict(arguments)
    if bound.takes_model:
        given[MODEL] = model
    try:
        async with asyncio.timeout(deadline):
            result = bound.function(**given) if bound.in_task else await _in_thread(bound, given)
            if inspect.isawaitable(result):
                result = await result
    except Failed as error:
        return CallResult(outcome="failed", reason=str(error), logged=type(error).__name__)
    except TimeoutError as error:
        # The deadline's or the tool's own: whether it has happened is not known either way.
        reason = "the deadline has passed" if str(error) == "" else str(error)
        return CallResult(outcome="unknown", reason=reason, logged=type(error).__name__)
    except Exception as error:  # noqa: BLE001 - whatever a tool raises says the same
        return _raised("failed" if bound.errors_failed else "unknown", error)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # sys.exit() of a tool is no end of ours
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        return _raised("unknown", error)
    if isinstance(result, Took):
        return CallResult(outcome="done", result=result.result, took=result)
    return CallResult(outcome="done", result=result)


def _raised(outcome: Outcome, error: BaseException) -> CallResult:
    name = type(error).__name__
    return CallResult(outcome=outcome, reason=f"{name}: {error}", logged=name)


def _is_cancelled() -> bool:
    """Whether somebody cancels this task; a tool may raise the same error by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _in_thread(bound: Bound, given: Mapping[str, Any]) -> Any:
    """What a plain function gives back; a thread that nobody waits for any more dies with us."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def tell(result: object, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        result: object = None
        raised: BaseException | None = None
        try:
            result = context.run(bound.function, **given)
        except (StopIteration, GeneratorExit) as error:  # which no future, no coroutine takes
            raised = RuntimeError(f"the tool raised {error!r}")
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            raised = error
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(tell, result, raised)
            except RuntimeError:  # the loop was closed just now
                return

    threading.Thread(target=work, daemon=True, name="tcc-tool").start()
    return await future


# MCP servers of an execution.


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
            said = "MCP servers need the extra: pip install 'tcc[mcp]'"
            raise BindingError(name, said) from None
        told = StdioServerParameters(command=command[0], args=list(command[1:]))
        return await self._stack.enter_async_context(Client(told))
