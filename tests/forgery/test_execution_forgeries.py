"""What a session says of models, forged member by member, the chain sealed again.

One session has it all: caps, an account with others on it, adapters, atoms, a search that asked, a
model that the account has too little for, calls that were done, failed, and are unknown.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import tcc as library
from tcc_certs.formats.container import write_container
from tcc_certs.kernel import check
from tcc_certs.replay.amounts import SpentAmounts
from tcc_certs.session import SessionValidation, validate
from tcc_runtime.account.amounts import AccountAmounts
from tcc_runtime.adapters.adapter import Adapter
from tests.campaigns.blocks import cases
from tests.forgery.mutants import changes
from tests.oracle_session.writer import KEY, sealed

Records = list[dict[str, Any]]
TEXT = """grammar desk version "1"

tool look
tool answer {
  model fast { price 1 latency 50 ms execute { price 3 } adapter "small" }
  model deep { price 2 latency 100 ms atom laplace(40, 1) execute { price 6 epsilon 0.01 } }
  model slow { execute { price 1 latency 90000 ms } }
}

plan = (look | answer){0,20}
"""
ADAPTER = Adapter(
    name="small",
    adapter_id="ab" * 32,
    tier="small",
    dp_cert_id="cert-1",
    eps_train="2.5",
    delta_train="0.000001",
)
ATOM = {"mechanism": "laplace", "scale": "50", "sensitivity": "1"}


class Run:
    """What a search says that its asks took."""

    spent = SpentAmounts(price=1, latency=40, epsilon=5_000_000)
    atoms = ()


@cache
def session() -> tuple[tuple[dict[str, Any], ...], bytes]:
    """The records, and the artifact."""
    artifact = library.compile_text(TEXT)
    with TemporaryDirectory() as folder:
        path, now = Path(folder) / "s", [1000]
        account = library.Account(Path(folder) / "a", price=40, epsilon="9", clock=lambda: 0)
        account.reserve("another", "run", AccountAmounts(20, 0, 0))
        gate = library.Gate(
            artifact, ledger=path, key=KEY, nonce=bytes(16), durable=False, clock=lambda: now[0]
        )
        from tcc_certs.privacy.atoms_file import atoms_of

        gate.budget(
            price_cap=60,
            sla_ms=200_000,
            epsilon_cap="2",
            atoms=atoms_of([ATOM]),
            adapters=[ADAPTER],
            account=account,
        )
        gate.searched(Run(), None)  # type: ignore[arg-type]  # what is looked at of a run
        for how, took in (
            ("done", None),
            ("failed", None),
            ("unknown", library.Took(price=2)),
            ("done", library.Took(atom=ATOM)),
            ("done", None),
        ):
            with gate.call("answer") as permit:
                now[0] += 70
                getattr(permit, how)(took=took)
        account.reserve(
            "a third", "run", AccountAmounts(account.statement().sums.left.price - 2, 0, 0)
        )
        with gate.call("answer") as permit:
            assert permit.model == "slow"
            permit.done()
        with gate.call("look") as permit:
            permit.done()
        gate.finish()
        records = [json.loads(line) for line in path.read_text().splitlines()]
    found = tuple({k: v for k, v in one.items() if k not in ("~", "mac")} for one in records)
    return found, bytes(write_container(artifact.file.columns))


@cache
def artifact() -> Any:
    return check(session()[1])


def judged(records: Records) -> SessionValidation:
    return validate(sealed(records), artifact(), key=KEY)


def test_the_session_is_valid_and_has_it_all() -> None:
    records, _ = session()
    assert judged(list(records)).summary.startswith("claim upheld"), judged(list(records)).findings
    calls = [one["execute"] for one in records if "execute" in one]
    assert calls[0]["model_id"] == "fast" and "refused" in calls[-1]
    assert {one["model_id"] for one in calls} == {"fast", "deep", "slow"}
    assert any("atom" in one.get("took", ()) for one in records)


FORGED = (4, 6)  # one that took another atom; one before which two models were refused
# What only whoever made the call, or keeps the account, can know.
ASSERTED = {
    ("asked", "price"), ("asked", "latency"), ("asked", "epsilon"), ("asked", "atoms"),
    ("took", "price"), ("took", "latency"), ("took", "epsilon"), ("took", "atom"),
    ("took", "account_left"), ("execute", "account_left"), ("execute", "refused"),
    ("budget", "controller"), ("budget", "adapters"), ("budget", "account"),
}  # fmt: skip
CODES = {
    "model_id": {"S402"}, "adapter_id": {"S402"}, "dp_cert_id": {"S402"}, "eps_train": {"S402"},
    "delta_train": {"S402"}, "atom": {"S402", "S403", "L103", "L709"}, "reservation": {"S404"},
    "account_left": {"S404", "L709"}, "refused": {"S402", "S404", "L709"},
    "price": {"S403", "L709"}, "latency": {"S403"}, "epsilon": {"S403", "L709"},
    "price_spent": {"S403"}, "latency_ms": {"S403"}, "epsilon_used": {"S403"}, "left": {"S403"},
    "router_rdp_eps": {"S403"}, "alpha_selected": {"S403"}, "eps_delta": {"S403"},
}  # fmt: skip


def members(records: Records) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """Record, what it is of, and the object whose members are forged."""
    for at, record in enumerate(records):
        if record["kind"] in ("budget", "asked"):
            yield at, record["kind"], "", record
        for name in ("execute", "took"):
            if name in record and record["seq"] in FORGED:
                yield at, name, name, record[name]


def forged(records: Records) -> Iterator[tuple[int, str, str, str, Records]]:
    """Record, of what, member, how, and the records with one change."""
    for at, what, name, item in members(records):
        for member, value in item.items():
            if member == "kind":
                continue
            others = [*changes(value), ("removed", None)]
            if member == "model_id":
                others += [(model, model) for model in ("fast", "deep", "slow", "quote")]
            if member in ("price", "latency", "epsilon", "price_spent", "latency_ms"):
                others += [("0", "0"), ("7", "7"), ("91919191", "91919191")]
            if member in ("left", "account_left"):
                others += [
                    (f"{cap} {by}", {**value, cap: by}) for cap in value for by in ("0", "1", "99")
                ]
                others += [(f"without {cap}", {k: v for k, v in value.items() if k != cap})
                           for cap in value]  # fmt: skip
            if member == "controller":
                others += [(weight, {**value, weight: "3"}) for weight in value]
                others += [("margin", {**value, "margin": "0.5"})]
            for how, other in others:
                if other == value and type(other) is type(value):
                    continue
                changed = {key: one for key, one in item.items() if key != member}
                if how != "removed":
                    changed[member] = other
                found = copy.deepcopy(records)
                found[at] = changed if not name else {**records[at], name: changed}
                yield at, what, member, how, found


@cache
def outcomes() -> tuple[tuple[str, str, str, int, SessionValidation], ...]:
    records = list(session()[0])
    return tuple(
        (what, member, how, at, judged(changed))
        for at, what, member, how, changed in islice(forged(records), None, None, cases(2, 1))
    )


def test_a_change_is_refused_with_the_code_of_its_member_or_is_asserted() -> None:
    assert len(outcomes()) > 500
    for what, member, how, at, found in outcomes():
        if not found.findings:
            assert (what, member) in ASSERTED, (what, member, how, at)
            continue
        first = found.findings[0]
        assert found.verdict == 1 and not found.claim_upheld
        codes = CODES.get(member, set()) if what in ("execute", "took") else {"S403", "S402"}
        more = {"S401", "S404", "L709"} if what == "budget" else set()
        # An amount that whoever made the call says stands in the sums of its record.
        assert first.code.value in codes | more | {"L103"}, (what, member, how, at, first)
        assert first.line >= at + 1


@pytest.mark.parametrize("what", ["execute", "took"])
def test_each_member_has_a_change_that_is_refused(what: str) -> None:
    refused = {m for w, m, _, _, found in outcomes() if w == what and found.findings}
    assert refused == {m for w, m, *_ in outcomes() if w == what}


def changed(kind: str, number: int, **more: Any) -> Records:
    """The records, where the so-manieth of a kind has other fields; None takes one away."""
    records = copy.deepcopy(list(session()[0]))
    at = [i for i, record in enumerate(records) if record["kind"] == kind][number]
    records[at] = {k: v for k, v in {**records[at], **more}.items() if v is not None}
    return records


def first(records: Records) -> tuple[str, str]:
    found = judged(records).findings[0]
    return found.code.value, found.field


def test_a_model_is_there_exactly_where_one_makes_the_call() -> None:
    assert first(changed("call", 0, execute=None)) == ("S402", "execute")
    assert first(changed("outcome", 0, took=None)) == ("S402", "took")
    execute = next(one["execute"] for one in session()[0] if "execute" in one)
    took = next(one["took"] for one in session()[0] if "took" in one)
    assert first(changed("call", 6, execute=execute)) == ("S402", "execute")
    assert first(changed("outcome", 6, took=took)) == ("S402", "took")
    none = [record for record in session()[0] if record["kind"] != "budget"]
    assert first(list(none)) == ("S401", "kind")
    none = [record for record in none if record["kind"] != "asked"]
    assert first(list(none)) == ("S402", "execute")


def test_a_model_that_the_rule_would_not_choose_ends_it_there() -> None:
    execute = next(one["execute"] for one in session()[0] if "execute" in one)
    for name in ("deep", "slow", "quote"):
        # What else it says is of that model, and not gone into.
        other = {**execute, "model_id": name, "price": "6", "price_spent": "7"}
        found = judged(changed("call", 0, execute=other))
        (finding,) = found.findings
        assert (finding.code, finding.field) == ("S402", "execute.model_id")
        assert (finding.expected, finding.found, found.verdict) == ("fast", name, 1)


def test_a_budget_stands_once_and_with_no_call_under_way() -> None:
    records = list(session()[0])
    budget = records[1]
    assert first([*records[:2], budget, *records[2:]]) == ("S401", "kind")
    at = next(i for i, record in enumerate(records) if record["kind"] == "call")
    assert first([*records[: at + 1], records[2], *records[at + 1 :]]) == ("L104", "kind")
    assert first([records[0], *records[2:at], records[at], budget]) == ("S401", "kind")


def test_a_refusal_for_want_of_a_model_is_of_a_tool_that_has_some() -> None:
    records = list(session()[0])
    refusal = {"kind": "refusal", "tool": "answer", "code": "R205"}
    assert judged([*records[:-1], refusal, records[-1]]).verdict == 0
    assert first([*records[:-1], {**refusal, "tool": "look"}]) == ("S211", "code")
    assert first([records[0], refusal]) == ("S211", "code")


def test_no_model_fits_is_the_end_of_the_session() -> None:
    assert first(changed("budget", 0, price_cap=3))[0] in ("S402", "S403")
    records = changed("budget", 0, price_cap=1)
    records[2]["left"]["price"] = "0"
    assert first(records) == ("S402", "execute")


def test_a_call_without_an_outcome_took_what_was_expected() -> None:
    records = [one for one in session()[0] if one["kind"] != "outcome" or one["seq"] != 1]
    found = judged(list(records))
    # The next call follows only behind an outcome or its resolve.
    assert found.findings[0].code == "L104"
    at = next(i for i, one in enumerate(records) if one["kind"] == "call" and one["seq"] == 1)
    assert judged(records[: at + 1]).claim_type == "ConformantPrefix"
    left = [*records[: at + 1], {"kind": "end", "abandoned": True}]
    assert judged(left).findings[0].code == "L104"
