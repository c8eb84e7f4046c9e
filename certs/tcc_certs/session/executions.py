"""Models that make calls of a session: their budget, the choice of a model, and its amounts.

Normative text: docs/spec/session.md, section 12.  The controller of questions chooses the model.
It treats an execution as a question about a width of 2, of which a done call gains 1.  The choice,
expected amounts, sums and remainders are derived.  The amounts that a call or a search took come
from the ledger.  Cost: the controller's choice for each call, and a step for each refused model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, format_decimal
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import text
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.plans import Model, executing
from tcc_certs.replay import header
from tcc_certs.replay.amounts import AskRule, SpendingCaps, SpentAmounts, spent_fields
from tcc_certs.replay.asking.account import AccountRecord, DrawnRecord, read_account
from tcc_certs.replay.asking.controller import Choice, Controller, rule_of
from tcc_certs.replay.findings import Findings
from tcc_certs.session.records import MAC

if TYPE_CHECKING:
    from tcc_certs.policy.atoms import Atom

# The budget, from its record.


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRecord:
    """The content of a `budget` record.

    Attributes:
        rule: the rule of the controller, with the caps and earlier privacy spending.
        adapters: the adapters of the models that make calls.
        account: the account that they draw on; None: no account.
    """

    rule: AskRule
    adapters: tuple[header.AdapterRecord, ...]
    account: AccountRecord | None


def read_budget(record: Record, core: Core, session: str) -> BudgetRecord:
    """Return the budget of a session from a record whose members are well formed.

    Raises:
        Rejected: L103 a decimal or an atom is not canonical; S401 a value is not allowed, or the
            adapters differ from those of the core.
    """
    taken = header.taken_of(record, says=True)
    rule = rule_of("leaf", record["controller"], header.caps_of(record), taken)
    for name, holds, expected in _rules(record, rule, core):
        ensure(holds, Code.SESSION_BUDGET, name, expected, record.get(name, "no field"))
    return BudgetRecord(
        rule=rule,
        adapters=header.read_adapters(record.get("adapters")),
        account=read_account(record.get("account"), session),
    )


def _rules(record: Record, rule: AskRule, core: Core) -> Iterator[tuple[str, bool, object]]:
    """Yield, for each check of a budget: the member, whether the check passes, the expectation."""
    weights = (rule.price_weight[0] > 0, rule.latency_weight[0] > 0, rule.epsilon_weight[0] >= 0)
    yield "controller", all(weights), "weights above 0; of epsilon, at least 0"
    number, places = rule.margin or (1, 1)
    yield "controller", 0 < number < 10**places, "a margin above 0, below 1"
    models = makers(core)
    needed = "atoms" in record or any(model.atom for model in models)
    yield "delta", rule.taken is not None or not needed, "a delta, as atoms are counted"
    due = None if rule.taken is None else "pld"
    yield "accounting", record.get("accounting") == due, "pld with a delta, else no member"
    if rule.taken is not None:
        number, places = rule.taken.delta
        yield "delta", 0 < number < 10**places, "above 0, below 1"
    named = sorted({model.adapter for model in models} - {""})
    found = [adapter.name for adapter in header.read_adapters(record.get("adapters"))]
    yield "adapters", found == named, named or "no field"


def makers(core: Core) -> list[Model]:
    """Return the models of a grammar that make calls."""
    return [model for tool in core.tools for model in executing(tool.models)]


# Calls that models make, and their amounts.

WIDTH = 2
_MODEL, _AMOUNT, _ACCOUNT = Code.SESSION_MODEL, Code.SESSION_AMOUNT, Code.SESSION_RESERVATION
_NONE = "no member"


class Executions:
    """The calls that models make in one session, and the amounts of searches.

    Attributes:
        made: the number of calls.
        asked_times: the number of searches with a record.
    """

    def __init__(self, budget: BudgetRecord, tools: tuple[Tool, ...], findings: Findings) -> None:
        self.made = self.asked_times = 0
        self._budget = budget
        self._findings = findings
        self._controller = Controller(budget.rule)
        self._models = [executing(tool.models) for tool in tools]
        self._drawn = None if budget.account is None else DrawnRecord(budget.account)
        self._pending: tuple[int, Choice] | None = None

    def call(self, tool: int, found: Json | None, line: int) -> None:
        """Check the member `execute` of a call record.

        Args:
            tool: the index of the tool.
            found: the member; None: it is absent.

        Raises:
            Rejected: S402 the member names another model than the rule chooses, no model fits, or
                the member is present or absent when it should not be.  S404 it names an account,
                but the session has none.  L709 see :mod:`tcc_certs.replay.asking.account`.
        """
        models = self._models[tool]
        if not models:
            ensure(found is None, _MODEL, "execute", "no field: no model makes this call", found)
            return
        if not isinstance(found, dict):
            raise Rejected(_MODEL, "execute", "the model that makes the call", "no field")
        ranked = self._controller.ranked(tool, models, WIDTH)
        spent, refused = self._controller.spent, self._refused(ranked, found, line)
        if refused == len(ranked):
            raise Rejected(_MODEL, "execute", "no call: no model fits", found["model_id"])
        choice = ranked[refused]
        named = choice.model.name
        ensure(found["model_id"] == named, _MODEL, "execute.model_id", named, found["model_id"])
        expected = {
            "model_id": named,
            **header.adapter_fields(self._budget.adapters, choice.model),
            **_amounts(choice.reserved),
            **self._sums(spent.plus(choice.reserved)),
            **({"refused": found["refused"]} if refused else {}),
        }
        if self._drawn is not None:
            wish = {"account_left": found.get("account_left", {})}
            expected |= self._drawn.wish(spent, choice.reserved, wish, line, self._findings)
        self._compare("execute", expected, found, line)
        self.made += 1
        self._pending = tool, choice

    def outcome(self, found: Json | None, done: bool, line: int) -> None:
        """Check the member `took` of the last call's outcome, and count its amounts.

        Args:
            found: the member; None: it is absent.
            done: whether the outcome is `done`.

        Raises:
            Rejected: S402 the member is missing, or no model made the call, or an atom is missing;
                L103 an amount has more than nine places.
        """
        if self._pending is None:
            ensure(found is None, _MODEL, "took", "no field: no model made this call", found)
            return
        if not isinstance(found, dict):
            raise Rejected(_MODEL, "took", "what the call took", "no field")
        choice, spent = self._pending[1], self._controller.spent
        took = _read_amounts(found, self._atom(found, choice))
        self._settle(took, int(done))
        expected = {**_amounts(took), **self._sums(self._controller.spent)}
        if took.atom is not None:
            expected["atom"] = found["atom"]  # canonical, because `_atom` has read it
        if self._drawn is not None and "account_left" in found:
            expected |= self._drawn.settled(spent, took, found, line, self._findings)
        elif self._drawn is not None:
            self._drawn.take(spent, took)
        self._compare("took", expected, found, line)

    def asked(self, record: Record, line: int) -> None:
        """Add the amounts that the questions of a search took.

        Raises:
            Rejected: L103 an amount has more than nine places, or an atom is malformed; S403 the
                session counts no atoms.
        """
        spent, listed = self._controller.spent, record.get("atoms", ())
        spent = spent.plus(_read_amounts(record, None))
        for i, item in enumerate(listed if isinstance(listed, list) else ()):
            spent = spent.plus(SpentAmounts(atom=self._counted(item, f"atoms[{i}]", _AMOUNT)))
        self._controller.spent = spent
        self.asked_times += 1
        taken = ("kind", MAC, *_READ, "atoms")
        expected = {name: record[name] for name in taken if name in record}
        self._compare("", {**expected, **self._sums(spent)}, record, line)

    def makes(self, tool: int) -> bool:
        """Return whether models make the calls of a tool."""
        return bool(self._models[tool])

    def _settle(self, took: SpentAmounts, gained: int) -> None:
        if self._pending is not None:
            tool, choice = self._pending
            self._controller.settle(tool, choice, took, WIDTH, gained)
            self._pending = None

    def _refused(self, ranked: Sequence[Choice], found: Mapping[str, Json], line: int) -> int:
        """Return how many models, the best first, the account refused for lack of budget."""
        listed = found.get("refused", ())
        items = listed if isinstance(listed, list) else []
        for number, item in enumerate(items):
            if self._drawn is None or not isinstance(item, dict):
                raise Rejected(_ACCOUNT, "execute.refused", "no member, without an account", item)
            named, left = item["model_id"], number < len(ranked)
            expected = ranked[number].model.name if left else "no more"
            ensure(left and named == expected, _MODEL, "execute.refused", expected, named)
            wish = {"budget_event": "refused", "account_left": item["account_left"]}
            spent, reserved = self._controller.spent, ranked[number].reserved
            self._drawn.wish(spent, reserved, wish, line, self._findings)
        return len(items)

    def _atom(self, found: Mapping[str, Json], choice: Choice) -> Atom | None:
        if "atom" not in found:
            carries = choice.model.atom is not None
            ensure(not carries, _MODEL, "took.atom", "one, as its model carries one", "none")
            return None
        return self._counted(found["atom"], "took.atom", _MODEL)

    def _counted(self, item: Json, place: str, code: Code) -> Atom:
        counted = self._budget.rule.taken is not None
        ensure(counted, code, place, "no atom, as there is no delta", item)
        from tcc_certs.policy.atoms import canonical_atom

        return canonical_atom(item, place, Code.LEDGER_SCHEMA)

    def _sums(self, spent: SpentAmounts) -> Mapping[str, Json]:
        return {**spent_fields(spent), "left": left_of(self._budget.rule.caps, spent)}

    def _compare(
        self, what: str, expected: Mapping[str, Json], found: Mapping[str, Json], line: int
    ) -> None:
        for name in sorted({*expected, *found}):
            wanted, there = expected.get(name, _NONE), found.get(name, _NONE)
            if wanted != there:
                place = f"{what}.{name}" if what else name
                self._findings.add(_code_of(name), line, place, wanted, there)


_READ = ("price", "latency", "epsilon")
_OF_MODEL = ("model_id", "adapter_id", "dp_cert_id", "eps_train", "delta_train", "atom")


def _code_of(name: str) -> Code:
    if name in _OF_MODEL:
        return _MODEL
    return _ACCOUNT if name in ("reservation", "account_left", "refused") else _AMOUNT


def _amounts(amounts: SpentAmounts) -> dict[str, Json]:
    return {
        "price": str(amounts.price),
        "latency": str(amounts.latency),
        "epsilon": format_decimal(amounts.epsilon, 9),
    }


def _read_amounts(found: Mapping[str, Json], atom: Atom | None) -> SpentAmounts:
    return SpentAmounts(
        price=int(text(found, "price")),
        latency=int(text(found, "latency")),
        epsilon=header.nano(text(found, "epsilon"), "epsilon"),
        atom=atom,
    )


def left_of(caps: SpendingCaps, spent: SpentAmounts) -> dict[str, Json]:
    """Return the remainder of each cap that is set; it is negative if the cap is exceeded."""
    pairs = (
        ("price", caps.price, spent.price, 0),
        ("latency_ms", caps.latency, spent.latency, 0),
        ("epsilon", caps.epsilon, spent.epsilon_used, 9),
    )
    return {
        name: format_decimal(cap - used, places)
        for name, cap, used, places in pairs
        if cap is not None
    }
