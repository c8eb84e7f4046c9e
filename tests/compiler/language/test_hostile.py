"""Hostile texts end in a coded error, soon and within bounded memory.

They run in one process of their own, whose address space is limited.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tcc_compiler.frontend import read_grammar, read_grammar_text
from tcc_compiler.imports.graph_grammar import read_graph
from tests.compiler.grammars import HEAD, TOOLS, places

SECONDS = 20  # one or two where the machine is idle
MEMORY = 1 << 30
PROGRAM = """
import json, time
from tcc_compiler.frontend import read_grammar_text
from tests.compiler.language.test_hostile import CASES
found = {}
for name, (text, _) in CASES.items():
    begin = time.monotonic()
    result = read_grammar_text(text)
    codes = [item.code for item in result.diagnostics]
    found[name] = [result.core is None, codes, time.monotonic() - begin]
print(json.dumps(found))
"""
NO_NAMES = ("\u200b", "\\u0000", "x" * 129, "", "\\u202e", "\x7f")


def _listed(count: int, domain: str) -> str:
    return ",".join(f"p{i}: {domain}" for i in range(count))


def _names(count: int) -> str:
    return ",".join(f"p{i}" for i in range(count))


CASES = {
    "parentheses": (TOOLS + "plan = " + "(" * 50_000 + "a" + ")" * 50_000, "TCC106"),
    "postfix operators": (TOOLS + "plan = a" + "?" * 100_000, "TCC106"),
    "signs": (HEAD + "tool a { cost " + "-" * 100_000 + "1 }", "TCC106"),
    "arithmetic": (HEAD + "tool a { cost " + "(" * 50_000 + "1" + ")" * 50_000 + " }", "TCC106"),
    "mixed operators": (TOOLS + "plan = " + "(a|b " * 150 + "a" + ")" * 150, "TCC106"),
    "repeat count": (TOOLS + "plan = a{1,1000000000}", "TCC311"),
    "long repeat count": (TOOLS + "plan = a{" + "9" * 1000 + "}", "TCC311"),
    "domain": (HEAD + "tool a(k: 1..1000000000)", "TCC303"),
    "long domain": (HEAD + "tool a(k: -" + "9" * 900 + ".." + "9" * 900 + ")", "TCC303"),
    "product": (
        HEAD + "tool a(" + ",".join(f"p{i}: 1..60000" for i in range(100)) + ")", "TCC303",
    ),
    "total": (HEAD + "".join(f"tool a{i}(k: 1..60000)\n" for i in range(50)), "TCC303"),
    "long texts": (HEAD + "tool " + "x" * 100_000 + "(k: 1..60000)", "TCC113"),
    "long value": (HEAD + 'tool a(k: 1..60000, s: "' + "x" * 100_000 + '")', "TCC304"),
    "digits": (TOOLS + "limit depth <= " + "9" * 5_000_000, "TCC105"),
    "fraction": (TOOLS + "limit cost <= 0." + "9" * 5000, "TCC105"),
    "bytes": ("#" * 9_000_000, "TCC107"),
    "tokens": ("a " * 4_000_000, "TCC107"),
    "statements": ("plan tool rule " * 60_000, "TCC107"),
    "wrong characters": ("$ a " * 2_000_000, "TCC102"),
    "one run of wrong characters": ("$" * 8_000_000, "TCC102"),
    "open string": ('grammar g version "' + "\\n" * 3_000_000, "TCC103"),
    "NUL": (HEAD + "tool a\0", "TCC108"),
    "surrogate": (HEAD + "tool a # \ud800", "TCC108"),
    "byte order mark": ("\ufeff" + HEAD, "TCC109"),
    "conditions": (
        HEAD + "tool a(k: 1..60000) { " + "cost k when k = 5 " * 5_000 + "}", "TCC314",
    ),
    "arithmetic of many tools": (
        HEAD + "".join(
            f"tool a{i}(k: 1..1000) {{ cost {'+'.join(['k'] * 1000)} }}\n" for i in range(30)
        ), "TCC314",
    ),
    "growing arithmetic": (
        HEAD + "tool a { cost " + "*".join(["9" * 900] * 9_000) + " }", "TCC307",
    ),
    "recursion in a long chain": (
        TOOLS + "".join(f"rule r{i} = r{(i + 1) % 10_000}\n" for i in range(10_000)), "TCC207",
    ),
    "names close to many": (
        HEAD + "".join(f"tool abcdefgh{i}\n" for i in range(2_500))
        + "plan = " + " ".join(f"abcdefgx{i}" for i in range(100)), "TCC202",
    ),
    "parameters": (HEAD + f"tool a({_listed(100_000, 'x')})", "TCC107"),
    "open parameters twice": (HEAD + f"tool a(; {_listed(10_000, 'text')}, p0: text)", "TCC201"),
    "names in quotes": (HEAD + "".join(f'tool "{name}"\n' for name in NO_NAMES), "TCC113"),
    "a name in long quotes": (HEAD + 'tool "' + "x" * 4_000_000 + '"', "TCC113"),
    "many names in quotes": (HEAD + 'tool t\nplan = ' + '"a b" ' * 25_000, "TCC202"),
    "a long pattern of text": (HEAD + 'tool a(; t: text ~ "' + "a" * 2_000_000 + '")', "TCC318"),
    "a pattern of text with large counts": (
        HEAD + 'tool a(; t: text ~ "((((a{1000}){1000}){1000}){1000}){1000}")', "TCC318",
    ),
    "a deep pattern of text": (
        HEAD + 'tool a(; t: text ~ "' + "(" * 300_000 + "a" + ")" * 300_000 + '")', "TCC318",
    ),
    "many patterns of text": (
        HEAD + "tool a(; " + ",".join(f't{i}: text ~ "(a{{999}}"' for i in range(6_000)) + ")",
        "TCC318",
    ),
    "values that `same` goes through": (
        HEAD + f"tool a({_listed(13, '0 | 1')})\nrequire a before a same {_names(13)}", "TCC320",
    ),
    "statements that `same` stands for": (
        HEAD + f"tool a({_listed(12, '0 | 1')})\n"
        + f"require a before a same {_names(12)}\n" * 1_000, "TCC320",
    ),
    "pairs of one value": (
        HEAD + f"tool a(k: 1 | 2, {_listed(8_000, '0')})\n"
        + f"forbid a before a same k, {_names(8_000)}\n" * 5, "TCC320",
    ),
    "`per` over large sets": (
        HEAD + "tool a(k: 1..4000, m: 1..16)\n" + "limit uses(a) per k <= 1\n" * 17
        + "".join(f"require a(m={i}) before a(m={i}) same k\n" for i in range(1, 17)), "TCC320",
    ),
    "`each` without end": (TOOLS + "require a before " + "each " * 50_000, "TCC101"),
    "`same` without end": (TOOLS + "forbid a before b same " + "same = " * 25_000, "TCC101"),
    "ends of a range": (
        HEAD + "tool a(; n: number -" + "9" * 900 + " .. " + "9" * 900 + ")", "TCC317",
    ),
    "a small end of a range": (HEAD + "tool a(; n: number 0 .. 0." + "0" * 900 + "1)", "TCC317"),
    "a long limit of a sum": (
        HEAD + "tool a(; n: number 0 .. 1)\nlimit sum(a.n) <= " + "9" * 999, "TCC307",
    ),
    "errors": (TOOLS + "plan = nowhere\n" * 8_000, "TCC212"),
}  # fmt: skip


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


@pytest.fixture(scope="module")
def results() -> dict[str, tuple[bool, list[str], float]]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": path},
        preexec_fn=_limit_memory,
        stdout=subprocess.PIPE,
        timeout=300,
        check=True,
    )
    found: dict[str, tuple[bool, list[str], float]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", CASES)
def test_hostile_text_ends_soon_in_its_code(
    name: str, results: dict[str, tuple[bool, list[str], float]]
) -> None:
    refused, codes, seconds = results[name]
    assert refused
    assert CASES[name][1] in codes
    assert len(codes) <= 201
    assert seconds < SECONDS


def test_a_chain_of_ten_thousand_rules_is_no_problem() -> None:
    text = "".join(f"rule r{i} = r{i + 1}\n" for i in range(10_000))
    result = read_grammar_text(f"{TOOLS}{text}rule r10000 = a\nplan = r0")
    assert result.diagnostics == ()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xff", [("TCC108", 1, 1)]),
        (HEAD.encode() + b"tool a # \xc3", [("TCC108", 2, 10)]),
        (b"\xef\xbb\xbf" + HEAD.encode(), [("TCC109", 1, 1)]),
        ((HEAD + "tool a").encode("utf-16"), [("TCC109", 1, 1)]),
        (os.urandom(0), [("TCC213", 1, 1)]),
        (bytes(range(256)) * 100, [("TCC108", 1, 1)]),
    ],
)
def test_bytes_that_are_no_text(data: bytes, expected: object, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_bytes(data)
    assert places(read_grammar(path)) == expected


def test_what_is_not_a_regular_file_is_not_opened(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.tcg"
    os.mkfifo(pipe)
    for path in (
        tmp_path,
        tmp_path / "none.tcg",
        pipe,
        Path("/dev/zero"),
        Path("a\0b"),
        Path("x" * 5000),
    ):
        assert places(read_grammar(path)) == [("TCC110", 1, 1)]
        assert places(read_graph(path)) == [("TCC110", 1, 1)]


def test_lines_may_end_in_carriage_return_and_line_feed(tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_bytes((TOOLS + "plan = a\n").replace("\n", "\r\n").encode())
    assert read_grammar(path).core == read_grammar_text(TOOLS + "plan = a\n").core
