"""The member `zones` of a core: named time zones with the offsets that statements use.

Normative text: docs/spec/core.md, section 1.  Cost: linear in the offsets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json
from tcc_certs.formats.schema import Known, Table, row
from tcc_certs.values.fields import zone_of
from tcc_certs.values.zones import MAX_OFFSETS, MAX_ZONES, Zone, Zones

_BEHIND_SECONDS = 253_402_300_800  # the first second of the year 10000
_DAY_MINUTES = 24 * 60


def read_zones(value: Json, path: str, code: Code, known: Known) -> Zones:
    """Return the zones of a core.

    Raises:
        Rejected: `code`: the member is not well formed; D201: it has too many zones or offsets.
    """
    found = schema.read(_ZONES, value, path, code, known)
    zones = found["of"]
    ensure(len(zones) <= MAX_ZONES, Code.LIMIT, f"{path}.of", f"at most {MAX_ZONES}", len(zones))
    until = found["until"] * 1000
    for i, (_, offsets) in enumerate(zones):
        last, place = offsets[-1][0], f"{path}.of[{i}].offsets"
        ensure(last < until, code, place, "starts before `until`", last // 1000)
    of: dict[str, Zone] = {}
    for name, offsets in zones:
        starts, minutes = zip(*offsets, strict=True)
        of[name] = Zone(name, starts, minutes, until)
    return Zones(version=found["tzdata"], until=until, of=of)


def zones_json(zones: Zones) -> Mapping[str, Json]:
    """Return the JSON object of zones, which :func:`read_zones` reads."""
    of: list[Json] = []
    for zone in zones.of.values():
        pairs = zip(zone.starts, zone.offsets, strict=True)
        offsets: list[Json] = [[start // 1000, offset // 60_000] for start, offset in pairs]
        of.append({"name": zone.name, "offsets": offsets})
    return {"tzdata": zones.version, "until": zones.until // 1000, "of": of}


def _version(value: Json, path: str, code: Code, _: Known) -> str:
    text = schema.as_text(value, path, code)
    sound = re.fullmatch("[0-9]{4}[a-z]{1,2}", text, re.ASCII) is not None
    ensure(sound, code, path, "a version such as 2026a", text)
    return text


def _name(value: Json, path: str, code: Code, _: Known) -> str:
    text = schema.as_text(value, path, code)
    sound = re.fullmatch("[A-Za-z0-9_+/-]{1,64}", text, re.ASCII) is not None
    ensure(sound and zone_of(text) is None, code, path, "the name of a zone", text)
    return text


def _second(value: Json, path: str, code: Code, _: Known) -> int:
    return schema.as_whole(value, path, code, _BEHIND_SECONDS)


def _offsets(value: Json, path: str, code: Code, known: Known) -> Sequence[tuple[int, int]]:
    """Read pairs of a start and an offset, both in milliseconds."""
    items = schema.as_list(value, path, code, 1)
    ensure(len(items) <= MAX_OFFSETS, Code.LIMIT, path, f"at most {MAX_OFFSETS}", len(items))
    found: list[tuple[int, int]] = []
    for i, item in enumerate(items):
        place = f"{path}[{i}]"
        pair = schema.as_list(item, place, code, 2)
        ensure(len(pair) == 2, code, place, "a second and an offset in minutes", len(pair))
        start = _second(pair[0], f"{place}[0]", code, known) * 1000
        minutes = pair[1]
        if type(minutes) is not int or abs(minutes) >= _DAY_MINUTES:
            raise Rejected(code, f"{place}[1]", "minutes of less than a day", minutes)
        if found:
            ensure(start > found[-1][0], code, f"{place}[0]", "a later second", start // 1000)
            ensure(minutes * 60_000 != found[-1][1], code, f"{place}[1]", "a change", minutes)
        found.append((start, minutes * 60_000))
    return found


def _zone(
    value: Json, path: str, code: Code, known: Known
) -> tuple[str, Sequence[tuple[int, int]]]:
    found = schema.read(_ZONE, value, path, code, known)
    return found["name"], found["offsets"]


_ZONE: Table = (row("name", _name), row("offsets", _offsets))
_ZONES: Table = (
    row("tzdata", _version),
    row("until", _second),
    row("of", schema.listed(_zone, 1, rises=lambda zone: zone[0])),
)
