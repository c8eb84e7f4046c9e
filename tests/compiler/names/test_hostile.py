"""Hostile texts compile, or end in a code with a place, soon and within bounded memory.

They run in one process of their own, whose address space is limited.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tcc_compiler.frontend import read_grammar, read_grammar_text
from tcc_compiler.imports.graph_grammar import read_graph
from tcc_compiler.names.compile import compile_source
from tests.campaigns.blocks import cases
from tests.compiler.grammars import places
from tests.doubling import doubles

SECONDS = 60
MEMORY = 2 << 30
SIZE = cases(30_000, 100_000)
PROGRAM = """
import gc, json, time
gc.set_threshold(200_000, 20, 50)
from tcc_compiler.names.compile import compile_source
from tests.compiler.names.test_hostile import CASES
found = {}
for name, (make, _) in CASES.items():
    text = make()
    begin = time.monotonic()
    result = compile_source(text)
    codes = sorted({one.code for one in result.diagnostics})
    placed = all(one.span is not None for one in result.diagnostics)
    found[name] = [result.core is not None, codes, placed, time.monotonic() - begin]
print(json.dumps(found))
"""
HEAD = """\
grammar g version "1"
tool a(x: text, l: list of text, k: 1 | 2) gives (y: yes | no)
tool b(x: text)
"""


def _doubled(count: int) -> str:
    """Each `let` is the one before it twice."""
    lines = ["let c0 = a"]
    lines += [f"let c{n} = c{n - 1} | c{n - 1}" for n in range(1, count)]
    return HEAD + "\n".join(lines) + f"\nbefore b require c{count - 1}\n"


def _conditions(count: int) -> str:
    lines = ['let c0 = this.x = "1"']
    lines += [f"let c{n} = c{n - 1} and c{n - 1}" for n in range(1, count)]
    return HEAD + "\n".join(lines) + f"\nbefore b require c{count - 1}\n"


def _shapes(count: int) -> str:
    lines = ["shape s0 (x: text)"]
    lines += [f"shape s{n} (x: object s{n - 1}, y: object s{n - 1})" for n in range(1, count)]
    return HEAD + "\n".join(lines) + f"\ntool c(x: object s{count - 1})\n"


def _nested(depth: int) -> str:
    return HEAD + "before b require " + "a(" * depth + "x = this.x" + ")" * depth + "\n"


def _circle(count: int) -> str:
    return HEAD + "\n".join([f"let c{n} = c{(n + 1) % count}" for n in range(count)]) + "\n"


# Of each case a text, and its codes; None: it may compile.
CASES = {
    "statements": (lambda: HEAD + "limit count(a) <= 3\n" * (SIZE // 10), None),
    "blocks": (lambda: HEAD + "before a { let o = b require o require o }\n" * (SIZE // 50), None),
    "lets of a block": (
        lambda: HEAD + "before a {\n"
        + "".join([f"let v{n} = {'b' if not n else f'v{n - 1}'}\n" for n in range(3000)])
        + "require v2999\n}\n",
        ["TCC314"],
    ),
    "clauses": (lambda: HEAD + "before a {" + "\nrequire b" * (SIZE // 20) + "}\n", None),
    "tools": (lambda: HEAD + "".join([f"tool t{n}(x: text)\n" for n in range(SIZE // 50)]), None),
    "filters": (lambda: _nested(200), ["TCC106"]),
    "filters too deep": (lambda: _nested(5000), ["TCC106"]),
    "brackets": (lambda: HEAD + "forbid " + "(" * SIZE + "a" + ")" * SIZE, ["TCC106"]),
    "open brackets": (lambda: HEAD + "forbid " + "(" * SIZE, ["TCC114"]),
    "negations": (lambda: HEAD + "before a require " + "not " * SIZE + "b", ["TCC106"]),
    "sums": (lambda: HEAD + "before a require 1" + " + 1" * SIZE + " = 2", ["TCC106"]),
    "signs": (lambda: HEAD + "before a require " + "-" * SIZE + "1 = 2", ["TCC106"]),
    "unions": (lambda: HEAD + "forbid a" + " | a" * SIZE + "\n", ["TCC314"]),
    "conditions": (lambda: HEAD + "before a require b" + " and b" * SIZE + "\n", ["TCC314"]),
    "values": (lambda: HEAD + "before a require k = 1" + " | 1" * SIZE + "\n", ["TCC314"]),
    "arms": (
        lambda: HEAD + "before a require match x {" + '"v": 1, ' * (SIZE // 2) + "else: 2 } = 1\n",
        ["TCC314"],
    ),
    "doubled lets": (lambda: _doubled(60), ["TCC314"]),
    "doubled conditions": (lambda: _conditions(60), ["TCC314"]),
    "many lets": (lambda: _circle(SIZE // 50), ["TCC225"]),
    "a circle of lets": (lambda: _circle(3), ["TCC225"]),
    "doubled shapes": (lambda: _shapes(60), ["TCC106", "TCC314"]),
    "lists of lists": (lambda: HEAD + f"tool c(x: {'list of ' * 5000}text)\n", ["TCC106"]),
    "plans": (lambda: HEAD + "plan = " + "a " * SIZE + "\n", None),
    "nested plans": (lambda: HEAD + "plan = " + "(a " * 5000 + ")" * 5000 + "\n", ["TCC106"]),
    "stars": (lambda: HEAD + "plan = a" + "*" * 5000 + "\n", ["TCC106"]),
    "wrong orders": (lambda: HEAD + "require a before b\n" * SIZE, ["TCC112", "TCC242"]),
    "wrong words": (lambda: HEAD + "forbid a b c\n" * SIZE, ["TCC101", "TCC112"]),
    "no statements": (lambda: HEAD + "what is this\n" * SIZE, ["TCC101"]),
    "quotes": (lambda: HEAD + 'forbid a(x = "' + "\\n" * SIZE, ["TCC103"]),
    "backslashes": (lambda: HEAD + 'forbid a(x = "' + "\\\\" * SIZE + '")', None),
    "patterns": (
        lambda: HEAD + 'forbid a(x ~ "' + "(a{1,1000}){1,1000}" * 100 + '")', ["TCC225"]
    ),
    "patterns of types": (
        lambda: HEAD + 'tool c(x: text ~ "' + "(" * 2000 + "a" + ")*" * 2000 + '")', ["TCC318"]
    ),
    "a slow pattern": (lambda: HEAD + 'tool c(x: text ~ "(a|b)*a[ab]{900}")', ["TCC323"]),
    "calls": (
        lambda: HEAD + f"tool c({', '.join([f'p{n}: 1 .. 9' for n in range(50)])})", ["TCC303"]
    ),
    "ranges": (lambda: HEAD + "tool c(p: 1..99999999999999999999)", ["TCC303"]),
    "names": (lambda: HEAD + "".join([f"tool `e\u0301{n}`\n" for n in range(5000)]), None),
    "same in normal form": (lambda: HEAD + "tool `e\u0301`\ntool `\u00e9`\n", ["TCC201"]),
    "a long name": (lambda: HEAD + f"tool {'x' * SIZE}", ["TCC113"]),
    "a long number": (lambda: HEAD + f"limit depth <= {'9' * SIZE}", ["TCC105"]),
    "a large number": (lambda: HEAD + f"limit depth <= {'9' * 900}", ["TCC307"]),
    "lone surrogates": (lambda: HEAD + "forbid `\ud800`", ["TCC108"]),
    "a NUL": (lambda: HEAD + "tool c\0", ["TCC102"]),
    "bytes": (lambda: "#" * 9_000_000, ["TCC107"]),
    "tokens": (lambda: "a " * cases(1_000_000, 4_000_000), ["TCC101"]),
    "wrong characters": (lambda: "$ a " * 2_000_000, ["TCC102"]),
    "one run of wrong characters": (lambda: "$" * 8_000_000, ["TCC102"]),
    "a repeat count": (lambda: HEAD + "plan = a{1,1000000000}", ["TCC311"]),
    "a long repeat count": (lambda: HEAD + "plan = a{" + "9" * 900 + "}", ["TCC311"]),
    "calls of many tools": (
        lambda: HEAD + "".join([f"tool a{i}(k: 1..60000)\n" for i in range(50)]), ["TCC303"]
    ),
    "ranges of many fields": (
        lambda: HEAD + f"tool c({', '.join([f'k{i}: 1..60000' for i in range(2_000)])})", ["TCC303"]
    ),
    "ranges of many attributes": (
        lambda: HEAD + "".join([f"given g{i}: 1..60000\n" for i in range(2_000)]), ["TCC303"]
    ),
    "a long value": (
        lambda: HEAD + 'tool c(k: 1..60000, s: "' + "x" * SIZE + '")', ["TCC304"]
    ),
    "amounts with when": (
        lambda: HEAD + "tool c(k: 1..60000) { " + "cost k when k = 5 " * 5_000 + "}", ["TCC314"]
    ),
    "amounts of many tools": (
        lambda: HEAD + "".join(
            [f"tool c{i}(k: 1..1000) {{ cost {'+'.join(['k'] * 200)} }}\n" for i in range(60)]
        ),
        ["TCC314"],
    ),
    "amounts that grow": (
        lambda: HEAD + "tool c { cost " + "*".join(["9" * 900] * 200) + " }", ["TCC307"]
    ),
    "a chain of rules": (
        lambda: HEAD + "".join([f"rule r{i} = r{i + 1}\n" for i in range(10_000)])
        + "rule r10000 = a\nplan = r0\n", None,
    ),
    "a circle of rules": (
        lambda: HEAD + "".join([f"rule r{i} = r{(i + 1) % 10_000}\n" for i in range(10_000)]),
        ["TCC207"],
    ),
    "names close to many": (
        lambda: HEAD + "".join([f"tool abcdefgh{i}\n" for i in range(2_500)])
        + "plan = " + " ".join([f"abcdefgx{i}" for i in range(100)]), ["TCC202"],
    ),
    "one statement often": (lambda: HEAD + "plan = nowhere\n" * 8_000, ["TCC112", "TCC212"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[object]]:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False,
        preexec_fn=limited, env=os.environ, timeout=30 * SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[object]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_text_ends_soon(name: str, outcomes: dict[str, list[object]]) -> None:
    compiled, codes, placed, seconds = outcomes[name]
    wanted = CASES[name][1]
    if wanted is None:
        assert compiled
        assert codes == []
    else:
        assert codes == wanted
        assert not compiled
    assert placed or codes == ["TCC108"]
    assert isinstance(seconds, float)
    assert seconds < SECONDS


@pytest.mark.campaign
def test_a_hundred_thousand_statements_and_a_million_tokens() -> None:
    found = compile_source(HEAD + "limit count(a) <= 3\n" * 100_000)
    assert found.core is not None
    assert len(found.core.statements) == 100_000
    found = compile_source(HEAD + "forbid a\n" * 600_000)
    assert [(one.code, one.span is not None) for one in found.diagnostics] == [("TCC107", True)]


def test_the_time_is_linear_in_the_statements() -> None:
    def work(count: int) -> Callable[[], object]:
        text = HEAD + "before a { let o = last(b(same x)) require o.x = x or k = 1 }\n" * count
        return lambda: compile_source(text)

    doubles(work, 500)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xff", [("TCC108", 1, 1)]),
        (HEAD.encode() + b"tool c # \xc3", [("TCC108", 4, 10)]),
        (b"\xef\xbb\xbf" + HEAD.encode(), [("TCC109", 1, 1)]),
        ((HEAD + "tool c").encode("utf-16"), [("TCC109", 1, 1)]),
        (b"", [("TCC213", 1, 1)]),
        (bytes(range(256)) * 100, [("TCC108", 1, 1)]),
    ],
)
def test_bytes_that_are_no_text(data: bytes, expected: object, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_bytes(data)
    assert places(read_grammar(path)) == expected


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.tcg"
    os.mkfifo(pipe)
    none, long = tmp_path / "none.tcg", Path("x" * 5000)
    for path in (tmp_path, none, pipe, Path("/dev/zero"), Path("a\0b"), long):
        assert places(read_grammar(path)) == [("TCC110", 1, 1)]
        assert places(read_graph(path)) == [("TCC110", 1, 1)]


def test_lines_may_end_in_carriage_return_and_line_feed(tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_bytes((HEAD + "plan = a\n").replace("\n", "\r\n").encode())
    assert read_grammar(path).core == read_grammar_text(HEAD + "plan = a\n").core
