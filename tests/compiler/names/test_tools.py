"""Tools in a core: amounts of calls, models, atoms and the other attributes."""

from __future__ import annotations

import pytest

from tcc_certs.formats.codec import encode
from tcc_certs.policy.reader import core_json, read_core
from tests.compiler.grammars import HEAD, codes, core, core_of


def amounts(block: str, fields: str = "") -> list[list[int]]:
    found = core(f"{HEAD}tool a{fields} {{ {block} }}\n")
    return [call[2:] for call in found["calls"]]


def test_amounts_are_exact() -> None:
    assert amounts("cost 0.1 + 0.2 price 3 latency 1.5 s epsilon 0.000000001") == [
        [300_000_000, 300_000_000, 3, 1500, 1]
    ]


def test_arithmetic_binds_and_groups_to_the_left() -> None:
    assert amounts("cost 10 - 2 - 3 * -(1 - 2)")[0][0] == 5 * 10**9
    assert amounts("cost --2 * 0.5")[0][0] == 10**9
    assert amounts("latency (10 + 5 * k) * 1 ms", "(k: 2)")[0][3] == 20


def test_the_first_when_that_holds_wins_wherever_the_bare_one_is() -> None:
    block = "cost 9 cost 1 when k = 1 cost 2 when k = 1 | 2 price 7 when k = 3"
    assert [row[0] // 10**9 for row in amounts(block, "(k: 1..3)")] == [1, 2, 9]
    assert [row[2] for row in amounts(block, "(k: 1..3)")] == [0, 0, 7]


def test_an_amount_may_depend_on_a_listed_answer() -> None:
    block = "cost 1 when r = yes cost 2 + k when r = no"
    found = core(f"{HEAD}tool a(k: 1 | 2) gives (r: yes | no) {{ {block} }}\n")
    assert [call[2] // 10**9 for call in found["calls"]] == [3, 1, 4, 1]


def test_intervals_have_two_ends() -> None:
    assert amounts("cost -0.5 .. 1 + k", "(k: 2)") == [[-500_000_000, 3 * 10**9, 0, 0, 0]]


def test_64_bits_are_the_limit() -> None:
    ends = "-9223372036.854775808 .. 9223372036.854775807"
    assert amounts(f"cost {ends} price 18446744073709551615") == [
        ["-9223372036854775808", "9223372036854775807", "18446744073709551615", 0, 0]
    ]
    assert [c for c, _, _ in codes(HEAD + "tool a { cost 9223372036.854775808 }")] == ["TCC307"]
    assert [c for c, _, _ in codes(HEAD + "tool a { cost -9223372036.854775809 }")] == ["TCC307"]


@pytest.mark.parametrize(
    ("block", "code", "column"),
    [
        ("cost 1 cost 2", "TCC310", 38),
        ("cost x", "TCC216", 36),
        ("cost y", "TCC204", 36),
        ("cost o", "TCC319", 36),
        ("cost w", "TCC305", 36),
        ("cost 1 when k = 3", "TCC205", 47),
        ("cost 1 when k = 1 | 1", "TCC211", 51),
        ("price 0.5", "TCC306", 37),
        ("price -1", "TCC308", 37),
        ("cost 2 .. k", "TCC309", 31),
    ],
)
def test_an_amount_with_a_mistake_is_an_error_at_its_place(
    block: str, code: str, column: int
) -> None:
    tool = "tool a(k: 1 | 2, o?: 1, w: u,"
    assert codes(f"{HEAD}{tool}\n x: text) {{                   {block} }}\n") == [
        (code, 3, column)
    ]


def test_calls_are_ordered_by_the_bytes_of_their_texts() -> None:
    found = core_of(
        HEAD + 'tool b(k: 10 | 9 | -1 | 0.50)\ntool a(z: x | "\u00e9" | "z z" | "a\\n")\n'
    )
    texts = [call.text for call in found.calls]
    assert texts == sorted(texts, key=str.encode)
    assert texts[:4] == ['a(z="a\\n")', 'a(z="z z")', 'a(z="\u00e9")', "a(z=x)"]
    assert texts[4:] == ["b(k=-1)", "b(k=0.5)", "b(k=10)", "b(k=9)"]
    assert read_core(encode(core_json(found))) == found


def test_attributes_stay_with_the_tool() -> None:
    found = core(
        HEAD + 'tool a { doc "x\\ny" quotes same bind mcp "s" "t"\n'
        'model m { latency 2 s adapter "q" } }\n'
        'tool b { bind python "pkg.mod:Class.run" }\n'
    )
    assert found["tools"] == [
        {
            "bind": {"kind": "mcp", "server": "s", "tool": "t"},
            "doc": "x\ny",
            "models": [{"adapter": "q", "epsilon": 0, "latency_ms": 2000, "name": "m", "price": 0}],
            "name": "a",
            "quotes": "same",
        },
        {"bind": {"kind": "python", "target": "pkg.mod:Class.run"}, "name": "b"},
    ]


MODEL = "tool a { cost 0 .. 1 model m { price 1 %s } }\n"
NOISE = {"mechanism": "laplace", "scale": "2", "sensitivity": "1"}


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("discrete_gaussian(4.50, 3) times 7", {"sigma": "4.5", "sensitivity": 3, "times": 7}),
        (
            "subsampled_gaussian(0.010, 1.1, 1)",
            {"rate": "0.01", "sigma": "1.1", "sensitivity": "1"},
        ),
        ("laplace(2.50, 1) times 3", {"scale": "2.5", "sensitivity": "1", "times": 3}),
        ("randomized_response(0.75, 2)", {"probability": "0.75", "choices": 2}),
        ("gaussian(4, 1) times 1", {"sigma": "4", "sensitivity": "1"}),
        ("rdp(2, 0.1, 4, 0.30)", {"points": [["2", "0.1"], ["4", "0.3"]]}),
    ],
)  # fmt: skip
def test_an_atom_stays_with_its_model(text: str, due: dict[str, object]) -> None:
    found = core_of(HEAD + MODEL % f"atom {text}")
    (made,) = core_json(found)["tools"][0]["models"]
    assert made["atom"] == {"mechanism": text.partition("(")[0], **due}
    assert read_core(encode(core_json(found))) == found


@pytest.mark.parametrize(
    "text",
    [
        "randomized_response(1.5, 2)",
        "randomized_response(0.5, 1)",
        "randomized_response(0.5)",
        "gaussian(0, 1)",
        "laplace(-1, 1)",
        "discrete_gaussian(1, 1.5)",
        "subsampled_gaussian(0, 1, 1)",
        "subsampled_gaussian(1.5, 1, 1)",
        "subsampled_gaussian(0.5, 1)",
        "laplace(1, 1) times 0",
        "laplace(1, 1) times 1.5",
        "rdp(2)",
        "rdp(1, 0.1)",
        "rdp(4, 0.1, 2, 0.1)",
        "laplace(0.1234567890123456789, 1)",
    ],
)
def test_an_atom_that_is_no_mechanism_is_an_error_at_its_place(text: str) -> None:
    assert codes(HEAD + MODEL % f"atom {text}") == [("TCC322", 2, 40)]


def test_a_mechanism_that_is_not_known_is_an_error_at_its_name() -> None:
    assert codes(HEAD + MODEL % "atom laplas(1, 1)") == [("TCC322", 2, 45)]


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("execute", {}),
        ("execute { }", {}),
        ("execute { price 2 latency 3 s }", {"price": 2, "latency_ms": 3000}),
        ("execute { epsilon 0 }", {"epsilon": 0}),
        ("execute { atom laplace(2, 1) }", {"atom": NOISE}),
        ("atom laplace(2, 1) execute { price 2 }", {"price": 2, "atom": NOISE}),
        ('quality 0.75 adapter "q" execute', {}),
    ],
)
def test_what_a_model_takes_to_execute_is_what_asking_takes_but_for_what_differs(
    text: str, due: dict[str, object]
) -> None:
    asking = {"price": 1, "latency_ms": 50, "epsilon": 500_000_000}
    found = core_of(HEAD + MODEL % f"{text} latency 50 ms epsilon 0.5")
    (made,) = core_json(found)["tools"][0]["models"]
    assert made["execute"] == {**asking, **due}
    assert {name: made[name] for name in asking} == asking
    assert read_core(encode(core_json(found))) == found


def test_a_model_without_execute_makes_no_call() -> None:
    (made,) = core(HEAD + "tool a { model m { price 1 } }")["tools"][0]["models"]
    assert "execute" not in made


@pytest.mark.parametrize(
    ("quality", "due"), [("0.5", None), ("0.50", None), ("1", "1"), ("0.125", "0.125")]
)
def test_the_usual_quality_is_left_out(quality: str, due: str | None) -> None:
    (made,) = core(HEAD + MODEL % f"quality {quality}")["tools"][0]["models"]
    assert made.get("quality") == due


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("execute execute", "TCC310", 28),
        ("price 1 price 2", "TCC310", 28),
        ("execute { price 1 price 2 }", "TCC310", 38),
        ("execute { price 0.5 }", "TCC306", 30),
        ("execute { atom laplas(1, 1) }", "TCC322", 35),
        ("atom laplace(1, 1) atom laplace(1, 1)", "TCC310", 39),
        ("cost 1", "TCC225", 20),
        ("latency 3", "TCC225", 20),
        ("price 3 ms", "TCC225", 20),
        ("quality 0", "TCC324", 20),
        ("quality 1.5", "TCC324", 20),
        ('execute { adapter "x" }', "TCC101", 30),
        ("execute { execute }", "TCC101", 30),
    ],
)
def test_a_model_with_a_mistake_is_an_error_at_its_place(text: str, code: str, column: int) -> None:
    assert codes(HEAD + f"tool a {{ model m {{ {text} }} }}\n") == [(code, 2, column)]


def test_models_have_names_of_their_own() -> None:
    text = "tool a { model m { price 1 } model m { price 2 } }\n"
    assert codes(HEAD + text) == [("TCC201", 2, 36)]
