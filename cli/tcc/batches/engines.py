"""Engines: executors that do the work of a batch, in local processes or on a Dask cluster.

The number of pieces that run or wait is bounded.  A piece whose worker was lost is handed out
again.  Cost: one future per piece; a second or two to start Dask or to connect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from tcc.batches import BatchError
from tcc_runtime.artifact.load import content_of
from tcc_runtime.errors import WorkerLost
from tcc_runtime.pool import Opening
from tcc_runtime.workers import Processes, number_of

# Dask, with the extra ``dask``.  ``local`` starts processes of this machine that listen on
# 127.0.0.1 alone, and ends them.  Workers of a remote scheduler share the batch's folder, and
# receive the artifact from here, once each, under its digest.

LOCAL: Final = "local"
_PATIENCE = 10.0  # seconds for a scheduler to answer
_LOOPBACK = "127.0.0.1"


@contextmanager
def connected(
    address: str, processes: int | None, *, patience: float | None = None
) -> Iterator[BatchEngine]:
    """The engine of a cluster, for the block.

    Args:
        address: of its scheduler, or ``local``.
        processes: how many workers a local cluster has; None is one for each processor.
        patience: seconds for the scheduler to answer; None is ten.

    Raises:
        BatchError: TCC807, distributed is not installed; TCC810, no scheduler answers there, or
            it has no worker.
    """
    distributed = _distributed()
    patience = _PATIENCE if patience is None else patience
    if address == LOCAL:
        with _local(distributed, processes) as cluster, _client(distributed, cluster) as client:
            yield _engine(distributed, client, shared=True)
        return
    try:
        _reach(distributed, address, patience)
        client = distributed.Client(address, timeout=patience, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0][:200]
        what = f"no scheduler of Dask answers there within {patience:g} s: {said}"
        raise BatchError("TCC810", address, what) from None
    try:
        yield _engine(distributed, client, shared=False)
    finally:
        client.close()


def _reach(distributed: Any, address: str, patience: float) -> None:
    """Asks for an answer once: a client would wait for ever for one that accepts and is silent.

    Raises:
        OSError, ValueError: there is none.
    """
    import asyncio  # here: workers of this machine load this module, and it takes them 20 ms

    security = distributed.security.Security().get_connection_args("client")

    async def greeted() -> None:
        connecting = distributed.comm.connect(address, timeout=patience, **security)
        comm = await asyncio.wait_for(connecting, patience)
        await comm.close()

    # In a thread of its own, as this one may have a loop that runs.
    with futures.ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, greeted()).result()


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        what = "install the extra: pip install 'tcc[dask]'"
        raise BatchError("TCC807", "dask", what) from None
    return distributed


@contextmanager
def _local(distributed: Any, processes: int | None) -> Iterator[Any]:
    cluster = distributed.LocalCluster(
        host=_LOOPBACK,
        n_workers=number_of(processes),
        threads_per_worker=1,
        processes=True,
        # What tells its state cannot be left out: here, at any free port.
        dashboard_address=f"{_LOOPBACK}:0",
        worker_dashboard_address=f"{_LOOPBACK}:0",
        memory_limit=None,
        silence_logs=50,
    )
    try:
        yield cluster
    finally:
        cluster.close()


@contextmanager
def _client(distributed: Any, cluster: Any) -> Iterator[Any]:
    client = distributed.Client(cluster, set_as_default=False)
    try:
        yield client
    finally:
        with suppress(OSError, TimeoutError):
            client.close()


def _engine(distributed: Any, client: Any, *, shared: bool) -> BatchEngine:
    workers = sum(client.nthreads().values())
    if not workers:
        where = str(client.scheduler.address)
        raise BatchError("TCC810", where, "the scheduler has no worker; start one, and try again")
    return BatchEngine(
        executor=client.get_executor(pure=False),
        workers=workers,
        lost=(
            WorkerLost,
            distributed.scheduler.KilledWorker,
            distributed.client.FutureCancelledError,
        ),
        share=None if shared else lambda name, data: _scattered(client, name, data),
    )


def _scattered(client: Any, name: str, data: bytes) -> object:
    """What stands for `data` in calls: Dask hands the bytes in, of which each worker has a copy."""
    return client.scatter({name: data}, broadcast=True)[name]


_AHEAD = 2  # pieces under way or waiting, for each worker
_TIMES = 3  # that a piece is handed out
_UNKNOWN = 4  # workers of an executor that does not say how many it has
_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEngine:
    """An executor, and what has to be known of it.

    Attributes:
        executor: calls functions, anywhere.
        workers: how many it calls at a time.
        lost: exceptions that say that a worker was lost.
        outlives: whether the executor goes on after the batch; what it has begun is waited for.
        share: brings bytes to all workers once, under a name, and gives what a call is handed in
            their place; None where all workers read the files of this machine.
    """

    executor: futures.Executor
    workers: int
    lost: tuple[type[BaseException], ...] = field(default=(WorkerLost, futures.BrokenExecutor))
    outlives: bool = False
    share: Callable[[str, bytes], object] | None = None

    def brought(self, opening: Opening) -> tuple[Opening, object]:
        """How an artifact reaches the workers: by its file, or by what was brought to them."""
        if self.share is None or opening.path is None:
            return opening, None
        data = bytes(content_of(Path(opening.path)))
        bare = Opening(digest=opening.digest, verified=opening.verified, path=None)
        return bare, self.share(f"tcc-artifact-{opening.digest}", data)

    def done(
        self,
        submit: Callable[[futures.Executor, _Item], futures.Future[_Done]],
        items: Iterable[_Item],
    ) -> Iterator[_Done]:
        """What comes of each item, in the order in which they are done.

        Args:
            submit: hands an item to the executor.

        Raises:
            WorkerLost: workers were lost again and again over one item, or all of them were.
            Exception: whatever the call itself raised; nothing is handed out after it.
        """
        waiting: dict[futures.Future[_Done], tuple[_Item, int]] = {}
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
                futures.wait(waiting)

    def _hand_out(
        self,
        submit: Callable[[futures.Executor, _Item], futures.Future[_Done]],
        item: _Item,
        times: int,
        waiting: dict[futures.Future[_Done], tuple[_Item, int]],
    ) -> None:
        try:
            waiting[submit(self.executor, item)] = item, times
        except futures.BrokenExecutor as error:
            raise WorkerLost(f"the executor takes no more work ({error})") from None

    def _settled(
        self,
        submit: Callable[[futures.Executor, _Item], futures.Future[_Done]],
        waiting: dict[futures.Future[_Done], tuple[_Item, int]],
    ) -> Iterator[_Done]:
        lost: tuple[type[BaseException], ...] = (*self.lost, futures.CancelledError)
        for future in futures.wait(waiting, return_when=futures.FIRST_COMPLETED).done:
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
def engine_of(executor: futures.Executor | None, processes: int | None) -> Iterator[BatchEngine]:
    """An engine of an executor that is there, or of processes of this machine for the block.

    On leaving by an exception, processes are killed; an executor that is there makes what it has
    begun, and no more.
    """
    if executor is not None:
        yield _of(executor)
        return
    own = Processes(processes)
    good = False
    try:
        yield BatchEngine(executor=own, workers=own.number)
        good = True
    finally:
        own.shutdown(cancel_futures=not good)


def _of(executor: futures.Executor) -> BatchEngine:
    number = getattr(executor, "_max_workers", None)
    workers = number if isinstance(number, int) else _UNKNOWN
    return BatchEngine(executor=executor, workers=workers, outlives=True)
