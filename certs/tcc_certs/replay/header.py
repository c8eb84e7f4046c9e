"""The header of a ledger as values: adapters that models run with, the account that a run draws on.

Normative text: docs/spec/ledger.md, sections 3, 4, 13 and 14; :mod:`tcc_certs.replay.opening` holds
it against the artifact.  Which adapters have to be there follows from the core; what is said of
each comes from outside, and is the same wherever the ledger says it.  What others have taken of an
account stands in no ledger of this run: what is left of each cap is taken from the ledger, and held
to what the run itself has drawn by then, and to what follows from it: that a wish was granted, or
refused, or that nothing is left.
Cost: a digest for each wish.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcc_certs.core.model import Core, Model
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, blake, format_decimal, parse_decimal
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.replay.controller import AskRule, SpendingCaps, SpentAmounts
from tcc_certs.replay.findings import (
    NO_CERT,
    RUN_WISE_EXACT,
    RUN_WISE_SURROGATE,
    TRUNCATION_ONLY,
    Findings,
)

if TYPE_CHECKING:
    from tcc_certs.privacy.spending import Taken

# An account that others draw on too.

NAMES = ("price", "latency_ms", "epsilon")
_PLACES = {"price": 0, "latency_ms": 0, "epsilon": 9}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRecord:
    """An account as a header names it.

    Attributes:
        id: 64 hex digits; run: the identity of the run.
        caps: by name, where there is one: cents, milliseconds, nano-epsilon.
    """

    id: str
    run: str
    caps: Mapping[str, int]


def read_account(value: Json | None, run: str) -> AccountRecord | None:
    """The member `account` of an `open` record whose fields have their form.

    Raises:
        Rejected: L103 an epsilon of more than nine places.
    """
    if not isinstance(value, dict):
        return None
    named = [name for name in NAMES if name in value]
    caps = {name: _number(name, value[name]) for name in named}
    return AccountRecord(id=str(value["id"]), run=run, caps=caps)


class DrawnRecord:
    """What a run has drawn so far.

    Attributes:
        overdrawn: whether the account said last that a cap is exceeded.
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
        """What a wish for `reserved` says, granted or refused as the record says.

        Args:
            spent: by the asks before.
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
        """What an answer says of the account, once `took` is taken.

        Args:
            spent: by the asks before.
        """
        self.take(spent, took)
        left = self._left(record)
        self._bound(left, self._own(), record, line, findings)
        self.overdrawn = any(number < 0 for number in left.values())
        return _stated(record)

    def take(self, spent: SpentAmounts, took: SpentAmounts) -> None:
        """Count `took` as drawn, where the record does not say what is left."""
        for name, amount in _takes(spent, took).items():
            self._used[name] += amount

    def _name(self) -> str:
        number = self._wishes.to_bytes(8, "big")
        named = bytes.fromhex(self._account.id) + self._account.run.encode()
        return blake(b"tcc.reservation.v1\0" + named + number).hex()

    def _own(self) -> dict[str, int]:
        """What is left of each cap where nobody else draws."""
        return {name: cap - self._used[name] for name, cap in self._account.caps.items()}

    def _left(self, record: Record) -> dict[str, int]:
        """What the record says is left, by name; of a cap that it does not name, nothing is said.

        Raises:
            Rejected: L103 an epsilon of more than nine places; L709 it is not about the caps.
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
    """What an ask takes of each cap: of epsilon, by how much it raises that of the run."""
    after = spent.plus(more).epsilon_used
    raised = max(0, after - spent.epsilon_used)  # a bound of more may be tighter
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


# The header.


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterRecord:
    """An adapter of a run.

    Attributes:
        name: as models of the grammar name it.
        fields: of the records of an ask whose model runs with it.
    """

    name: str
    fields: Mapping[str, Json]


NAMED = ("adapter_id", "dp_cert_id", "eps_train", "delta_train")


def read_adapters(listed: Json | None) -> tuple[AdapterRecord, ...]:
    """The adapters of an `open` record whose fields have their form."""
    if not isinstance(listed, list):
        return ()
    return tuple(_adapter(item) for item in listed if isinstance(item, dict))


def _adapter(item: Record) -> AdapterRecord:
    return AdapterRecord(name=text(item, "name"), fields={name: item[name] for name in NAMED})


def named_adapters(core: Core) -> list[str]:
    """The names of the adapters that models of a core run with, in order."""
    return sorted({model.adapter for tool in core.tools for model in tool.models} - {""})


def adapter_fields(adapters: Iterable[AdapterRecord], model: Model) -> Mapping[str, Json]:
    """What a record of an ask says of the adapter of the model that is asked."""
    if not model.adapter:
        return {}
    return next((item.fields for item in adapters if item.name == model.adapter), {})


Decimal = tuple[int, int]

POST_PROCESSING, RAW_INPUT = "post_processing_only", "raw_input_dependent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the replay needs of `open`.

    Attributes:
        started_ms: for node ids.
        after: the calls before the root of the run.
        seed_commitment: 32 bytes.
        mode, race, keys, recipe: as in the record.
        claim_type: what it says that a certified stop claims.
        inflate, tau: exact decimals (numerator, places), at least 1, above 0.
        alpha, eta: of the potential, exact decimals.
        top: k.
        truncate: K.
        count_bits: 0 is no limit.
        max_expansions: None is no cap.
        timed: whether there is a cap on the time.
        rule: of asking what calls cost; None where the header has none.
        caps: on what asking may spend.
        account: that the run draws on; None: none.
        adapters: that models run with.
        raw: whether grammar or models were chosen by what the raw input was.
        taken: the account of privacy that the run begins with; None: it keeps none.
    """

    started_ms: int
    after: tuple[str, ...]
    seed_commitment: bytes
    mode: str
    race: str
    keys: str
    recipe: str
    claim_type: str
    inflate: Decimal
    tau: Decimal
    alpha: Decimal
    eta: Decimal
    top: int
    truncate: int
    count_bits: int
    max_expansions: int | None
    timed: bool
    rule: AskRule | None
    caps: SpendingCaps
    account: AccountRecord | None
    adapters: tuple[AdapterRecord, ...]
    raw: bool
    taken: Taken | None

    def full_claim(self, root_rank: int) -> str:
        """The claim of a certified stop of a run with these settings that claims what it can."""
        if self.mode == "fallback" or self.race == "literal" or self.raw:
            return NO_CERT
        if self.truncate < root_rank:
            return TRUNCATION_ONLY
        return RUN_WISE_EXACT if self.mode == "exact" else RUN_WISE_SURROGATE

    def first_claim(self, root_rank: int) -> str:
        """The claim that the run begins with."""
        return NO_CERT if self.claim_type == NO_CERT else self.full_claim(root_rank)


def read_header(record: Record) -> Header:
    """The values of a header whose fields have their form.

    Raises:
        Rejected: L103 a decimal or an atom that is not canonical.
    """
    taken = taken_of(record, says=record["privacy_scope"] != RAW_INPUT)
    limits = record["run_limits"]
    cap = limits.get("max_expansions") if isinstance(limits, dict) else None
    caps = caps_of(limits)
    after = record.get("after")
    return Header(
        started_ms=size(record, "started_ms"),
        after=tuple(map(str, after)) if isinstance(after, list) else (),
        seed_commitment=bytes.fromhex(text(record, "seed_commitment")),
        mode=text(record, "mode"),
        race=text(record, "race"),
        keys=text(record, "keys"),
        recipe=text(record, "recipe"),
        claim_type=text(record, "claim_type"),
        inflate=_decimal(record, "inflate"),
        tau=_decimal(record, "tau"),
        alpha=_decimal(record, "alpha"),
        eta=_decimal(record, "eta"),
        top=size(record, "top"),
        truncate=size(record, "truncate"),
        count_bits=size(record, "count_bits"),
        max_expansions=cap if type(cap) is int else None,
        timed=isinstance(limits, dict) and "max_ms" in limits,
        rule=_rule(record.get("controller"), caps, taken),
        caps=caps,
        account=read_account(record.get("account"), text(record, "run_id")),
        adapters=read_adapters(record.get("adapters")),
        raw=record["privacy_scope"] == RAW_INPUT,
        taken=taken,
    )


def caps_of(limits: Json) -> SpendingCaps:
    """The caps on asking among the members of an object, their forms looked at."""
    caps = limits if isinstance(limits, dict) else {}
    price, latency, epsilon = (caps.get(name) for name in ("price_cap", "sla_ms", "epsilon_cap"))
    return SpendingCaps(
        price=price if type(price) is int else None,
        latency=latency if type(latency) is int else None,
        epsilon=nano(epsilon, "epsilon_cap") if isinstance(epsilon, str) else None,
    )


def nano(value: str, name: str) -> int:
    """An exact decimal of at most nine places as an integer of nano-units.

    Raises:
        Rejected: L103 it has more places.
    """
    number, places = parse_decimal(value, name, Code.LEDGER_SCHEMA)
    ensure(places <= 9, Code.LEDGER_SCHEMA, name, "at most 9 decimal places", value)
    scale: int = 10 ** (9 - places)
    return number * scale


def taken_of(record: Record, says: bool) -> Taken | None:
    """The account of privacy that a record begins, by `accounting`; None without a delta.

    Args:
        says: whether anything is stated of it.

    Raises:
        Rejected: L103 an atom that is none; E103, E104 atoms that do not go together.
    """
    if "delta" not in record:
        return None
    # Who counts no atoms has none of the accountant to trust, nor to load.
    from tcc_certs.core.atoms import canonical_atom
    from tcc_certs.privacy.accountant import PLD, RENYI
    from tcc_certs.privacy.spending import account, exact_delta

    listed = record.get("atoms", ())
    items = listed if isinstance(listed, list) else []
    atoms = [
        canonical_atom(item, f"atoms[{i}]", Code.LEDGER_SCHEMA) for i, item in enumerate(items)
    ]
    rule = PLD if "accounting" in record else RENYI
    return account(exact_delta(text(record, "delta")), atoms, says, rule)


def _rule(controller: Json | None, caps: SpendingCaps, taken: Taken | None) -> AskRule | None:
    if not isinstance(controller, dict):
        return None
    return rule_of(text(controller, "ask"), controller, caps, taken)


def rule_of(ask: str, controller: Json, caps: SpendingCaps, taken: Taken | None) -> AskRule:
    """The rule that a controller's weights, and its margin where it has one, make.

    Raises:
        Rejected: L103 a decimal that is not canonical.
    """
    if not isinstance(controller, dict):
        raise Rejected(Code.LEDGER_SCHEMA, "controller", "an object of weights", controller)
    price, latency, epsilon = (
        parse_decimal(text(controller, name), f"controller.{name}", Code.LEDGER_SCHEMA)
        for name in ("price_weight", "latency_weight", "epsilon_weight")
    )
    margin = "margin" in controller
    return AskRule(
        ask=ask,
        price_weight=price,
        latency_weight=latency,
        epsilon_weight=epsilon,
        caps=caps,
        taken=taken,
        margin=_decimal(controller, "margin") if margin else None,
    )


def _decimal(record: Record, name: str) -> Decimal:
    return parse_decimal(text(record, name), name, Code.LEDGER_SCHEMA)
