"""Engines: executors that do the work of a batch, in local processes or on a Dask cluster.

The number of pieces that run or wait is bounded.  A piece whose worker was lost is submitted again.
Cost: one future per piece, and one or two seconds to start Dask or to connect to it.
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

# Dask, with the extra ``dask``.  ``local`` starts worker processes on this machine, which listen on
# 127.0.0.1 only, and stops them at the end.  Workers of a remote scheduler share the folder of the
# batch; each receives the artifact once, named by its digest.

LOCAL: Final = "local"
_PATIENCE = 10.0  # seconds for a scheduler to answer
_LOOPBACK = "127.0.0.1"


@contextmanager
def connected(
    address: str, processes: int | None, *, patience: float | None = None
) -> Iterator[BatchEngine]:
    """Yield the engine of a Dask cluster; close the connection after the block.

    Args:
        address: the address of a scheduler, or ``local``.
        processes: the number of workers of a local cluster; None is one for each processor.
        patience: seconds to wait for the scheduler's answer; None is ten.

    Raises:
        BatchError: TCC807, distributed is not installed; TCC810, no scheduler answers at the
            address, or it has no worker.
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
    """Connect once with a time limit: a Dask client waits forever for a server that never answers.

    Raises:
        OSError, ValueError: no scheduler answers at the address.
    """
    import asyncio  # lazily: worker processes import this module, and asyncio takes 20 ms

    security = distributed.security.Security().get_connection_args("client")

    async def greeted() -> None:
        connecting = distributed.comm.connect(address, timeout=patience, **security)
        comm = await asyncio.wait_for(connecting, patience)
        await comm.close()

    # In a new thread, because this thread may be running an event loop.
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
        # The dashboard cannot be switched off, so it gets any free local port.
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
    """Copy `data` to every worker; return the reference that Dask replaces by it in calls."""
    return client.scatter({name: data}, broadcast=True)[name]


_AHEAD = 2  # pieces submitted and unfinished, for each worker
_TIMES = 3  # attempts for a piece
_UNKNOWN = 4  # workers assumed for an executor that does not state its number
_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEngine:
    """An executor, and the properties that a batch needs to know.

    Attributes:
        executor: runs the submitted calls.
        workers: the number of calls that run at a time.
        lost: exceptions that mean that a worker was lost.
        outlives: whether the executor belongs to the caller.  The batch then waits for calls under
            way when it ends.
        share: copies bytes to all workers under a name, and returns the argument to pass to calls
            in their place; None if all workers can read the files of this machine.
    """

    executor: futures.Executor
    workers: int
    lost: tuple[type[BaseException], ...] = field(default=(WorkerLost, futures.BrokenExecutor))
    outlives: bool = False
    share: Callable[[str, bytes], object] | None = None

    def brought(self, opening: Opening) -> tuple[Opening, object]:
        """Return how workers open the artifact, and its shared bytes.

        Without `share` they open its file and the second value is None.  With it, the opening has
        no path.
        """
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
        """Submit each item, and yield the results in the order of completion.

        Args:
            submit: submits one item to the executor.
            items: read as needed, at most two items per worker ahead.

        Raises:
            WorkerLost: workers were lost three times over one item, or the executor is broken.
            Exception: raised by a call; nothing is submitted after it.
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
    """Yield an engine for an existing executor, or for new processes that end with the block.

    If the block raises, new processes are killed.  An existing executor finishes the calls that it
    has begun, and starts no others.
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
