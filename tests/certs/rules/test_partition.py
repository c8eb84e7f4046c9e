"""C1: C101 .. C104."""

import pytest

from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.examples import example


def test_rejects_rows_that_do_not_start_at_zero() -> None:
    assert refusal(Forge(example()).set("edge_start", 0, 1)) == ("C104", "edge_start[0]")


def test_rejects_rows_that_do_not_end_at_the_last_edge() -> None:
    forge = Forge(example())
    starts = forge.values("edge_start")
    last = len(starts) - 1
    assert refusal(forge.set("edge_start", last, starts[-1] + 1)) == ("C104", f"edge_start[{last}]")


def test_rejects_an_edge_that_no_row_has() -> None:
    forge = Forge(example())
    last = len(forge.values("edge_start")) - 1
    for name in ("edge_call", "edge_target"):
        forge.put(name, [*forge.values(name), 0])
    forge.member("edges", value=len(forge.values("edge_call")))
    assert refusal(forge) == ("C104", f"edge_start[{last}]")


def test_rejects_rows_that_fall() -> None:
    forge = Forge(example())
    starts = forge.values("edge_start")
    starts[3] = starts[2] - 1
    assert refusal(forge.put("edge_start", starts)) == ("C104", "edge_start[3]")


def test_rejects_a_row_far_beyond_the_edges() -> None:
    forge = Forge(example())
    starts = forge.values("edge_start")
    forge.put("edge_start", [starts[0], *[(1 << 64) - 1] * (len(starts) - 1)])
    assert refusal(forge) == ("C104", "edge_start[1]")


@pytest.mark.parametrize("at", [0, -1])
def test_rejects_a_call_out_of_range(at: int) -> None:
    forge = Forge(example())
    place = at % len(forge.values("edge_call"))
    assert refusal(forge.set("edge_call", at, 4)) == ("C101", f"edge_call[{place}]")


def test_rejects_a_call_twice_in_one_state() -> None:
    forge = Forge(example())
    calls = forge.values("edge_call")
    last = len(calls) - 1
    assert refusal(forge.set("edge_call", last, calls[-2])) == ("C102", f"edge_call[{last}]")


def test_rejects_calls_that_fall_in_the_first_state_with_edges() -> None:
    forge = Forge(example())
    starts, calls = forge.values("edge_start"), forge.values("edge_call")
    state = next(q for q in range(len(starts) - 1) if starts[q + 1] - starts[q] > 1)
    at = starts[state]
    calls[at : at + 2] = calls[at : at + 2][::-1]
    assert refusal(forge.put("edge_call", calls)) == ("C102", f"edge_call[{at + 1}]")


@pytest.mark.parametrize("at", [0, -1])
def test_rejects_acceptance_that_is_no_bit(at: int) -> None:
    forge = Forge(example())
    place = at % len(forge.values("accept"))
    assert refusal(forge.set("accept", at, 2)) == ("C103", f"accept[{place}]")
