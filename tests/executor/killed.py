"""One execution in a process of its own, which kills itself at an event that it is told.

    python -m tests.executor.killed ARTIFACT LEDGER LOG EVENT MODE

An event is a write to any file of the session, a wait for the disk, the start of a tool, or the
moment behind what a tool does.  EVENT 0 is none.  MODE says what the tools are: ``key`` takes the
idempotency key, ``plain`` does not, and then the log is asked what became of a call.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import tcc as library
from tcc_runtime.gate.journal import ledger_file

_events = 0


def event(at: int) -> None:
    global _events
    _events += 1
    if _events == at:
        os.kill(os.getpid(), signal.SIGKILL)


def main(artifact: str, ledger: str, log: str, at: int, mode: str) -> int:
    write, sync = os.write, ledger_file._sync

    def counted_write(handle: int, data: Any) -> int:
        event(at)
        return write(handle, data)

    def counted_sync(handle: int) -> None:
        event(at)
        sync(handle)

    os.write, ledger_file._sync = counted_write, counted_sync

    def does(name: str, key: str, given: dict[str, Any]) -> dict[str, str]:
        event(at)
        line = json.dumps({"tool": name, "key": key, **given})
        with Path(log).open("a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        event(at)
        return {"answer": "no"}

    def tool(name: str) -> Any:
        if mode == "key":

            def called(idempotency_key: str, **given: Any) -> dict[str, str]:
                return does(name, idempotency_key, given)

            return called

        def called_plainly(**given: Any) -> dict[str, str]:
            return does(name, "", given)

        return called_plainly

    def resolve(made: Any) -> Any:
        done = len(Path(log).read_text().splitlines()) if Path(log).exists() else 0
        before = sum(h.outcome == "done" for h in gate.history[: made.seq - 1])
        return (
            ("done", {"answer": "no"} if "check" in made.call else None)
            if done > before
            else ("failed")
        )

    opened = library.load(artifact)
    with library.Gate(opened, ledger=ledger) as gate:
        tools = {named.name: tool(named.name) for named in opened.core.tools}
        found = library.execute(
            None,
            tools,
            gate=gate,
            arguments={"refund": {"order": "ord-17", "amount": 3}},
            resolve=resolve if mode == "plain" else None,
        )
        print(json.dumps({"stop": found.stop, "events": _events}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], int(sys.argv[4]), sys.argv[5]))
