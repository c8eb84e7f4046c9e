"""The account that a run draws on: its draws so far, and the remainders in its records.

Normative text: docs/spec/ledger.md, section 14.  A ledger does not show the draws of other runs.
So the remainder of each cap is taken from the ledger.  It is checked against the run's own draws,
and against the outcome: a granted request, a refused request, or an exceeded cap.  Cost: a digest
for each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcc_certs.errors import Code, ensure
from tcc_certs.formats.codec import Json, blake, format_decimal, parse_decimal
from tcc_certs.formats.ledger import Record
from tcc_certs.replay.amounts import SpentAmounts
from tcc_certs.replay.findings import Findings

NAMES = ("price", "latency_ms", "epsilon")
_PLACES = {"price": 0, "latency_ms": 0, "epsilon": 9}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRecord:
    """An account as the header names it.

    Attributes:
        id: 64 hex digits.
        run: the id of the run.
        caps: by name, the caps that are set: cents, milliseconds, nano-epsilon.
    """

    id: str
    run: str
    caps: Mapping[str, int]


def read_account(value: Json | None, run: str) -> AccountRecord | None:
    """Return the account of the member `account` of an `open` record whose fields are well formed.

    Raises:
        Rejected: L103: an epsilon has more than nine places.
    """
    if not isinstance(value, dict):
        return None
    named = [name for name in NAMES if name in value]
    caps = {name: _number(name, value[name]) for name in named}
    return AccountRecord(id=str(value["id"]), run=run, caps=caps)


class DrawnRecord:
    """The draws of a run so far.

    Attributes:
        overdrawn: whether the last remainder showed that a cap is exceeded.
    """

    def __init__(self, account: AccountRecord) -> None:
        self.overdrawn = False
        self._account = account
        self._wishes = 0
        self._used = dict.fromkeys(NAMES, 0)

    def wish(
        self,
        spent: SpentAmounts,
        reserved: SpentAmounts,
        record: Record,
        line: int,
        findings: Findings,
    ) -> Mapping[str, Json]:
        """Check a request for `reserved`, granted or refused as the record says; return its fields.

        Args:
            spent: the amounts of the earlier questions.
        """
        takes = _takes(spent, reserved)
        self._wishes += 1
        left, own = self._left(record), self._own()
        if record.get("budget_event") == "refused":
            lacks = any(takes[name] > left[name] for name in left)
            _hold(lacks, "too little for it", record, line, findings)
        else:
            own = {name: own[name] - takes[name] for name in own}
            _hold(all(n >= 0 for n in left.values()), "at least 0", record, line, findings)
        self._bound(left, own, record, line, findings)
        return {"reservation": self._name(), **_stated(record)}

    def settled(
        self, spent: SpentAmounts, took: SpentAmounts, record: Record, line: int, findings: Findings
    ) -> Mapping[str, Json]:
        """Count `took` as drawn, check the remainder in the record, and return its fields.

        Args:
            spent: the amounts of the earlier questions.
        """
        self.take(spent, took)
        left = self._left(record)
        self._bound(left, self._own(), record, line, findings)
        self.overdrawn = any(number < 0 for number in left.values())
        return _stated(record)

    def take(self, spent: SpentAmounts, took: SpentAmounts) -> None:
        """Count `took` as drawn; the record states no remainder."""
        for name, amount in _takes(spent, took).items():
            self._used[name] += amount

    def _name(self) -> str:
        number = self._wishes.to_bytes(8, "big")
        named = bytes.fromhex(self._account.id) + self._account.run.encode()
        return blake(b"tcc.reservation.v1\0" + named + number).hex()

    def _own(self) -> dict[str, int]:
        """Return the remainder of each cap if no other run draws."""
        return {name: cap - self._used[name] for name, cap in self._account.caps.items()}

    def _left(self, record: Record) -> dict[str, int]:
        """Return the remainder that the record states for each cap.

        Raises:
            Rejected: L103 an epsilon has more than nine places; L709 it names other amounts than
                the caps.
        """
        stated = record.get("account_left")
        left = stated if isinstance(stated, dict) else {}
        expected = sorted(self._account.caps)
        ensure(sorted(left) == expected, Code.RESERVATION, "account_left", expected, sorted(left))
        return {name: _number(name, left[name]) for name in expected}

    def _bound(
        self,
        left: Mapping[str, int],
        own: Mapping[str, int],
        record: Record,
        line: int,
        findings: Findings,
    ) -> None:
        within = all(left[name] <= own[name] for name in left)
        _hold(within, f"at most {_texts(own)}", record, line, findings)


def _hold(holds: bool, expected: str, record: Record, line: int, findings: Findings) -> None:
    if not holds:
        findings.add(
            Code.RESERVATION, line, "account_left", expected, record.get("account_left", "no field")
        )


def _stated(record: Record) -> Mapping[str, Json]:
    return {"account_left": record.get("account_left", {})}


def _takes(spent: SpentAmounts, more: SpentAmounts) -> dict[str, int]:
    """Return the draw of a question on each cap; epsilon is the increase of the run's epsilon."""
    after = spent.plus(more).epsilon_used
    raised = max(0, after - spent.epsilon_used)  # the bound of a longer list may be tighter
    return {"price": more.price, "latency_ms": more.latency, "epsilon": raised}


def _number(name: str, value: Json) -> int:
    number, places = parse_decimal(str(value), name, Code.LEDGER_SCHEMA)
    most = _PLACES[name]
    ensure(places <= most, Code.LEDGER_SCHEMA, name, f"at most {most} decimal places", value)
    scale: int = 10 ** (most - places)
    return number * scale


def _texts(amounts: Mapping[str, int]) -> str:
    return ", ".join(
        [f"{name} {format_decimal(number, _PLACES[name])}" for name, number in amounts.items()]
    )
