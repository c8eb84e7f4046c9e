"""What a ledger says of an account is held to the run: each rule of section 14, broken alone."""

from __future__ import annotations

import random

import pytest

from tcc_certs.replay import validate
from tests.forgery.mutants import Records
from tests.forgery.test_range_forgeries import MODELS, SEED, forged_run, honest, ranges
from tests.oracle_ledger.writer import chained, with_run_id
from tests.runtime.ranged import Unreliable


def at(records: Records, event: str, which: int = 0) -> int:
    """The place of a `budget` record of that event, or of a `refine`."""
    found = [i for i, r in enumerate(records) if event in (r.get("budget_event"), r["kind"])]
    return found[which]


def findings(name: str, place: int, **changes: object) -> set[tuple[str, str]]:
    """Code and field of all that is found in a forged ledger, sealed again."""
    checked, _, records = forged_run(name)
    forged = [dict(record) for record in records]
    forged[place] |= changes
    forged[place] = {k: v for k, v in forged[place].items() if v is not None}
    if place == 0:
        forged[0] = with_run_id(forged[0])
    found = validate(chained(forged), checked)
    assert found.verdict == 1
    return {(finding.code.value, finding.field) for finding in found.findings}


LEFT = {("L709", "account_left")}
RECORDS = forged_run("account refuses")[2]
RESERVED, REFUSED, ANSWERED = (at(RECORDS, e) for e in ("reserve", "refused", "refine"))


def test_the_honest_run_reserves_is_refused_and_is_answered():
    checked, _, records = forged_run("account refuses")
    assert validate(chained(records), checked).verdict == 0
    assert records[0]["account"] == {"id": "0c" * 32, "price": 7}


@pytest.mark.parametrize(
    ("place", "price"),
    [
        (RESERVED, "8"),  # more than the cap
        (RESERVED, "-1"),  # granted, and overdrawn by it
        (REFUSED, "999"),
        (REFUSED, "3"),  # refused, though that much was left
        (ANSWERED, "8"),
        (at(RECORDS, "refine", -1), "7"),  # as though the run had drawn nothing
        (at(RECORDS, "reserve", -1), "7"),
    ],
)
def test_what_is_said_to_be_left_follows_from_what_the_run_has_drawn(place, price):
    assert findings("account refuses", place, account_left={"price": price}) == LEFT


def test_a_model_is_not_refused_where_the_account_has_enough_for_it():
    prices = {model["name"]: model["price"] for model in MODELS}
    most = 7 - int(RECORDS[REFUSED]["price_spent"])  # as though nobody else had drawn
    assert prices[RECORDS[REFUSED]["model_id"]] <= most
    assert findings("account refuses", REFUSED, account_left={"price": str(most)}) == LEFT
    checked, _, records = forged_run("account refuses")
    forged = [dict(record) for record in records]
    forged[REFUSED]["account_left"] = {"price": str(most)}
    (found,) = validate(chained(forged), checked).findings
    assert found.expected == "too little for it"


def test_a_model_is_not_refused_where_just_enough_is_left():
    price = {model["name"]: model["price"] for model in MODELS}[RECORDS[REFUSED]["model_id"]]
    assert findings("account refuses", REFUSED, account_left={"price": str(price)}) == LEFT
    checked, _, records = forged_run("account refuses")
    less = [*records[:REFUSED], {**records[REFUSED], "account_left": {"price": str(price - 1)}}]
    found = validate(chained(less), checked).findings
    assert [finding.code.value for finding in found] == ["D301"]  # it is as good up to there


@pytest.mark.parametrize("name", ["price", "latency_ms", "epsilon"])
def test_each_cap_of_an_account_is_held_to_what_was_drawn_of_it(name):
    most = {"price": 40, "latency_ms": 4000, "epsilon": "0.5"}[name]
    data, checked = ranges()
    told = {"seed": SEED, "top": 4, "account": {name: most}}
    records = honest(data, told, Unreliable(random.Random(name)))
    assert validate(chained(records), checked).verdict == 0
    assert records[0]["account"] == {"id": "0c" * 32, name: most}
    for event in ("reserve", "refine"):
        place = at(records, event, -1)
        left = records[place]["account_left"]
        for text in ("9" * 9, "-1") if event == "reserve" else ("9" * 9,):
            forged = [*records[:place], {**records[place], "account_left": {name: text}}]
            found = validate(chained(forged), checked).findings[0]
            assert (found.code.value, found.line, found.field) == (
                "L709", place + 1, "account_left",
            )  # fmt: skip
        assert left.keys() == {name}


def test_an_epsilon_of_an_account_has_nine_places_at_most():
    data, checked = ranges()
    told = {"seed": SEED, "top": 4, "account": {"epsilon": "0.5"}}
    records = honest(data, told, Unreliable(random.Random(1)))
    head = with_run_id({**records[0], "account": {"id": "0c" * 32, "epsilon": "0.5000000001"}})
    place = at(records, "reserve")
    left = {**records[place], "account_left": {"epsilon": "0.1000000001"}}
    for line, forged in ((1, [head, *records[1:]]), (place + 1, [*records[:place], left])):
        found = validate(chained(forged), checked).findings[0]
        assert (found.code.value, found.line, found.field) == ("L103", line, "epsilon")


@pytest.mark.parametrize("left", [{}, {"price": "1", "epsilon": "0"}, {"latency_ms": "1"}, None])
@pytest.mark.parametrize("place", [RESERVED, REFUSED, ANSWERED])
def test_what_is_left_is_about_the_caps_of_the_account(place, left):
    found = findings("account refuses", place, account_left=left)
    assert found & (LEFT | {("L103", "account_left")})


@pytest.mark.parametrize("place", [RESERVED, REFUSED])
def test_a_reservation_has_the_name_that_follows(place):
    other = RECORDS[at(RECORDS, "reserve", -1)]["reservation"]
    for name in ("00" * 32, other):
        found = findings("account refuses", place, reservation=name)
        assert found == {("L709", "reservation")}


def test_another_account_has_other_reservations():
    account = {"id": "0d" * 32, "price": 7}
    assert ("L709", "reservation") in findings("account refuses", 0, account=account)


def test_a_greater_cap_than_the_account_has_changes_the_run_and_its_reservations():
    account = {"id": "0c" * 32, "price": 9}
    assert ("L709", "reservation") in findings("account refuses", 0, account=account)


def test_an_account_is_not_left_out_nor_made_up():
    assert any(code == "L103" for code, _ in findings("account refuses", 0, account=None))
    found = findings("leaf", 0, account={"id": "0c" * 32})
    assert {code for code, _ in found} <= {"L709", "L103"}
    assert ("L201", "account") in findings("never", 0, account={"id": "0c" * 32})


def test_an_overdrawn_account_ends_the_asking():
    last = at(RECORDS, "refine")
    found = findings("account refuses", last, account_left={"price": "-1"})
    assert any(code in {"L701", "L702", "L604", "L601"} for code, _ in found)


def test_a_refused_model_is_not_asked_and_a_granted_one_is():
    checked, _, records = forged_run("account refuses")
    without = records[:REFUSED] + records[REFUSED + 1 :]
    assert validate(chained(without), checked).findings[0].code.value in {"L702", "L709", "L402"}
    swapped = [dict(record) for record in records]
    swapped[REFUSED]["budget_event"] = "reserve"
    assert validate(chained(swapped), checked).verdict == 1
    swapped = [dict(record) for record in records]
    swapped[RESERVED] |= {"budget_event": "refused", "account_left": {"price": "0"}}
    assert validate(chained(swapped), checked).verdict == 1


def test_without_an_account_nothing_is_refused():
    checked, _, records = forged_run("account refuses")
    own = ("account", "account_left", "reservation")
    stripped = [{k: v for k, v in record.items() if k not in own} for record in records]
    stripped[0] = with_run_id(stripped[0])
    found = validate(chained(stripped), checked)
    first = found.findings[0]
    assert (found.verdict, first.line, first.field) == (1, REFUSED + 1, "budget_event")
