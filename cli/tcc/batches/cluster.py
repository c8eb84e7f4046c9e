"""Dask as the engine of a batch, with the extra `dask`: a cluster by its address, or one for now.

``local`` starts processes of this machine that listen on 127.0.0.1 alone, and ends them.  With an
address, the workers are where they are: they share the batch's folder, and get the artifact from
here, once each, under its digest.  Cost: a second or two to start or to connect.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final

from tcc.batches.engines import Engine
from tcc.batches.errors import BatchError
from tcc_runtime.errors import WorkerLost

LOCAL: Final = "local"
_PATIENCE = 10.0  # seconds for a scheduler to answer
_LOOPBACK = "127.0.0.1"


@contextmanager
def connected(
    address: str, processes: int | None, *, patience: float | None = None
) -> Iterator[Engine]:
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
    security = distributed.security.Security().get_connection_args("client")

    async def greeted() -> None:
        connecting = distributed.comm.connect(address, timeout=patience, **security)
        comm = await asyncio.wait_for(connecting, patience)
        await comm.close()

    # In a thread of its own, as this one may have a loop that runs.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, greeted()).result()


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        what = "install the extra: pip install '.[dask]' from a checkout"
        raise BatchError("TCC807", "dask", what) from None
    return distributed


@contextmanager
def _local(distributed: Any, processes: int | None) -> Iterator[Any]:
    cluster = distributed.LocalCluster(
        host=_LOOPBACK,
        n_workers=processes or os.cpu_count() or 1,
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


def _engine(distributed: Any, client: Any, *, shared: bool) -> Engine:
    workers = sum(client.nthreads().values())
    if not workers:
        where = str(client.scheduler.address)
        raise BatchError("TCC810", where, "the scheduler has no worker; start one, and try again")
    return Engine(
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
