"""Records of one zone from two versions of tzdata: what `tcc diff` and `tcc prove` say of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcc_certs.policy.core import Core
from tcc_certs.proof.implication import difference
from tcc_certs.values.zones import Zone, Zones
from tcc_compiler.names.compile import compile_source
from tcc_runtime.analysis.gate_changes import statement_changes

TEXT = """grammar g version "1"
tool a
before a require hour(now, "Europe/Berlin") < 20
limit depth <= 9
"""


def core_with(zone: Zone, version: str = "2026b") -> Core:
    found = compile_source(TEXT).core
    assert found is not None
    return replace(found, zones=Zones(version=version, until=zone.until, of={zone.name: zone}))


OLD = Zone("Europe/Berlin", (0, 1000), (60_000, 0), 10_000)


@pytest.mark.parametrize(
    ("zone", "sense"),
    [
        (replace(OLD, starts=(0, 2000)), "incomparable"),
        (replace(OLD, until=20_000), "wider"),
        (replace(OLD, until=20_000, starts=(0, 1000, 15_000), offsets=(60_000, 0, 9)), "wider"),
        (replace(OLD, until=5_000), "narrower"),
    ],
)
def test_changed_records_of_a_zone_have_a_sense(zone: Zone, sense: str) -> None:
    old, new = core_with(OLD, "2026a"), core_with(zone)
    [change] = statement_changes(old, new)
    assert (change.of, change.name, change.sense) == ("zones", "Europe/Berlin", sense)
    assert change.old == "Europe/Berlin (tzdata 2026a, until 1970-01-01)"
    assert difference(old, new) == "record of the zone Europe/Berlin"


def test_records_that_differ_in_the_version_only_change_nothing() -> None:
    old, new = core_with(OLD, "2026a"), core_with(OLD)
    assert statement_changes(old, new) == [] and difference(old, new) == ""
