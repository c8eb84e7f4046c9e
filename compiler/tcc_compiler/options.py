"""The options of one compilation.

Each field with an ``about`` is a public option. The options of the commands, their help, and the
keywords of the library are all derived from these fields. Values out of range are checked by the
pipeline, which reports them as diagnostics.
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

# File name endings of graphs. A file with any other ending is a grammar.
GRAPH_SUFFIXES = (".graphml", ".json")


@frozen
class Options:
    """Options of the back end.

    Attributes:
        beta: inverse temperature, an exact decimal in canonical text, at least 0.
        tilt: B, the bits of the weights, 0 .. 64. 0 is the untilted race. None stands for
            DEFAULT_TILT, or for 0 if no call has a cost.
        max_states: the most states that any automaton may have during the compilation.
        timeout: the most seconds; None for no limit.
        count_bits: the most bits of the number of plans; None for no limit.
        relax: the statements to leave to the run: kinds (``price``, ``require``, ..), texts or
            numbers of statements. ``auto`` compiles to bounds instead of counts if `max_states`,
            `timeout` or `count_bits` is reached. Without ``auto``, reaching a limit is an error.
        round_counts: the bits of the race counts, 1 .. 63. None keeps them exact.
        purpose: ``run`` or ``gate``. An artifact for a gate has no race counts, has bounds instead
            of the numbers of plans (artifact.md, section 7), and allows plans of unbounded length
            (section 10). None stands for ``gate`` if the grammar has neither `plan` nor `limit
            depth`, else for ``run``.
        clock: returns seconds, monotonic. Read every few thousand steps.
        check: checks every certificate of the finished artifact, once, before it is returned;
            raises Rejected. It returns the checked artifact, or None if it checked nothing. In that
            case the reader of the artifact has to check it.
        answers: decides an `expect always`, `reachable` or `implies` line. It takes a `Built` and
            an `Expectation`, and returns an `Answered`. None: such lines stay undecided.
        progress: called with the name of the pass and its number of states so far, a few times a
            second at most.
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
        """True if reaching a limit leads to bounds instead of an error (``auto``)."""
        return AUTO in self.relax

    @property
    def relax_names(self) -> tuple[str, ...]:
        """The names in `relax` that apply whatever the limits: all except ``auto``."""
        return tuple(name for name in self.relax if name != AUTO)
