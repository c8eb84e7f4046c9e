"""A rule that has a quick way says what it says without it: valid, or the same code and place."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tcc_certs import kernel
from tcc_certs.errors import Rejected
from tcc_certs.rules import partition
from tcc_certs.rules.race_counts import OneScale
from tests.forgery.artifacts import column_mutants
from tests.forgery.test_artifact_forgeries import KINDS


def verdict(data: bytes) -> tuple[str, ...]:
    try:
        kernel.check(data)
    except Rejected as refusal:
        return refusal.code.value, refusal.path, refusal.expected, refusal.found
    return ("VALID",)


# The room, the name, and what takes its place.
WAYS: dict[str, tuple[Any, str, Any]] = {
    "race counts at one scale": (OneScale, "holds", lambda *_: False),
    "no scale for race counts": (kernel, "OneScale", lambda *_: None),
    "calls side by side": (partition, "_increase", lambda _: False),
    "greatest targets": (kernel, "rises", lambda _: False),
    "views of columns": (kernel, "_LISTED", 0),
}


def some(kind: str) -> list[bytes]:
    """The artifact of a kind and some of its mutants, those of what quick ways read above all."""
    rng = random.Random(kind)
    mutants = list(column_mutants(KINDS[kind]))
    near = [m for m in mutants if m.field in ("race_count", "plans", "rank", "edge_call")]
    return [KINDS[kind]] + [m.data for m in [*rng.sample(mutants, 15), *rng.sample(near, 25)]]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_findings_without_a_quick_way_are_the_same(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = some(kind)
    due = [verdict(each) for each in data]
    assert due[0] == ("VALID",)
    for room, name, other in WAYS.values():
        with monkeypatch.context() as patched:
            patched.setattr(room, name, other)
            assert [verdict(each) for each in data] == due, name


@pytest.mark.parametrize("kind", ["exact", "without weights"])
def test_the_quick_ways_show_what_is_valid(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "check_race_counts", lambda *_: pytest.fail("the slow way"))
    monkeypatch.setattr(partition, "ge", lambda *_: pytest.fail("the slow way"))
    assert verdict(KINDS[kind]) == ("VALID",)
