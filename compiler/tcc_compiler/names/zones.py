"""Named time zones, read from the package `tzdata`, in the form in which a core records them.

A core has the offsets from 1980 to the end of the 20th year after the version of tzdata. So a core
depends only on the grammar and on this version, which the core names. The zones of the machine are
never read. Before 1973 some offsets had seconds, which a core cannot record.
Cost: 8,000 lookups, about 5 ms, for the first use of each zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from tcc_certs.policy import nodes as n
from tcc_certs.values.zones import Zone, Zones

_FIRST_YEAR = 1980
_YEARS_AHEAD = 20
_STEP = 3 * 86_400


def recorded_zones(roots: Iterable[n.Node]) -> Zones | None:
    """Return the zones that clock functions in these nodes name; None if there are none.

    Names that tzdata does not have are left out.
    """
    names = sorted(n.zone_names(roots))
    known = set(zone_names()) if names else set()
    of = {name: _zone(name) for name in names if name in known}
    if not of:
        return None
    return Zones(version=_version(), until=_until() * 1000, of=of)


@cache
def zone_names() -> Sequence[str]:
    """Return the names of all zones, in the order of the package."""
    return tuple(files("tzdata").joinpath("zones").read_text("utf-8").split())


@cache
def _version() -> str:
    with files("tzdata").joinpath("zoneinfo", "tzdata.zi").open("r", encoding="utf-8") as file:
        return file.readline().removeprefix("# version ").strip()


@cache
def _until() -> int:
    return _seconds(int(_version()[:4]) + _YEARS_AHEAD + 1)


def _seconds(year: int) -> int:
    """Return the Unix time at which a year begins in UTC."""
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


@cache
def _zone(name: str) -> Zone:
    """Return the record of a zone.

    Offsets are compared in steps of three days, and each change is found by bisection. In tzdata
    two changes of a zone are at least six days apart.
    """
    with files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
        zone = ZoneInfo.from_file(file, key=name)
    second = timedelta(seconds=1)

    def offset(at: int) -> int:
        local = datetime.fromtimestamp(at, zone)
        return (local.replace(tzinfo=UTC) - datetime.fromtimestamp(at, UTC)) // second

    start, end = _seconds(_FIRST_YEAR), _until()
    starts, offsets = [start], [offset(start)]
    for high in range(start + _STEP, end + _STEP, _STEP):
        if offset(high) == offsets[-1]:
            continue
        low = high - _STEP  # `low` is before the change, `high` is after it
        while high - low > 1:
            middle = (low + high) // 2
            if offset(middle) == offsets[-1]:
                low = middle
            else:
                high = middle
        if high < end:
            starts.append(high)
            offsets.append(offset(high))
    rows = [tuple([1000 * one for one in part]) for part in (starts, offsets)]
    return Zone(name, rows[0], rows[1], end * 1000)
