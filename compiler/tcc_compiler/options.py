"""What a caller may set for one compilation.

The fields that have an ``about`` are the one table of these options: the options of the commands
and their help, and the keywords of the library, are read from it.  What is out of range is for the
pipeline, which says so in a diagnostic.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from typing import Any, Literal

from tcc_certs.kernel import CheckedArtifact, check
from tcc_compiler.frozen import frozen

MAX_TILT = 64
DEFAULT_TILT = 8
AUTO = "auto"

# Endings of files that hold a graph; what has another ending is a grammar.
GRAPH_SUFFIXES = (".graphml", ".json")


@frozen
class Options:
    """Options of the back end.

    Attributes:
        beta: inverse temperature, an exact decimal in canonical text, at least 0.
        tilt: B, the bits of the weights, 0 .. 64; 0 is the untilted race.  None is
            DEFAULT_TILT, and 0 where no call has a cost.
        max_states: most states of any automaton on the way.
        timeout: most seconds, None for no limit.
        count_bits: most bits of the number of plans, None for no limit.
        relax: statements to leave to the run: kinds (``price``, ``require``, ..), texts or
            numbers of statements; and ``auto``: where `max_states`, `timeout` or `count_bits` is
            reached, compile to bounds in place of counts.  Without ``auto`` that is an error:
            nothing is relaxed unasked.
        round_counts: bits of the race counts, 1 .. 63; None keeps them exact.
        purpose: what the artifact is for: ``run``, or ``gate``, which leaves out race counts, has
            bounds in place of the numbers of plans (artifact.md, section 7), and allows plans
            without a bound (section 10).  None is ``gate`` for a grammar without `plan` and
            `limit depth`, else ``run``.
        clock: monotonic seconds; read every few thousand steps.
        check: the kernel that checks every certificate of the finished artifact, once, before it
            is handed out; raises Rejected.  What it returns names the bytes that it checked; None
            where it checked nothing, and then whoever opens the artifact checks it.
        answers: answers an `expect always`, `reachable` or `implies`.  Takes a `Built` and an
            `Expectation`, and returns an `Answered`.  None: these lines stay open.
        progress: called with the pass and its states so far, a few times a second at most.
    """

    beta: str = field(default="1", metadata={"about": "inverse temperature: how much costs count"})
    tilt: int | None = field(
        default=None,
        metadata={
            "about": "bits of each call's weight; 0: every call weighs 1. By default 8, and 0 "
            "where no call has a cost",
            "least": 0,
            "most": MAX_TILT,
        },
    )
    max_states: int = field(
        default=2_000_000,
        metadata={
            "about": "limit on the states of each automaton that the compiler builds",
            "least": 1,
        },
    )
    timeout: float | None = field(
        default=None, metadata={"about": "limit on the compilation, in seconds"}
    )
    count_bits: int | None = field(
        default=None, metadata={"about": "limit on the bits of the number of plans", "least": 1}
    )
    relax: tuple[str, ...] = field(
        default=(),
        metadata={
            "about": "leave statements to the run: a kind (depth, price, cost, latency, epsilon, "
            "count, sum, require, forbid, owe), a statement's text such as "
            "'limit count(search) <= 2', or its number; auto: what is needed to stay within "
            "the limits above; repeatable. By default nothing is relaxed",
            "metavar": "NAME",
        },
    )
    round_counts: int | None = field(
        default=None,
        metadata={
            "about": "round race counts up to this many bits",
            "least": 1,
            "most": 63,
            "metavar": "BITS",
        },
    )
    purpose: Literal["run", "gate"] | None = field(
        default=None,
        metadata={
            "about": "purpose of the artifact; gate omits race counts, which are most of a "
            "deep artifact, and allows plans without a bound. By default run, and gate for a "
            "grammar without `plan` and without `limit depth`",
            "short": "for",
        },
    )
    clock: Callable[[], float] = time.monotonic
    check: Callable[[bytes], CheckedArtifact | None] = check
    answers: Callable[[Any, Any], Any] | None = None
    progress: Callable[[str, int], None] | None = None

    @property
    def auto_relax(self) -> bool:
        """Whether bounds in place of counts are asked for where a limit is reached."""
        return AUTO in self.relax

    @property
    def relax_names(self) -> tuple[str, ...]:
        """The names of what is relaxed whatever the limits."""
        return tuple(name for name in self.relax if name != AUTO)
