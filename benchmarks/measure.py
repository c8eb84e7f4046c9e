"""Side by side: programs that do the same work take turns, and their medians are compared.

Wall time and processor time are measured, because the machine may be busy.  Ratios are of processor
time, as every program here runs on one core.
"""

from __future__ import annotations

import gc
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Median times, in seconds."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.cpu:.4f}" if self.cpu < 0.1 else f"{self.cpu:.2f}"


def side_by_side(
    programs: Mapping[str, Callable[[], Any]],
    rounds: int,
    after: Callable[[], None] = lambda: None,
) -> tuple[dict[str, Timing], dict[str, Any]]:
    """Run every program `rounds` times, in turn; return the timing and the last result of each.

    Args:
        after: runs after each program and is not timed.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for name, program in programs.items():
            results.pop(name, None)
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            results[name] = program()
            times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
            after()
    timings = {
        name: Timing(wall=median(w for w, _ in pairs), cpu=median(c for _, c in pairs))
        for name, pairs in times.items()
    }
    return timings, results


def ratio(other: Timing, ours: Timing) -> str:
    """Return how many times faster ours is, by processor time, such as `2.5x`."""
    return f"{other.cpu / ours.cpu:.1f}x"


def machine() -> str:
    """Describe the machine of the measurement."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8").splitlines()
        models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        cpu = f"{len(models)} x {models[0]}" if models else cpu
    return f"{cpu}; {platform.system()}, Python {platform.python_version()}"


def row(*cells: object) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def head(*cells: str) -> list[str]:
    """Return the first two rows of a Markdown table."""
    return [row(*cells), "| --- " * len(cells) + "|"]


def peak() -> int:
    """Return the peak memory of this process in bytes (Linux).

    Not `ru_maxrss`, which starts with the value of the parent process.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmHWM in /proc/self/status")
