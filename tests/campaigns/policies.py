"""Random policies beside their definition: every decision of the gate, and every ledger validated.

    python -m tests.campaigns.policies --grammars 100000 --processes 2
    python -m tests.campaigns.policies --first 4711 --grammars 1     one grammar again

A grammar and its sessions follow from a number.  A difference is printed with the grammar, the
session up to it, and what refuses by the definition; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.oracle_policies.beside import Tally, beside
from tests.oracle_policies.drawn import FORMS, LISTED, OLD

PART = 100  # grammars that a process takes at a time
SHOWN = 20


def part(first: int, count: int, forms: frozenset[str], sessions: int = 2) -> Tally:
    """The grammars of some numbers, in a process of its own."""
    logging.getLogger("tcc.gate").setLevel(logging.CRITICAL)
    tally = Tally()
    for seed in range(first, first + count):
        tally.add(beside(seed, forms, sessions=sessions))
    return tally


def campaign(
    grammars: int,
    processes: int,
    forms: frozenset[str] = FORMS,
    first: int = 0,
    sessions: int = 2,
) -> Tally:
    """All of them, over processes; progress on standard error."""
    total, said = Tally(), time.monotonic()
    with ProcessPoolExecutor(processes) as pool:
        waiting = {
            pool.submit(part, start, min(PART, first + grammars - start), forms, sessions)
            for start in range(first, first + grammars, PART)
        }
        for done in as_completed(waiting):
            waiting.discard(done)
            tally = done.result()
            for text in tally.differences[: max(0, SHOWN - len(total.differences))]:
                print(text, file=sys.stderr, flush=True)
            total.add(tally)
            if time.monotonic() - said > 20:
                said = time.monotonic()
                show(total)
    return total


def show(tally: Tally) -> None:
    """A line of numbers."""
    codes = " ".join(f"{code}:{count}" for code, count in sorted(tally.codes.items()))
    refused = " ".join(f"{code}:{count}" for code, count in sorted(tally.refused.items()))
    print(
        f"{tally.grammars} grammars, {tally.compiled} compiled, {tally.decisions} decisions,"
        f" {tally.ledgers} ledgers, {len(tally.differences)} differences,"
        f" {len(tally.unread)} not read; {codes}; compiler: {refused}",
        file=sys.stderr,
        flush=True,
    )


def main() -> int:
    """The command line: 0 without differences, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--grammars", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--sessions", type=int, default=2, help="of each grammar, 10 decisions each"
    )
    parser.add_argument("--forms", nargs="*", help="of these forms alone, beside those of 1.1")
    parser.add_argument("--listed", action="store_true", help="of listed fields alone")
    parser.add_argument("--without", nargs="*", default=[], help="without these forms")
    told = parser.parse_args()
    forms = FORMS if told.forms is None else OLD | set(told.forms)
    if told.listed:
        forms = LISTED
    forms -= set(told.without)
    tally = campaign(told.grammars, told.processes, forms, told.first, told.sessions)
    show(tally)
    for text in tally.unread[:SHOWN]:
        print(text, file=sys.stderr)
    return 1 if tally.differences or tally.unread else 0


if __name__ == "__main__":
    sys.exit(main())
