"""The live line on a terminal: of a run its incumbent, bound, gap and expansions; of a compilation
its pass and the states so far.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tcc_runtime.outcome import Progress

OnPass: TypeAlias = Callable[[str, int], None]
OnExpand: TypeAlias = "Callable[[Progress], bool | None]"
_EVERY = 0.1
_Q64 = 1 << 64


@contextmanager
def live_line(*, quiet: bool) -> Iterator[OnExpand | None]:
    """A callback that keeps one line up to date; None where nobody would see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    # Drawn from here and not from a thread: an interrupted run must not wait for a drawing lock.
    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        last = 0.0

        def on_expand(progress: Progress) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _EVERY:
                last = now
                live.update(Text(line(progress), style="dim"), refresh=True)

        yield on_expand


def line(progress: Progress) -> str:
    """The text of the live line; numbers are rounded for the eye."""
    return (
        f"incumbent {_short(progress.incumbent)}  bound {_short(progress.bound)}  "
        f"gap {_short(progress.gap)}  expansions {progress.expansions}"
    )


def _short(value: int | None) -> str:
    return "-" if value is None else f"{value / _Q64:.4f}"


@contextmanager
def compile_line(*, quiet: bool) -> Iterator[OnPass | None]:
    """A callback for the compiler's progress; None where nobody would see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        # The compiler calls a few times a second at most.
        yield lambda name, states: live.update(
            Text(compile_text(name, states), style="dim"), refresh=True
        )


def compile_text(name: str, states: int) -> str:
    """The text of a compilation's live line."""
    return f"compiling: {name}" + (f", {states} states" if states else "")
