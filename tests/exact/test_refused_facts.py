"""Each condition of a fact, a comparison of sources and a term: one case that it alone refuses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

import tcc
from tcc_certs.formats.artifact import Automaton
from tcc_certs.policy import forms
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.meaning import Policy, policy_of
from tcc_certs.proof import reasons, rules, scene
from tcc_certs.proof.ends import open_reason
from tcc_certs.proof.ground import MISSING, at_call, choice, constant, unrolled
from tcc_certs.proof.plans import Avoided, Plan, Walk, most_counted, set_of
from tcc_certs.proof.reasons import Fact, fact_between, facts_of, is_contradiction, most_before
from tcc_certs.proof.rules import Wrong, includes
from tcc_certs.proof.scene import Scene
from tcc_runtime.exact.planned import plan_of

HOUR = 3_600_000
HEAD = """# lint: allow TCC709 a test needs no costs
grammar facts version "1"
given g: text
given l from look.w
tool look(k: text) gives (v: yes | no, w: text, m: integer 0 .. 9) { errors mean failed }
tool act(k: text, n: integer 0 .. 9, z?: text, x: number, y: number or null, to: list of text,
         rows: list of (s: text))
tool over
"""
STATEMENTS = {
    "depth": "limit depth <= 40",
    "price": "limit price <= 10",
    "require": "before act require look",
    "owe": "after act owe over",
    "finally": "finally require no look or over",
    "ask": 'before act ask "boss"',
    "all": "limit count(act) <= 3 in session",
    "both": "limit count(act | look) <= 9 in session",
    "some": "limit count(act(n > 2)) <= 3 in session",
    "key": "limit count(act) per k <= 3 in session",
    "hour": "limit count(act within 1 h) <= 3 in session",
    "hours": "limit count(act within 2 h) <= 3 in session",
    "across": "limit count(act) <= 3 across sessions",
    "sum": "limit sum(act.n) <= 30 in session",
    "optional": "limit count(act) per z <= 3 in session",
    "given": "limit count(act(k = session.g)) <= 3 in session",
}
AT = {name: number for number, name in enumerate(STATEMENTS)}


@cache
def artifact() -> tcc.Artifact:
    return tcc.compile_text(HEAD + "\n".join(STATEMENTS.values()) + "\n")


@cache
def plan() -> Plan:
    return plan_of(artifact())


def scene_of(question: Rule | None = None) -> Scene:
    """The scene of an `act`, call 0, with an earlier `look`, call 1."""
    found = Scene(policy_of(artifact().core), question)
    found.enter("act")
    found.enter("look", 0)
    return found


ACT, LOOK, ELEMENT = ("call", 0), ("call", 1), ("bound", 0)
K, N, X, Y, Z = [("get", ACT, name) for name in "knxyz"]
G, V, W, M = ("attr", "g"), ("get", LOOK, "v"), ("get", LOOK, "w"), ("get", LOOK, "m")
ONE, TIME = constant(("n", 1)), ("time", ACT)


def source(
    base: Any, *conditions: Any, view: Any = ACT, within: Any = None, marks: Any = ()
) -> Any:
    return "source", view, base, conditions, within, marks


CALLS = ("calls", ("act",))
ACTS, LOOKS = source(CALLS), source(("calls", ("look",)))
BOTH = source(("calls", ("act", "look")))
BIG = ("compare", ">", ("get", ELEMENT, "n"), (constant(("n", 2)),))
SAME_K = ("same", ("get", ELEMENT, "k"), K)
OF_G = ("compare", "=", ("get", ELEMENT, "k"), (G,))
ITEMS = ("items", ("get", ACT, "to"), None)


def rows(name: str = "n", most: Any = None, of: Any = ACTS) -> Any:
    return source(("rows", of, ("get", ELEMENT, name), most))


def counted(name: str) -> Any:
    return "value", ("counted", AT[name], ACT)


def count(of: Any) -> Any:
    return "high", ("count", of, False)


# Two limits, and what the first one counts is at most what the second one counts.
LESS = {
    ("all", "all"), ("sum", "sum"), ("across", "across"), ("hour", "hour"), ("hours", "hours"),
    ("key", "key"), ("some", "some"), ("both", "both"), ("given", "given"), ("all", "both"),
    ("some", "all"), ("key", "all"),
    ("sum", "all"), ("sum", "both"), ("sum", "across"), ("hour", "hours"),
    ("hour", "all"), ("hours", "all"),
    ("given", "all"), ("all", "across"),
    *[(one, other) for one in ("some", "key", "hour", "hours", "given")
      for other in ("both", "across")],
}  # fmt: skip


def test_a_limit_counts_at_most_what_another_one_counts() -> None:
    names = [name for name in STATEMENTS if name not in ("optional",)]
    found = {
        (one, other)
        for one in names
        for other in names
        if fact_between(scene_of(), counted(one), counted(other)) is not None
    }
    assert found == LESS
    assert fact_between(scene_of(), counted("optional"), counted("optional")) is None


# A count or a sum, and the limits that count at least and at most as much.
EACH = {"all", "both", "hour", "hours", "some", "key", "sum", "optional"}
BOUNDED: tuple[tuple[Any, set[str], set[str]], ...] = (
    (count(ACTS), {"all", "both", "across"}, EACH - {"both"}),
    (count(BOTH), {"both"}, EACH),
    (count(LOOKS), {"both"}, set()),
    (count(source(CALLS, view=LOOK)), set(), set()),
    (count(source(CALLS, BIG)), {"all", "both", "across", "some"}, {"some"}),
    (count(source(CALLS, SAME_K)), {"all", "both", "across", "key"}, {"key"}),
    (count(source(CALLS, OF_G)), {"all", "both", "across"}, set()),
    (
        count(source(CALLS, within=HOUR)),
        {"all", "both", "across", "hour", "hours"},
        {"hour"},
    ),
    (
        count(source(CALLS, within=2 * HOUR)),
        {"all", "both", "across", "hours"},
        {"hour", "hours"},
    ),
    (count(source(CALLS, marks=(LOOKS,))), {"all", "both", "across"}, set()),
    (count(source(ITEMS)), set(), set()),
    (("high", ("sum", rows(), ELEMENT)), {"sum", "all", "both", "across"}, {"sum"}),
    (("high", ("sum", rows(most=5), ELEMENT)), set(), set()),
    (("high", ("sum", rows("k"), ELEMENT)), set(), set()),
    (("high", ("sum", rows(), ("get", ELEMENT, "q"))), set(), set()),
    (("high", ("sum", source(ITEMS), ELEMENT)), set(), set()),
)


@pytest.mark.parametrize("at", range(len(BOUNDED)))
def test_a_limit_counts_the_calls_of_a_source(at: int) -> None:
    variable, least, most = BOUNDED[at]
    between = scene_of()
    names = [name for name in STATEMENTS if STATEMENTS[name].startswith("limit")][2:]
    names = [*names, "require"]
    assert {n for n in names if fact_between(between, variable, counted(n))} == least
    assert {n for n in names if fact_between(between, counted(n), variable)} == most


def test_a_key_is_a_required_argument_of_each_counted_tool() -> None:
    at, rule = scene_of(), policy_of(artifact().core).rules[AT["key"]]
    get = forms.Get(of=forms.Element(0), name="k")
    assert reasons._key_of(at, rule, get, ACT) == SAME_K
    for term in (
        forms.Now(),
        forms.Attribute("l"),
        forms.Get(of=forms.Element(1), name="k"),
        forms.Get(of=forms.Element(0), name="z"),
        forms.Get(of=forms.Element(0), name="rows"),
        forms.Get(of=forms.Element(0), name="other"),
    ):
        assert reasons._key_of(at, rule, term, ACT) is None


# How many times more a call adds to one variable than to another.

PRICED = """grammar priced version "1"
given g: text
tool act(k: text, n: integer 1 .. 9, m: 2 | 4, s: 1 | x, z?: integer 1 .. 9, y: number) {
  price 2
  price 6 when m = 4
}
tool look(k: text, n: integer 0 .. 5) gives (v: yes | no) { price 3 price 4 when v = yes }
tool more(k?: text, n: integer -5 .. 5) { price 10 }
tool debit(n: integer -9 .. -1)
tool over
"""
BOUNDS = {
    "depth": "limit depth <= 40",
    "price": "limit price <= 20",
    "act": "limit count(act) <= 3 in session",
    "act n": "limit sum(act.n) <= 30 in session",
    "act m": "limit sum(act.m) <= 10 in session",
    "look n": "limit sum(look.n) <= 10 in session",
    "both n": "limit sum((act | look).n) <= 20 in session",
    "key": "limit count(act | look) per k <= 4 across sessions",
    "hour": "limit count(act within 1 h) <= 2 in session",
    "big": "limit count(act(n > 2)) <= 2 in session",
    "given": "limit count(act(k = session.g)) <= 2 in session",
    "by n": "limit count(act) <= n in session",
    "none": "limit count(more) <= -1 in session",
    "optional": "limit count(act) per z <= 3 in session",
    "require": "before act require look",
}
BOUND = {name: number for number, name in enumerate(BOUNDS)}


@cache
def priced(bounds: str = "\n".join(BOUNDS.values())) -> Scene:
    """The scene of an `act`, call 0, with earlier calls of each tool: 1 to 4, and the end."""
    core = tcc.compile_text(f"{PRICED}{bounds}\n", purpose="gate").core
    found = Scene(policy_of(core), None)
    found.enter("act")
    for tool in ("look", "more", "over"):
        found.enter(tool, 0)
    found.enter(None)
    return found


END = ("call", 4)


def of(tools: str, *conditions: Any, view: Any = ACT, within: Any = None) -> Any:
    return source(("calls", tuple(tools.split())), *conditions, view=view, within=within)


def number(tools: str, *conditions: Any, view: Any = ACT, within: Any = None) -> Any:
    return "high", ("count", of(tools, *conditions, view=view, within=within), False)


def total(tools: str, name: str, *conditions: Any, view: Any = ACT) -> Any:
    inner = of(tools, *conditions, view=view)
    rows = "source", view, ("rows", inner, ("get", ELEMENT, name), None), (), None, ()
    return "high", ("sum", rows, ELEMENT)


def of_limit(name: str, view: Any = ACT) -> Any:
    return "value", ("counted", BOUND[name], view)


@pytest.mark.parametrize(
    ("one", "other", "times"),
    [
        (of_limit("act n"), of_limit("act"), 9),
        (of_limit("act"), of_limit("act n"), 1),
        (of_limit("act"), of_limit("act m"), Fraction(1, 2)),
        (of_limit("act n"), of_limit("act m"), Fraction(9, 2)),
        (of_limit("look n"), of_limit("both n"), 1),
        (number("look"), of_limit("look n"), None),  # a call may add 0
        (total("act", "n"), of_limit("act"), 9),
        (total("act", "n"), number("act"), 9),
        (total("act", "s"), number("act"), None),  # no number
        (total("act", "z"), number("act"), None),  # a call may lack it
        (total("act", "y"), number("act"), None),  # it has no bounds
        (total("act", "v"), number("act"), None),  # it is no argument
        (number("act"), total("act", "n"), 1),
        (of_limit("act n"), total("act look", "n"), 1),
        (of_limit("act n"), total("act more", "n"), None),  # `more` may add less than 0
        (number("act"), total("act more", "n"), None),
        (total("more", "n"), number("more"), 5),
        (total("debit", "n"), number("debit"), None),  # a call adds less than 0
        (total("debit", "n"), number("debit over"), None),
    ],
)
def test_a_variable_is_at_most_a_multiple_of_another(one: Any, other: Any, times: Any) -> None:
    found = fact_between(priced(), one, other)
    assert (None if found is None else -found.terms[other]) == times


AT_LOOK, AT_MORE = ("call", 1), ("call", 2)
OF_LOOK = ("same", ("get", ELEMENT, "k"), ("get", AT_LOOK, "k"))
OF_MORE = ("compare", "=", ("get", ELEMENT, "k"), (("get", AT_MORE, "k"),))
OF_A = ("compare", "=", ("get", ELEMENT, "k"), (constant(("s", "a")),))
IS_FOUR = ("compare", "=", ("get", ELEMENT, "m"), (constant(("n", 4)),))
IS_YES = ("compare", "=", ("get", ELEMENT, "v"), (constant(("s", "yes")),))


@pytest.mark.parametrize(
    ("bound", "variable", "most"),
    [
        ("depth", number("act"), 39),
        ("depth", number("act look"), 39),
        ("depth", number("act", view=END), 40),
        ("depth", of_limit("act"), 39),
        ("depth", of_limit("act n"), 39 * 9),
        ("depth", total("act", "z"), None),
        ("depth", of_limit("key"), None),  # across sessions
        ("price", number("act"), 9),  # the last `act` costs 2
        ("price", number("act", view=END), 10),
        ("price", number("act", view=AT_MORE), 5),
        ("price", number("act", IS_FOUR), 3),
        ("price", number("act look"), 9),
        ("price", number("look", IS_YES), 6),  # an unknown answer
        ("price", number("over", view=END), None),
        ("price", of_limit("act n"), 81),
        ("act", number("act", view=END), 3),
        ("act", number("act", OF_A, view=END), 3),
        ("act", number("act look", view=END), None),
        ("act", total("act", "n", view=AT_MORE), 27),
        ("act n", number("act", view=END), 30),
        ("act n", total("act", "n", view=END), 30),
        ("act m", number("act", view=END), 5),
        ("look n", number("look", view=END), None),
        ("look n", total("look", "n", view=END), 10),
        ("key", number("act", view=AT_LOOK), None),
        ("key", number("act", OF_LOOK, view=AT_LOOK), 4),
        ("key", number("act", OF_A, view=END), 4),
        ("key", number("act", OF_MORE, view=AT_MORE), None),  # this call may lack `k`
        ("key", of_limit("act"), None),
        ("hour", number("act", view=END), None),
        ("hour", number("act", view=END, within=HOUR), 2),
        ("hour", number("act", view=END, within=2 * HOUR), None),
        ("big", number("act", BIG, view=END), 2),
        ("big", number("act", view=END), None),
        ("given", number("act", OF_G, view=END), None),
        ("by n", number("act"), None),
        ("optional", number("act"), None),
        ("act", ("value", N), None),
        ("none", number("more"), 0),
        ("require", number("act"), None),
    ],
)
def test_a_statement_bounds_the_counted_calls(bound: str, variable: Any, most: Any) -> None:
    assert most_before(priced(), variable, BOUND[bound]) == most


def test_a_sum_of_a_field_inside_an_argument_or_before_another_call_adds_up_no_calls() -> None:
    inside = "rows", ACTS, ("get", ("get", ELEMENT, "to"), "n"), None
    other = "rows", source(CALLS, view=LOOK), ("get", ELEMENT, "n"), None
    for base, is_counted in ((rows()[2], True), (inside, False), (other, False)):
        found = reasons.counted_of(scene_of(), ("high", ("sum", source(base), ELEMENT)))
        assert (found is not None) is is_counted


def test_only_statements_of_the_policy_bound_calls() -> None:
    for statement in (-1, 99):
        assert most_before(priced(), number("act"), statement) is None
    asked = Scene(priced().policy, policy_of(priced().policy.core).rules[BOUND["depth"]])
    asked.enter("act")
    assert most_before(asked, number("act"), -1) is None


def test_a_total_with_an_amount_below_0_bounds_no_calls() -> None:
    cost = "limit cost <= 5"
    for of_over, most in (("", 5), (" { cost 1 }", 4), (" { cost -1 }", None)):
        text = f"{PRICED}{cost}\n".replace("price ", "cost ")
        text = text.replace("tool over", f"tool over{of_over}") + "plan = any{0,3}\n"
        core = tcc.compile_text(text, purpose="gate").core
        at = Scene(policy_of(core), None)
        at.enter("over")
        assert most_before(at, number("look"), 0) == (most and most // 3)
        assert most_before(at, number("over"), 0) == (4 if most == 4 else None)


def test_a_call_that_no_plan_has_adds_nothing() -> None:
    core = tcc.compile_text(f"{PRICED}limit price <= 20\n", purpose="gate").core
    calls = [call for call in core.calls if call.text != "act(m=4,s=1)"]
    at = Scene(Policy(replace(core, calls=tuple(calls))), None)
    at.enter("act")
    assert most_before(at, number("act"), 0) is None
    assert most_before(at, number("look"), 0) == 6


@pytest.mark.parametrize("name", ["across", "require"])
def test_plans_bound_counts_of_a_session(name: str) -> None:
    assert most_counted(plan(), scene_of(), counted("all")) == 2
    assert most_counted(plan(), scene_of(), counted("sum")) == 18
    assert most_counted(plan(), scene_of(), ("high", ("sum", rows("x"), ELEMENT))) is None
    assert most_counted(plan(), scene_of(), counted(name)) is None


def test_an_endless_plan_bounds_no_count_and_each_place_is_visited_once() -> None:
    text = HEAD + "plan = look* act\n"
    endless = plan_of(tcc.compile_text(text, purpose="gate"))
    assert most_counted(endless, scene_of(), count(LOOKS)) is None
    assert most_counted(endless, scene_of(), count(source(("calls", ("over",))))) == 0
    acts = set_of(endless.labels("act"))
    walk = Walk(chain=(), avoided=(Avoided(acts, 0, 0),), ends=True)
    endless.edges_left = 100
    assert endless.path(walk) is None


# Sums of facts.


def fact(most: int, strict: bool = False, *terms: Any) -> Fact:
    return Fact(dict.fromkeys(terms, Fraction(1)), Fraction(most), strict)


@pytest.mark.parametrize(
    ("facts", "holds"),
    [
        ([(fact(-1), 1)], True),
        ([(fact(0, True), 1)], True),
        ([(fact(0), 1)], False),
        ([(fact(1, True), 1)], False),
        ([(fact(1), -1)], False),
        ([(fact(-1), 1), (fact(5), 0)], True),
        ([(fact(-1, False, ("value", X)), 1)], False),
    ],
)
def test_a_sum_is_a_contradiction(facts: Any, holds: bool) -> None:
    named = [(one, Fraction(factor)) for one, factor in facts]
    assert is_contradiction(scene_of(), named) is holds


@pytest.mark.parametrize(
    ("variable", "whole"),
    [(("value", N), True), (("high", ("count", LOOKS, False)), True), (("value", TIME), True),
     (("value", X), False), (("high", M), False), (("value", ("counted", AT["all"], ACT)), True),
     (("value", ("counted", AT["sum"], ACT)), False)],
)  # fmt: skip
def test_only_whole_numbers_are_tightened(variable: Any, whole: bool) -> None:
    given = fact(3, True, variable)
    expected = Fact(given.terms, Fraction(2), False) if whole else given
    assert reasons.tightened(scene_of(), given) == expected


@pytest.mark.parametrize("term", [constant(("s", "a")), ("+", K, N), ("-", K, N), ("*", K, ONE)])
def test_the_ends_of_what_is_no_number_are_open(term: Any) -> None:
    ends = reasons.ends_of(scene_of(), term)
    assert ends.low == ({("low", term): 1}, 0) and ends.high == ({("high", term): 1}, 0)


@pytest.mark.parametrize("literal", [("eq", N, ONE), ("known", M), ("before", LOOK, ACT)])
def test_a_false_literal_states_no_fact(literal: Any) -> None:
    assert facts_of(scene_of(), literal, True) and not facts_of(scene_of(), literal, False)


def test_only_known_terms_are_equal_to_themselves() -> None:
    assert reasons.evaluated(("eq", V, V), {V}) is True
    assert reasons.evaluated(("eq", V, V), ()) is None
    assert reasons.evaluated(("eq", V, W), {V, W}) is None
    assert reasons.evaluated(("ne", V, V), ()) is False
    assert reasons.evaluated(("ne", V, W), ()) is None


# Sources.

INNER: tuple[tuple[Any, Any, bool], ...] = (
    (ACTS, ACTS, True),
    (ACTS, BOTH, True),
    (BOTH, ACTS, False),
    (source(CALLS, BIG), ACTS, True),
    (source(CALLS, BIG), source(CALLS, BIG), True),
    (ACTS, source(CALLS, BIG), False),
    (ACTS, source(CALLS, view=LOOK), False),
    (source(ITEMS), source(ITEMS), False),
    (source(("items", ("act",), None)), ACTS, False),
    (ACTS, source(("items", ("act",), None)), False),
    (source(CALLS, within=HOUR), ACTS, True),
    (source(CALLS, within=HOUR), source(CALLS, within=HOUR), True),
    (source(CALLS, within=HOUR), source(CALLS, within=2 * HOUR), True),
    (source(CALLS, within=2 * HOUR), source(CALLS, within=HOUR), False),
    (ACTS, source(CALLS, within=HOUR), False),
    (source(CALLS, marks=(LOOKS,)), ACTS, True),
    (source(CALLS, marks=(LOOKS,)), source(CALLS, marks=(LOOKS,)), True),
    (ACTS, source(CALLS, marks=(LOOKS,)), False),
)


@pytest.mark.parametrize("at", range(len(INNER)))
def test_a_source_includes_another(at: int) -> None:
    inner, outer, holds = INNER[at]
    assert includes(inner, outer) is holds


LAST = ("compare", "=", ("get", ("last", LOOKS), "v"), (constant(("s", "yes")),))
WITNESSED = (
    (("some", LOOKS, False), True), (("none", LOOKS, False), False),
    (("clear", LOOKS, ACT, False, True), False), (("latest", LOOKS, False, ACT), False),
    (("truth", LAST, False, True), False), (("settled", AT["owe"], ACT), False),
    (("timely", AT["owe"], ACT), False), (("paid", AT["owe"], ACT, ACT), True),
    (("known", ("attr", "l")), True),
)  # fmt: skip


@pytest.mark.parametrize("at", range(len(WITNESSED)))
def test_a_literal_with_the_other_truth_has_no_witness(at: int) -> None:
    literal, truth = WITNESSED[at]
    assert rules.cases(scene_of(), literal, truth)
    with pytest.raises(Wrong):
        rules.cases(scene_of(), literal, not truth)


PLAIN = ("truth", ("some", rows()), False, True)
WITH_MARK = source(CALLS, marks=(LOOKS,))


def test_lemmas_about_last_elements_need_one() -> None:
    with pytest.raises(Wrong):
        rules.cases(scene_of(), PLAIN, False)
    with pytest.raises(Wrong):
        rules.at(scene_of(), PLAIN, 1)
    with pytest.raises(Wrong):
        rules.missing(scene_of(), PLAIN)


@pytest.mark.parametrize("of", [rows(), WITH_MARK, source(CALLS, ("some", LOOKS))])
def test_the_polarity_of_a_source_with_sources_is_open(of: Any) -> None:
    with pytest.raises(Wrong):
        rules.polarity(scene_of(), ("some", of, False))


def test_scopes_of_two_terms_are_not_nested() -> None:
    inner, outer = constant(("p", "/a/b")), constant(("p", "/a"))
    assert rules.nested(scene_of(), ("under", K, inner), ("under", K, outer)) is not True
    for other in (("under", G, outer), ("under", K, constant(("u", "https://a/")))):
        with pytest.raises(Wrong):
            rules.nested(scene_of(), ("under", K, inner), other)


# Scenes.


def test_formulas_are_shortened() -> None:
    lit = scene_of().lit("done", ACT)
    assert scene.both([lit, False]) is False and scene.either([lit, True]) is True


def test_an_element_of_a_source_becomes_a_call() -> None:
    assert at_call(BIG, ACT) == ("compare", ">", N, (constant(("n", 2)),))


OF_ROW = (
    ("compare", "=", ("get", ELEMENT, "q"), (ONE,)),
    ("compare", "=", ("get", ("callof", ELEMENT), "n"), (ONE,)),
)


def test_a_condition_about_a_row_becomes_one_about_its_call() -> None:
    """A source inside a condition has elements of its own, and they stay as they are."""
    inner = source(("rows", LOOKS, ("get", ELEMENT, "w"), None), *OF_ROW)
    outer = "compare", "=", ("get", ("bound", 1), "q"), (ONE,)
    owner = "compare", "=", ("get", ("callof", ("bound", 1)), "n"), (ONE,)
    asks = "some", (*inner[:3], (*OF_ROW, outer, owner), *inner[4:])
    get = "get", ELEMENT, "to"
    (of_list,) = unrolled(source(("rows", ACTS, get, 1_000), *OF_ROW, asks))
    (of_value,) = unrolled(source(("rows", ACTS, get, None), *OF_ROW, asks))
    of_owner = "compare", "=", ("get", ("bound", 1), "n"), (ONE,)
    of_deeper = "compare", "=", ("get", ("bound", 2), "n"), (ONE,)
    found = "some", (*inner[:3], (*OF_ROW, outer, of_deeper), *inner[4:])
    elements = source(("items", get, 1_000), OF_ROW[0], of_owner, found)
    assert of_list == source(CALLS, ("some", elements))
    at_row = "compare", "=", ("get", get, "q"), (ONE,)
    at_owner = "compare", "=", ("get", ELEMENT, "n"), (ONE,)
    of_get = "compare", "=", ("get", ("get", ("bound", 1), "to"), "q"), (ONE,)
    found = "some", (*inner[:3], (*OF_ROW, of_get, of_owner), *inner[4:])
    assert of_value == source(CALLS, ("present", get), at_row, at_owner, found)


def test_a_sum_has_a_match_for_each_element() -> None:
    match = "choose", N, (((ONE,), ONE),), ()
    assert choice(("+", ONE, match)) == match
    assert choice(("sum", rows(), match)) is None


def test_calls_are_in_the_order_in_which_they_were_named() -> None:
    at = scene_of()
    assert at.before(1, 0) is True
    assert at.before(0, 1) is False and at.before(1, 1) is False


def test_terms_are_what_their_declarations_say() -> None:
    at = scene_of()
    assert at.field(("get", ("last", LOOKS), "v")) is None and at.field(TIME) is None
    exact = {K: True, G: True, V: False, Z: False, ("count", LOOKS, False): False,
             ("+", N, ONE): True, ("+", N, M): False, ("+", M, N): False}  # fmt: skip
    assert {term: at.is_exact(term) for term in exact} == exact
    number = {N: True, K: False, Y: False, M: False}
    assert {term: at.is_number(term) for term in number} == number
    assert at.is_argument(K) and not at.is_argument(V) and not at.is_argument(TIME)


def test_a_text_is_short_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    at = scene_of()
    assert at.is_short(K, "a*") and not any(at.is_short(one, "a*") for one in (TIME, N, W, Z))
    declared = at.declared(K)
    assert declared is not None
    steps = declared.type.most * scene.pattern_of("a*").size  # type: ignore[union-attr]
    for most in (steps, steps - 1):
        monkeypatch.setattr(scene, "MAX_STEPS", most)
        assert at.is_short(K, "a*") is (most == steps)


def test_conditions_about_missing_lists_are_unsure() -> None:
    at = scene_of()
    missing = source(("items", MISSING, None))
    assert at.truth(("some", missing), False, True) is False
    assert at.truth(("some", source(ITEMS)), False, True) is not False
    assert at.truth(("compare", "<", N, (ONE,)), False, True) is not False
    assert at.compared("=", N, MISSING, True) is False


def test_only_an_optional_value_may_be_absent() -> None:
    at = scene_of()
    assert at.truth(("present", N), False, False) is False
    absent = at.truth(("present", Z), False, False)
    assert absent == at.lit("truth", ("present", Z), False, False)


def test_whether_null_is_in_a_list_is_a_condition_of_its_own() -> None:
    """A value that is left out is null in `x = null`.  It equals no member of a list."""
    at, among = scene_of(), ("among", scene.NULL, source(ITEMS))
    assert at.truth(among, False, True) == at.lit("truth", among, False, True)


def test_calls_of_other_tools_are_in_no_source_and_owe_nothing() -> None:
    at = scene_of()
    other = at.enter("act", 0)
    assert at.member(LOOKS, other, False, True, False) is False
    assert at.member(LOOKS, 1, False, True, False) is not False
    assert at.is_open(AT["owe"], 1) is False and at.is_open(AT["owe"], 0) is not False
    assert at.pays(AT["owe"], other, 1) is False
    assert at.pays(AT["owe"], other, at.enter("over", 0)) is not False


def test_a_statement_lets_calls_through_that_it_does_not_restrict() -> None:
    at = scene_of()
    end = at.enter(None)
    free = {name: at.allows(number, 1) is True for name, number in AT.items()}
    assert free == {name: name != "both" for name in AT}
    assert {name for name, number in AT.items() if at.allows(number, 0) is True} == {
        "depth", "price", "owe", "finally", "ask",
    }  # fmt: skip
    assert [at.allows(AT[name], end) is True for name in ("depth", "finally")] == [True, False]


# Ends.

ENDS = """# lint: allow TCC709 a test needs no costs
grammar ends version "1"
tool look(m: 1 | 2) gives (v: yes | no) { errors mean failed }
tool act(k: text)
tool over
plan = look{1,2} act over?
"""
OPEN = {
    "": "",
    "held": "before act require look(m = 1) or look(m = 2)",
    "nothing owes": "after over owe act within 1 h\nforbid over",
}
UNSURE = {
    "each way": 'before act require k = "a"',
    "errors": "before act require no look(m = 1)",
    "the end": 'finally require act(k = "a")',
}


def ends(text: str, plan_text: str = ENDS) -> Plan:
    return plan_of(tcc.compile_text(f"{plan_text}{text}\n"))


@pytest.mark.parametrize("name", OPEN)
def test_sessions_can_be_finished(name: str) -> None:
    assert open_reason(ends(OPEN[name])) == ""


@pytest.mark.parametrize("name", UNSURE)
def test_a_statement_that_the_automaton_does_not_hold_may_leave_sessions_open(name: str) -> None:
    assert open_reason(ends(UNSURE[name])) != ""


def test_an_obligation_that_the_gate_holds_may_leave_sessions_open() -> None:
    optional = ENDS.replace("act over?", "(act over?)?")
    assert open_reason(ends("", optional)) == ""
    assert open_reason(ends('after act(k = "a") owe over', optional)) != ""


def test_a_relaxed_total_and_an_answer_that_leads_nowhere_leave_sessions_open() -> None:
    held = ends("limit depth <= 4")
    assert open_reason(held) == ""
    assert open_reason(Plan(held.core, held.automaton, held.core_calls, omitted=[0])) != ""
    assert open_reason(ends("", ENDS.replace("look{1,2}", "look(v = yes)"))) != ""


def endless(text: str) -> Plan:
    found = plan_of(tcc.compile_text(text, purpose="gate"))
    assert found.automaton.cyclic
    return found


NO_END = 'before act require k = "a"'


def test_no_end_is_nearer_than_that_of_free_tools_if_the_depth_is_counted() -> None:
    """A free tool is one that no statement of the gate restricts."""
    near = ENDS.replace("look{1,2} act over?", "look* (act | over over)")
    far, depth = ENDS.replace("look{1,2} act over?", "look* act"), "limit depth <= 9\n"
    assert open_reason(endless(near + depth)) == ""
    assert open_reason(endless(f"{near}{NO_END}\n")) == ""
    assert open_reason(endless(f"{near}{depth}{NO_END}\n")) != ""
    assert open_reason(endless(f"{far}{depth}{NO_END}\n")) != ""


def test_no_answer_leads_nearer_to_an_end_than_another_if_the_depth_is_counted() -> None:
    """After two calls of `peek` the gate lets `look` through: with `yes` the session may end."""
    text = """grammar ends version "1"
tool peek
tool look gives (v: yes | no)
plan = peek* (look(v = yes) | look(v = no) peek peek)
"""
    alike = text.replace("look(v = yes)", "look(v = yes) peek peek")
    depth = "limit depth <= 4\n"
    assert open_reason(endless(text)) == open_reason(endless(f"{alike}{depth}")) == ""
    assert open_reason(endless(f"{text}{depth}")) != ""
    with tcc.Gate(tcc.compile_text(f"{text}{depth}", purpose="gate")) as gate:
        for tool, answer in (("peek", None), ("peek", None), ("look", {"v": "no"})):
            with gate.call(tool) as permit:
                permit.done(answer)
        assert gate.check("peek").code == "R201" and not gate.may_finish


def test_a_statement_that_the_automaton_leaves_to_the_gate_restricts_few_tools() -> None:
    """It refuses calls of `peek` alone, so `seek` stays free."""
    text = """grammar ends version "1"
tool peek(m: 1 | 2)
tool seek(m: 2 | 3)
tool over
finally require seek
before (peek | seek)(m = 1) require over
"""
    assert open_reason(endless(text)) == ""


def test_sessions_in_several_states_may_stay_open() -> None:
    one = ends("")
    act = one.labels("act")[0]
    twice = Automaton(
        edge_start=[0, 0, 0, 2], edge_call=[act, act], edge_target=[0, 1], accept=[1, 1, 0]
    )
    assert open_reason(Plan(one.core, twice, one.core_calls)) != ""
