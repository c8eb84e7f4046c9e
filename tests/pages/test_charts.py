"""Charts: bounded, the same for the same numbers, and right about the ends."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from tcc.pages import Series, Thinned, bar_chart, line_chart, nice_ticks, plain_number
from tests.pages.reading import read


@given(st.integers(1, 5000), st.integers(2, 50))
def test_thinned_points_are_few_in_order_and_keep_both_ends(total: int, most: int) -> None:
    thinned = Thinned(most)
    for step in range(total):
        thinned.add(step, float(step), str(step))
    steps = [step for step, _, _ in thinned.points]
    assert steps[0] == 0 and steps[-1] == total - 1
    assert steps == sorted(set(steps)) and len(steps) <= most + 1
    assert thinned.seen == total
    assert len(steps) == total or len(steps) > most // 2 - 1


@given(
    st.floats(-1e200, 1e200, allow_nan=False), st.floats(-1e200, 1e200, allow_nan=False)
)  # fmt: skip
def test_ticks_are_within_and_few(one: float, other: float) -> None:
    low, high = sorted((one, other))
    ticks = nice_ticks(low, high)
    assert len(ticks) <= 11 and ticks == sorted(set(ticks))
    assert all(Decimal(repr(low)) <= tick <= Decimal(repr(high)) for tick in ticks)


def test_ticks_are_round() -> None:
    assert [str(tick) for tick in nice_ticks(0.0, 10.0)] == ["0", "2", "4", "6", "8", "10"]
    assert plain_number(Decimal("-25.20")) == "\u221225.2"


@pytest.mark.parametrize("values", [[0.0], [1.0, 1.0], [-1e300, 1e299], [5.0, 4.0, 4.0, -2.5]])
def test_a_line_chart_is_a_picture_within_its_frame(values: list[float]) -> None:
    points = [(step, value, f"<{value}>") for step, value in enumerate(values, 1)]
    made = line_chart([Series(name="<k>", points=points, style="one")], across="pop", label="L")
    found = read(made.encode())
    assert "<k>" in found.text
    for _, name, value in found.attributes:
        if name in ("x1", "x2", "cx", "x"):
            assert 0 <= float(value) <= 760
        if name in ("y1", "y2", "cy", "y"):
            assert 0 <= float(value) <= 280


def test_bars_are_as_high_as_their_numbers() -> None:
    made = bar_chart([("0", 0.0, "a"), ("1", 2.0, "b"), ("2", 4.0, "c")], across="n", label="L")
    heights = [float(v) for tag, name, v in read(made.encode()).attributes
               if (tag, name) == ("rect", "height")]  # fmt: skip
    assert heights[0] == 0.0 and heights[2] == pytest.approx(2 * heights[1], abs=0.2)
