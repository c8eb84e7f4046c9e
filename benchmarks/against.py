"""Compares runs with a ledger in this tree and in another tree of the repository.

``python -m benchmarks.against TREE`` (a checkout of another commit) runs both in one process, in
turn.  It prints the medians of their processor times, and the median of their ratios, which other
work on the machine affects less.  Both must write the same bytes into their ledgers.  While one
tree runs, the modules of the other one are hidden.
"""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

from benchmarks.search import grammar

PAIRS, LEAST = 7, 0.01  # pairs of measurements, and the least seconds of a measurement
ROOT = Path(__file__).parents[1]
PARTS = ("certs", "compiler", "runtime", "experiments", "cli")
_PACKAGES = {"tcc_certs", "tcc_compiler", "tcc_runtime", "tcc_experiments", "tcc"}
_HOMES = {  # the modules and names of what is used here, the present ones first
    "load": ("artifact.load.load", "load.load"),
    "Settings": ("settings.settings.Settings", "terms.settings.Settings", "settings.Settings"),
    "Recorder": ("ledger.recorder.Recorder", "recorder.Recorder"),
    "Memory": ("ledger.sinks.MemorySink", "ledger.sinks.Memory", "sinks.Memory"),
}
_PRICED = (
    'grammar g version "1"\n'
    + "\n".join(f"tool t{i} {{ cost 0.{i + 1} price {i} }}" for i in range(6))
    + "\nlimit depth <= 24\nlimit price <= 40\n"
)
_RANGED = (
    'grammar g version "1"\n'
    + "\n".join(f"tool t{i} {{ cost 0.{i + 1} .. {i + 1} }}" for i in range(6))
    + "\nlimit depth <= 24\n"
)
_SMALL, _MIDDLE, _LARGE = grammar(8, (2, 2, 2, 2)), grammar(32, (5, 5)), grammar(64, (12, 12))
_CAP = {"max_expansions": 300}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "rest race, depth 8, k = 1": (_SMALL, {"tilt": 12}, {"race": "rest"}),
    "rest race, depth 64, k = 1": (_LARGE, {"tilt": 12}, {"race": "rest"}),
    "rest race, depth 64, k = 16": (_LARGE, {"tilt": 12}, {"race": "rest", "top": 16}),
    "rest race, depth 64, k = 256": (_LARGE, {"tilt": 12}, {"race": "rest", "top": 256}),
    "coupled race, depth 8, k = 1": (_SMALL, {"tilt": 12}, {"race": "coupled"}),
    "coupled race, depth 64, k = 16": (_LARGE, {"tilt": 12}, {"race": "coupled", "top": 16}),
    "relaxed, rest race": (_PRICED, {"relax": ("price",)}, {"race": "rest", "top": 8}),
    "relaxed, coupled race": (_PRICED, {"relax": ("price",)}, {"race": "coupled", "top": 8}),
    "cut at 20 of 32 calls": (_MIDDLE, {}, {"race": "rest", "truncate": 20, **_CAP}),
    "anchored keys": (_MIDDLE, {}, {"keys": "anchored", "top": 4, **_CAP}),
    "literal race": (_MIDDLE, {"tilt": 0}, {"race": "literal", "top": 4, **_CAP}),
    "fallback": (_MIDDLE, {}, {"mode": "fallback", "top": 64, **_CAP}),
    "ranges": (_RANGED, {}, {"top": 64, **_CAP}),
}


class Tree:
    """One tree; its modules can be imported inside :meth:`shown`."""

    def __init__(self, root: Path) -> None:
        self._paths = [str(root / part) for part in PARTS]
        self._modules: dict[str, ModuleType] = {}

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Context manager in which imports come from this tree."""
        others = _taken_out()
        sys.modules.update(self._modules)
        sys.path[:0] = self._paths
        importlib.invalidate_caches()
        try:
            yield
        finally:
            self._modules = _taken_out()
            sys.modules.update(others)
            for path in self._paths:
                sys.path.remove(path)

    def runner(self, text: str, options: dict[str, Any], told: dict[str, Any]) -> Callable[[], Any]:
        """Return a function that makes a run in this tree and returns its ledger."""
        from tcc_compiler.options import Options
        from tcc_compiler.pipeline import compile_text
        from tcc_runtime.run import search

        load, settings, recorder, memory = (_named(name) for name in _HOMES)
        artifact = load(compile_text(text, Options(beta="4", **options)).artifact)
        chosen = settings(seed=bytes(range(32)), **told)

        def run() -> bytes | bytearray:
            sink = memory()
            search(artifact, chosen, recorder(sink, started_ms=0))
            data: bytes | bytearray = sink.data  # a bytearray in some trees
            return data

        return run


def _named(name: str) -> Any:
    for home in _HOMES[name]:
        module, _, attribute = f"tcc_runtime.{home}".rpartition(".")
        with suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(module), attribute)
    raise ImportError(name)


def _taken_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.split(".")[0] in _PACKAGES]
    return {name: sys.modules.pop(name) for name in names}


def rows(other: Path) -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield "| run with a ledger | lines | other tree, ms | this tree, ms | ratio |"
    yield "| --- " * 5 + "|"
    trees = Tree(other), Tree(ROOT)
    for name, case in CASES.items():
        runs = []
        for tree in trees:
            with tree.shown():
                runs.append(tree.runner(*case))
        times = _times(trees, runs)
        if times is None:
            yield f"| {name} | the ledgers differ |"
            continue
        lines, pairs = times
        ratio = median(new / old for old, new in pairs)
        old, new = (1000 * median(column) for column in zip(*pairs, strict=True))
        yield f"| {name} | {lines} | {old:.2f} | {new:.2f} | {ratio:.2f} |"


def _times(
    trees: tuple[Tree, Tree], runs: list[Callable[[], bytes]]
) -> tuple[int, list[tuple[float, float]]] | None:
    ledgers, repeats = [], 1
    for tree, run in zip(trees, runs, strict=True):
        with tree.shown():
            run()
            started = time.process_time()
            ledgers.append(run())
            repeats = max(repeats, round(LEAST / max(1e-6, time.process_time() - started)))
    if ledgers[0] != ledgers[1]:
        return None
    pairs = []
    for _ in range(PAIRS):
        measured = []
        for tree, run in zip(trees, runs, strict=True):
            with tree.shown():
                gc.collect()
                started = time.process_time()
                for _ in range(repeats):
                    run()
                measured.append((time.process_time() - started) / repeats)
        pairs.append((measured[0], measured[1]))
    return ledgers[0].count(b"\n"), pairs


if __name__ == "__main__":
    for row in rows(Path(sys.argv[1])):
        print(row, flush=True)
