"""The budget of a session, as its record has it: what models that make calls may take.

Normative text: docs/spec/session.md, section 8.  Cost: nothing to speak of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcc_certs.core.model import Core, Model, executing
from tcc_certs.errors import Code, ensure
from tcc_certs.formats.ledger import Record
from tcc_certs.replay.account import Account, read_account
from tcc_certs.replay.controller import Rule
from tcc_certs.replay.header import Adapter, caps_of, read_adapters, rule_of, taken_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a `budget` record says.

    Attributes:
        rule: of the controller, with the caps and what was taken of privacy before.
        adapters: of the models that make calls.
        account: that they draw on; None: none.
    """

    rule: Rule
    adapters: tuple[Adapter, ...]
    account: Account | None


def read_budget(record: Record, core: Core, session: str) -> Budget:
    """The budget of a session, from a record whose fields have their form.

    Raises:
        Rejected: L103 a decimal or an atom that is not canonical; S401 a value that none can have,
            or adapters that are not those of the core.
    """
    taken = taken_of(record, says=True)
    rule = rule_of("leaf", record["controller"], caps_of(record), taken)
    for name, holds, expected in _rules(record, rule, core):
        ensure(holds, Code.SESSION_BUDGET, name, expected, record.get(name, "no field"))
    return Budget(
        rule=rule,
        adapters=read_adapters(record.get("adapters")),
        account=read_account(record.get("account"), session),
    )


def _rules(record: Record, rule: Rule, core: Core) -> Iterator[tuple[str, bool, object]]:
    """Field, whether it holds, what is expected."""
    weights = (rule.price_weight[0] > 0, rule.latency_weight[0] > 0, rule.epsilon_weight[0] >= 0)
    yield "controller", all(weights), "weights above 0; of epsilon, at least 0"
    number, places = rule.margin or (1, 1)
    yield "controller", 0 < number < 10**places, "a margin above 0, below 1"
    models = makers(core)
    needed = "atoms" in record or any(model.atom for model in models)
    yield "delta", rule.taken is not None or not needed, "a delta, as atoms are counted"
    rules = (None, "pld") if rule.taken is not None else (None,)
    known = record.get("accounting") in rules
    yield "accounting", known, "pld, where atoms are counted"
    if rule.taken is not None:
        number, places = rule.taken.delta
        yield "delta", 0 < number < 10**places, "above 0, below 1"
    named = sorted({model.adapter for model in models} - {""})
    found = [adapter.name for adapter in read_adapters(record.get("adapters"))]
    yield "adapters", found == named, named or "no field"


def makers(core: Core) -> list[Model]:
    """The models of a grammar that make calls."""
    return [model for tool in core.tools for model in executing(tool.models)]
