"""Exact questions: states and CPU seconds, found and checked, by depth.

    python -m benchmarks proofs

Prints a table: chains of three statements, nested and crossing keys, at depths 4 to 40, asked one
key at a time as `tcc prove` does; the whole space of a chain; and the shipped grammars.  `found` is
the making of the closed lists, `checked` the kernel over the written proof; microseconds are those
of one step.  Each is the least of two in one process; memory is the peak of the lists.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import tcc
from tcc.library import artifact_bytes
from tcc_certs.errors import Rejected
from tcc_certs.proof.check import check_proof
from tcc_runtime.exact.atoms import Undecided
from tcc_runtime.exact.certificate import Asked, Keyed, by_all, by_keys

T = TypeVar("T")
TOOLS = """grammar g version "1"
tool a(; user: text max 9, file: text max 9)
tool b(; user: text max 9, file: text max 9)
tool c(; user: text max 9, file: text max 9)
plan = (a | b | c){0,DEPTH}
"""
CASES = {
    "chain": (
        "require a before b same user\nrequire b before c same user\n",
        "require a before c same user",
    ),
    "nested keys": (
        "require a before b same user\nrequire b before c same user, file\n",
        "require a before c same user",
    ),
    "crossing keys": (
        """require a before b same user
forbid a before c same file
require b before c same user, file
""",
        "require a before c same user",
    ),
}
DEPTHS = (4, 10, 20, 40)


def least(make: Callable[[], T]) -> tuple[float, T]:
    """The CPU seconds of the better of two, and what it made."""
    times = []
    for _ in range(2):
        begun = time.process_time()
        made = make()
        times.append(time.process_time() - begun)
    return min(times), made


def row(name: str, depth: object, of: Asked, *, whole: bool = False) -> str:
    """One line of the table."""
    way = by_all if whole else by_keys

    def find() -> Keyed | None:
        return way(of.system(), max_states=1_000_000, check_time=lambda: None)

    found, made = least(find)
    if made is None:
        return f"| {name} | {depth} | not by keys | | | | | | | |"
    data = made.certificate(of, "proved")
    given = [artifact_bytes(one) for one in of.artifacts]
    checked, report = least(lambda: check_proof(data, given))
    bare, _ = least(lambda: [tcc.check(one) for one in given])
    tracemalloc.start()
    find()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    steps = max(1, report.checked["steps"])
    return (
        f"| {name} | {depth} | {report.checked['states']} | {report.checked['steps']} |"
        f" {found:.3f} | {checked:.3f} | {1e6 * found / steps:.0f} |"
        f" {1e6 * max(0, checked - bare) / steps:.0f} | {peak / 1e6:.1f} |"
        f" {'VALID' if report.verdict == 0 else report.finding} |"
    )


def table() -> Iterator[str]:
    """The rows, with their heads."""
    yield ("| case | depth | states | steps | found s | checked s | us found | us checked | MB | |")
    yield ("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, (statements, question) in CASES.items():
        for depth in DEPTHS:
            artifact = tcc.compile_text(TOOLS.replace("DEPTH", str(depth)) + statements)
            yield row(name, depth, Asked(kind="statement", text=question, artifacts=(artifact,)))
    statements, question = CASES["chain"]
    for depth in (6, 8):
        artifact = tcc.compile_text(TOOLS.replace("DEPTH", str(depth)) + statements)
        of = Asked(kind="statement", text=question, artifacts=(artifact,))
        yield row("chain, all values", depth, of, whole=True)
    for path in sorted(Path("grammars").glob("*.tcg")):
        artifact = tcc.compile_file(path)
        try:
            yield row(
                path.stem,
                "implies itself",
                Asked(kind="implies", text=None, artifacts=(artifact,) * 2),
            )
        except (Rejected, Undecided) as error:
            yield (f"| {path.stem} | | {str(error)[:60]} |")
