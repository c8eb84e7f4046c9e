"""Cross-checks of a valid ledger: against a registry of adapters, and against an account.

The validator holds a ledger to itself and to the core.  Once it has passed, a reader who trusts a
registry (docs/adapters.md) compares each adapter that the ledger lists with its entry; and a reader
who has the account that a run was charged to (docs/budgets.md) compares the reservations: each that
was granted and settled stands there with the same amounts, and there is no other of this run.
Cost: linear in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.formats.texts import parse_decimal
from tcc_certs.replay.findings import INVALID, VALID, Findings
from tcc_certs.replay.header import taken_of
from tcc_runtime.account.account import Account
from tcc_runtime.account.amounts import Amounts
from tcc_runtime.adapters.adapter import Adapter

if TYPE_CHECKING:
    from tcc_certs.replay import Validation
    from tcc_certs.session import SessionValidation

Found = TypeVar("Found", "Validation", "SessionValidation")


def passed(found: Validation | SessionValidation) -> bool:
    """Whether there is something to hold: a session may go on, and be held as far as it goes."""
    return found.verdict == VALID or (
        found.word == "INCOMPLETE" and found.claim_type == "ConformantPrefix"
    )


def unheld(found: Found, findings: Findings, summary: str) -> Found:
    """The validation with these findings; it upholds nothing."""
    if not findings.items:
        return found
    items = (*found.findings, *findings.items)
    # All of them may decline: there was more to compare than a reader takes.
    word = "invalid" if findings.verdict == INVALID else "declined"
    fields: dict[str, object] = {"verdict": findings.verdict, "findings": items}
    fields["summary"] = f"{word}: {summary}"
    # A session's claim says by itself whether it is upheld.
    fields |= {"claim_upheld": False} if hasattr(found, "kappa") else {"claim_type": "NoClaim"}
    return replace(found, **fields)  # type: ignore[arg-type]  # fields of either


def held_to_registry(found: Found, ledger: Iterable[bytes], registry: Iterable[Adapter]) -> Found:
    """The validation, with a finding for each adapter that is not the registry's.

    Args:
        found: what the validator says of the ledger.
        ledger: its bytes, in chunks.
    """
    if not passed(found):
        return found
    known = {adapter.name: adapter.listed for adapter in registry}
    findings = Findings()
    for line, item in _listed(ledger):
        expected = known.get(str(item["name"]), "an adapter of the registry")
        if item != expected:
            try:
                findings.add(Code.ADAPTER_LEDGER, line, "adapters", expected, item)
            except Rejected as limit:
                findings.refuse(limit, line)
                break
    if not findings.items:
        return found
    return unheld(found, findings, "it replays, but an adapter of it is not the registry's")


def _listed(ledger: Iterable[bytes]) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """The adapters that a ledger lists, each with its line: of a run, or of a session's budget."""
    for line, record in enumerate(LedgerReader(iter(ledger)), 1):
        kind, listed = record.get("kind"), record.get("adapters", [])
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict):
                yield line, item
        if kind in ("open", "budget"):
            return


def held_to_account(found: Found, ledger: Iterable[bytes], account: Account) -> Found:
    """The validation, with a finding for each reservation that is not as the account has it.

    Args:
        found: what the validator says of the ledger.
        ledger: its bytes, in chunks.

    Raises:
        Rejected: K101 to K104 of the account.
    """
    if not passed(found):
        return found
    records = iter(LedgerReader(iter(ledger)))
    header: Mapping[str, Any] = next(records)
    findings = Findings()
    try:
        _compare(header, records, account, findings)
    except Rejected as limit:
        if limit.code.value[0] == "K":
            raise
        findings.refuse(limit, 1)
    return unheld(found, findings, "it replays, but what it drew is not as the account has it")


def _compare(
    header: Mapping[str, Any],
    records: Iterable[Mapping[str, Json]],
    account: Account,
    findings: Findings,
) -> None:
    run, at = str(header.get("run_id", header.get("session_id"))), 1
    if "session_id" in header:
        at, header, records = _budget(records)
    named = header.get("account", {}).get("id", "no account")
    if named != account.id:
        findings.add(Code.ACCOUNT_LEDGER, at, "account", account.id, named)
        return
    there = {}
    for row in account.reservations(run):
        if row.took is not None and row.took != Amounts():
            there[row.id] = (row.amounts, row.took)
    begun = _begun(header)
    for line, name, amounts in _settled(records, at, begun):
        if amounts[1] == Amounts():
            continue
        expected = there.pop(name, "a reservation of this run, settled")
        if expected != amounts:
            findings.add(Code.ACCOUNT_LEDGER, line, "reservation", expected, (name, *amounts))
    for name in sorted(there):
        findings.add(Code.ACCOUNT_LEDGER, at, "reservation", "in the ledger too", name)


def _budget(
    records: Iterable[Mapping[str, Json]],
) -> tuple[int, Mapping[str, Any], Iterable[Mapping[str, Json]]]:
    """The line of a session's budget, the record, and those that follow; none where it has none."""
    rest = iter(records)
    for line, record in enumerate(rest, 2):
        if record.get("kind") == "budget":
            return line, record, rest
    return 1, {}, ()


def _begun(record: Mapping[str, Any]) -> Amounts:
    """What the sums begin with: of epsilon, that of the atoms that privatised the input.

    Args:
        record: the `open` of a run, the `budget` of a session.
    """
    taken = taken_of(record, says=True)
    return Amounts() if taken is None else Amounts(epsilon=taken.nano)


def _settled(
    records: Iterable[Mapping[str, Any]], before: int, begun: Amounts
) -> Iterator[tuple[int, str, tuple[Amounts, Amounts]]]:
    """Line, name, and what was reserved and taken, of each wish whose end the account was told.

    A call of a session that has no record of its outcome took all that was reserved for it.

    Args:
        before: the line that the records follow on.
        begun: what the sums begin with.
    """
    last, reserved, name = begun, Amounts(), ""
    under_way: tuple[object, Amounts] | None = None  # a call's number, the sums with all of it
    for line, record in enumerate(records, before + 1):
        kind = record.get("kind")
        if under_way is not None and kind == "resolve" and record["seq"] == under_way[0]:
            last, under_way = under_way[1], None
        elif kind == "call":
            made = record.get("execute")
            under_way = None if made is None else (record["seq"], _sums(made))
        elif kind == "outcome":
            under_way = None
        wish: Mapping[str, Any] = record.get("execute", {}) if kind == "call" else record
        took: Mapping[str, Any] = record.get("took", {}) if kind == "outcome" else record
        if "reservation" in wish and record.get("budget_event") != "refused":
            reserved, name = _drawn(_sums(wish), last), str(wish["reservation"])
        elif kind in ("refine", "outcome", "asked") and "price_spent" in took:
            now = _sums(took)
            if "account_left" in took:
                yield line, name, (reserved, _drawn(now, last))
            last = now


def _drawn(now: Amounts, last: Amounts) -> Amounts:
    """What is drawn between two sums; no epsilon where a longer list has the tighter bound."""
    more = now.less(last)
    return Amounts(more.price, more.latency_ms, max(0, more.epsilon))


def _sums(record: Mapping[str, Json]) -> Amounts:
    number, places = parse_decimal(str(record["epsilon_used"]), "epsilon_used", Code.LEDGER_SCHEMA)
    scale: int = 10 ** (9 - places)
    return Amounts(
        price=int(str(record["price_spent"])),
        latency_ms=int(str(record["latency_ms"])),
        epsilon=number * scale,
    )
