"""The options of commands that run an artifact; see :mod:`tcc.options`.

The table is the fields of :class:`tcc_runtime.terms.settings.Settings`.  A file of its own, so that
who compiles reads nothing of runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tcc.options import all_options
from tcc_runtime.terms.settings import TABLE as SETTINGS

_NOT_DOING: Final = frozenset(
    (
        "after", "beacon", "client_nonce", "count_bits", "opening_salt", "raw_input_dependent",
    )
)  # fmt: skip
# A run takes the bits of counts from the option of the compiler: it is one limit to whoever asks.
DOING: Final = tuple(option for option in SETTINGS if option.name not in _NOT_DOING)
RUNNING: Final = tuple(option for option in SETTINGS if option.name != "count_bits")


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a run."""
    return all_options(RUNNING, command)


def doing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of the searches of an execution: where each begins, its session says."""
    return all_options(DOING, command)
