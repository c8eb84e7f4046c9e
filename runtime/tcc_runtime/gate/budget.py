"""Models that make calls of a session: the budget, the choice of a model, and the amounts spent.

Text: docs/spec/session.md, section 8; docs/privacy.md and docs/adapters.md for the inputs.  The
controller of searches also chooses the model of a call.  The choice depends only on the records of
the session, so a reopened session chooses as before.
Cost: opening is linear in atoms, adapters and folders of a registry.  A call takes one choice; with
an account also two transactions before it and one after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, format_decimal
from tcc_certs.policy.atoms import Atom, atom_document, canonical_atom
from tcc_certs.policy.core import Core
from tcc_certs.policy.plans import executing
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.privacy.spending import Taken, account, exact_delta
from tcc_certs.replay.amounts import SpentAmounts, cap_fields, spent_fields
from tcc_certs.replay.asking.controller import Choice, Controller
from tcc_runtime.account.account import Account
from tcc_runtime.account.amounts import AccountAmounts, Caps, Remainder
from tcc_runtime.adapters.adapter import Adapter, adapter_of, adapters_of
from tcc_runtime.errors import ResumeError, SettingsError
from tcc_runtime.ledger.lines import account_member, delta_fields, left_field, left_texts, weights
from tcc_runtime.pricing.drawing import Drawing, Drawn, Wish, answer_of, left_in, reservation_name
from tcc_runtime.pricing.quotes import Answer
from tcc_runtime.pricing.refine import drawn_amounts, taken_amounts
from tcc_runtime.settings.modes import check_neighbours
from tcc_runtime.settings.settings import DEFAULT_DELTA, Settings

# The budget.

_TOLD: Final = ("price_cap", "sla_ms", "epsilon_cap", "delta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The budget of a session for calls that models make.

    Attributes:
        settings: caps, weights, margin, delta, and the atoms that privatised the input.
        adapters: the adapters of the models that make calls, sorted by name.
        account: id and caps of the account that the session draws on; None: it has no account.
    """

    settings: Settings
    adapters: tuple[Adapter, ...] = ()
    account: tuple[str, Caps] | None = None

    @property
    def taken(self) -> Taken | None:
        """The privacy loss at the start of the budget; None: the session counts no atoms."""
        delta = self.settings.delta
        if delta is None:
            return None
        return account(exact_delta(delta), self.settings.atoms, True)

    @property
    def limits(self) -> dict[str, Any]:
        """The settings for searches of the session, by name."""
        names = ("price_weight", "latency_weight", "epsilon_weight", "margin", "atoms")
        return {name: getattr(self.settings, name) for name in (*_TOLD, *names)}

    @property
    def caps(self) -> Caps:
        """The caps of price, latency and epsilon."""
        told = self.settings
        return Caps(told.price_cap, told.sla_ms, told.nano_epsilon_cap)

    def record(self) -> dict[str, Json]:
        """Return the `budget` record."""
        record: dict[str, Json] = {
            "kind": "budget",
            "controller": weights(self.settings),
            **cap_fields(self.settings.spending_caps),
        }
        if self.taken is not None:
            record.update(delta_fields(self.taken))
        if self.settings.atoms:
            record["atoms"] = [atom_document(atom) for atom in self.settings.atoms]
        if self.adapters:
            record["adapters"] = [adapter.listed for adapter in self.adapters]
        if self.account is not None:
            record["account"] = account_member(*self.account)
        return record


def used(spent: SpentAmounts) -> AccountAmounts:
    """Return spent amounts in the form that is compared with caps."""
    return AccountAmounts(spent.price, spent.latency, spent.epsilon_used)


def budget_of(
    core: Core,
    told: Mapping[str, Any],
    atoms: Sequence[Atom],
    registry: Iterable[Adapter] | None,
    drawn_on: tuple[str, Caps] | None,
) -> Budget:
    """Return a budget over the models of a grammar.

    Args:
        told: settings by name.
        atoms: the atoms that privatised the input.
        registry: all known adapters; None: adapters are not recorded.
        drawn_on: id and caps of the account; None: no account.

    Raises:
        SettingsError: a setting is outside its range.
        Rejected: A102: the registry lacks an adapter of a model that makes calls; E103, E104: the
            atoms cannot be added up together.
    """
    settings = Settings(seed=bytes(32), atoms=tuple(atoms), **told)
    models = [model for tool in core.tools for model in (*tool.models, *executing(tool.models))]
    if settings.delta is None and (atoms or any(model.atom for model in models)):
        settings = Settings(seed=bytes(32), atoms=tuple(atoms), **{**told, "delta": DEFAULT_DELTA})
    if settings.delta is not None:
        check_neighbours(atoms, models)
    return Budget(
        settings=settings,
        adapters=() if registry is None else adapters_of(core, registry, executing),
        account=drawn_on,
    )


def budget_in(record: Mapping[str, Any], line: int) -> Budget:
    """Return the budget of a `budget` record; the caller has checked the form of the record.

    Args:
        line: the number of the record, for errors.

    Raises:
        ResumeError: a value of the record is outside its range.
    """
    told = {name: record[name] for name in _TOLD if name in record}
    try:
        atoms = [
            canonical_atom(item, "atoms", Code.LEDGER_SCHEMA) for item in record.get("atoms", ())
        ]
        named = dict(record.get("account", {}))
        epsilon = named.get("epsilon")
        caps = Caps(
            named.get("price"),
            named.get("latency_ms"),
            None
            if epsilon is None
            else Settings(seed=bytes(32), epsilon_cap=epsilon).nano_epsilon_cap,
        )
        return Budget(
            settings=Settings(seed=bytes(32), atoms=tuple(atoms), **told, **record["controller"]),
            adapters=tuple(Adapter(**item) for item in record.get("adapters", ())),
            account=(str(named["id"]), caps) if named else None,
        )
    except SettingsError as error:
        raise ResumeError(f"line {line}: {error.field}", error.expected, error.found) from None
    except Rejected as refusal:
        place = f"line {line}: {refusal.path}"
        raise ResumeError(place, refusal.expected, refusal.found) from None


# Inputs that callers pass as objects or in plain form.


def atoms_in(atoms: Sequence[Mapping[str, Any] | Atom]) -> tuple[Atom, ...]:
    """Return atoms; mappings in the form of docs/privacy.md are converted.

    Raises:
        Rejected: E101 to E104: an atom is malformed, or the atoms cannot be added up together.
    """
    return tuple([atom if isinstance(atom, Atom) else atoms_of([dict(atom)])[0] for atom in atoms])


def adapters_in(adapters: str | Path | Iterable[Adapter] | None) -> tuple[Adapter, ...] | None:
    """Return adapters as a tuple; a path is read as a registry, None stays None.

    Raises:
        Rejected: A101 to A107: the registry is malformed.
    """
    if isinstance(adapters, str | Path):
        from tcc_runtime.adapters.registry import read_registry

        return read_registry(Path(adapters))
    return None if adapters is None else tuple(adapters)


# Calls that models make.

WIDTH: Final = 2
_PLACES: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A call for which a model was chosen.

    Attributes:
        tool: index of the tool in the core.
        choice: the model, and the amounts that it is expected to take.
        refused: better models that the account refused: index among the tool's models, name, and
            remainder of the account.
        wish: the reservation that the account granted; None: the session has no account.
    """

    tool: int
    choice: Choice
    refused: tuple[tuple[int, str, Remainder], ...] = ()
    wish: Wish | None = None


class ModelCalls:
    """The calls that models make in one session.

    Attributes:
        budget: the budget that the session recorded.
        account: the account that this process draws on; None: the caller passed none.
        pending: the model call under way; None: none is.
    """

    def __init__(self, core: Core, budget: Budget, session_id: str) -> None:
        self.budget = budget
        self.account: Account | None = None
        self.pending: ModelCall | None = None
        self._controller = Controller(budget.settings.ask_rule("never", budget.taken))
        self._models = [executing(tool.models) for tool in core.tools]
        self._session_id = session_id
        self._wishes = 0
        self._searches = 0

    @property
    def spent(self) -> SpentAmounts:
        """The amounts of all searches and calls so far."""
        return self._controller.spent

    def makes(self, tool: int) -> bool:
        """Return whether models make the calls of a tool."""
        return bool(self._models[tool])

    def choice(self, tool: int, refused: Collection[int] = ()) -> Choice | None:
        """Return the best model for the next call of a tool; None: no model fits the caps.

        Args:
            refused: indices of models to skip.
        """
        return self._controller.choose(tool, self._models[tool], refused, WIDTH)

    def reserve(self, tool: int) -> ModelCall | None:
        """Choose the model of the next call, and reserve its cost in the account.

        Returns:
            None if no model fits the caps, or the account grants none.

        Raises:
            Rejected: K101, K103, K104, K106 of the account.
        """
        refused: list[tuple[int, str, Remainder]] = []
        while (choice := self.choice(tool, [place for place, _, _ in refused])) is not None:
            if self.budget.account is None:
                return ModelCall(tool=tool, choice=choice)
            if self.account is None:
                return None
            number = self._wishes + len(refused) + 1
            name = reservation_name(self.account.id, self._session_id, number)
            amounts = drawn_amounts(self.spent, self.spent.plus(choice.reserved), choice.reserved)
            found = self.account.reserve(name, self._session_id, amounts)
            if found.granted:
                # Begun before the call is recorded: after a crash the reservation still counts.
                self.account.begin(name)
                wish = Wish(name=name, granted=True, left=found.left)
                return ModelCall(tool=tool, choice=choice, refused=tuple(refused), wish=wish)
            refused.append((choice.number, choice.model.name, found.left))
        return None

    def fields(self, execution: ModelCall) -> dict[str, Json]:
        """Return the member `execute` of a `call` record."""
        choice, wish = execution.choice, execution.wish
        adapter = adapter_of(choice.model, self.budget.adapters)
        refused = [{"model_id": name, **left_field(left)} for _, name, left in execution.refused]
        return {
            "model_id": choice.model.name,
            **({} if adapter is None else adapter.asked),
            **_amounts(choice.reserved),
            **self._sums(self.spent.plus(choice.reserved)),
            **({"refused": refused} if refused else {}),
            **({} if wish is None else {"reservation": wish.name, **left_field(wish.left)}),
        }

    def told(self, tool: int, record: Mapping[str, Any], line: int) -> ModelCall:
        """Return the model call of a recorded `execute`, when a session is reopened.

        Raises:
            ResumeError: this process would choose another model.
        """
        refused: list[tuple[int, str, Remainder]] = []
        places = {model.name: place for place, model in enumerate(self._models[tool])}
        for item in record.get("refused", ()):
            name, left = str(item["model_id"]), left_in(item["account_left"], line)
            refused.append((places.get(name, -1), name, left))
        choice = self.choice(tool, {place for place, _, _ in refused})
        if choice is None or choice.model.name != record["model_id"]:
            due = "no call: no model fits" if choice is None else choice.model.name
            raise ResumeError(f"line {line}: execute", due, record["model_id"])
        wish = None
        if "account_left" in record:
            left = left_in(record["account_left"], line)
            wish = Wish(name=str(record.get("reservation")), granted=True, left=left)
        return ModelCall(tool=tool, choice=choice, refused=tuple(refused), wish=wish)

    def begin(self, execution: ModelCall) -> None:
        """Note that the call begins."""
        self.pending = execution
        self._wishes += len(execution.refused) + (execution.wish is not None)

    def give_back(self, execution: ModelCall) -> None:
        """Return the reservation of a call that was not made.

        Raises:
            Rejected: see :meth:`reserve`.
        """
        if self.account is not None and execution.wish is not None:
            nothing = drawn_amounts(self.spent, self.spent, SpentAmounts())
            self.account.settle(execution.wish.name, nothing)

    def took(self, answer: Answer | None, ms: int) -> SpentAmounts:
        """Return the amounts that the call under way took.

        Args:
            answer: the amounts that the caller reports; the model's declaration replaces missing
                amounts.
            ms: the measured time in milliseconds, if no latency is reported.

        Raises:
            SettingsError: an atom is reported, but the session counts none.
        """
        took = taken_amounts(answer or Answer(), self._execution().choice.model, ms)
        if took.atom is not None and self.budget.taken is None:
            raise SettingsError("atom", "none, as the session has no delta", "one")
        return took

    def draw(self, took: SpentAmounts) -> Remainder | None:
        """Replace the reservation of the call under way by the amounts that it took.

        Returns:
            The remainder of the account; None: the session has no account.

        Raises:
            Rejected: see :meth:`reserve`.
        """
        wish = self._execution().wish
        if self.account is None or wish is None:
            return None
        amounts = drawn_amounts(self.spent, self.spent.plus(took), took)
        return self.account.settle(wish.name, amounts)

    def took_fields(self, took: SpentAmounts, left: Remainder | None) -> dict[str, Json]:
        """Return the member `took` of an `outcome` record."""
        return {
            **_amounts(took),
            **({} if took.atom is None else {"atom": atom_document(took.atom)}),
            **self._sums(self.spent.plus(took)),
            **left_field(left),
        }

    def told_took(self, record: Mapping[str, Any], line: int) -> SpentAmounts:
        """Return the amounts in the member `took` of an `outcome` record."""
        return taken_amounts(answer_of(record, line), self._execution().choice.model, 0)

    def settle(self, took: SpentAmounts, done: bool) -> None:
        """End the call under way: add its cost to the amounts spent."""
        execution = self._execution()
        self.pending = None
        self._controller.settle(execution.tool, execution.choice, took, WIDTH, int(done))

    def asked_record(self, took: SpentAmounts, atoms: Sequence[Atom]) -> dict[str, Json]:
        """Return the `asked` record of a search."""
        listed = [atom_document(atom) for atom in atoms]
        return {
            "kind": "asked",
            **_amounts(took),
            **({"atoms": listed} if listed else {}),
            **self._sums(self._with(took, atoms)),
        }

    def asked(self, took: SpentAmounts, atoms: Sequence[Atom]) -> None:
        """Add the cost of a search's questions to the amounts spent."""
        self._controller.spent = self._with(took, atoms)
        self._searches += 1

    def drawing(self) -> Drawing | None:
        """Return the reservations for the questions of the next search; None: the session has no
        account.
        """
        if self.account is None:
            return None
        return Drawn(self.account, f"{self._session_id}/{self._searches + 1}")

    def left(self) -> Mapping[str, Json]:
        """Return the remainder of each cap, as texts by name."""
        return left_texts(self.budget.caps.left(used(self.spent)))

    def _with(self, took: SpentAmounts, atoms: Sequence[Atom]) -> SpentAmounts:
        spent = self.spent.plus(took)
        for atom in atoms:
            spent = spent.plus(SpentAmounts(atom=atom))
        return spent

    def _sums(self, spent: SpentAmounts) -> dict[str, Json]:
        left = left_texts(self.budget.caps.left(used(spent)))
        return {**spent_fields(spent), "left": left}

    def _execution(self) -> ModelCall:
        if self.pending is None:
            raise ValueError("no model makes a call")
        return self.pending


def _amounts(took: SpentAmounts) -> dict[str, Json]:
    return {
        "price": str(took.price),
        "latency": str(took.latency),
        "epsilon": format_decimal(took.epsilon, _PLACES),
    }


def asked_in(record: Mapping[str, Any], line: int) -> tuple[SpentAmounts, tuple[Atom, ...]]:
    """Return the amounts of an `asked` record, and their atoms.

    Raises:
        ResumeError: an amount is malformed.
    """
    bare = {name: record[name] for name in ("price", "latency", "epsilon")}
    listed = record.get("atoms", ())
    answers = [answer_of({**bare, "atom": item}, line) for item in listed]
    told = answer_of(bare, line)
    spent = SpentAmounts(
        price=told.price or 0, latency=told.latency_ms or 0, epsilon=told.epsilon or 0
    )
    return spent, tuple([answer.atom for answer in answers if answer.atom is not None])
