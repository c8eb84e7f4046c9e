"""What work costs as its input doubles: bytecodes that are carried out, and bytes at the peak.

Neither is a matter of the machine or of its load.  What is asked for is that the third of three
sizes, each twice the one before, adds less than 2.5 times what the second added: 2 is linear, 4 is
the square, and a fixed part does not hide the one behind the other.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

MOST = 2.5


def steps(work: Callable[[], object]) -> int:
    """How many bytecodes `work` carries out."""
    count = 0

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def peak(work: Callable[[], object]) -> int:
    """How many bytes `work` holds at once, at the most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def growth(
    measure: Callable[[Callable[[], object]], int],
    prepare: Callable[[int], Callable[[], object]],
    size: int,
) -> float:
    """How many times more the step from 2n to 4n adds than that from n to 2n.

    Args:
        prepare: makes the work of a size; what it does itself is not measured.
        size: n.
    """
    prepare(size)()  # what is made once a process
    first, second, third = (measure(prepare(n)) for n in (size, 2 * size, 4 * size))
    return (third - second) / max(1, second - first)
