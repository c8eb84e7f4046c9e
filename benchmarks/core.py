"""The cost of `check --core` compared with `check`: shipped grammars, larger and harder ones.

Both run in one process in turn; figures are medians of processor times.  `check --core` checks the
certificates and walks over the core.  The larger grammars are shipped ones with other limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import head, row, side_by_side
from tcc_certs.corecheck.check import CoreReport, check_core
from tcc_certs.kernel import check
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file, compile_text

GRAMMARS = Path(__file__).parents[1] / "grammars"
ROUNDS = 5
_OPTIONS = Options(beta="8")
_CALLS = """grammar hard version "1"

tool a { cost 1 }
tool r { cost 2 }
"""
_HARD = {
    "any* a any{20}, depth 25": "plan = any* a any{20}\nlimit depth <= 25\n",
    "r = ((any r r){2,4}){0,2}, depth 12": (
        "rule r0 = ((any r0 r0){2,4}){0,2}\nplan = r0\nlimit depth <= 12\n"
    ),
}
_LARGER = {
    "coding_agent": ("depth <= 30", "depth <= 60"),
    "data_pipeline": ("depth <= 34", "depth <= 60"),
    "sql_analyst": ("depth <= 28", "depth <= 60"),
}


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield from head("grammar", "states", "pairs", "check, s", "check --core, s", "ratio (goal 5)")
    for path in sorted(GRAMMARS.glob("*.tcg")):
        yield measured(path.stem, compile_file(path, _OPTIONS).artifact)
    for name, (before, after) in _LARGER.items():
        text = (GRAMMARS / f"{name}.tcg").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if not line.startswith("expect")]
        larger = "\n".join(lines).replace(before, after) + "\n"
        yield measured(f"{name}, {after}", compile_text(larger, _OPTIONS).artifact)
    for name, plan in _HARD.items():
        yield measured(f"`{name}`", compile_text(_CALLS + plan, _OPTIONS).artifact)


def measured(name: str, data: bytes | None) -> str:
    """Return the row of one grammar."""
    if data is None:
        raise ValueError(f"{name} is refused")
    artifact = data

    def core() -> CoreReport:
        return check_core(check(artifact))

    timings, results = side_by_side({"check": lambda: check(artifact), "core": core}, ROUNDS)
    plain, whole = timings["check"], timings["core"]
    states = len(results["check"].automaton.accept)
    ratio = f"{whole.cpu / plain.cpu:.1f}"
    return row(name, states, results["core"].pairs, plain, whole, ratio)
