"""Zones: local times, and starts of days, compared with a search of every quarter of an hour."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tcc_certs.policy.meaning import clock
from tcc_certs.values.places import UNKNOWN
from tcc_certs.values.zones import DAY, Zone

MINUTE = 60_000
FIRST, UNTIL = 10 * DAY, 16 * DAY
MINUTES = st.integers(FIRST // MINUTE, UNTIL // MINUTE - 1)
# All offsets are quarters of an hour, up to a day in both directions.
OFFSETS = st.integers(-95, 95).map(lambda quarters: quarters * 15 * MINUTE)


@st.composite
def drawn_zones(draw: st.DrawFn) -> Zone:
    starts = sorted(draw(st.sets(st.integers(1, 6 * 96 - 1), max_size=4)))
    offsets = [draw(OFFSETS)]
    kept = [FIRST]
    for start in starts:
        offset = draw(OFFSETS)
        if offset != offsets[-1]:
            kept.append(FIRST + start * 15 * MINUTE)
            offsets.append(offset)
    return Zone("Z", tuple(kept), tuple(offsets), UNTIL)


def shown(zone: Zone, ms: int) -> int:
    """The local time of a zone, by trying each record from the last one."""
    return next(
        ms + offset
        for start, offset in reversed([*zip(zone.starts, zone.offsets, strict=True)])
        if start <= ms
    )


@given(drawn_zones(), MINUTES)
def test_a_day_starts_when_its_clocks_first_show_it(zone: Zone, minute: int) -> None:
    ms = minute * MINUTE
    local = shown(zone, ms)
    assert zone.local(ms) == local
    day = local // DAY
    shows = [at for at in range(FIRST, UNTIL, 15 * MINUTE) if shown(zone, at) // DAY == day]
    begins = shows[0] if shows[0] > FIRST or shown(zone, FIRST) % DAY == 0 else None
    assert zone.day_start(day) == begins
    expected = UNKNOWN if begins is None else ("t", begins)
    assert clock("day", ("t", ms), zone) == expected
    assert clock("hour", ("t", ms), zone) == ("n", local % DAY // 3_600_000)
    assert clock("weekday", ("t", ms), zone) == ("n", (local // DAY + 3) % 7 + 1)


@pytest.mark.parametrize("ms", [FIRST - 1, UNTIL, -1, 1 << 60])
def test_times_outside_of_the_record_are_unknown(ms: int) -> None:
    zone = Zone("Z", (FIRST,), (3_600_000,), UNTIL)
    for function in ("hour", "weekday", "day"):
        assert clock(function, ("t", ms), zone) == UNKNOWN
        assert clock(function, ("t", FIRST + DAY), zone) != UNKNOWN
        assert clock(function, ("n", FIRST + DAY), zone) == UNKNOWN


def test_a_day_that_the_clocks_skip_has_no_start() -> None:
    change = 11 * DAY + DAY // 2  # the clocks go from the end of day 10 to the start of day 12
    zone = Zone("Z", (FIRST, change), (-12 * 3_600_000, 12 * 3_600_000), UNTIL)
    assert zone.day_start(11) is None
    assert zone.day_start(10) == 10 * DAY + DAY // 2
    assert zone.day_start(12) == change
    assert clock("day", ("t", change - 1), zone) == ("t", 10 * DAY + DAY // 2)
