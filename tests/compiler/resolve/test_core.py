"""What core a grammar has: amounts, limits, patterns, order, extras; the kernel reads it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tcc_certs.core.reader import read_core
from tcc_certs.formats.codec import root_document
from tcc_certs.race.digest import root_context
from tcc_compiler.frontend import read_grammar, read_grammar_text
from tests.compiler.grammars import HEAD, TOOLS, codes, core
from tests.property.grammars import random_grammar

GRAMMARS = sorted((Path(__file__).parents[3] / "grammars").glob("*.tcg"))
VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"


def amounts(block: str, parameters: str = "") -> list[list[int]]:
    found = core(f"{HEAD}tool a{parameters} {{ {block} }}")
    return [call[2:] for call in found["calls"]]


def test_amounts_are_exact() -> None:
    assert amounts("cost 0.1 + 0.2 price 3 latency 1.5 s epsilon 0.000000001") == [
        [300_000_000, 300_000_000, 3, 1500, 1]
    ]


def test_arithmetic_binds_and_groups_to_the_left() -> None:
    assert amounts("cost 10 - 2 - 3 * -(1 - 2)")[0][0] == 5 * 10**9
    assert amounts("cost +-+2 * 0.5")[0][0] == -(10**9)


def test_the_first_when_that_holds_wins_wherever_the_bare_one_stands() -> None:
    block = "cost 9 cost 1 when k = 1 cost 2 when k = 1 | 2 price 7 when k = 3"
    assert [row[0] // 10**9 for row in amounts(block, "(k: 1..3)")] == [1, 2, 9]
    assert [row[2] for row in amounts(block, "(k: 1..3)")] == [0, 0, 7]


def test_intervals_have_two_ends() -> None:
    assert amounts("cost -0.5 .. 1 + k", "(k: 2)") == [[-500_000_000, 3 * 10**9, 0, 0, 0]]


def test_64_bits_are_the_limit() -> None:
    ends = "-9223372036.854775808 .. 9223372036.854775807"
    assert amounts(f"cost {ends} price 18446744073709551615") == [
        ["-9223372036854775808", "9223372036854775807", "18446744073709551615", 0, 0]
    ]
    assert [c for c, _, _ in codes(HEAD + "tool a { cost 9223372036.854775808 }")] == ["TCC307"]
    assert [c for c, _, _ in codes(HEAD + "tool a { cost -9223372036.854775809 }")] == ["TCC307"]


def test_calls_are_ordered_by_the_bytes_of_their_texts() -> None:
    text = HEAD + 'tool b(k: 10 | 9 | -1 | 0.50) tool a(z: x | "\u00e9" | "z z" | "a\\n")'
    result = read_grammar_text(text)
    assert result.core is not None
    texts = [call.text for call in read_core(result.core).calls]
    assert texts == sorted(texts, key=str.encode)
    assert texts[:4] == ['a(z="a\\n")', 'a(z="z z")', 'a(z="\u00e9")', "a(z=x)"]
    assert texts[4:] == ["b(k=-1)", "b(k=0.5)", "b(k=10)", "b(k=9)"]


def test_limits_have_their_canonical_texts_once_each() -> None:
    statements = (
        "limit depth <= 06 limit depth <= 6 limit price <= 12.0 limit latency <= 0.25 s\n"
        "limit latency <= 250 ms limit cost <= -0.50 limit epsilon <= 2 limit depth <= 5\n"
        "limit uses(c(k=3|1)) <= 2 limit uses(c(k=1.0|3)) <= 2 limit uses(a) >= 1\n"
    )
    result = read_grammar_text(TOOLS + statements)
    assert result.core is not None
    assert read_core(result.core).limit_texts == (
        "cost<=-0.5", "depth<=5", "depth<=6", "epsilon<=2", "latency<=250", "price<=12",
        "uses(a)>=1", "uses(c(k=1|3))<=2",
    )  # fmt: skip
    assert result.places["limit uses(c(k=1|3))<=2"].line == 7


def test_limits_and_root_context_of_the_conformance_vector() -> None:
    vector = json.loads((VECTORS / "race.json").read_text("utf-8"))
    result = read_grammar_text(vector["grammar"])
    assert result.core is not None
    found = read_core(result.core)
    assert list(found.limit_texts) == vector["limits"]
    document = root_document(found.name, found.version, found.limit_texts)
    assert root_context(document).hex() == vector["root_ctx"]


def test_requires_and_forbids() -> None:
    found = core(
        TOOLS + "require b before a require a after b forbid c(k=1) c(k=2|3) b forbid c with a\n"
        "forbid a with c forbid b require b before a plan = any"
    )
    patterns = [[[0, 1]], [[0, 5]], [[1, 2]], [[2, 3]], [[2, 5]], [[3, 5]]]
    assert found["patterns"] == patterns
    assert found["requires"] == [["after", 0, 2], ["before", 2, 0]]
    assert found["forbids"] == [["next", [2]], ["next", [3, 5, 2]], ["with", 0, 4]]


def test_extras_stay_with_the_tool() -> None:
    found = core(
        HEAD
        + 'tool a { doc "x\\ny" quotes same bind mcp "s" "t"\n'
        + 'model m { latency 2 s adapter "q" } }\n'
        'tool b { bind python "pkg.mod:Class.run" }'
    )
    assert found["tools"] == [
        {
            "bind": {"kind": "mcp", "server": "s", "tool": "t"},
            "doc": "x\ny",
            "models": [{"adapter": "q", "epsilon": 0, "latency_ms": 2000, "name": "m", "price": 0}],
            "name": "a",
            "params": [],
            "quotes": "same",
        },
        {"bind": {"kind": "python", "target": "pkg.mod:Class.run"}, "name": "b", "params": []},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("discrete_gaussian(4.50, 3)", {"sigma": "4.5", "sensitivity": 3}),
        (
            "subsampled_gaussian(0.010, 1.1, 1)",
            {"rate": "0.01", "sigma": "1.1", "sensitivity": "1"},
        ),
    ],
)
def test_discrete_and_subsampled_noise_is_an_atom(text: str, due: dict[str, object]) -> None:
    model = "tool a { cost 0 .. 1 model m { %s } } plan = a"
    (made,) = core(HEAD + model % f"atom {text} times 7")["tools"][0]["models"]
    assert made["atom"] == {"mechanism": text.partition("(")[0], **due, "times": 7}


def test_an_atom_stays_with_its_model_and_makes_the_core_1_1() -> None:
    model = "tool a { cost 0 .. 1 model m { price 1 %s } }"
    assert core(HEAD + model % "")["version"] == [1, 0]
    found = core(HEAD + model % "atom laplace(2.50, 1) times 3 latency 5 ms")
    assert found["version"] == [1, 1]
    (made,) = found["tools"][0]["models"]
    assert made["atom"] == {
        "mechanism": "laplace", "scale": "2.5", "sensitivity": "1", "times": 3,
    }  # fmt: skip
    assert made["latency_ms"] == 5
    for text, due in (
        ("randomized_response(0.75, 2)", {"probability": "0.75", "choices": 2}),
        ("gaussian(4, 1) times 1", {"sigma": "4", "sensitivity": "1"}),
        ("rdp(2, 0.1, 4, 0.30)", {"points": [["2", "0.1"], ["4", "0.3"]]}),
    ):
        (made,) = core(HEAD + model % f"atom {text}")["tools"][0]["models"]
        assert made["atom"] == {"mechanism": text.partition("(")[0], **due}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("randomized_response(1.5, 2)", 34),
        ("randomized_response(0.5, 1)", 34),
        ("randomized_response(0.5)", 34),
        ("gaussian(0, 1)", 34),
        ("laplace(-1, 1)", 34),
        ("discrete_gaussian(1, 1.5)", 34),
        ("subsampled_gaussian(0, 1, 1)", 34),
        ("subsampled_gaussian(1.5, 1, 1)", 34),
        ("subsampled_gaussian(0.5, 1)", 34),
        ("laplace(1, 1) times 0", 34),
        ("laplace(1, 1) times 1.5", 34),
        ("rdp(2)", 34),
        ("rdp(1, 0.1)", 34),
        ("rdp(4, 0.1, 2, 0.1)", 34),
        ("laplace(0.1234567890123456789, 1)", 34),
        ("laplas(1, 1)", 39),
    ],
)
def test_an_atom_that_is_no_mechanism_is_an_error_at_its_place(text: str, place: int) -> None:
    statement = f"tool a {{ cost 0 .. 1 model m {{ atom {text} }} }}\n"
    assert codes(HEAD + statement) == [("TCC322", 2, place - 2)]


def test_two_atoms_of_one_model_are_an_error() -> None:
    statement = "tool a { cost 0 .. 1 model m { atom laplace(1, 1) atom laplace(1, 1) } }\n"
    assert [code for code, *_ in codes(HEAD + statement)] == ["TCC310"]


def test_what_a_model_takes_to_execute_is_what_asking_takes_but_for_what_differs() -> None:
    model = "tool a { cost 0 .. 1 model m { %s price 1 latency 50 ms epsilon 0.5 } }"
    asking = {"price": 1, "latency_ms": 50, "epsilon": 500_000_000}
    noise = {"mechanism": "laplace", "scale": "2", "sensitivity": "1"}
    for text, due in (
        ("execute", asking),
        ("execute { }", asking),
        ("execute { price 2 latency 3 s }", {**asking, "price": 2, "latency_ms": 3000}),
        ("execute { epsilon 0 }", {**asking, "epsilon": 0}),
        ("execute { atom laplace(2, 1) }", {**asking, "atom": noise}),
        ("atom laplace(2, 1) execute { price 2 }", {**asking, "price": 2, "atom": noise}),
    ):
        found = core(HEAD + model % text)
        (made,) = found["tools"][0]["models"]
        assert made["execute"] == due, text
        assert found["version"] == [1, 1]
        assert {name: made[name] for name in asking} == asking


def test_a_model_without_execute_makes_no_call() -> None:
    (made,) = core(HEAD + "tool a { model m { price 1 } }")["tools"][0]["models"]
    assert "execute" not in made


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("execute execute", "TCC310", 28),
        ("execute { price 1 price 2 }", "TCC310", 38),
        ("execute { price 0.5 }", "TCC306", 36),
        ("execute { price -1 }", "TCC308", 36),
        ('execute { adapter "x" }', "TCC101", 30),
        ("execute { execute }", "TCC101", 30),
        ("execute { atom laplas(1, 1) }", "TCC322", 35),
    ],
)
def test_what_is_no_execute_is_an_error_at_its_place(text: str, code: str, column: int) -> None:
    found = codes(HEAD + f"tool a {{ model m {{ {text} }} }}\n")
    assert found == [(code, 2, column)]


def test_rules_that_the_plan_does_not_reach_are_left_out() -> None:
    found = core(TOOLS + "rule r = s? a rule s = b r? rule t = c plan = r")
    assert [name for name, _ in found["rules"]] == ["r", "s"]
    assert found["patterns"] == [[[0, 1]], [[1, 2]]]


def test_start_and_goals() -> None:
    text = HEAD + "tool a : x -> y tool b start x goal y | x"
    assert [core(text)[key] for key in ("start", "goals")] == ["x", ["x", "y"]]
    assert "in" not in core(text)["tools"][1]
    assert codes(HEAD + "tool a start z goal z | z") == [("TCC201", 2, 25)]
    assert codes(HEAD + "tool a start z goal z") == []


def test_examples_and_expectations_are_call_sets_and_numbers() -> None:
    result = read_grammar_text(
        TOOLS + "accept a c(k=1|3) reject ()\nexpect min_cost >= -0.5 expect plans == 007"
    )
    assert [(e.accept, e.patterns, e.span.line) for e in result.examples] == [
        (True, (((0, 1),), ((2, 3), (4, 5))), 5),
        (False, (), 5),
    ]
    assert [(e.what, e.op, e.value) for e in result.expects] == [
        ("min_cost", ">=", -500_000_000),
        ("plans", "==", 7),
    ]


@pytest.mark.parametrize("path", GRAMMARS, ids=lambda path: path.stem)
def test_the_kernel_reads_the_core_of_each_grammar_of_the_project(path: Path) -> None:
    result = read_grammar(path)
    assert result.diagnostics == ()
    assert result.core is not None
    assert read_core(result.core).name == path.stem


def test_the_kernel_reads_the_core_of_random_grammars() -> None:
    for seed in range(120):
        result = read_grammar_text(random_grammar(seed))
        assert result.diagnostics == ()
        assert result.core is not None
        read_core(result.core)


def test_the_order_of_statements_does_not_change_the_core() -> None:
    for seed in range(40):
        head, *statements = random_grammar(seed).splitlines()
        first = read_grammar_text("\n".join([head, *statements])).core
        random.Random(seed).shuffle(statements)
        assert read_grammar_text("\n".join([head, *statements])).core == first
        assert first is not None
