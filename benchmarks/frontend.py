"""The front end on grammars of many rules: parsing, compiling to a core, diagnosing.

Every rule is used, and names two tools and two later rules.  The text with mistakes has one in
every hundredth rule.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import head, machine, row, side_by_side
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.syntax.parse import parse

SIZES = (100, 1000, 10_000)


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield machine()
    yield ""
    yield from head("rules", "bytes", "front end, s", "parser", "rest", "with mistakes", "errors")
    for rules in SIZES:
        text, broken = grammar(rules, mistakes=False), grammar(rules, mistakes=True)
        times, results = side_by_side(
            {
                "whole": lambda text=text: read(text),
                "parse": lambda text=text: parsed(text),
                "broken": lambda broken=broken: read(broken),
            },
            3,
        )
        if results["whole"]:
            raise ValueError(f"{results['whole']} errors")
        errors = results["broken"]
        whole, parsing = times["whole"].cpu, times["parse"].cpu
        parts = (whole, parsing, whole - parsing, times["broken"].cpu)
        yield row(rules, len(text), *(f"{part:.3f}" for part in parts), errors)


def read(text: str) -> int:
    """Return the number of errors that the front end finds."""
    return sum(found.severity == "error" for found in read_grammar_text(text).diagnostics)


def parsed(text: str) -> int:
    """Return the number of statements in a text."""
    source = source_of(text, "<text>")
    return len(parse(source, 0, Report([source])).statements)


def grammar(rules: int, mistakes: bool) -> str:
    """Return a grammar with `rules` rules, in a tree so that nesting stays small."""
    lines = ['grammar many version "1"', *(f"tool t{at} {{ cost 0.{at + 1} }}" for at in range(9))]
    for at in range(rules):
        inner = [f"r{next_}" for next_ in (2 * at + 1, 2 * at + 2) if next_ < rules]
        tool = "unknown" if mistakes and at % 100 == 99 else f"t{at % 9}"
        rest = f" ({' | '.join(inner)})?" if inner else ""
        lines.append(f"rule r{at} = {tool} t{(at + 1) % 9}{{0,2}}{rest}")
    return "\n".join([*lines, "plan = r0", "limit depth <= 8", ""])
