"""A process of its own that works on a ledger: run by the tests as ``python worker.py ..``.

worker.py calls ARTIFACT LEDGER N            makes N calls of tool b, and says each number
worker.py hold ARTIFACT LEDGER               begins a call, says so, and waits for ever
worker.py kill ARTIFACT LEDGER PLACE         is killed at a place of its second call
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable

import tcc
from tcc_certs.formats.ledger import seal
from tcc_runtime.gate.journal import ledger_file

PLACES = ("before call", "after call", "inside", "before outcome", "after outcome", "torn call")


def main() -> None:
    mode, artifact, ledger, *more = sys.argv[1:]
    session = tcc.Gate(artifact, ledger=ledger, durable=False)
    if mode == "calls":
        for _ in range(int(more[0])):
            with session.call("b") as permit:
                print(permit.seq, flush=True)
                permit.done()
    elif mode == "hold":
        with session.call("b"):
            print("held", flush=True)
            time.sleep(600)
    else:
        with session.call("b") as permit:
            permit.done()
        die_at(more[0])
        with session.call("b") as permit:
            if more[0] == "inside":
                die()
            permit.done()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(place: str) -> None:
    write = ledger_file.InFile.append

    def append(self: ledger_file.InFile, render: Callable[[bytes], bytes]) -> None:
        body = render(self.head)
        kind = str(json.loads(body)["kind"])
        if place == f"before {kind}":
            die()
        if place == f"torn {kind}":
            os.write(self._handle, seal(body, self.head)[0][:-9])
            die()
        write(self, lambda _: body)
        if place == f"after {kind}":
            die()

    ledger_file.InFile.append = append  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
