"""Runs a gate over HTTP: listens, says where, and stops when it is asked to.

The first line of standard output is one JSON object with the URL and the process; nothing else goes
there.  SIGTERM and SIGINT: no call begins any more, what is under way has ten seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable

from tcc_runtime.mcp.hosting import Hosting
from tcc_runtime.mcp.http import Listener, Listening
from tcc_runtime.mcp.metrics import MetricsListener

_GRACE = 10.0


async def serve(
    how: Listening,
    hosting: Hosting,
    announce: Callable[[str], None],
    metrics: tuple[str, int] | None = None,
) -> None:
    """Serve until we are asked to stop.

    Args:
        announce: is told the line that says where, once connections are accepted.
        metrics: where what is counted can be read, on a listener of its own; None: nowhere.

    Raises:
        OSError: the address is not to be had.
    """
    listener = Listener(how, hosting)
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    watched = MetricsListener(hosting.metrics, how.names)
    if metrics is not None:
        hosting.note(f"metrics at {await watched.listen(*metrics)}")
    url = await listener.listen()
    announce(json.dumps({"url": url, "pid": os.getpid()}, separators=(",", ":")))
    tending = asyncio.ensure_future(hosting.tend())
    await asked.wait()
    tending.cancel()
    await hosting.stop(_GRACE)
    await listener.close()
    watched.close()
