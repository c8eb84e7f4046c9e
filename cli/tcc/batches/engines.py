"""Where the work of a batch is done: an executor, and how work is handed to it.

No more pieces are under way or waiting than are told, so that what is handed out stays bounded.  A
piece whose worker was lost is handed out again.  Cost: a future a piece.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tcc_runtime.artifact.load import mapped
from tcc_runtime.errors import WorkerLost
from tcc_runtime.pool import Opening
from tcc_runtime.workers import Processes

_AHEAD = 2  # pieces under way or waiting, for each worker
_TIMES = 3  # that a piece is handed out
_UNKNOWN = 4  # workers of an executor that does not say how many it has
_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An executor, and what has to be known of it.

    Attributes:
        executor: calls functions, anywhere.
        workers: how many it calls at a time.
        lost: exceptions that say that a worker was lost.
        outlives: whether the executor goes on after the batch; what it has begun is waited for.
        share: brings bytes to all workers once, under a name, and gives what a call is handed in
            their place; None where all workers read the files of this machine.
    """

    executor: Executor
    workers: int
    lost: tuple[type[BaseException], ...] = field(default=(WorkerLost, BrokenExecutor))
    outlives: bool = False
    share: Callable[[str, bytes], object] | None = None

    def brought(self, opening: Opening) -> tuple[Opening, object]:
        """How an artifact reaches the workers: by its file, or by what was brought to them."""
        if self.share is None or opening.path is None:
            return opening, None
        data = bytes(mapped(Path(opening.path)))
        bare = Opening(digest=opening.digest, verified=opening.verified, path=None)
        return bare, self.share(f"tcc-artifact-{opening.digest}", data)

    def done(
        self, submit: Callable[[Executor, _Item], Future[_Done]], items: Iterable[_Item]
    ) -> Iterator[_Done]:
        """What comes of each item, in the order in which they are done.

        Args:
            submit: hands an item to the executor.

        Raises:
            WorkerLost: workers were lost again and again over one item, or all of them were.
            Exception: whatever the call itself raised; nothing is handed out after it.
        """
        waiting: dict[Future[_Done], tuple[_Item, int]] = {}
        try:
            for item in items:
                self._hand_out(submit, item, 1, waiting)
                while len(waiting) >= _AHEAD * self.workers:
                    yield from self._settled(submit, waiting)
            while waiting:
                yield from self._settled(submit, waiting)
        finally:
            for future in waiting:
                future.cancel()
            if self.outlives:
                wait(waiting)

    def _hand_out(
        self,
        submit: Callable[[Executor, _Item], Future[_Done]],
        item: _Item,
        times: int,
        waiting: dict[Future[_Done], tuple[_Item, int]],
    ) -> None:
        try:
            waiting[submit(self.executor, item)] = item, times
        except BrokenExecutor as error:
            raise WorkerLost(f"the executor takes no more work ({error})") from None

    def _settled(
        self,
        submit: Callable[[Executor, _Item], Future[_Done]],
        waiting: dict[Future[_Done], tuple[_Item, int]],
    ) -> Iterator[_Done]:
        lost: tuple[type[BaseException], ...] = (*self.lost, CancelledError)
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            item, times = waiting.pop(future)
            try:
                found = future.result()
            except lost as error:
                if times == _TIMES:
                    how = error.how if isinstance(error, WorkerLost) else str(error)
                    raise WorkerLost(
                        f"{how or 'cancelled'}, {times} times over one piece"
                    ) from None
                self._hand_out(submit, item, times + 1, waiting)
                continue
            yield found


@contextmanager
def engine_of(executor: Executor | None, processes: int | None) -> Iterator[Engine]:
    """An engine of an executor that is there, or of processes of this machine for the block.

    On leaving by an exception, processes are killed; an executor that is there makes what it has
    begun, and no more.
    """
    if executor is not None:
        yield _of(executor)
        return
    number = processes or os.cpu_count() or 1
    own = Processes(number)
    good = False
    try:
        yield Engine(executor=own, workers=number)
        good = True
    finally:
        own.shutdown(cancel_futures=not good)


def _of(executor: Executor) -> Engine:
    number = getattr(executor, "_max_workers", None)
    workers = number if isinstance(number, int) else _UNKNOWN
    return Engine(executor=executor, workers=workers, outlives=True)
