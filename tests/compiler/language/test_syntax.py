"""Tokens and trees: what stands where, how operators bind, which words are words."""

from __future__ import annotations

import pytest

from tests.compiler.grammars import HEAD, TOOLS, codes, core, plan


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", ["seq", ["a", "b"]]),
        ("a b | c", ["alt", [["seq", ["a", "b"]], "c1 c2 c3"]]),
        ("a | b - c", ["diff", ["alt", ["a", "b"]], ["c1 c2 c3"]]),
        ("a - b & c", ["and", [["diff", "a", ["b"]], "c1 c2 c3"]]),
        ("a - b - c", ["diff", "a", ["b", "c1 c2 c3"]]),
        ("(a - b) - c", ["diff", "a", ["b", "c1 c2 c3"]]),
        ("a - (b - c)", ["diff", "a", [["diff", "b", ["c1 c2 c3"]]]]),
        ("a (b (a b))", ["seq", ["a", "b", "a", "b"]]),
        ("(a | b) | (a | b)", ["alt", ["a", "b", "a", "b"]]),
        ("(a & b) & a", ["and", ["a", "b", "a"]]),
        ("((((a))))", "a"),
        ("a b?", ["seq", ["a", ["repeat", "b", 0, 1]]]),
        ("a*+", ["repeat", ["repeat", "a", 0], 1]),
        ("a{2} b{0,3}", ["seq", [["repeat", "a", 2, 2], ["repeat", "b", 0, 3]]]),
        ("a{1,}", ["repeat", "a", 1]),
        ("()", ["empty"]),
        ("a ()", ["seq", ["a", ["empty"]]]),
        ("a (b | c)", ["seq", ["a", ["alt", ["b", "c1 c2 c3"]]]]),
        ("c (a)", ["seq", ["c1 c2 c3", "a"]]),
        ("c(k=1|3)", "c1 c3"),
        ("c # note\n ( # note\n k = 2.0)", "c2"),
        ("any", "a b c1 c2 c3"),
    ],
)  # fmt: skip
def test_expression_is_read_as(text: str, expected: object) -> None:
    assert plan(text) == expected


def test_without_plan_everything_is_allowed() -> None:
    found = core(TOOLS)
    assert found["plan"] == ["repeat", ["call", 0], 0]
    assert found["patterns"] == [[[0, 5]]]


def test_words_of_a_block_are_names_elsewhere() -> None:
    text = HEAD + (
        "tool cost(p: price | doc, s: 1 | 2) : model -> bind {\n"
        "  cost 1 when p = price | doc price 2 when p = doc\n"
        "  model latency { price 1 } latency 2 * s s\n"
        "}\n"
        "tool depth tool uses tool ms\n"
        "start model goal bind\n"
        "plan = cost(p=doc) ms? depth uses\n"
        "limit uses(ms) <= 1 limit uses(depth) >= 0 limit price <= 3 limit latency <= 9 s\n"
        "limit depth <= 5 accept cost depth uses expect plans >= 0\n"
    )
    found = core(text)
    assert [tool["name"] for tool in found["tools"]] == ["cost", "depth", "ms", "uses"]
    assert found["tools"][0]["models"] == [
        {"epsilon": 0, "latency_ms": 0, "name": "latency", "price": 1}
    ]
    assert [call[4:6] for call in found["calls"][:4]] == [
        [2, 2000],
        [2, 4000],
        [0, 2000],
        [0, 4000],
    ]


def test_layout_and_comments_mean_nothing() -> None:
    one = core(TOOLS + "plan = a b? # end")
    other = core("# x\r\n" + TOOLS.replace(" ", " \t").replace("\n", "\r\n") + "plan=a b?")
    assert one == other


def test_statements_need_no_newlines() -> None:
    text = """grammar g version "1"

tool a
tool b

plan = a b

limit depth <= 2
before b require no b since any - b

accept a b
"""
    assert core(text)["plan"][0] == "seq"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("accept", [("TCC101", 5, 7)]),
        ("accept a ()", [("TCC101", 5, 10)]),
        ("accept any", [("TCC101", 5, 8)]),
        ("plan = a{1", [("TCC114", 5, 9)]),
        ("plan = c(k=1", [("TCC114", 5, 9)]),
        ("plan = c(k)", [("TCC202", 5, 10)]),
        ("plan = a b)", [("TCC114", 5, 11)]),
        ("limit uses(a) = 3", [("TCC101", 5, 15)]),
        ("limit depth >= 3", [("TCC101", 5, 13)]),
        ("limit depth <= 3 s", [("TCC101", 5, 18)]),
        ("limit latency <= 3", [("TCC101", 5, 19)]),
        ("limit widgets <= 3", [("TCC101", 5, 7)]),
        ("tool d { price 1 .. 2 }", [("TCC101", 5, 18)]),
        ("tool d { cost 1 2 }", [("TCC101", 5, 17)]),
        ("tool d(k: --1)", [("TCC101", 5, 12)]),
        ("tool d(k: 1..2 | 3)", [("TCC101", 5, 16)]),
        ('tool d { doc "a', [("TCC103", 5, 14)]),
        ("plan = a = b", [("TCC101", 5, 10)]),
    ],
)
def test_syntax_error_stands_at(text: str, expected: object) -> None:
    assert codes(f"{TOOLS}{text}") == expected


def test_an_error_swallows_no_later_statement() -> None:
    text = TOOLS + "rule r = (\nlimit depth <= x\nplan = r nowhere\n"
    assert codes(text) == [("TCC114", 5, 10), ("TCC101", 6, 16), ("TCC202", 7, 10)]


def test_columns_count_characters() -> None:
    assert codes(HEAD + 'tool a { doc "\u00e4\u4e2d\U0001f600" ; }') == [("TCC102", 2, 20)]


def test_200_levels_are_read_and_201_are_not() -> None:
    for opening, closing in (("(", ")"), ("", "?")):
        assert codes(f"{TOOLS}plan = {opening * 200}a{closing * 200}") == []
        found = codes(f"{TOOLS}plan = {opening * 201}a{closing * 201}")
        assert [code for code, _, _ in found] == ["TCC106"]
    assert codes(HEAD + f"tool a {{ cost {'-' * 200}1 }}") == []
    assert [c for c, _, _ in codes(HEAD + f"tool a {{ cost {'-' * 201}1 }}")] == ["TCC106"]


def test_past_200_errors_one_says_so() -> None:
    found = codes(HEAD + "rule r = |\n" * 300)
    assert len(found) == 201
    assert found[-1][0] == "TCC112"


def test_a_version_takes_at_most_1024_bytes() -> None:
    for version, due in (("1" * 1024, []), ("1" * 1025, ["TCC315"]), ("é" * 513, ["TCC315"])):
        found = codes(f'grammar g version "{version}"\ntool a\n')
        assert [code for code, _, _ in found] == due


@pytest.mark.parametrize(
    "char", ["\\n", "\\u001b", "\x7f", "\x9b", "\u202e", "\u2066", "\u200e", "\u061c", "\u2028"]
)
def test_a_version_holds_no_hidden_character(char: str) -> None:
    found = codes(f'grammar g version "1.0{char}VALID"\ntool a\n')
    assert [(code, line, column) for code, line, column in found] == [("TCC315", 1, 19)]


def test_new_words_are_names_elsewhere() -> None:
    text = HEAD + (
        "tool gives(gives: text | min, max: 1 | 2) : per -> sum {\n"
        "  cost max when gives = text | min\n"
        "}\n"
        "tool strict(errors: 1 | 2, strict: 3) : sum -> per { cost errors * strict + strict }\n"
        "tool each tool same tool json(flag: integer | flag) tool currency tool mean\n"
        "tool failed(x: same | each) { price 1 when x = same quotes same }\n"
        "start per goal sum | per\n"
        "rule number = each same currency\n"
        "plan = number | gives(gives=text, max=1) strict each json(flag=flag)\n"
        "require mean before each require same before same require each before currency\n"
        "forbid same same forbid each with same forbid mean same each\n"
        "limit uses(each) <= 1\n"
    )
    found = core(text)
    assert found["version"] == [1, 0]
    assert [tool["name"] for tool in found["tools"]] == [
        *("currency", "each", "failed", "gives", "json", "mean", "same", "strict"),
    ]
    assert found["tools"][2]["quotes"] == "same"
    assert [kind for kind, *_ in found["requires"]] == ["before"] * 3
    assert sorted(len(item[1]) for item in found["forbids"] if item[0] == "next") == [2, 3]


def test_the_words_of_an_atom_are_names_elsewhere() -> None:
    text = HEAD + (
        "tool atom(atom: times | atom, times: 1 | 2) : times -> atom {\n"
        "  cost times .. 2 * times when atom = times | atom\n"
        "  model times { atom laplace(2, 1) times 2 }\n"
        "  model atom { price 1 atom gaussian(2, 1) }\n"
        "}\n"
        "tool times : atom -> times\n"
        "start times goal atom | times\n"
        "rule laplace = atom(atom=times) times\n"
        "plan = laplace | atom(times=1)\n"
    )
    found = core(text)
    assert [tool["name"] for tool in found["tools"]] == ["atom", "times"]
    models = found["tools"][0]["models"]
    assert [(m["name"], m["atom"].get("times", 1)) for m in models] == [("times", 2), ("atom", 1)]


def test_execute_is_a_name_elsewhere() -> None:
    text = HEAD + (
        "tool execute(execute: execute | run) : execute -> run {\n"
        "  cost 1 when execute = execute\n"
        "  model execute { execute price 1 execute_ { } }\n"
        "}\n"
        "start execute goal run\n"
        "rule execute_all = execute(execute=execute)\n"
        "plan = execute_all\n"
    )
    found = core(text.replace("execute_ { }", ""))
    (tool,) = found["tools"]
    assert (tool["name"], tool["in"], tool["models"][0]["name"]) == ("execute",) * 3
    assert tool["models"][0]["execute"]["price"] == 1


NAMED = (
    HEAD + "tool a(; p: text) tool each(; p: text, same: text) tool same(; p: text, same: text)\n"
)


@pytest.mark.parametrize(
    ("statement", "order", "second", "pairs"),
    [
        ("require a before each", "before", "each", None),
        ("require a before each each", "each", "each", None),
        ("require a before each same", "each", "same", None),
        ('require a before each "same"', "each", "same", None),
        ("require a before each # note\n same", "each", "same", None),
        ("require a before each\nrequire a before a", "before", "each", None),
        ("require a before each same p", "before", "each", ["p", "p"]),
        ('require a before each same "p"', "before", "each", ["p", "p"]),
        ("require a before each same p = same", "before", "each", ["p", "same"]),
        ("require each before each same same", "before", "each", ["same", "same"]),
        ("require each before each same same = p", "before", "each", ["same", "p"]),
        ("require a before each same same p", "each", "same", ["p", "p"]),
        ("require each before each same same same", "each", "same", ["same", "same"]),
        ("require a before each each same p", "each", "each", ["p", "p"]),
        ("require a before same same p", "before", "same", ["p", "p"]),
    ],
)
def test_each_and_same_are_words_where_no_name_can_be_meant(
    statement: str, order: str, second: str, pairs: list[str] | None
) -> None:
    found = core(NAMED + statement)
    if pairs is None:
        orders = {item[0] for item in found["requires"]}
        assert order in orders
        assert "monitors" not in found
        return
    (monitor,) = found["monitors"]
    assert (monitor["order"], monitor["same"]) == (order, [pairs])
    assert found["tools"][monitor["second"]["tool"]]["name"] == second


def test_names_in_quotes_are_the_names() -> None:
    plain = (
        "tool a(k: 1 | 2) { cost k when k = 1 } rule r = a\n"
        "plan = r a(k=2) limit uses(a(k=1)) <= 1 limit sum(a.k) <= 3\n"
        "require a before each a same k forbid a with a same k = k accept a a(k=2)\n"
    )
    quoted = (
        'tool "a"("k": 1 | 2) { cost "k" when "k" = 1 } rule r = "a"\n'
        'plan = "r" "a"("k"=2) limit uses("a"("k"=1)) <= 1 limit sum("a"."k") <= 3\n'
        'require "a" before each "a" same "k" forbid "a" with "a" same "k" = k\n'
        'accept "a" a("k"=2)\n'
    )
    assert core(HEAD + plain) == core(HEAD + quoted)


def test_a_string_outside_a_tool_opens_arguments_as_a_name_does() -> None:
    found = core(HEAD + 'tool "a b"("k": 1 | 2) plan = "a b" ("a b" | ()) "a b"(# x\n "k"=2)')
    assert found["plan"][0] == "seq"
    assert found["patterns"] == [[[0, 2]], [[1, 2]]]


@pytest.mark.parametrize(
    "text", ["tool a;", "tool a(k: 1 ~ 2) { cost 1 ; 2 }", "plan = a ~ b", "plan = a . b"]
)
def test_new_marks_mean_nothing_elsewhere(text: str) -> None:
    assert {code for code, _, _ in codes(HEAD + text)} <= {"TCC101", "TCC102", "TCC214"}
    assert codes(HEAD + text) != []
