"""Zones with a name: the records of a core agree with `zoneinfo`, which reads the same package."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import tzdata  # type: ignore[import-untyped]
from hypothesis import given, settings, strategies as st

import tcc as library
from tcc.contents import declared_lines
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import decode, encode
from tcc_certs.policy.course import Course
from tcc_certs.policy.meaning import Policy, clock
from tcc_certs.policy.nodes import Apply, Now, Text
from tcc_certs.policy.reader import core_bytes, core_json, read_core
from tcc_certs.values.zones import Zone
from tcc_compiler.names.compile import compile_source
from tcc_compiler.names.zones import recorded_zones, zone_names
from tests.compiler.names.test_messages import shown

EPOCH, SECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1)
START, END = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1980, 2047))
TEXT = """grammar g version "1"
tool a(n: integer 1 .. 9)
before a require hour(now, "Europe/Berlin") in 8 .. 17 and weekday(now, "Europe/Berlin") <= 5
limit depth <= 999
"""


def recorded(name: str) -> Zone:
    zones = recorded_zones([Apply("hour", (Now(), Text(name)))])
    assert zones is not None
    return zones.of[name]


def of_the_library(name: str) -> ZoneInfo:
    """The zone of `zoneinfo`, whatever zones the machine has."""
    with files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def assert_agrees(zone: Zone, library: ZoneInfo, second: int) -> None:
    """Compare hour, weekday and day of a second with `zoneinfo`."""
    local = (EPOCH + second * SECOND).astimezone(library)
    moment = ("t", second * 1000)
    assert clock("hour", moment, zone) == ("n", local.hour), local
    assert clock("weekday", moment, zone) == ("n", local.isoweekday()), local
    kind, start = clock("day", moment, zone)
    assert kind == "t"
    first = (EPOCH + start // 1000 * SECOND).astimezone(library)
    before = (EPOCH + (start // 1000 - 1) * SECOND).astimezone(library)
    assert first.date() == local.date() != before.date()


@settings(max_examples=60)
@given(st.sampled_from(zone_names()), st.integers(START + 172_800, END - 1), st.randoms())
def test_random_times_have_the_hours_and_days_of_zoneinfo(
    name: str, second: int, rng: random.Random
) -> None:
    zone, library = recorded(name), of_the_library(name)
    assert_agrees(zone, library, second)
    change = rng.choice(zone.starts[1:] or zone.starts) // 1000
    for near in (change, change - 1, change + 1, change - 3600, change + 3599, change + 7200):
        if START + 172_800 <= near < END:
            assert_agrees(zone, library, near)


@pytest.mark.parametrize(
    "name",
    ["Africa/Casablanca", "America/Sao_Paulo", "America/St_Johns", "Antarctica/Troll", "Asia/Gaza",
     "Australia/Lord_Howe", "Europe/Berlin", "Pacific/Apia"],
)  # fmt: skip
def test_no_change_of_an_offset_is_missed(name: str) -> None:
    zone, library = recorded(name), of_the_library(name)
    for second in range(START, END, 6 * 3600):
        offset = (EPOCH + second * SECOND).astimezone(library).utcoffset()
        assert offset is not None
        assert zone.local(second * 1000) == (second + offset // SECOND) * 1000


def test_days_around_gaps_and_folds() -> None:
    berlin, azores = recorded("Europe/Berlin"), recorded("Atlantic/Azores")

    def hours(zone: Zone, *texts: str) -> list[object]:
        moments = [int(datetime.fromisoformat(text).timestamp() * 1000) for text in texts]
        return [clock("hour", ("t", ms), zone)[1] for ms in moments]

    gap = "2026-03-29T00:59:59.999Z", "2026-03-29T01:00:00Z"
    fold = "2026-10-25T00:59:59Z", "2026-10-25T01:00:00Z", "2026-10-25T01:59:59Z"
    assert hours(berlin, *gap) == [1, 3]
    assert hours(berlin, *fold) == [2, 2, 2]
    # The clocks of the Azores skip the first hour of this day.
    start = clock(
        "day", ("t", int(datetime(2026, 3, 29, 12, tzinfo=UTC).timestamp() * 1000)), azores
    )
    assert datetime.fromtimestamp(start[1] / 1000, UTC) == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_a_core_has_its_zones_and_their_source() -> None:
    found = compile_source(TEXT + 'before a require day(now, "Asia/Kolkata") > "2026-01-01"\n')
    assert found.core is not None
    zones = core_json(found.core)["zones"]
    assert zones["tzdata"] == tzdata.IANA_VERSION
    year = int(tzdata.IANA_VERSION[:4]) + 21
    assert EPOCH + zones["until"] * SECOND == datetime(year, 1, 1, tzinfo=UTC)
    assert [zone["name"] for zone in zones["of"]] == ["Asia/Kolkata", "Europe/Berlin"]
    assert zones["of"][0]["offsets"] == [[START, 330]]
    assert zones["of"][1]["offsets"][:2] == [[START, 60], [323_830_800, 120]]
    assert read_core(core_bytes(found.core)).zones == found.core.zones


def test_the_zones_of_the_machine_change_no_core(tmp_path: Path) -> None:
    source = tmp_path / "g.tcg"
    source.write_text(TEXT)
    program = (
        "import sys, tcc; from pathlib import Path;"
        "sys.stdout.write(tcc.compile_text(Path(sys.argv[1]).read_text()).digest.hex())"
    )
    digests = set()
    for more in (
        {},
        {"TZ": "Asia/Tokyo"},
        {"PYTHONTZPATH": str(tmp_path)},
        {"PYTHONHASHSEED": "7"},
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, str(source)], env={**os.environ, **more},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        digests.add(done.stdout)
    assert len(digests) == 1 and len(digests.pop()) == 64


@pytest.mark.parametrize(
    ("clause", "code", "hint"),
    [
        ('hour(now, "Europe/Berln") = 3', "TCC205", "did you mean 'Europe/Berlin'?"),
        ('hour(now, "europe/berlin") = 3', "TCC205", "did you mean 'Europe/Berlin'?"),
        ('hour(now, "../zoneinfo/Europe/Berlin") = 3', "TCC205", "+02:00"),
        ('hour(now, "") = 3', "TCC205", "Europe/Berlin"),
        ('hour(now, "UTC+2") = 3', "TCC205", ""),
        ("hour(now, n) = 3", "TCC225", "Europe/Berlin"),
        ('day(now, "Pacific/Apia") = "2011-12-30"', "TCC205", "2026-01-31"),
        ('day(now, "Europe/Berlin") = "2126-01-01"', "TCC205", "2026-01-31"),
        ('day(now, "Europe/Berlin") < "2026-10-25T02:30:00"', "TCC205", "2026-01-31"),
    ],
)
def test_what_is_no_zone_and_no_day_of_one(clause: str, code: str, hint: str) -> None:
    found = compile_source(f"{TEXT}before a require {clause}\n")
    [error] = found.diagnostics
    assert error.code == code and error.span.line == 5
    assert hint in (error.hint or ""), shown(found)


def test_a_day_in_a_zone_is_compared_with_constants_and_dates() -> None:
    text = (
        'grammar g version "1"\ntool a(d: date "+02:00")\n'
        'before a require day(now, "Europe/Berlin") = "2026-07-01"\n'
        'before a require d = day(now, "Europe/Berlin")\n'
        'before a require day(now, "Europe/Berlin") < "2026-10-25T02:30:00Z"\n'
        "limit depth <= 9\n"
    )
    artifact = library.compile_text(text)
    ms = int(datetime(2026, 6, 30, 22, tzinfo=UTC).timestamp() * 1000)
    now = [ms]
    with library.Gate(artifact, durable=False, clock=lambda: now[0]) as gate:
        assert gate.check("a", {"d": "2026-07-01"}).allowed
        assert not gate.check("a", {"d": "2026-07-02"}).allowed
        now[0] = ms + 86_400_000 - 1
        assert gate.check("a", {"d": "2026-07-01"}).allowed
        now[0] += 1
        assert gate.check("a", {"d": "2026-07-01"}).code == "R202"


def test_gate_definition_and_zoneinfo_agree_at_changes() -> None:
    artifact = library.compile_text(TEXT)
    policy, berlin = Policy(artifact.core), of_the_library("Europe/Berlin")
    zone = recorded("Europe/Berlin")
    rng = random.Random(7)
    moments = sorted(rng.randrange(START, END) for _ in range(300))
    moments = sorted(
        [*moments, *[ms // 1000 - 1 for ms in zone.starts[1:]], *[ms // 1000 for ms in zone.starts]]
    )
    now = [0]
    with library.Gate(artifact, durable=False, clock=lambda: now[0]) as gate:
        course = Course(policy, {}, indexed=True)
        for second in moments:
            now[0] = second * 1000
            local = (EPOCH + second * SECOND).astimezone(berlin)
            expected = local.hour in range(8, 18) and local.isoweekday() <= 5
            assert gate.check("a", {"n": 1}).allowed is expected, local
            assert (course.check("a", {"n": 1}, now[0]) == []) is expected, local
        for late in (END * 1000, END * 1000 + 8 * 3_600_000):  # unknown: refused
            now[0] = late
            assert not gate.check("a", {"n": 1}).allowed


def test_a_validator_decides_by_the_record_and_listings_show_it(tmp_path: Path) -> None:
    artifact = library.compile_text(TEXT)
    saved, ledger = tmp_path / "g.tcca", tmp_path / "g.ledger"
    library.save(artifact, saved)
    change = int(datetime(2026, 3, 29, 1, tzinfo=UTC).timestamp() * 1000)  # a Sunday
    hour = 3_600_000
    monday = change + 29 * hour  # 08:00 in Berlin, and 07:00 before the change
    now = [monday - 1]
    with library.Gate(artifact, ledger=ledger, clock=lambda: now[0]) as gate:
        for now[0], allowed in ((monday - 1, False), (monday, True), (monday + 10 * hour, False)):
            assert gate.check("a", {"n": 1}).allowed is allowed
            if allowed:
                with gate.call("a", {"n": 1}) as permit:
                    permit.done({})
        gate.finish()
    assert library.validate(ledger, saved).claim_type == "Conformant"
    assert declared_lines(artifact.core, False)[-2:] == [
        "zones:", f"  Europe/Berlin (tzdata {tzdata.IANA_VERSION}, until 2047-01-01)",
    ]  # fmt: skip


# The changed member of `zones`, its new value, the code and the place.
BAD = {
    "no version": ("tzdata", "latest", "C801", "/zones/tzdata"),
    "no zones": ("of", [], "C801", "/zones/of"),
    "an end before the start": ("until", START, "C801", "/zones/of/0/offsets"),
    "an end of another type": ("until", "1", "C801", "/zones/until"),
    "an offset": ("name", "+01:00", "C801", "/zones/of/0/name"),
    "no name": ("name", "a b", "C801", "/zones/of/0/name"),
    "another zone": ("name", "Europe/Paris", "C801", "/statements/0/then/1/2/3"),
    "no offsets": ("offsets", [], "C801", "/zones/of/0/offsets"),
    "a day": ("offsets", [[START, 1440]], "C801", "/zones/of/0/offsets/0/1"),
    "a flag": ("offsets", [[START, True]], "C801", "/zones/of/0/offsets/0/1"),
    "three": ("offsets", [[START, 60, 1]], "C801", "/zones/of/0/offsets/0"),
    "no rise": ("offsets", [[START, 60], [START, 0]], "C801", "/zones/of/0/offsets/1/0"),
    "no change": ("offsets", [[START, 60], [START + 9, 60]], "C801", "/zones/of/0/offsets/1/1"),
    "many": ("offsets", [[at, at % 2] for at in range(1025)], "D201", "/zones/of/0/offsets"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_core_with_a_wrong_record_is_refused(name: str) -> None:
    member, value, code, place = BAD[name]
    found = compile_source(TEXT)
    assert found.core is not None
    document = decode(core_bytes(found.core), "core")
    of = document["zones"] if member in document["zones"] else document["zones"]["of"][0]
    of[member] = value
    with pytest.raises(Rejected) as refused:
        read_core(encode(document))
    assert refused.value.code == code
    assert refused.value.path == place


def test_a_record_that_no_statement_uses_is_refused() -> None:
    found = compile_source(TEXT)
    assert found.core is not None
    document = decode(core_bytes(found.core), "core")
    document["statements"] = []
    with pytest.raises(Rejected) as refused:
        read_core(encode(document))
    assert (refused.value.code, refused.value.path) == ("C801", "/zones/of")
