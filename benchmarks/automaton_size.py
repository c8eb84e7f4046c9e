"""Artifacts for gates: with and without the statements in the automaton that the gate can decide.

A plan that allows all calls needs every statement in the automaton, so it gives the second figures.
Each figure is the median of three compilations, including the check of the artifact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time

from benchmarks.measure import head, row
from tcc_certs.formats.artifact import read_artifact
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text

_GRAMMARS = Path(__file__).parent.parent / "grammars"
_HEAD = 'grammar sized version "1"\n'
_VALUED = "".join([f"tool t{at}(kind: a | b)\n" for at in range(200)])
_PAIRS = "".join([f"before t{2 * at} require t{2 * at + 1}\n" for at in range(10)])
_PLAIN = "".join([f"tool t{at}\n" for at in range(200)])
_CHAIN = "".join([f"before t{at + 1} require t{at}\n" for at in range(199)])
_MANY = "".join([f"tool t{at}\n" for at in range(2000)])


def _endless(name: str) -> str:
    """Return a shipped grammar without its limit on depth."""
    return re.sub(r"(?m)^limit depth.*\n", "", (_GRAMMARS / f"{name}.tcg").read_text())


CASES = {
    "`shop_desk.tcg` without `limit depth`": (_endless("shop_desk"), "hand_over"),
    "`airline_desk.tcg` without `limit depth`": (_endless("airline_desk"), "hand_over"),
    "200 tools of two values, ten `before A require B`": (_HEAD + _VALUED + _PAIRS, "t0"),
    "200 tools, 199 times `before t(i+1) require t(i)`": (_HEAD + _PLAIN + _CHAIN, "t0"),
    "2,000 tools": (_HEAD + _MANY, "t0"),
}


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield from head("grammar", "states", "kB", "ms", "states of all statements", "kB", "ms")
    for name, (text, tool) in CASES.items():
        yield row(name, *_figures(text), *_figures(f"{text}\nplan = any* | {tool}?\n"))


def _figures(text: str) -> tuple[int, int, int]:
    """Return states, kilobytes and milliseconds."""
    spent = []
    for _ in range(3):
        begun = process_time()
        artifact = compile_text(text, Options(purpose="gate")).artifact
        spent.append(process_time() - begun)
    if artifact is None:
        raise ValueError(text)
    states = read_artifact(artifact).manifest.states
    return states, round(len(artifact) / 1000), round(1000 * median(spent))
