"""Random grammars of version 1.1: their cores are read by the kernel, their texts come back, and
what is written out of `same` and `per` says what the statement says, on every short trace."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise, product

import pytest

from tcc_certs.core.derived import minor_version
from tcc_certs.core.model import Call, Core
from tcc_certs.core.reader import read_core
from tcc_certs.formats.codec import encode
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.imports.graph_grammar import parse_call
from tests.compiler.compiling import compiled, words
from tests.oracle.plans import meets_all, plans
from tests.property.open_grammars import Grammar, Pattern, Said, call_text, random_open_grammar

SEEDS = range(60)
LENGTH = 3
TRACES = 1000


def _core(text: str) -> Core:
    front = read_grammar_text(text)
    assert [item.message for item in front.diagnostics] == [], text
    assert front.core is not None
    return read_core(front.core)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_kernel_reads_the_core(seed: int) -> None:
    grammar = random_open_grammar(seed)
    front = read_grammar_text(grammar.text)
    assert front.core is not None, [item.message for item in front.diagnostics]
    core = read_core(front.core)
    assert encode(json.loads(front.core)) == front.core
    assert json.loads(front.core)["version"] == [1, minor_version(core)]
    assert {tool.name for tool in core.tools} == {tool.name for tool in grammar.tools}
    assert all(f"monitor {monitor.text}" in front.places for monitor in core.monitors)
    assert all(f"limit {text}" in front.places for text in core.limit_texts)


@pytest.mark.parametrize("seed", SEEDS)
def test_texts_of_calls_are_patterns_of_these_calls(seed: int) -> None:
    grammar = random_open_grammar(seed)
    core = _core(grammar.text)
    for index, call in enumerate(core.calls[:8]):
        again = parse_call(call.text)
        assert again.text == call.text
        assert again.tool == core.tools[call.tool].name
        assert dict(again.arguments) == _arguments(core, call)
        assert call_text(again.tool, dict(again.arguments)) == call.text
        parameters = core.tools[call.tool].parameters
        if len(again.arguments) == len(parameters):  # with one left out it stands for more
            one = _core(f"{grammar.text}plan = {call.text}\n")
            assert ((index, index + 1),) in one.patterns
            assert one.calls[index].text == call.text


@pytest.mark.parametrize("seed", SEEDS)
def test_statements_said_again_by_their_texts_change_nothing(seed: int) -> None:
    grammar = random_open_grammar(seed)
    front = read_grammar_text(grammar.text)
    assert front.core is not None
    core = read_core(front.core)
    again = [monitor.text for monitor in core.monitors]
    again += [f"limit {text}" for text in core.limit_texts]
    assert read_grammar_text(grammar.text + "\n".join(again)).core == front.core


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_written_out_says_what_the_statement_says(seed: int) -> None:
    grammar = random_open_grammar(seed)
    core = _core(grammar.text)
    calls = range(len(core.calls))
    traces = [word for n in range(LENGTH + 1) for word in product(calls, repeat=n)]
    step = max(1, len(traces) // TRACES)
    for word in traces[::step]:
        held = all(_holds(core, grammar, said, word) for said in grammar.said)
        # Other statements of the text say nothing about words of this length.
        assert meets_all(core, word) == held, (grammar.text, [core.calls[c].text for c in word])


@pytest.mark.parametrize("seed", range(60))
def test_the_artifact_has_the_plans_of_the_core(seed: int) -> None:
    text = random_open_grammar(seed, strict=False).text
    most = 3 if len(_core(text).calls) <= 10 else 2
    front = read_grammar_text(f"{text}plan = any{{0,{most}}}\n")
    assert front.core is not None
    core = read_core(front.core)
    expected = {"".join(core.calls[call].text for call in word) for word in plans(core, most)}
    assert words(compiled(front.core)) == expected


def _arguments(core: Core, call: Call) -> dict[str, str]:
    pairs = zip(core.tools[call.tool].parameters, call.values, strict=True)
    return {p.name: p.values[v] for p, v in pairs if p.values[v]}


def _matches(core: Core, call: int, pattern: Pattern) -> dict[str, str] | None:
    """The arguments of a call that agrees with a pattern, else None."""
    found = core.calls[call]
    given = _arguments(core, found)
    agrees = core.tools[found.tool].name == pattern.tool.name and all(
        given.get(name) in values for name, values in pattern.where.items()
    )
    return given if agrees else None


def _holds(core: Core, grammar: Grammar, said: Said, word: tuple[int, ...]) -> bool:
    first = [_matches(core, call, said.first) for call in word]
    if said.kind == "sum":
        values = [given[said.per] for given in first if given is not None and said.per in given]
        return sum(map(Fraction, values)) <= Fraction(str(said.most))
    if said.kind == "per":
        values = [given[said.per] for given in first if given is not None]
        return all(values.count(value) <= said.most for value in values)
    assert said.second is not None
    second = [_matches(core, call, said.second) for call in word]

    def agree(one: dict[str, str] | None, other: dict[str, str] | None) -> bool:
        if one is None or other is None:
            return False
        return all(one[a] == other[b] for a, b in said.same)

    def key(given: dict[str, str]) -> list[str]:
        return [given[b] for _, b in said.same]

    places = range(len(word))
    if said.kind == "with":
        return not any(agree(first[i], second[j]) for i in places for j in places)
    if said.kind == "never":
        return not any(agree(first[i], second[j]) for j in places for i in range(j))
    if said.kind == "before":
        return all(
            given is None or any(agree(first[i], given) for i in range(j))
            for j, given in enumerate(second)
        )
    for value in {tuple(key(given)) for given in second if given is not None}:
        keys = [None if given is None else tuple(key(given)) for given in second]
        ends = [-1, *(j for j, other in enumerate(keys) if other == value)]
        for low, high in pairwise(ends):
            if not any(agree(first[i], second[high]) for i in range(low + 1, high)):
                return False
    return True
