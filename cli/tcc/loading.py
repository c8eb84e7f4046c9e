"""Modules imported for a command, in less time than by themselves.

An import makes many objects that stay and next to none that go, so garbage is not looked for
meanwhile.  OpenBLAS, which comes with numpy, starts a thread for every processor when it is loaded;
they are of no use to who multiplies no matrices.  Cost: that of the import.
"""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

_THREADS: Final = "OPENBLAS_NUM_THREADS"


def load(name: str) -> ModuleType:
    """The module of that name."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if collecting:
            gc.enable()


@contextmanager
def without_threads() -> Iterator[None]:
    """Where numpy is loaded in here, its OpenBLAS starts no threads, ever.

    For commands that run no code of others, which might want them.  Processes that are started
    later find the environment as it was, and who has set the number keeps it.
    """
    if _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]
