"""The open arguments of a call, from whoever wants it done.

Text: docs/execute.md.  Either a mapping from tools to their open arguments, or a callable that is
asked before each call.  Whether they are what the grammar asks for is for the gate to say.  They
are copied before it is asked, so that the tool gets what was decided on.
Cost: linear in the arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from tcc_runtime.executor.course import Step
from tcc_runtime.gate.snapshot import snapshot

Opened: TypeAlias = "Mapping[str, Any]"
Source: TypeAlias = (
    "Mapping[str, Opened] | Callable[[Step], Opened | Awaitable[Opened | None] | None]"
)


async def arguments_of(step: Step, source: Source | None) -> dict[str, Any]:
    """All arguments of a call: the plan's, and a copy of those of the caller.

    Raises:
        TypeError: the caller gave no mapping, or an argument that the plan decides.
    """
    opened: Any = None
    if callable(source):
        opened = source(step)
        if inspect.isawaitable(opened):
            opened = await opened
    elif source is not None:
        opened = source.get(step.tool)
    if opened is None:
        opened = {}
    if not isinstance(opened, Mapping):
        raise TypeError(f"{step.tool}: open arguments are a mapping, not {type(opened).__name__}")
    listed = [name for name in opened if name not in step.opened]
    if listed:
        raise TypeError(f"{step.tool} has no open parameter {str(listed[0])[:80]!r}")
    return {**step.arguments, **snapshot(dict(opened))}
