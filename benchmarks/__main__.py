"""``python -m benchmarks NAME``: prints the table of that name as Markdown."""

from __future__ import annotations

import sys

from benchmarks import main_job

TABLES = {"main_job": main_job.table}


def main() -> int:
    """Print the tables that the arguments name, all where they name none."""
    names = sys.argv[1:] or list(TABLES)
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        print(f"no table {unknown[0]}; there are {', '.join(TABLES)}", file=sys.stderr)
        return 2
    for name in names:
        print(f"### {name}\n")
        for row in TABLES[name]():
            print(row, flush=True)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
