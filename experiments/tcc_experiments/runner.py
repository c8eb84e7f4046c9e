"""The experiments, in the order of the paper, and their runner: several parts at a time.

A finished part is a file named by what it depends on, written whole or not at all; it is not run
again. Rows come in the order of the parts, so the results do not depend on which finished first.
Cost: the parts'.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from blake3 import blake3

from tcc_experiments import (
    adapters,
    adversarial,
    arithmetic,
    diameter,
    distribution,
    fallback,
    ledger,
    pareto,
    request,
    soundness,
    stress,
    suites,
    tightness,
    tilt,
    truncation,
)
from tcc_experiments.evidence import keep_in
from tcc_experiments.model import Experiment, Part, Row, Size
from tcc_experiments.pipeline import experiment as pipeline
from tcc_runtime.ledger.outputs import write_whole

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        suites,
        adversarial,
        soundness,
        distribution,
        tightness,
        stress,
        tilt,
        diameter,
        truncation,
        fallback,
        ledger,
        pareto,
        adapters,
        pipeline,
        request,
        arithmetic,
    )
}


OnPart = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Store:
    """Rows of finished parts, a file each.

    Attributes:
        folder: where they are; made when the first is kept.
    """

    folder: Path

    def path(self, experiment: Experiment, part: Part) -> Path:
        """The file of a part: its name binds version, experiment, revision and part."""
        text = json.dumps(
            [_version(), experiment.name, experiment.revision, dict(part)], sort_keys=True
        )
        return self.folder / f"{experiment.name}-{blake3(text.encode()).hexdigest()[:24]}.json"

    def load(self, experiment: Experiment, part: Part) -> list[Row] | None:
        """The rows of a part; None where it is not finished, or its file is not whole."""
        try:
            rows = json.loads(self.path(experiment, part).read_bytes())
        except (OSError, ValueError):
            return None
        return rows if isinstance(rows, list) else None

    def keep(self, experiment: Experiment, part: Part, rows: Sequence[Row]) -> None:
        """Writes the rows of a finished part.

        Raises:
            OSError: they cannot be written.
        """
        write_whole(self.path(experiment, part), json.dumps(rows).encode())


def _version() -> str:
    try:
        return version("tcc")
    except PackageNotFoundError:
        return ""


def run_part(name: str, part: Part) -> list[Row]:
    """The rows of one part; what a worker process is asked for."""
    return EXPERIMENTS[name].work(part)


def run(
    experiments: Sequence[Experiment],
    size: Size,
    store: Store,
    processes: int,
    on_part: OnPart = lambda name, done, total: None,
    ledgers: Path | None = None,
) -> dict[str, list[Row]]:
    """The rows of every experiment, by its name.

    Args:
        experiments: what is run.
        size: how much of it.
        store: finished parts are taken from it and kept in it.
        processes: workers; 1 runs everything in this process.
        on_part: told the experiment, its finished parts and all its parts.
        ledgers: a folder for the ledger of every run, each validated; finished parts are run again
            then, as their ledgers are not in the store.

    Raises:
        NotShown: a ledger does not validate.
        OSError: a part or a ledger cannot be kept.
    """
    parts = {e.name: list(e.parts(size)) for e in experiments}
    found: dict[tuple[str, int], list[Row]] = {}
    due: list[tuple[Experiment, int]] = []
    for experiment in experiments:
        for at, part in enumerate(parts[experiment.name]):
            rows = None if ledgers is not None else store.load(experiment, part)
            if rows is None:
                due.append((experiment, at))
            else:
                found[experiment.name, at] = rows

    def finished(experiment: Experiment, at: int, rows: list[Row]) -> None:
        store.keep(experiment, parts[experiment.name][at], rows)
        found[experiment.name, at] = rows
        done = sum(name == experiment.name for name, _ in found)
        on_part(experiment.name, done, len(parts[experiment.name]))

    for experiment in experiments:
        done = sum(name == experiment.name for name, _ in found)
        on_part(experiment.name, done, len(parts[experiment.name]))
    if processes == 1 or len(due) < 2:
        keep_in(ledgers)
        try:
            for experiment, at in due:
                finished(experiment, at, experiment.work(parts[experiment.name][at]))
        finally:
            keep_in(None)
    else:
        _pooled(due, parts, processes, finished, ledgers)
    return {
        e.name: [row for at in range(len(parts[e.name])) for row in found[e.name, at]]
        for e in experiments
    }


def _pooled(
    due: Sequence[tuple[Experiment, int]],
    parts: dict[str, list[Part]],
    processes: int,
    finished: Callable[[Experiment, int, list[Row]], None],
    ledgers: Path | None,
) -> None:
    """All that is due, by worker processes; what is not begun is given up on an error."""
    # Fresh interpreters: a copy of this one would have the threads of a progress bar half copied.
    made: dict[str, Any] = {"initializer": keep_in, "initargs": (ledgers,)}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), **made) as pool:
        waiting: dict[Future[list[Row]], tuple[Experiment, int]] = {
            pool.submit(run_part, e.name, dict(parts[e.name][at])): (e, at) for e, at in due
        }
        try:
            for future in as_completed(waiting):
                finished(*waiting[future], future.result())
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
