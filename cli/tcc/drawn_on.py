"""What a ledger says of an account, beside the account itself.

Text: docs/budgets.md.  The validator proper holds a run to what it says that it reserved.  That the
account says the same is asked here, once the ledger has passed: each wish that was granted stands
there, with what was reserved and what it took; and no other of this run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.decimals import parse_decimal
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.replay.findings import VALID, Findings
from tcc_runtime.account.account import Account
from tcc_runtime.account.amounts import Amounts

if TYPE_CHECKING:
    from tcc_certs.replay import Validation


def held_to_account(found: Validation, ledger: Iterable[bytes], account: Account) -> Validation:
    """The validation, with a finding for each reservation that is not as the account has it.

    Args:
        found: what the validator says of the ledger.
        ledger: its bytes, in chunks.

    Raises:
        Rejected: K101 to K104 of the account.
    """
    if found.verdict != VALID:
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
    if not findings.items:
        return found
    return replace(
        found,
        verdict=findings.verdict,
        claim_upheld=False,
        findings=tuple(findings.items),
        summary="invalid: it replays, but what it drew is not as the account has it",
    )


def _compare(
    header: Mapping[str, Any],
    records: Iterable[Mapping[str, Json]],
    account: Account,
    findings: Findings,
) -> None:
    named = header.get("account", {}).get("id", "no account")
    if named != account.id:
        findings.add(Code.ACCOUNT_LEDGER, 1, "account", account.id, named)
        return
    there = {}
    for row in account.reservations(str(header["run_id"])):
        if row.took is not None:
            there[row.id] = (row.amounts, row.took)
    for line, name, amounts in _settled(records):
        expected = there.pop(name, "a reservation of this run, settled")
        if expected != amounts:
            findings.add(Code.ACCOUNT_LEDGER, line, "reservation", expected, (name, *amounts))
    for name in sorted(there):
        findings.add(Code.ACCOUNT_LEDGER, 1, "reservation", "in the ledger too", name)


def _settled(
    records: Iterable[Mapping[str, Json]],
) -> Iterator[tuple[int, str, tuple[Amounts, Amounts]]]:
    """Line, name, and what was reserved and taken, of each question that was answered."""
    last, reserved, name = Amounts(), Amounts(), ""
    for line, record in enumerate(records, 2):
        if record.get("budget_event") == "reserve":
            reserved, name = _sums(record).less(last), str(record["reservation"])
        elif record.get("kind") == "refine":
            now = _sums(record)
            yield line, name, (reserved, now.less(last))
            last = now


def _sums(record: Mapping[str, Json]) -> Amounts:
    number, places = parse_decimal(str(record["epsilon_used"]), "epsilon_used", Code.LEDGER_SCHEMA)
    scale: int = 10 ** (9 - places)
    return Amounts(
        price=int(str(record["price_spent"])),
        latency_ms=int(str(record["latency_ms"])),
        epsilon=number * scale,
    )
