"""Random pairs of grammars and statements: verdicts beside brute force, each proof by the kernel.

    python -m tests.campaigns.exact --pairs 10000 --processes 2

Each pair is asked about inclusion both ways, whether it can be finished, and two statements with
what they make reachable; the first that differs is printed and ends it.  Some 0.3 s of a core a
pair; `--first` goes on from one, `--seconds` ends it.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import count

from tests.exact.test_brute import ask
from tests.exact.test_proofs import every_certificate

PART = 20


def part(first: int) -> tuple[dict[str, int], str]:
    """The verdicts of some pairs, and the first difference."""
    tally: dict[str, int] = {}
    for seed in range(first, first + PART):
        try:
            ask(seed, {})
            every_certificate(seed, tally)
        except AssertionError as error:
            return tally, f"{seed}: {error}"
    return tally, ""


def main() -> int:
    """The command line: 0 without differences, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    told = parser.parse_args()
    begun, total, pairs = time.monotonic(), dict[str, int](), 0
    with ProcessPoolExecutor(told.processes) as pool:
        for batch in count(told.first, PART * told.processes):
            starts = [batch + PART * at for at in range(told.processes)]
            for tally, difference in pool.map(part, starts):
                pairs += PART
                for name, number in tally.items():
                    total[name] = total.get(name, 0) + number
                if difference:
                    print(difference)
                    return 1
            if pairs >= told.pairs or time.monotonic() - begun > told.seconds:
                break
    says = ", ".join(f"{number} {name}" for name, number in sorted(total.items()))
    print(f"{pairs} pairs: {says}; no difference, every proof VALID")
    return 0


if __name__ == "__main__":
    sys.exit(main())
