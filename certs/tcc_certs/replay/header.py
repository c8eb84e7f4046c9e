"""The header of a ledger as values, and the adapters that models run with.

Normative text: docs/spec/ledger.md, sections 3, 4 and 13.  The module `header_check` compares a
header with the artifact.  The required adapters follow from the core.  Their data comes from
outside, and is the same in all records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcc_certs.errors import Code, ensure
from tcc_certs.formats.codec import Json, parse_decimal
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.policy.core import Core
from tcc_certs.policy.plans import Model
from tcc_certs.replay.amounts import AskRule, Decimal, SpendingCaps
from tcc_certs.replay.findings import NO_CERT, RUN_WISE_EXACT, RUN_WISE_SURROGATE, TRUNCATION_ONLY

if TYPE_CHECKING:
    from tcc_certs.privacy.spending import Taken
    from tcc_certs.replay.asking.account import AccountRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterRecord:
    """An adapter of a run.

    Attributes:
        name: its name in the models of the grammar.
        fields: the fields that it adds to the records of a question.
    """

    name: str
    fields: Mapping[str, Json]


NAMED = ("adapter_id", "dp_cert_id", "eps_train", "delta_train")


def read_adapters(listed: Json | None) -> tuple[AdapterRecord, ...]:
    """Return the adapters of an `open` record whose fields are well formed."""
    if not isinstance(listed, list):
        return ()
    return tuple(_adapter(item) for item in listed if isinstance(item, dict))


def _adapter(item: Record) -> AdapterRecord:
    return AdapterRecord(name=text(item, "name"), fields={name: item[name] for name in NAMED})


def named_adapters(core: Core) -> list[str]:
    """Return the sorted names of the adapters that models of a core run with."""
    return sorted({model.adapter for tool in core.tools for model in tool.models} - {""})


def adapter_fields(adapters: Iterable[AdapterRecord], model: Model) -> Mapping[str, Json]:
    """Return the fields of a question's record about the adapter of the asked model."""
    if not model.adapter:
        return {}
    return next((item.fields for item in adapters if item.name == model.adapter), {})


POST_PROCESSING, RAW_INPUT = "post_processing_only", "raw_input_dependent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The settings of `open` that the replay needs.

    Attributes:
        started_ms: for node ids.
        after: the calls before the root of the run.
        seed_commitment: 32 bytes.
        mode, race, keys, recipe: as in the record.
        claim_type: the claim of a certified stop, as the record states it.
        inflate, tau: exact decimals (numerator, places); at least 1, and above 0.
        alpha, eta: the parameters of Phi, exact decimals.
        top: k.
        truncate: K.
        count_bits: the most bits of a race count; 0: no limit.
        max_expansions: None: no cap.
        timed: whether there is a cap on time.
        rule: the rule for questions about costs; None if the header has none.
        caps: the caps on questions.
        account: the account that the run draws on; None: no account.
        adapters: the adapters that models run with.
        raw: whether the raw input decided the grammar or the models.
        taken: the privacy spending at the start of the run; None: the run counts no atoms.
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
        """Return the strongest claim of a certified stop with these settings."""
        if self.mode == "fallback" or self.race == "literal" or self.raw:
            return NO_CERT
        if self.truncate < root_rank:
            return TRUNCATION_ONLY
        return RUN_WISE_EXACT if self.mode == "exact" else RUN_WISE_SURROGATE

    def first_claim(self, root_rank: int) -> str:
        """Return the claim that the run starts with."""
        return NO_CERT if self.claim_type == NO_CERT else self.full_claim(root_rank)


def read_header(record: Record) -> Header:
    """Return the values of a header whose fields are well formed.

    Raises:
        Rejected: L103: a decimal or an atom is not canonical.
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
        rule=_rule(record, caps, taken),
        caps=caps,
        account=_account(record),
        adapters=read_adapters(record.get("adapters")),
        raw=record["privacy_scope"] == RAW_INPUT,
        taken=taken,
    )


def _rule(record: Record, caps: SpendingCaps, taken: Taken | None) -> AskRule | None:
    controller = record.get("controller")
    if not isinstance(controller, dict):
        return None
    from tcc_certs.replay.asking.controller import rule_of

    return rule_of(text(controller, "ask"), controller, caps, taken)


def _account(record: Record) -> AccountRecord | None:
    if "account" not in record:
        return None
    from tcc_certs.replay.asking.account import read_account

    return read_account(record["account"], text(record, "run_id"))


def caps_of(limits: Json) -> SpendingCaps:
    """Return the caps on questions among the members of an object with checked formats."""
    caps = limits if isinstance(limits, dict) else {}
    price, latency, epsilon = (caps.get(name) for name in ("price_cap", "sla_ms", "epsilon_cap"))
    return SpendingCaps(
        price=price if type(price) is int else None,
        latency=latency if type(latency) is int else None,
        epsilon=nano(epsilon, "epsilon_cap") if isinstance(epsilon, str) else None,
    )


def nano(value: str, name: str) -> int:
    """Return an exact decimal of at most nine places as an integer of nano-units.

    Raises:
        Rejected: L103: it has more places.
    """
    number, places = parse_decimal(value, name, Code.LEDGER_SCHEMA)
    ensure(places <= 9, Code.LEDGER_SCHEMA, name, "at most 9 decimal places", value)
    scale: int = 10 ** (9 - places)
    return number * scale


def taken_of(record: Record, says: bool) -> Taken | None:
    """Return the privacy spending that a record starts with; None without a delta.

    Args:
        says: whether records state the spending.

    Raises:
        Rejected: L103 an atom is malformed; E103, E104 the atoms do not fit together.
    """
    if "delta" not in record:
        return None
    # imported only here: most runs count no atoms and do not need the accountant
    from tcc_certs.policy.atoms import canonical_atom
    from tcc_certs.privacy.spending import account, exact_delta

    listed = record.get("atoms", ())
    items = listed if isinstance(listed, list) else []
    atoms = [
        canonical_atom(item, f"atoms[{i}]", Code.LEDGER_SCHEMA) for i, item in enumerate(items)
    ]
    return account(exact_delta(text(record, "delta")), atoms, says)


def _decimal(record: Record, name: str) -> Decimal:
    return parse_decimal(text(record, name), name, Code.LEDGER_SCHEMA)
