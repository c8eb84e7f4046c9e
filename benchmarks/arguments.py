"""The time of `check` for each type of argument, all in one run.

The tool has one argument, and no statement restricts it.  Processor time, least of 7 batches.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import tcc
from benchmarks.measure import head, row

PATH, URL = "/srv/out/reports/2026/summary.txt", "https://docs.example.com/guide/intro?page=2"
BATCHES = 7
ELEMENTS = (0, 10, 100, 1000)
VALUES: tuple[tuple[str, Any], ...] = (
    ("text", PATH),
    ('text ~ "/srv/out/[a-z0-9./]*"', PATH),
    ("path", PATH),
    ('path under "/srv/out"', PATH),
    ("url", URL),
    ('url under "https://*.example.com/guide"', URL),
    ("text or integer", "abc"),
    ("integer or text", "abc"),
    ("object (a: text, b: integer)", {"a": "x", "b": 1}),
    ("object (a: text, b: integer) or text", {"a": "x", "b": 1}),
)
LISTS: tuple[tuple[str, list[Any]], ...] = (
    ("list of text", [PATH, "b"]),
    ("list of path", [PATH, "/srv/b"]),
    ("list of url", [URL, "https://example.com/"]),
    ("list of (text or integer)", ["a", 1]),
    ("list of (integer or path)", [PATH, 1]),
)


def table() -> Iterator[str]:
    """Yield the tables of single values and of lists."""
    yield from head("argument", "check, us")
    for kind, value in VALUES:
        yield row(f"`{kind}`", microseconds(kind, value, 2000))
    yield ""
    yield from head("list", *[f"{size} elements, us" for size in ELEMENTS])
    for kind, pair in LISTS:
        times = [
            microseconds(kind, pair * (size // 2), max(2000 // (size + 1), 20)) for size in ELEMENTS
        ]
        yield row(f"`{kind}`", *times)


def microseconds(kind: str, value: Any, calls: int) -> str:
    """Return the time of one check of a call, in microseconds."""
    text = f'grammar g version "1"\ntool t(x: {kind})\nlimit depth <= 9\n'
    with tcc.Gate(tcc.compile_text(text), durable=False) as gate:
        if not gate.check("t", {"x": value}).allowed:
            raise ValueError(kind)
        best = float("inf")
        for _ in range(BATCHES):
            begun = time.process_time()
            for _ in range(calls):
                gate.check("t", {"x": value})
            best = min(best, (time.process_time() - begun) / calls)
    return f"{best * 1e6:,.0f}"
