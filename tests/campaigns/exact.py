"""Random pairs of grammars and statements: verdicts beside brute force, each proof by the kernel.

    python -m tests.campaigns.exact --processes 2
    python -m tests.campaigns.exact --processes 1 --kept FILE     # goes on where FILE ends
    python -m tests.campaigns.exact --forms later                 # statements of language 1.2
    python -m tests.campaigns.exact --forms timed                 # and with spans of time
    python -m tests.campaigns.exact --forms fields                # answers, places, given, let
    python -m tests.campaigns.exact --forms lists                 # values in lists, and elements
    python -m tests.campaigns.exact --forms members               # one value and several lists
    python -m tests.campaigns.exact --forms mixed                 # lists beside spans and fields

Each pair is asked about inclusion both ways, whether it can be finished, and two statements with
what they make reachable.  A session that is shown has to be as short as the shortest of brute
force, and one by the words of the definitions; each proof has to be VALID, and INVALID as a proof
of the opposite.  The first answer that differs is printed and ends it.  Some 0.08 s of a core a
pair; one in three draws has no plan and is no pair.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from tests.exact import test_brute_later
from tests.exact.test_proofs import every_certificate

PART = 40


FORMS = ("plain", "later", "timed", "fields", "told", "lists", "members", "mixed")


def part(first: int, forms: str = "plain") -> dict[str, Any]:
    """The verdicts of some draws, and the first difference."""
    tally: dict[str, int] = {}
    for seed in range(first, first + PART):
        try:
            if forms == "plain":
                every_certificate(seed, tally)
            else:
                test_brute_later.ask(seed, tally, forms)  # type: ignore[arg-type]
        except AssertionError as error:
            return {"first": first, "tally": tally, "difference": f"{seed}: {error}"}
    return {"first": first, "tally": tally, "difference": ""}


def kept(path: Path | None) -> list[dict[str, Any]]:
    """The parts that a file has."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def main() -> int:
    """The command line: 0 without differences, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--statements", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kept", type=Path, help="a file of parts that are done; more are added")
    parser.add_argument("--forms", choices=FORMS, default="plain", help="of statements")
    told = parser.parse_args()
    total: dict[str, int] = {}
    done = {one["first"]: one for one in kept(told.kept)}

    def enough() -> bool:
        return total.get("pairs", 0) >= told.pairs and total.get("statements", 0) >= told.statements

    with ProcessPoolExecutor(told.processes) as pool:
        for batch in count(told.first, PART * told.processes):
            starts = [batch + PART * at for at in range(told.processes)]
            asked = partial(part, forms=told.forms)
            new = pool.map(asked, [start for start in starts if start not in done])
            for one in [done[start] for start in starts if start in done] + list(new):
                if told.kept is not None and one["first"] not in done and not one["difference"]:
                    with told.kept.open("a", encoding="utf-8") as handle:
                        handle.write(json.dumps(one) + "\n")
                for name, number in one["tally"].items():
                    total[name] = total.get(name, 0) + number
                if one["difference"]:
                    print(one["difference"])
                    return 1
            if enough():
                break
    says = ", ".join(f"{number} {name}" for name, number in sorted(total.items()))
    print(f"{says}; no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
