"""The shipped policies in the one language: recorded sessions, decided by the definition.

The sessions of the two desks are those of tests/data/policies.  The other sessions each try to
break one promise of a policy.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.policy.course import Course
from tcc_certs.policy.history import ANSWERED, DONE
from tcc_certs.policy.meaning import Policy
from tcc_compiler.names.compile import compile_file, compile_source

ROOT = Path(__file__).parents[2]
SESSIONS = ROOT / "tests" / "data" / "policies"
START = 1_715_767_200_000  # 2024-05-15T10:00:00Z
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
FOLDERS = ("grammars", "experiments/tcc_experiments/grammars", "cli/tcc/templates")
FILES = [path for name in FOLDERS for path in sorted((ROOT / name).glob("*.tcg"))]
# The shipped airline is given its customer; the recorded sessions look another one up.
OTHER_CUSTOMER = {
    "the profile is an object of payment methods, not a list",
    "the second customer does not become the customer",
    "booked for somebody else",
    "a voucher without a claim",
    "a tier that is not known gives no claim",
}


@cache
def policy(name: str) -> Policy:
    if name == "tutorial":
        page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
        compiled = compile_source(
            page.partition("shop.tcg <<'END'\n")[2].partition("\nEND")[0] + "\n"
        )
    else:
        compiled = compile_file(ROOT / f"{name}.tcg")
    assert compiled.core is not None, compiled.diagnostics
    return Policy(compiled.core)


def refused(course: Course, tool: str, at_ms: int = START, **arguments: Any) -> list[str]:
    """The reasons of the statements that refuse a call."""
    statements = course.policy.core.statements
    found = course.check(tool, arguments, at_ms)
    return [statements[one.statement].because or "" for one in found]


def done(course: Course, tool: str, answer: object, at_ms: int = START, **arguments: Any) -> None:
    """Make a call that has to be allowed."""
    assert refused(course, tool, at_ms, **arguments) == []
    course.record(course.call(tool, arguments, at_ms), DONE, answer)


def recorded() -> list[Any]:
    return [
        pytest.param(name, told, id=f"{name}: {told['id']}")
        for name in ("airline_desk", "shop_desk")
        for told in map(json.loads, (SESSIONS / f"{name}.jsonl").read_text().splitlines())
        if told["id"] not in OTHER_CUSTOMER
    ]


@pytest.mark.parametrize("indexed", [True, False], ids=["by key", "scanned"])
@pytest.mark.parametrize(("name", "told"), recorded())
def test_a_recorded_session_is_decided_as_it_was(
    name: str, told: dict[str, Any], indexed: bool
) -> None:
    given = told.get("given") or ({"customer": "ada_l"} if name == "airline_desk" else {})
    course = Course(policy(f"grammars/{name}"), given, indexed=indexed)
    for call in told["calls"]:
        at_ms = START + MINUTE * call.get("at_minutes", 0)
        try:
            found = bool(course.check(call["tool"], call["arguments"], at_ms))
        except Rejected:
            found = True
        assert found == ("refused" in call), call
        if not found:
            made = course.call(call["tool"], call["arguments"], at_ms)
            failed = call.get("outcome") == "error"
            course.record(made, ANSWERED if failed else DONE, call.get("answer"))


def shop(account: dict[int, Any], order: str = "#W0000001", total: float = 50) -> Course:
    """A session of the second desk in which a customer and an order were read."""
    course = Course(policy("grammars/shop_desk"), {"desk": "second"}, account=account)
    done(course, "find_by_mail", {"user_id": "u7"}, mail="ada@example.org")
    answer = {
        "status": "delivered", "user_id": "u7", "items": [], "total": total,
        "payments": [{"method": "card_1"}],
    }  # fmt: skip
    done(course, "get_order", answer, order=order)
    return course


def confirmed_refund(course: Course, amount: float, order: str = "#W0000001") -> list[str]:
    done(course, "confirm", {"answer": "yes"}, order=order, summary="as agreed")
    found = refused(course, "refund", order=order, amount=amount)
    if not found:
        done(course, "refund", {}, order=order, amount=amount)
    return found


def test_refunds_of_an_order_never_exceed_its_total_over_all_sessions() -> None:
    account: dict[int, Any] = {}
    reason = ["Refunds of an order never exceed its total."]
    assert confirmed_refund(shop(account), 51) == reason
    assert confirmed_refund(shop(account), 30) == []
    later = shop(account)
    assert confirmed_refund(later, 21) == reason
    assert confirmed_refund(later, 20) == []
    assert confirmed_refund(shop(account), 0.01) == reason


def test_refunds_of_an_order_are_at_most_500_in_30_days() -> None:
    account: dict[int, Any] = {}
    assert confirmed_refund(shop(account, total=5000), 500) == []
    assert confirmed_refund(shop(account, total=5000), 1) == [
        "Refunds of an order are at most 500 in 30 days."
    ]
    assert confirmed_refund(shop(account, "#W0000002", 5000), 1, "#W0000002") == []


def airline(account: dict[int, Any], booking: str = "ABC123") -> Course:
    """A session in which a gold member's booking with a cancelled flight was read."""
    course = Course(policy("grammars/airline_desk"), {"customer": "ada_l"}, account=account)
    profile = {"tier": "gold", "payment_methods": [{"id": "card_1"}]}
    done(course, "find_customer", profile, customer="ada_l")
    answer = {
        "cabin": "economy", "insured": "no", "customer": "ada_l", "bags": 1,
        "bought_at": "2024-05-01T08:00:00", "passengers": [{"name": f"P{n}"} for n in range(11)],
        "legs": [{"flight": "FL0", "state": "cancelled"}],
    }  # fmt: skip
    done(course, "find_booking", answer, booking=booking)
    return course


def voucher(course: Course, amount: float, booking: str, at_ms: int = START) -> list[str]:
    arguments = {"customer": "ada_l", "booking": booking, "amount": amount}
    found = refused(course, "give_voucher", at_ms, **arguments)
    if not found:
        done(course, "give_voucher", {}, at_ms, **arguments)
    return found


def test_a_booking_gets_one_voucher_over_all_sessions() -> None:
    account: dict[int, Any] = {}
    assert voucher(airline(account), 10, "ABC123") == []
    assert voucher(airline(account), 10, "ABC123") == ["A booking gets one voucher."]


def test_a_customer_gets_vouchers_of_1000_in_30_days_over_all_sessions() -> None:
    account: dict[int, Any] = {}
    assert voucher(airline(account, "AAAAAA"), 900, "AAAAAA") == []
    assert voucher(airline(account, "BBBBBB"), 101, "BBBBBB") == [
        "A customer gets vouchers of at most 1000 in 30 days."
    ]
    late = START + 30 * DAY + 1
    assert voucher(airline(account, "BBBBBB"), 101, "BBBBBB", late) == []


def test_the_approval_of_the_tutorial_binds_the_amount_and_serves_one_call() -> None:
    course = Course(policy("tutorial"))
    reason = ["The owner approves each refund, and exactly its amount."]
    done(course, "find_order", {}, order="ord-17")
    done(course, "ask_owner", {"decision": "yes"}, order="ord-17", amount=80)
    assert refused(course, "refund", part="full", order="ord-17", amount=81) == reason
    assert refused(course, "refund", part="full", order="ord-17", amount=8) == reason
    done(course, "refund", {}, part="full", order="ord-17", amount=80)
    assert refused(course, "refund", part="full", order="ord-17", amount=80) == reason


def test_a_refusal_of_the_owner_approves_nothing() -> None:
    course = Course(policy("tutorial"))
    done(course, "find_order", {}, order="ord-17")
    done(course, "ask_owner", {"decision": "no"}, order="ord-17", amount=80)
    assert refused(course, "refund", part="full", order="ord-17", amount=80)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_shipped_file_compiles(path: Path) -> None:
    policy(str(path.relative_to(ROOT).with_suffix("")))


def test_an_approval_that_the_owner_took_back_approves_nothing() -> None:
    course = Course(policy("tutorial"))
    done(course, "find_order", {}, order="ord-17")
    done(course, "ask_owner", {"decision": "yes"}, order="ord-17", amount=80)
    done(course, "ask_owner", {"decision": "no"}, order="ord-17", amount=80)
    assert refused(course, "refund", part="full", order="ord-17", amount=80)


def test_bags_are_only_added_to_what_was_read_after_the_last_change() -> None:
    course = airline({})
    change = {"booking": "ABC123", "pay_with": "card_1"}
    confirmation = {"subject": "ABC123", "summary": "as agreed"}
    done(course, "confirm", {"answer": "yes"}, **confirmation)
    done(course, "change_bags", {}, bags=5, **change)
    done(course, "confirm", {"answer": "yes"}, **confirmation)
    assert refused(course, "change_bags", bags=3, **change) == ["Bags are only added."]


def test_an_approval_serves_one_call_whatever_the_filter_of_the_statement_says_later() -> None:
    text = """grammar g version "1"
tool look(k: text) gives (total: number)
tool approve(k: text, most: number) gives (answer: yes | no)
tool pay(k: text, amount: number)
limit depth <= 9
before pay(amount > last(look(same k)).total)
  require unused approve(same k, most >= this.amount, answer = yes)
"""
    core = compile_source(text).core
    assert core is not None
    course = Course(Policy(core))
    done(course, "look", {"total": 10}, k="a")
    done(course, "approve", {"answer": "yes"}, k="a", most=300)
    done(course, "pay", {}, k="a", amount=50)
    done(course, "look", {"total": 100}, k="a")
    assert course.check("pay", {"k": "a", "amount": 150})
