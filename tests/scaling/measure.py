"""What work costs as its input doubles: lines that are carried out, and bytes at the peak.

Neither is a matter of the machine or of its load.  A line is told anew in each turn of a loop, also
of one inside a line, and has no more than so many bytecodes: to count these costs four times as
much, and tells the same.  Of three sizes, each twice the one before, the third has to add less than
2.5 times the steps that the second added, so that a fixed part hides nothing: 2 is linear, 4 is the
square.  Of bytes it has to take less than 2.5 times 2.5 times those
of the first.
"""

from __future__ import annotations

import gc
import math
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

MOST = 2.5


def steps(work: Callable[[], object]) -> int:
    """How many lines `work` carries out, and how many functions it enters and leaves."""
    count = 0

    def trace(_frame: FrameType, _event: str, _arg: Any) -> Any:
        nonlocal count
        count += 1
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
    gc.collect()  # what the interpreter keeps of dead tuples would be used again, and not counted
    gc.freeze()  # and what other tests left is not gone through again
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def growth(prepare: Callable[[int], Callable[[], object]], size: int) -> float:
    """How many times more steps 4n adds to those of 2n than 2n to those of n.

    Args:
        prepare: makes the work of a size; what it does itself is not measured.
        size: n.
    """
    prepare(size)()  # what is made once a process
    first, second, third = (steps(prepare(n)) for n in (size, 2 * size, 4 * size))
    return (third - second) / max(1, second - first)


def swelling(prepare: Callable[[int], Callable[[], object]], size: int) -> float:
    """How many times more bytes a doubling takes, from n to 4n, where 2 is linear.

    Tables grow in leaps, so two doublings tell more than one; see :func:`growth`.
    """
    prepare(size)()
    first, last = (peak(prepare(n)) for n in (size, 4 * size))
    return math.sqrt(last / first)
