"""An MCP server of our own, over lines: it answers each call before it takes the next.

Cost: that of the tools; memory is bounded by the longest line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcc_runtime.mcp.door import Door
from tcc_runtime.mcp.lines import MAX_CLIENT_LINE
from tcc_runtime.mcp.messages import Cancelled
from tcc_runtime.mcp.pipes import Pipe, ready
from tcc_runtime.mcp.signals import Stopping

_FULL = 1 << 20


def serve(
    tools: Sequence[Mapping[str, Any]],
    call: Callable[[str, Mapping[str, Any]], Mapping[str, Any]],
    *,
    info: Mapping[str, Any],
    instructions: str,
) -> None:
    """Serve over our own standard input and output, until the client is gone.

    Args:
        tools: as they are listed.
        call: gives the result of a tool; what cannot be answered is a result, too.
        info: our name and version.
        instructions: what a model is told about all of them.
    """
    door = Door(info=info, instructions=instructions, tools=lambda: tools)
    client = Pipe(0, 1, MAX_CLIENT_LINE)
    with Stopping() as stopping:
        while not (stopping.asked or client.broken or (client.ended and not client.waiting)):
            client.paused = client.waiting > _FULL
            for pipe in ready((client,), None, stopping.wakes):
                for line in pipe.read():
                    taken = door.take(line)
                    if isinstance(taken, bytes):
                        client.send(taken)
                    elif taken is not None and not isinstance(taken, Cancelled):
                        client.send(door.answer(taken, call(taken.tool, taken.arguments)))
