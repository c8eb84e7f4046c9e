"""What tests of batches in shards share: requests, folders and their bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from tcc_runtime.settings.settings import Settings


class Here(Executor):
    """Calls functions where they are submitted: no process, no thread, one at a time."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Calls ``fn(*args, **kwargs)``; the future is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # whatever it is, the future raises it
            future.set_exception(error)
        return future


def settings(count: int, first: int = 1, **more: Any) -> list[Settings]:
    return [
        Settings(seed=number.to_bytes(32, "big"), **more) for number in range(first, first + count)
    ]


def lines(path: Path, asked: Sequence[Settings]) -> Path:
    path.write_text(
        "".join(json.dumps({"seed": each.seed.hex(), "top": each.top}) + "\n" for each in asked)
    )
    return path


def parts(folder: Path) -> dict[str, bytes]:
    """Everything in the folder of a batch by its name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
