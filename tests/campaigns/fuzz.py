"""Fuzzing of the three readers: every input ends in a coded answer, soon and in little memory.

    python -m tests.campaigns.fuzz artifact --runs 5000000 --processes 2
    python -m tests.campaigns.fuzz artifact --batch 17      one batch again, in this process

An input follows from the target, the seed and its number.  Inputs are made in batches; a batch is
drawn by one generator, so a finding names its batch and place, and its bytes are kept as a file.
A process may take --memory bytes of address space, and an input --seconds of its processor time.
One that takes more than --slow seconds is no finding, but is named, and kept, too.
"""

from __future__ import annotations

import argparse
import gc
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from types import FrameType

from tests.campaigns.targets import TARGETS, Target

BATCH = 1000
LARGE = 1 << 10  # bytes from which on an input counts as a large one
KEPT = 100  # findings, and slow inputs, whose bytes are kept
_ready: dict[str, Target] = {}


class TooSlow(BaseException):
    """An input took more than its time; no reader catches this by accident."""


@dataclass(kw_only=True)
class Tally:
    """What became of a batch: words of outcomes, and findings with their bytes.

    `slow` are the inputs that took long, `slowest` is in seconds of one input, `seconds` of all of
    them, made and read; `memory` in bytes, the most of a process so far; `bytes` those of all
    inputs, `large` how many have LARGE of them, `longest` how many the longest has.
    """

    words: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[str, bytes]] = field(default_factory=list)
    slow: list[tuple[str, bytes]] = field(default_factory=list)
    slowest: float = 0.0
    seconds: float = 0.0
    memory: int = 0
    bytes: int = 0
    large: int = 0
    longest: int = 0

    def weigh(self, data: bytes, seconds: float) -> None:
        """One more input, that took so long to read."""
        self.slowest = max(self.slowest, seconds)
        self.bytes += len(data)
        self.large += len(data) >= LARGE
        self.longest = max(self.longest, len(data))


def run_batch(
    target: Target,
    name: str,
    seed: int,
    batch: int,
    size: int,
    seconds: float,
    slow: float = float("inf"),
) -> Tally:
    """Read `size` inputs; one that takes more than `slow` seconds is named."""
    rng = Random(f"{name} {seed} {batch}")
    began = time.process_time()
    tally = Tally()
    # Time of this process alone: other work on the machine makes no input slow.
    signal.signal(signal.SIGPROF, _too_slow)
    gc.disable()
    for place in range(size):
        data = target.make(rng)
        begin = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            word = target.read(data)
        except (Exception, TooSlow) as error:
            word = type(error).__name__
            where = "".join(traceback.format_exception(error)[-4:])
            tally.findings.append((f"batch {batch} place {place}: {word}\n{where}", data))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        tally.words[word] += 1
        took = time.process_time() - begin
        tally.weigh(data, took)
        if took > slow:
            text = f"batch {batch} place {place}: {took:.2f} s for {len(data)} bytes: {word}"
            tally.slow.append((text, data))
        if place % 200 == 0:
            gc.collect()
    gc.enable()
    tally.seconds = time.process_time() - began
    tally.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return tally


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def work(name: str, seed: int, batch: int, size: int, seconds: float, slow: float) -> Tally:
    """A batch in a worker process, its target made once."""
    if name not in _ready:
        _ready[name] = TARGETS[name]()
    return run_batch(_ready[name], name, seed, batch, size, seconds, slow)


def limit_memory(size: int) -> None:
    """This process may take `size` bytes of address space."""
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def campaign(told: argparse.Namespace) -> Tally:
    """All batches, over processes; progress on standard error."""
    total = Tally()
    begin = said = time.monotonic()
    batches = iter(range(told.first, told.first + -(-told.runs // BATCH)))
    with ProcessPoolExecutor(
        told.processes, initializer=limit_memory, initargs=(told.memory,)
    ) as pool:

        def start(number: int):
            return pool.submit(work, told.target, told.seed, number, BATCH, told.seconds, told.slow)

        waiting = {start(number) for number in islice(batches, 2 * told.processes)}
        while waiting:
            done = next(as_completed(waiting))
            waiting.discard(done)
            waiting |= {start(number) for number in islice(batches, 1)}
            _add(total, done.result(), told.out)
            if time.monotonic() - said > 20:
                said = time.monotonic()
                show(total, said - begin, sys.stderr)
    show(total, time.monotonic() - begin, sys.stdout)
    return total


def _add(total: Tally, tally: Tally, out: Path) -> None:
    total.words += tally.words
    total.slowest = max(total.slowest, tally.slowest)
    total.memory = max(total.memory, tally.memory)
    total.longest = max(total.longest, tally.longest)
    total.seconds += tally.seconds
    total.bytes += tally.bytes
    total.large += tally.large
    _keep(total.findings, tally.findings, out, "finding")
    _keep(total.slow, tally.slow, out, "slow")


def _keep(
    total: list[tuple[str, bytes]], more: list[tuple[str, bytes]], out: Path, name: str
) -> None:
    for text, data in more:
        if len(total) < KEPT:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{name}-{len(total)}.bin").write_bytes(data)
            print(text, file=sys.stderr, flush=True)
        total.append((text, b""))


def show(total: Tally, seconds: float, stream) -> None:
    """Inputs, findings, the slow and the large ones, the outcomes; the slow ones a line each."""
    words = " ".join(f"{word}:{count}" for word, count in sorted(total.words.items()))
    runs = total.words.total()
    print(
        f"{runs} inputs in {seconds:.0f} s, {len(total.findings)} findings,"
        f" {len(total.slow)} slow, slowest {total.slowest:.2f} s,"
        f" mean {total.seconds / max(1, runs) * 1000:.2f} ms, memory {total.memory >> 20} MiB,"
        f" bytes: mean {total.bytes // max(1, runs)}, longest {total.longest},"
        f" {total.large} of {LARGE} or more; {words}",
        file=stream,
        flush=True,
    )
    if stream is sys.stdout:
        for text, _ in total.slow[:KEPT]:
            print(f"slow: {text}", file=stream, flush=True)


def main() -> int:
    """The command line: 0 without findings, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first batch")
    parser.add_argument("--batch", type=int, help="read one batch again")
    parser.add_argument("--memory", type=int, default=1 << 30)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--slow", type=float, default=0.5, help="seconds; name what takes more")
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    told = parser.parse_args()
    if told.batch is not None:
        tally = work(told.target, told.seed, told.batch, BATCH, told.seconds, told.slow)
        _add(total := Tally(), tally, told.out)
        show(total, 0, sys.stdout)
    else:
        total = campaign(told)
    return 1 if total.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
