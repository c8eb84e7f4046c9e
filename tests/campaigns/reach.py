"""How much of the readers the fuzzers' inputs pass through, in lines and in branches.

    pip install '.[fuzz]'
    python -m tests.campaigns.reach artifact --runs 20000

Reads the seeds, the corpus and so many inputs made of them, under coverage.py, and prints a line a
file of the reader, with the lines that nothing reached.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
# The files that a target is meant for; what they share with others is counted in each.
FILES = {
    "artifact": (
        "formats/codec", "formats/container", "formats/artifact", "formats/schema", "policy/*",
        "values/declared", "values/text_syntax", "race/enclosures", "call_rules",
        "state_rules", "cyclic_rules", "rounded", "strict", "kernel", "corecheck/*",
    ),
    "ledger": (
        "formats/codec", "formats/ledger", "formats/ledger_schema", "race/*", "replay/*",
        "replay/asking/*", "replay/races/*",
    ),
    "grammar": ("frontend", "language/source", "syntax/*", "names/*"),
}  # fmt: skip


def folder_of(target: str) -> Path:
    """Where the files of a target are."""
    return ROOT / ("compiler/tcc_compiler" if target == "grammar" else "certs/tcc_certs")


def main() -> int:
    """The command line."""
    import coverage

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=sorted(FILES))
    parser.add_argument("--runs", type=int, default=20_000)
    told = parser.parse_args()
    files = [str(folder_of(told.target) / f"{name}.py") for name in FILES[told.target]]
    measured = coverage.Coverage(branch=True, include=files, data_file=None)
    measured.start()
    from tests.campaigns.targets import TARGETS

    target = TARGETS[told.target]()
    rng = Random(f"reach {told.target}")
    for data in target.seeds:
        target.read(data)
    for _ in range(told.runs):
        target.read(target.make(rng))
    measured.stop()
    measured.report(show_missing=True, precision=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
