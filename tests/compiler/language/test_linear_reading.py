"""Source that is read takes time in proportion to its characters, whatever they are."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path

import pytest

from tcc.batches.rows import RequestError, read_requests
from tcc_compiler.pipeline import read_source
from tests.doubling import doubles
from tests.scaling.measure import MOST, growth

HEAD = 'grammar g version "1"\n'
GRAMMARS = {
    "goals": lambda n: (
        HEAD
        + "\n".join(f"tool t{i}: s{i} -> s{i + 1}" for i in range(n))
        + "\nplan = t0\nstart s0\ngoal "
        + " | ".join(f"s{i}" for i in range(n))
    ),
    "strings that do not end": lambda n: HEAD + '"\\"\n' * n,
    "one string that does not end": lambda n: HEAD + '"' + '\\"' * (50 * n),
    "gaps after parentheses": lambda n: HEAD + "tool a\nplan = " + "a( #c\n" * n,
    "one long gap": lambda n: HEAD + "tool a\nplan = a(" + " #\n" * (10 * n),
    "what has no meaning": lambda n: HEAD + "; " * (10 * n),
    "values": lambda n: HEAD + f"tool a(k: {' | '.join(f'v{i}' for i in range(n))})\nplan = a",
    "tools of one name": lambda n: HEAD + "tool a\n" * n + "plan = a",
    "names that there are not": lambda n: (
        HEAD + "tool a\nplan = " + " ".join(f"b{i}" for i in range(n))
    ),
}
# What regular expressions go through; what is done there is no bytecode, and is timed.
SEARCHED = {
    "strings that do not end",
    "one string that does not end",
    "gaps after parentheses",
    "one long gap",
    "a text that does not end",
}
NODE = {"id": "a", "start": True, "goal": True}
GRAPHS = {
    "nodes": lambda n: {
        "nodes": [{**NODE, "id": f"a{i}"} for i in range(n)],
        "links": [{"source": f"a{i}", "target": f"a{i + 1}"} for i in range(n - 1)],
    },
    "arguments": lambda n: {
        "nodes": [NODE],
        "links": [
            {"source": "a", "target": "a", "call": f"a({','.join(f'k{i}=1' for i in range(n))})"}
        ],
    },
    "a text that does not end": lambda n: {
        "nodes": [NODE],
        "links": [{"source": "a", "target": "a", "call": 'a(k="' + '\\"' * (50 * n)}],
    },
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_grammar(name: str, tmp_path: Path) -> None:
    def work(n: int):
        path = tmp_path / f"{n}.tcg"
        path.write_text(GRAMMARS[name](n), encoding="utf-8")
        return lambda: read_source(path)

    assert growth(work, 60) < MOST
    if name in SEARCHED:
        doubles(work, 4000)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph(name: str, tmp_path: Path) -> None:
    def work(n: int):
        path = tmp_path / f"{n}.json"
        path.write_text(json.dumps({"directed": True, **GRAPHS[name](n)}), encoding="utf-8")
        return lambda: read_source(path)

    assert growth(work, 60) < MOST
    if name in SEARCHED:
        doubles(work, 4000)


@pytest.mark.parametrize(
    "line",
    [
        lambda n: b'{"seed":"' + b"11" * n + b'"}',
        lambda n: b"[" * n,
        lambda n: b'"' + b'\\"' * n,
        lambda n: b'{"seed":"' + b"\\" * n,
        lambda n: b"1" * n,
    ],
)
def test_requests(line) -> None:
    def read(data: bytes) -> None:
        with pytest.raises(RequestError):
            list(read_requests(io.BytesIO(data)))

    doubles(lambda n: partial(read, line(n)), 1 << 17)


def test_a_line_of_requests_without_an_end_is_not_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        """Never a line feed, and never an end."""

        def readline(self, size: int | None = -1) -> bytes:
            assert size is not None and 0 < size <= (1 << 20) + 1
            return b"1" * size

    with pytest.raises(RequestError, match="longer than"):
        list(read_requests(Endless()))  # type: ignore[arg-type]
