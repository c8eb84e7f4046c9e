"""Python's search for cycles, put off while a run makes items, or a validation makes them again.

Either makes up to millions of tuples that refer to one another and are never in a cycle, so each
look for cycles goes through all of them and frees nothing; it took half of the time of a long run,
and a sixth of that of its validation.  Whatever is not in a cycle is freed as always, and tests
hold that no run leaves one, with a ledger or without, and no validation.  Where somebody's code is
called in between, which may make cycles of its own, nothing is put off.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_runs = 0  # that are under way; the collector is one for the whole process
_enabled = False  # whether it was on before the first of them


@contextmanager
def collection_put_off(put_off: bool) -> Iterator[None]:
    """No looks for cycles inside, where `put_off`; afterwards the collector is as it was."""
    global _runs, _enabled
    if not put_off:
        yield
        return
    with _lock:
        if _runs == 0:
            _enabled = gc.isenabled()
            gc.disable()
        _runs += 1
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if _runs == 0 and _enabled:
                gc.enable()
