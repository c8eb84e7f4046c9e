"""One call of a tool, with a deadline: what came back, that it failed, or that nobody knows.

Text: docs/execute.md.  A function that is no coroutine is called in a thread of its own: what is
past its deadline cannot be stopped, and is left to end by itself; nothing waits for it.
Cost: a thread a call of a plain function.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcc_runtime.executor.binding import KEY, MODEL, Bound, Failed
from tcc_runtime.gate.session import Outcome
from tcc_runtime.gate.took import Took


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
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
) -> Ended:
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
        return Ended(outcome="failed", reason=str(error), logged=type(error).__name__)
    except TimeoutError as error:
        # The deadline's or the tool's own: whether it has happened is not known either way.
        reason = "the deadline has passed" if str(error) == "" else str(error)
        return Ended(outcome="unknown", reason=reason, logged=type(error).__name__)
    except Exception as error:  # noqa: BLE001 - whatever a tool raises says the same
        return _raised("failed" if bound.errors_failed else "unknown", error)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # sys.exit() of a tool is no end of ours
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        return _raised("unknown", error)
    if isinstance(result, Took):
        return Ended(outcome="done", result=result.result, took=result)
    return Ended(outcome="done", result=result)


def _raised(outcome: Outcome, error: BaseException) -> Ended:
    name = type(error).__name__
    return Ended(outcome=outcome, reason=f"{name}: {error}", logged=name)


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
