"""Exact questions: states and CPU seconds, found and checked, by depth.

    python -m benchmarks proofs

Prints a table: chains of three statements, nested and crossing keys, at depths 4 to 40, asked one
key at a time as `tcc prove` does; the whole space of some of them; and the shipped grammars.
`found` is the making of the closed lists, `checked` the kernel over the written proof; microseconds
are those of one step, without the check of the artifacts.  Each is the least of two in one process,
with the collector of cycles off, as the commands have it; memory is the peak of what was allocated
while lists were made, and while the proof was checked.  TCC_PROOFS_MANY=1 adds 10^6 states, and
10^5 that each remember a dozen values.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import tcc
from tcc.library import artifact_bytes
from tcc_certs.errors import Rejected
from tcc_certs.proof.check import check_proof
from tcc_runtime.exact.atoms import OpenQuestion
from tcc_runtime.exact.certificate import Keyed, ProvedQuestion, by_all, by_keys
from tcc_runtime.process import collection_put_off

T = TypeVar("T")
TOOLS = """grammar g version "1"

tool a(user: text max 9, file: text max 9)
tool b(user: text max 9, file: text max 9)
tool c(user: text max 9, file: text max 9)

plan = (a | b | c){0,DEPTH}
"""
CASES = {
    "chain": (
        "before b require a(same user)\nbefore c require b(same user)\n",
        "before c require a(same user)",
    ),
    "nested keys": (
        "before b require a(same user)\nbefore c require b(same (user, file))\n",
        "before c require a(same user)",
    ),
    "crossing keys": (
        """before b require a(same user)
before c require no a(same file)
before c require b(same (user, file))
""",
        "before c require a(same user)",
    ),
}
DEPTHS = (4, 10, 20, 40)
# States are places times counts: depth 104 has 10^5 of them, 218 has 10^6.
COUNTED = """grammar g version "1"

tool a(x: text ~ "p|q")
tool b(x: text ~ "p|q")

plan = (a | b){0,DEPTH}
"""
MANY = 110_000  # states of which memory is not measured: that takes three times as long


def least(make: Callable[[], T]) -> tuple[float, T]:
    """The CPU seconds of the better of two, and what it made."""
    times = []
    with collection_put_off(True):
        for _ in range(2):
            begun = time.process_time()
            made = make()
            times.append(time.process_time() - begun)
    return min(times), made


def peak(make: Callable[[], object]) -> str:
    """The most megabytes that were allocated at a time."""
    tracemalloc.start()
    make()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{most / 1e6:.1f}"


def row(name: str, depth: object, of: ProvedQuestion, *, whole: bool = False) -> str:
    """One line of the table."""
    way = by_all if whole else by_keys

    def find() -> Keyed | None:
        return way(of.system(), max_states=1_000_000, check_time=lambda: None)

    found, made = least(find)
    if made is None:
        return f"| {name} | {depth} | not by keys | | | | | | | | |"
    data = made.certificate(of, "proved")
    many = made.states > MANY
    del made
    given = [artifact_bytes(one) for one in of.artifacts]
    checked, report = least(lambda: check_proof(data, given))
    bare, _ = least(lambda: [tcc.check(one) for one in given])
    memory = " | " if many else f"{peak(find)} | {peak(lambda: check_proof(data, given))}"
    steps = max(1, report.checked["steps"])
    return (
        f"| {name} | {depth} | {report.checked['states']} | {report.checked['steps']} |"
        f" {found:.3f} | {checked:.3f} | {1e6 * found / steps:.0f} |"
        f" {1e6 * max(0, checked - bare) / steps:.0f} | {memory} |"
        f" {'VALID' if report.verdict == 0 else report.finding} |"
    )


def table() -> Iterator[str]:
    """The rows, with their heads."""
    yield (
        "| case | depth | states | steps | found s | checked s | us found | us checked | MB found |"
        " MB checked | |"
    )
    yield "| --- " * 11 + "|"
    for name, (statements, question) in CASES.items():
        for depth in DEPTHS:
            artifact = tcc.compile_text(TOOLS.replace("DEPTH", str(depth)) + statements)
            yield row(
                name, depth, ProvedQuestion(kind="statement", text=question, artifacts=(artifact,))
            )
    more = bool(os.environ.get("TCC_PROOFS_MANY"))
    cases = [("chain", 12), ("nested keys", 9), ("crossing keys", 7), ("crossing keys", 8)]
    for case, depth in cases if more else cases[:-1]:
        statements, question = CASES[case]
        artifact = tcc.compile_text(TOOLS.replace("DEPTH", str(depth)) + statements)
        of = ProvedQuestion(kind="statement", text=question, artifacts=(artifact,))
        yield row(f"{case}, all values", depth, of, whole=True)
    for depth in (104, *[218] * more):
        artifact = tcc.compile_text(COUNTED.replace("DEPTH", str(depth)))
        text = f"limit count(a) per x <= {depth} in session"
        of = ProvedQuestion(kind="statement", text=text, artifacts=(artifact,))
        yield row("counted, all values", depth, of, whole=True)
    for path in sorted(Path("grammars").glob("*.tcg")):
        artifact = tcc.compile_file(path)
        try:
            yield row(
                path.stem,
                "implies itself",
                ProvedQuestion(kind="implies", text=None, artifacts=(artifact,) * 2),
            )
        except (Rejected, OpenQuestion) as error:
            yield (f"| {path.stem} | | {str(error)[:60]} |")
