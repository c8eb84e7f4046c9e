"""Twice the input takes twice the time, nearly: what a reader of hostile bytes has to keep to."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

MOST = 2.5  # times as long for twice as much
_NOTHING = 0.1  # seconds in which any reader may read anything
_ENOUGH = 0.5
_ATTEMPTS = 3


def processor_time(work: Callable[[], object], tries: int = 3) -> float:
    """The least of several measurements in seconds; of one alone where that one takes long."""
    best = float("inf")
    for _ in range(tries):
        gc.collect()
        gc.freeze()  # what other tests left is not gone through again
        gc.disable()
        begin = time.process_time()
        try:
            work()
        finally:
            gc.enable()
        best = min(best, time.process_time() - begin)
        if best > _ENOUGH:
            break
    return best


def doubles(work: Callable[[int], Callable[[], object]], size: int) -> None:
    """Asserts that work of twice the size takes less than MOST times as long.

    Args:
        work: makes the work of a size; the making is not measured.
        size: of the smaller one.
    """
    tried = []
    for _ in range(_ATTEMPTS):  # what is linear is slow by chance once, what is not is so always
        once = processor_time(work(size))
        twice = processor_time(work(2 * size))
        if twice < max(_NOTHING, MOST * once):
            return
        tried.append(f"{once:.3f} s, and {twice:.3f} s for twice as much")
    raise AssertionError("; ".join(tried))
