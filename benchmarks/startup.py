"""Start-up: `tcc --help`, and `tcc compile` of a small grammar, as separate processes.

The least and the median of many runs, because the machine may be busy.  Bytecode is cached, as
after the first run of an installed package.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

RUNS = 25
GRAMMAR = """grammar g version "1"

tool a { cost 1 }
tool b

plan = a b?
"""


def measured(arguments: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Return seconds of RUNS runs: least and median wall clock, and least processor time."""
    wall, used = [], []
    for _ in range(RUNS):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, *arguments]
        subprocess.run(command, env=environment, capture_output=True, check=True)
        wall.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(wall), median(wall), min(used)


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        grammar = Path(folder) / "g.tcg"
        grammar.write_text(GRAMMAR)
        rows = {
            "`python -c pass`": ["-c", "pass"],
            "`import click`": ["-c", "import click"],
            "`import numpy`": ["-c", "import numpy"],
            "`tcc --help`": ["-m", "tcc", "--help"],
            "`tcc compile` of four lines": ["-m", "tcc", "compile", str(grammar)],
        }
        yield "| ms | wall clock | median | processor |"
        yield "| --- | ---: | ---: | ---: |"
        for name, arguments in rows.items():
            wall, middle, used = measured(arguments, environment)
            yield f"| {name} | {wall * 1e3:.0f} | {middle * 1e3:.0f} | {used * 1e3:.0f} |"
