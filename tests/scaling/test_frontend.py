"""The front end in each of its dimensions: linear, or refused by a bound that is worked out first;
and it looks at the clock."""

from __future__ import annotations

import json

import pytest

from tcc_certs.formats.codec import encode
from tcc_certs.kernel import check
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.reader import core_json
from tcc_compiler.automata.letters import partition
from tcc_compiler.automata.regular.explore import find_driver
from tcc_compiler.frontend import read_grammar, read_grammar_text
from tcc_compiler.imports.graph_grammar import read_graph
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.names.amounts import Steps
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.tools import tool_of
from tcc_compiler.names.types import Shapes
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core, compile_file, compile_text
from tcc_compiler.resources import CompileRefused, Guard
from tcc_compiler.syntax.parse import parse
from tests.scaling.measure import MOST, growth, swelling

HEAD = 'grammar g version "1"\n'
A = HEAD + "tool a {cost 1}\n"


def _domain(n: int) -> str:
    return f"tool a(x: 1..{n})"


def _tools(n: int) -> str:
    return HEAD + "".join(f"tool t{i} {{cost {i}}}\n" for i in range(n))


GRAMMARS = {
    "chained rules": lambda n: (
        A + "".join(f"rule r{i} = r{i + 1}\n" for i in range(n)) + f"rule r{n} = a\nplan = r0"
    ),
    "rules that may be empty": lambda n: (
        A + "".join(f"rule r{i} = a? r{i + 1}\n" for i in range(n)) + f"rule r{n} = a\nplan = r0"
    ),
    "costs with when": lambda n: (
        HEAD + _domain(n) + " {" + "".join(f"cost {i} when x={i} " for i in range(1, n + 1)) + "}"
    ),
    "parameters with when": lambda n: (
        HEAD
        + f"tool a({', '.join(f'p{i}: u' for i in range(n))})"
        + " {"
        + "".join(f"cost {i} when p{i}=u " for i in range(n))
        + "}"
    ),
    "patterns of many parameters": lambda n: (
        HEAD
        + f"tool a({', '.join(f'p{i}: u' for i in range(n))})\nplan = "
        + "|".join(f"a(p{i}=u)" for i in range(n))
    ),
    "terms": lambda n: HEAD + _domain(4) + f" {{cost {'+'.join(['x'] * n)}}}",
    "values": lambda n: HEAD + _domain(n) + " {cost x}",
    "tools": _tools,
    "alternatives": lambda n: _tools(n) + "plan = " + "|".join(f"t{i}" for i in range(n)),
    "sequence": lambda n: A + "plan = " + "a " * n,
    "differences": lambda n: A + "plan = a" + " - a a" * n,
    "intersections": lambda n: A + "plan = a" + " & a" * n,
    "pattern with many values": lambda n: (
        HEAD + _domain(n) + f"\nplan = a(x={'|'.join(map(str, range(1, n + 1)))})"
    ),
    "limits": lambda n: A + "".join(f"limit cost <= {i}\n" for i in range(1, n)),
    "counts": lambda n: (
        HEAD + _domain(n) + "\n" + "".join(f"limit count(a(x = {i + 1})) <= 1\n" for i in range(n))
    ),
    "requires": lambda n: _tools(n) + "".join(f"before t0 require t{i}\n" for i in range(1, n)),
    "a union": lambda n: _tools(n) + "forbid " + "|".join(f"t{i}" for i in range(n)),
    "lets": lambda n: (
        _tools(4) + "let v0 = t0\n" + "".join(f"let v{i} = v{i - 1}\n" for i in range(1, n))
    ),
    "examples": lambda n: A + "accept a\nreject a a\n" * n + "plan = a",
    "long example": lambda n: A + "accept " + "a " * n,
    "expectations": lambda n: A + "".join(f"expect plans <= {i}\n" for i in range(n)),
    "states": lambda n: (
        HEAD
        + "".join(f"tool t{i} : s{i} -> s{i + 1} {{cost 1}}\n" for i in range(n))
        + f"start s0\ngoal s{n}"
    ),
    "names that nobody knows": lambda n: A + "plan = " + " ".join(f"b{i}" for i in range(n)),
    "what is no statement": lambda n: A + "x y " * n,
    "comments": lambda n: A + "# nothing\n" * n,
}


@pytest.mark.parametrize("grammar", GRAMMARS.values(), ids=GRAMMARS.keys())
@pytest.mark.sampled(8)
def test_reading_costs_what_the_text_is_long(grammar):
    def prepare(n):
        text = grammar(n)
        return lambda: read_grammar_text(text)

    assert growth(prepare, 50) < MOST
    assert swelling(prepare, 100) < MOST


@pytest.mark.parametrize("name", ["costs with when", "parameters with when"])
def test_a_call_is_not_held_against_each_when(name):
    def prepare(n):
        source = source_of(GRAMMARS[name](n), "x")
        report = Report([source])
        file = parse(source, 0, report)
        return lambda: tool_of(Builder(file, report), file.statements[1], Shapes(), Steps())

    assert growth(prepare, 100) < MOST


def test_used_files_cost_what_they_are_long(tmp_path):
    def prepare(n):
        for i in range(n):
            (tmp_path / f"f{i}.tcg").write_text(f"tool t{i} {{cost {i}}}\n")
        root = tmp_path / f"root{n}.tcg"
        root.write_text(HEAD + "".join(f'use "f{i}.tcg"\n' for i in range(n)) + "plan = t0\n")
        return lambda: read_grammar(root)

    assert growth(prepare, 20) < MOST


def test_operators_that_are_nested_too_deep_are_refused():
    text = A + "plan = " + "(" * 20_000 + "a" + ")" * 20_000
    assert read_grammar_text(text).diagnostics[0].code == "TCC106"


class _Clock:
    """Time that goes by when it is asked for: a second each time."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return float(self.asked)


LONG = {
    **{name: GRAMMARS[name] for name in ("chained rules", "values", "sequence", "costs with when")},
    "terms for many values": lambda n: HEAD + _domain(n // 8) + f" {{cost {'+'.join(['x'] * 99)}}}",
    "tokens of one statement": lambda n: A + "plan = " + "a|" * n + "a",
}


@pytest.mark.parametrize("grammar", LONG.values(), ids=LONG.keys())
def test_reading_ends_where_the_time_is_over(grammar):
    size, clock = 1200, _Clock()
    read_grammar_text(grammar(size), check_time=clock)
    asked = clock.asked
    assert asked > 2
    for seconds in (1, asked // 2, asked - 1):
        found = compile_text(grammar(size), Options(timeout=seconds + 0.5, clock=_Clock()))
        assert [d.code for d in found.diagnostics] == ["TCC404"]
        limit = f"the time limit of {seconds + 0.5:.3g} s ran out at reading the grammar"
        assert found.diagnostics[0].message == limit


def test_reading_a_used_file_ends_where_the_time_is_over(tmp_path):
    (tmp_path / "used.tcg").write_text(_tools(2000).removeprefix(HEAD))
    root = tmp_path / "root.tcg"
    root.write_text(HEAD + 'use "used.tcg"\nplan = t0\n')
    found = compile_file(root, Options(timeout=2.5, clock=_Clock()))
    assert [d.code for d in found.diagnostics] == ["TCC404"]
    assert "2.5 s ran out at reading the grammar" in found.diagnostics[0].message


def test_the_clock_is_asked_in_proportion_to_the_text():
    asked = []
    for n in (2000, 4000, 8000):
        clock = _Clock()
        read_grammar_text(GRAMMARS["chained rules"](n), check_time=clock)
        asked.append(clock.asked)
    assert asked[0] > 2000 * 4 // 512
    assert asked[2] > 3 * asked[0]


def _graph(n: int) -> str:
    nodes = [{"id": f"n{i}", "start": i == 0, "goal": i == n - 1} for i in range(n)]
    links = [{"source": f"n{i}", "target": f"n{i + 1}", "call": f"t{i}"} for i in range(n - 1)]
    return json.dumps({"directed": True, "nodes": nodes, "links": links})


def test_reading_a_graph_ends_where_the_time_is_over(tmp_path):
    path, clock = tmp_path / "g.json", _Clock()
    path.write_text(_graph(4000))
    read_graph(path, clock)
    assert clock.asked > 8
    for seconds in (1, clock.asked // 2, clock.asked - 1):
        found = compile_file(path, Options(timeout=seconds + 0.5, clock=_Clock()))
        assert [d.code for d in found.diagnostics] == ["TCC404"]
        assert "ran out at reading the grammar" in found.diagnostics[0].message


def test_the_decoding_of_a_core_and_the_last_check_count_too():
    now = [0.0]

    def late(artifact):
        now[0] += 10
        return check(artifact)

    options = Options(timeout=5, clock=lambda: now[0], check=late)
    found = compile_text(A + "plan = a", options)
    assert found.artifact is None
    assert [d.code for d in found.diagnostics] == ["TCC404"]
    assert "ran out at the check of the artifact" in found.diagnostics[0].message

    core = read_grammar_text(A + "plan = a").core
    assert core is not None
    begun = compile_core(encode(core_json(core)), Options(timeout=0.5, clock=_Clock()))
    assert [d.code for d in begun.diagnostics] == ["TCC404"]
    assert "ran out at the tables of statements" in begun.diagnostics[0].message


def test_limits_times_calls_are_by_the_clock():
    n = 300
    text = _tools(n) + "".join(f"limit count(t{i}) <= {1 + i % 3}\n" for i in range(n))
    front = read_grammar_text(text + "plan = t0")
    assert front.core is not None
    letters = partition(front.core, parts_of(front.core))
    guard = Guard(Options(timeout=5.5, clock=_Clock()), 5.5)
    with pytest.raises(CompileRefused) as refusal:
        find_driver(front.core, letters, guard)
    assert refusal.value.code == "TCC404"


def test_rules_that_may_be_empty_end_where_the_time_is_over():
    # Each of n state sets has up to n members, so this is the square; the clock is asked within.
    text = GRAMMARS["rules that may be empty"](1000)
    clock = _Clock()
    front = read_grammar_text(text, check_time=clock)
    assert front.core is not None
    found = compile_core(front.core, Options(timeout=40.5, clock=_Clock()))
    assert [d.code for d in found.diagnostics] == ["TCC404"]
    assert "ran out at the plan expression" in found.diagnostics[0].message
