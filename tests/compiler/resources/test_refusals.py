"""Empty, infinite, too large, too slow, out of range: each ends in its own code, with a reason."""

from __future__ import annotations

from itertools import count

import pytest

from tcc_certs.kernel import check
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core, compile_text
from tests.compiler.compiling import ABC, A, B, C, compiled, core, refused, wide
from tests.oracle.cores import at_most, count_at_least, count_at_most, depth

HEAD = 'grammar g version "1"\n'
ANY = ["repeat", ABC, 0]


def at_once(text: str, **options: object) -> list[tuple[str, int]]:
    """Codes and lines of a text's diagnostics."""
    found = compile_text(HEAD + text, Options(**options)).diagnostics  # type: ignore[arg-type]
    return [(d.code, d.span.line if d.span else 0) for d in found]


def test_a_cycle_is_shown_with_its_way_there() -> None:
    diagnostic = refused(core(["seq", [C, ["repeat", ["seq", [A, B]], 0]]]))
    assert diagnostic.code == "TCC401"
    assert diagnostic.message == (
        "there are infinitely many plans: after `c`, `a b` can be repeated for ever"
    )


def test_only_limits_that_cut_the_cycle_are_proposed() -> None:
    amounts = {"price": [0, 2, 1], "latency": [5, 0, 0], "cost": [-1, 0, 7]}
    hint = refused(core(["repeat", A, 0], amounts=amounts)).hint
    assert hint == (
        "add `limit depth <= N` or `limit count(a) <= N` or `limit latency <= X ms`; a gate needs"
        " no limit: --for gate"
    )


@pytest.mark.parametrize(
    ("costs", "plan", "code"),
    [
        ([-1, 1], ["repeat", ["call", {0, 1}], 0], "TCC401"),
        ([0, 1], ["repeat", ["call", {0, 1}], 0], "TCC401"),
        ([-1, 1], ["repeat", ["seq", [A, B]], 0], "TCC401"),
        ([-1, 1], ["repeat", ["seq", [A, B, A]], 0], "TCC401"),
    ],
)
def test_cost_does_not_cut_a_cycle_that_costs_nothing(costs, plan, code) -> None:
    data = core(plan, size=2, amounts={"cost": costs}, statements=[at_most("cost", 5)])
    assert refused(data, purpose="run").code == code


def test_cost_cuts_a_cycle_of_positive_cost_with_a_negative_call() -> None:
    data = core(
        ["repeat", ["seq", [A, B]], 0],
        size=2,
        amounts={"cost": [-1, 3]},
        statements=[at_most("cost", 5)],
    )
    assert compiled(data).plans[-1] == 3


def test_a_negative_cycle_that_a_count_cuts_is_no_cycle() -> None:
    data = core(
        ["repeat", ["call", {0, 1}], 0],
        size=2,
        amounts={"cost": [-2, 1]},
        statements=[at_most("cost", 0), count_at_most({0}, 1)],
    )
    # One a pays for two b after it.
    assert compiled(data, held=False).plans[-1] == 4


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"statements": [depth(1)]}, "`limit depth <= 1`"),
        ({"statements": [count_at_least({0}, 3)]}, "`finally require count(a) >= 3`"),
        ({"statements": [count_at_most({0}, 0)]}, "`limit count(a) <= 0`"),
        ({"statements": [["before", {2}, {0}]]}, "`before a require c`"),
        ({"statements": [["after", {2}, {1}]]}, "`after b owe c`"),
        ({"statements": [["never next", {0}, {1}]]}, "`before b require no a since any - a`"),
        ({"statements": [["never with", {0}, {1}]]}, "`before b require no a`"),
        ({"start": "x", "goals": ["y"]}, "from `start` to a `goal`"),
    ],
)
def test_no_plan_names_the_statement_that_leaves_none(parts, named) -> None:
    diagnostic = refused(core(["seq", [A, B]], **parts))
    assert diagnostic.code == "TCC402"
    assert named in diagnostic.message


def test_refusals_point_at_their_statement() -> None:
    assert at_once("tool a\ntool b\nplan = a*\n") == [("TCC401", 4)]
    assert at_once("tool a\ntool b\n\nrule r = a r b | a\nplan = r\n") == [("TCC401", 6)]
    assert at_once("tool a\nplan = a\nfinally require count(a) >= 2\n") == [("TCC402", 4)]
    assert at_once("tool a\nplan = a*\nlimit depth <= 99\n", max_states=9) == [("TCC403", 4)]
    assert at_once("tool a\nplan = a{99}\n", max_states=9) == [("TCC403", 3)]


def test_states_past_the_limit() -> None:
    diagnostic = refused(core(["repeat", A, 0, 10**9]), max_states=3000)
    assert diagnostic.code == "TCC403"
    assert diagnostic.message == "the plan expression takes more than 3000 states"


def test_a_shortest_plan_past_the_limit_is_seen_at_once() -> None:
    assert refused(core(["repeat", ["repeat", A, 10**9], 10**9])).code == "TCC403"


def test_a_depth_past_the_limit_on_states_is_seen_at_once() -> None:
    looks = count()
    options = Options(timeout=1e9, clock=lambda: 1e-9 * next(looks))
    text = HEAD + "tool a\ntool b\nplan = a* b\nlimit depth <= 100000000\n"
    (diagnostic,) = compile_text(text, options).diagnostics
    assert diagnostic.code == "TCC403" and diagnostic.span is not None and diagnostic.span.line == 5
    assert "takes more than 2000000 states" in diagnostic.message
    assert next(looks) < 100  # made, so many states ask the clock five hundred times


@pytest.mark.parametrize("plan", ["any*", "a* b", "(a b)*", "a (b (a | b))* a", "(a b | a a)* b"])
def test_a_depth_is_refused_at_once_only_where_it_takes_so_many_states(plan: str) -> None:
    for most in range(8, 24):
        text = HEAD + f"tool a\ntool b\nplan = {plan}\nlimit depth <= {most}\n"
        whole = compile_text(text, Options()).artifact
        assert whole is not None
        states = check(whole).file.manifest.states
        assert compile_text(text, Options(max_states=4 * states)).artifact == whole
        assert at_once(text.removeprefix(HEAD), max_states=states - 1) == [("TCC403", 5)]


def test_the_front_end_counts_towards_the_time_limit() -> None:
    ticks = count()
    options = Options(timeout=0.5, clock=lambda: float(next(ticks)))
    (diagnostic,) = compile_text(HEAD + "tool a\nplan = a\n", options).diagnostics
    assert diagnostic.code == "TCC404"
    assert diagnostic.message == "the time limit of 0.5 s ran out at reading the grammar"


def test_a_bound_that_leaves_64_bits_has_the_place_of_its_tool() -> None:
    text = "tool cheap { cost 1 }\ntool dear { cost 9000000000 }\nplan = any{2,3}\n"
    assert at_once(text) == [("TCC405", 3)]
    small = "tool a { cost 1 }\ntool b { cost 5 }\nplan = any\n"
    assert at_once(small, beta="1000000000000", tilt=0) == [("TCC405", 3)]


def test_edges_past_the_limit() -> None:
    data = wide(300, statements=[depth(400)])
    diagnostic = refused(data, max_states=500)
    assert diagnostic.code == "TCC403"
    assert "edges or positions" in diagnostic.message


def test_time_runs_out_by_the_given_clock() -> None:
    ticks = count()
    options = Options(timeout=3.5, clock=lambda: float(next(ticks)))
    (diagnostic,) = compile_core(core(["repeat", A, 0, 10**6]), options).diagnostics
    assert diagnostic.code == "TCC404"
    assert diagnostic.message.endswith("ran out at the plan expression")


def test_no_clock_is_asked_without_a_time_limit() -> None:
    def clock() -> float:
        raise AssertionError

    assert compile_core(core(A), Options(clock=clock)).artifact is not None


def test_the_number_of_plans_past_its_bits() -> None:
    data = core(ANY, statements=[depth(20)])
    bits = compiled(data).plans[-1].bit_length()
    assert refused(data, count_bits=bits - 1).code == "TCC407"
    assert compiled(data, count_bits=bits).plans[-1].bit_length() == bits


@pytest.mark.parametrize("sign", [1, -1])
def test_costs_that_leave_64_bits(sign: int) -> None:
    data = core(["repeat", A, 3, 3], size=1, amounts={"cost": [sign * 2**62]})
    diagnostic = refused(data, tilt=0)
    assert diagnostic.code == "TCC405"
    assert "64 bits" in diagnostic.message


def test_residuals_that_leave_64_bits() -> None:
    data = core(["repeat", A, 1, 1], size=1, amounts={"cost": [-(2**61)]})
    assert refused(data, tilt=0).code == "TCC405"
    assert refused(data, beta="1000000000000").code == "TCC405"
    assert compiled(data, beta="0").plans[-1] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"beta": "1e3"},
        {"beta": "-1"},
        {"beta": "01"},
        {"tilt": -1},
        {"tilt": 65},
        {"max_states": 0},
    ],
)
def test_options_out_of_range(options) -> None:
    assert refused(core(A), **options).code == "TCC408"


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[" * 5000, core(A)[:-1], core(A) + b" "])
def test_bytes_that_are_no_core(data: bytes) -> None:
    assert refused(data).code == "TCC409"


def test_the_empty_plan_alone_is_a_language() -> None:
    checked = compiled(core(["empty"]))
    assert (checked.automaton.states, checked.calls, checked.plans[-1]) == (1, (), 1)


@pytest.mark.parametrize(
    ("limit", "figure"), [("", "200000 states"), ("limit depth <= 7000\n", "steps")]
)
def test_counted_repeats_inside_one_another_end_in_a_code(limit: str, figure: str) -> None:
    text = f"tool a\ntool b\nplan = (((a{{9,99}}){{9,99}}){{9,99}}){{9,99}}\n{limit}"
    found = compile_text(HEAD + text, Options(max_states=200_000)).diagnostics
    assert [(d.code, d.span.line if d.span else 0) for d in found] == [("TCC403", 4)]
    assert figure in found[0].message
