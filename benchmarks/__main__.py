"""``python -m benchmarks NAME``: prints the table of that name as Markdown."""

from __future__ import annotations

import importlib
import sys

# Each module is imported on use, because some need packages of the extra `bench`.
TABLES = (
    "main_job",
    "check",
    "core",
    "load",
    "runs",
    "batch",
    "compile",
    "minimise",
    "count",
    "cheapest",
    "frontend",
    "components",
    "growth",
    "exponents",
    "floors",
    "search",
    "rungs",
    "validate",
    "wide",
    "races",
    "predicted",
    "mcp",
    "relay",
    "http_load",
    "gate",
    "automaton_size",
    "reasons",
    "sessions",
    "long",
    "arguments",
    "decide",
    "policies",
    "reading",
    "editor",
    "langgraph",
    "peers",
    "startup",
)


def main() -> int:
    """Print the tables that the arguments name, or the table `main_job` without arguments."""
    names = sys.argv[1:] or ["main_job"]
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        print(f"no table {unknown[0]}; there are {', '.join(TABLES)}", file=sys.stderr)
        return 2
    for name in names:
        print(f"### {name}\n")
        for row in importlib.import_module(f"benchmarks.{name}").table():
            print(row, flush=True)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
