"""Forgeries that go through a whole run: what follows the lie is made consistent with it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from tcc_certs.errors import Code
from tcc_certs.replay import validate
from tests.oracle_ledger.artifacts import relaxed, small, tiny
from tests.oracle_ledger.brute import Masses
from tests.oracle_ledger.writer import Plan, Reference, chained, reference_records, with_run_id

CLAIMS = ["NoCert", "TruncationOnly", "RunWiseSurrogate", "RunWiseExact"]


def codes(records: list[dict[str, Any]], artifact) -> list[str]:
    """The codes by which the ledger of `records` is refused."""
    found = validate(chained(records), artifact)
    assert found.verdict == 1
    assert not found.claim_upheld
    return [finding.code.value for finding in found.findings]


CLAIMANTS = {
    "capped": (small(), {"max_expansions": 2}),
    "capped surrogate": (relaxed(), {"max_expansions": 2}),
    "fallback": (relaxed(), {"mode": "fallback"}),
    "literal": (relaxed(0), {"race": "literal", "keys": "anchored"}),
    "down": (tiny(), {"count_bits": 3}),
    "down, cut": (tiny(), {"count_bits": 3, "truncate": 1}),
    "steep": (tiny(), {"alpha": "3", "top": 7}),
    "truncated": (tiny(), {"truncate": 1}),
    "truncated surrogate": (relaxed(), {"truncate": 2}),
    "relaxed": (relaxed(), {}),
    "sets": (relaxed(8, 5), {"keys": "anchored"}),
    "inflated": (tiny(), {"mode": "surrogate", "inflate": "2"}),
}


@pytest.mark.parametrize("name", CLAIMANTS)
def test_a_claim_cannot_be_raised_by_any_level(name):
    artifact, told = CLAIMANTS[name]
    records = reference_records(artifact, **told)
    level = CLAIMS.index(records[-1]["claim_type"])
    tried = 0
    for claim in CLAIMS[level + 1 :]:
        raised = [*records[:-1], {**records[-1], "claim_type": claim}]
        assert codes(raised, artifact) == ["L609"]
        for mode in ("exact", "surrogate", "fallback"):
            head = with_run_id({**records[0], "claim_type": claim, "mode": mode})
            if head == records[0]:
                continue
            assert codes([head, *raised[1:]], artifact)
            tried += 1
    assert tried or level == 3
    print(f"{name}: {tried} raised claims, 0 survivors")


def test_a_run_that_claims_nothing_cannot_end_with_a_claim():
    records = reference_records(tiny(), silent=True)
    assert records[-1]["stop"] == "bound"
    for claim in CLAIMS[1:]:
        assert codes([*records[:-1], {**records[-1], "claim_type": claim}], tiny()) == ["L609"]


@pytest.mark.parametrize("keys", ["finalized", "anchored"])
@pytest.mark.parametrize("split", [None, 5])
def test_a_forbidden_child_cannot_be_pushed(keys, split):
    artifact = relaxed(8, split)
    honest = reference_records(artifact, keys=keys, top=50)
    forged = reference_records(artifact, keys=keys, top=50, allow_all=True)
    assert len(forged) > len(honest)
    assert codes(forged, artifact)[-1] in ("L602", "L104")


@pytest.mark.parametrize("keys", ["finalized", "anchored"])
@pytest.mark.parametrize("inflate", ["1", "9"])
def test_a_phantom_s_win_cannot_be_given_to_a_child(keys, inflate):
    class Forger(Reference):
        def draw_winner(self, item, children, allowed, record) -> int | None:
            won = super().draw_winner(item, children, allowed, record)
            if won is None and any(allowed):
                won = allowed.index(True)
                record["winner"] = str(won)
            return won

    tried = 0
    for salt in range(12):
        plan = Plan(seed=bytes([salt] * 32), mode="surrogate", keys=keys, inflate=inflate, top=3)
        for artifact in (relaxed(), relaxed(8, 5)):
            honest, forged = Reference(artifact, plan).run(), Forger(artifact, plan).run()
            if honest != forged:
                assert codes(forged, artifact)[0] in ("L502", "L103")
                tried += 1
    assert tried > 5
    print(f"{tried} phantoms replaced, 0 survivors")


def test_another_child_cannot_be_made_the_winner():
    class Forger(Reference):
        def draw_winner(self, item, children, allowed, record) -> int | None:
            won = super().draw_winner(item, children, allowed, record)
            places = [place for place, may in enumerate(allowed) if may]
            if places:
                won = places[0] if won != places[0] else places[-1]
                record["winner"] = str(won)
            return won

    for keys in ("finalized", "anchored"):
        forged = Forger(small(), Plan(keys=keys)).run()
        assert codes(forged, small())[0] == "L502"


@pytest.mark.parametrize("purpose", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize(
    "told",
    [
        {"mode": "exact"},
        {"mode": "exact", "keys": "anchored"},
        {"mode": "surrogate", "race": "literal", "keys": "anchored"},
        {"mode": "fallback"},
        {"count_bits": 2, "top": 2},
        {"race": "rest", "top": 3},
        {"race": "rest", "mode": "surrogate", "inflate": "3"},
        {"race": "rest", "count_bits": 9, "top": 3},
    ],
    ids=str,
)
def test_a_uniform_cannot_be_chosen_however_consistently(purpose, told):
    class Forger(Reference):
        def word(self, of: int, digest: bytes) -> int:
            drawn = super().word(of, digest)
            return drawn if of != purpose else drawn ^ 1 << 63

    artifact = small(0)
    honest, forged = Reference(artifact, Plan(**told)).run(), Forger(artifact, Plan(**told)).run()
    if honest == forged:
        return  # a race that draws nothing for this purpose
    first = codes(forged, artifact)[0]
    # After a downgrade the uniform of a leaf stands in no record of its own: its value tells.
    assert first in ("L501", "L505", "L601", "L606")


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_downgrade_cannot_be_left_out_put_in_or_changed(race):
    records = reference_records(tiny(), count_bits=9, top=2, race=race)
    down = records[1]
    assert down["kind"] == "downgrade"
    assert codes([records[0], *records[2:]], tiny()) == ["L604"]
    for other in range(2, len(records)):
        kept = [r for r in records if r is not down]
        kept.insert(other, down)
        assert codes(kept, tiny()) == ["L604"]
        doubled = [*records[:other], down, *records[other:]]
        assert codes(doubled, tiny())[0] in ("L602", "L604")
    for name, value, code in (
        ("mode", "fallback", "L604"),
        ("mode", "exact", "L604"),
        ("claim_type", "RunWiseExact", "L609"),
        ("claim_type", "NoCert", "L609"),
        ("guards", ["BudgetFail"], "L604"),
        ("guards", ["CountFail", "NumClamp"], "L604"),
    ):
        forged = [records[0], {**down, name: value}, *records[2:]]
        assert codes(forged, tiny()) == [code]
    raised = [*records[:-1], {**records[-1], "claim_type": "RunWiseExact"}]
    assert codes(raised, tiny()) == ["L609"]
    early = [records[0], {**records[-1], "stop": "precision"}]
    assert codes(early, tiny())[0] == "L604"


class OneOff(Reference):
    """Counts that are not the least numbers of that many bits."""

    off = 1

    def __init__(self, artifact, plan):
        super().__init__(artifact, plan)
        masses = self.masses
        root = masses.root[0]
        masses.rate[root] += Fraction(self.off, masses.unit[root])


class RoundedDown(Reference):
    """Counts of the exact recurrence, cut off where they had to be rounded up."""

    def __init__(self, artifact, plan):
        super().__init__(artifact, plan)
        masses, exact = self.masses, Masses(artifact)
        for q, rate in enumerate(exact.rate):
            number = int(rate * exact.unit[q])
            drop = max(0, number.bit_length() - plan.count_bits)
            masses.rate[q] = Fraction(number >> drop << drop, exact.unit[q])


class MoreBits(Reference):
    """Counts rounded to more bits than the header says."""

    def __init__(self, artifact, plan):
        super().__init__(artifact, plan)
        self.masses = Masses(artifact, plan.inflate, plan.count_bits + 1)


class Exactly(Reference):
    """The race of the exact counts, under the name of the rounded ones."""

    def __init__(self, artifact, plan):
        super().__init__(artifact, plan)
        self.masses = Masses(artifact, plan.inflate)


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("forger", [OneOff, RoundedDown, MoreBits, Exactly])
def test_rounded_counts_are_the_validators_own(forger, race):
    plan = Plan(count_bits=5, top=2, race=race)
    assert Reference(small(), plan).run() != (forged := forger(small(), plan).run())
    assert set(codes(forged, small())) & {"L502", "L503", "L608", "L601"}


def test_count_bits_cannot_be_understated_or_overstated():
    records = reference_records(small(), count_bits=5, top=2)
    for bits in (1, 63, 0):
        forged = [with_run_id({**records[0], "count_bits": bits}), *records[1:]]
        assert codes(forged, small())[0] in ("L503", "L504", "L602", "L604")


def test_a_run_that_goes_on_with_counts_too_wide_is_refused():
    wide = reference_records(tiny())
    forged = [with_run_id({**wide[0], "count_bits": 9}), *wide[1:]]
    assert codes(forged, tiny()) == ["L604"]


def test_a_downgrade_that_no_guard_asks_for_is_refused():
    down = {
        "kind": "downgrade", "mode": "fallback", "claim_type": "NoCert", "guards": ["CountFail"],
    }  # fmt: skip
    for told in ({}, {"mode": "fallback"}, {"mode": "surrogate", "keys": "anchored"}):
        records = reference_records(tiny(), **told)
        for at in range(1, len(records) + 1):
            forged = [*records[:at], down, *records[at:]]
            assert set(codes(forged, tiny())) & {"L604", "L602", "L104"}


@pytest.mark.parametrize("mode", ["exact", "surrogate"])
def test_a_tail_cannot_be_lowered_raised_or_left_out(mode):
    records = reference_records(small(), mode=mode, truncate=1)
    tail = records[-1]["tail_lse"]
    last = tail[:-1] + ("1" if tail[-1] == "0" else "0")
    for value in (last, "0.00000000000000000000", "-9.50000000000000000000", f"9{tail}"):
        found = codes([*records[:-1], {**records[-1], "tail_lse": value}], small())
        assert set(found) <= {"L611", "L103"}
    bare = {name: value for name, value in records[-1].items() if name != "tail_lse"}
    assert codes([*records[:-1], bare], small()) == ["L103"]


def test_a_cut_cannot_be_hidden():
    records = reference_records(tiny(), truncate=1, top=3)
    head = with_run_id({**records[0], "truncate": 2, "claim_type": "RunWiseExact"})
    close = {name: value for name, value in records[-1].items() if name != "tail_lse"}
    whole = [head, *records[1:-1], {**close, "claim_type": "RunWiseExact"}]
    assert codes(whole, tiny())


def test_modes_and_keys_of_two_runs_cannot_be_swapped():
    told = [
        {"mode": "surrogate"},
        {"mode": "surrogate", "keys": "anchored"},
        {"mode": "surrogate", "inflate": "2"},
        {"mode": "surrogate", "race": "literal", "keys": "anchored"},
        {"mode": "fallback"},
        {"mode": "fallback", "tau": "2"},
    ]
    ledgers = [reference_records(relaxed(0), **one) for one in told]
    for head in ledgers:
        for body in ledgers:
            if head is not body:
                assert codes([head[0], *body[1:]], relaxed(0))


def test_sets_of_states_cannot_be_changed():
    artifact = relaxed(8, 5)
    records = reference_records(artifact, top=9)
    wide = [r for r in records if len(r.get("state", [])) > 1]
    assert wide
    for record in wide:
        at = records.index(record)
        for states in (record["state"][:1], record["state"][1:], record["state"][0]):
            forged = [*records[:at], {**record, "state": states}, *records[at + 1 :]]
            found = validate(chained(forged), artifact)
            assert [f.code for f in found.findings] == [Code.NODE_FIELD]
