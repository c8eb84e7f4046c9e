"""Models that make calls of a session: its budget, which one is chosen, what they have taken of it.

Text: docs/spec/session.md, section 8; docs/privacy.md and docs/adapters.md for what is handed in.
The choice is that of the controller of asks.  All of it follows from the records of the session, so
whoever reopens it chooses as the last one would have.
Cost: linear in atoms and adapters, of a registry its folders; then the controller's choice a call,
with an account two transactions before it, one after it.
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
from tcc_certs.privacy.accountant import RENYI
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.privacy.spending import Taken, account, exact_delta
from tcc_certs.replay.amounts import SpentAmounts, cap_fields, spent_fields
from tcc_certs.replay.asking.controller import Choice, Controller
from tcc_runtime.account.account import Account
from tcc_runtime.account.amounts import AccountAmounts, Caps, Remainder
from tcc_runtime.adapters.adapter import Adapter, adapter_of, adapters_of
from tcc_runtime.errors import ResumeError, SettingsError
from tcc_runtime.ledger.lines import account_member, left_field, left_texts, rule_field, weights
from tcc_runtime.pricing.drawing import Drawing, Drawn, Wish, answer_of, left_in, reservation_name
from tcc_runtime.pricing.quotes import Answer
from tcc_runtime.pricing.refine import drawn_amounts, taken_amounts
from tcc_runtime.settings.modes import check_neighbours
from tcc_runtime.settings.settings import DEFAULT_DELTA, Settings

# The budget.

_TOLD: Final = ("price_cap", "sla_ms", "epsilon_cap", "delta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A budget.

    Attributes:
        settings: caps, weights, margin, delta and the atoms that privatised the input.
        adapters: of the models that make calls, in order of their names.
        account: identity and caps of the one that is drawn on; None: none is.
    """

    settings: Settings
    adapters: tuple[Adapter, ...] = ()
    account: tuple[str, Caps] | None = None

    @property
    def taken(self) -> Taken | None:
        """The account of privacy that it begins with; None where no atoms are counted."""
        delta = self.settings.delta
        if delta is None:
            return None
        return account(exact_delta(delta), self.settings.atoms, True, self.settings.accounting)

    @property
    def limits(self) -> dict[str, Any]:
        """What searches of the session are told."""
        names = ("price_weight", "latency_weight", "epsilon_weight", "margin", "atoms")
        return {name: getattr(self.settings, name) for name in (*_TOLD, *names, "accounting")}

    @property
    def caps(self) -> Caps:
        """The caps."""
        told = self.settings
        return Caps(told.price_cap, told.sla_ms, told.nano_epsilon_cap)

    def record(self) -> dict[str, Json]:
        """`budget`."""
        record: dict[str, Json] = {
            "kind": "budget",
            "controller": weights(self.settings),
            **cap_fields(self.settings.spending_caps),
        }
        if self.taken is not None:
            record.update({"delta": self.taken.delta.text, **rule_field(self.taken)})
        if self.settings.atoms:
            record["atoms"] = [atom_document(atom) for atom in self.settings.atoms]
        if self.adapters:
            record["adapters"] = [adapter.listed for adapter in self.adapters]
        if self.account is not None:
            record["account"] = account_member(*self.account)
        return record


def used(spent: SpentAmounts) -> AccountAmounts:
    """What was spent, as caps are held against it."""
    return AccountAmounts(spent.price, spent.latency, spent.epsilon_used)


def budget_of(
    core: Core,
    told: Mapping[str, Any],
    atoms: Sequence[Atom],
    registry: Iterable[Adapter] | None,
    drawn_on: tuple[str, Caps] | None,
) -> Budget:
    """A budget over the models of a grammar.

    Args:
        told: settings by name.
        registry: None: nothing is said of adapters.

    Raises:
        SettingsError: a setting is out of its range.
        Rejected: A102 a model that makes calls names an adapter that the registry does not have;
            E103, E104 atoms do not go together.
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
    """The budget of a record whose fields have their form.

    Raises:
        ResumeError: it is none that this version writes.
    """
    told = {name: record[name] for name in _TOLD if name in record}
    told["accounting"] = record.get("accounting", RENYI)
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


# What callers hand in: as values, or as what says them.


def atoms_in(atoms: Sequence[Mapping[str, Any] | Atom]) -> tuple[Atom, ...]:
    """Atoms, or objects that say them.

    Raises:
        Rejected: E101 to E104, one is none.
    """
    return tuple([atom if isinstance(atom, Atom) else atoms_of([dict(atom)])[0] for atom in atoms])


def adapters_in(adapters: str | Path | Iterable[Adapter] | None) -> tuple[Adapter, ...] | None:
    """The adapters of a registry, or those that are given.

    Raises:
        Rejected: A101 to A107.
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
    """A model that makes a call.

    Attributes:
        tool: its number in the core.
        choice: the model, and what it is expected to take.
        refused: places and names of better models, with what the account had left.
        wish: that the account granted; None: there is no account.
    """

    tool: int
    choice: Choice
    refused: tuple[tuple[int, str, Remainder], ...] = ()
    wish: Wish | None = None


class ModelCalls:
    """The calls that models make in one session.

    Attributes:
        budget: as its record has it.
        account: that this process draws on; None: none was given.
        pending: who makes the call that is under way.
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
        """By all asks and calls so far."""
        return self._controller.spent

    def makes(self, tool: int) -> bool:
        """Whether models make the calls of a tool."""
        return bool(self._models[tool])

    def choice(self, tool: int, refused: Collection[int] = ()) -> Choice | None:
        """The model that makes the next call of a tool; None: none fits."""
        return self._controller.choose(tool, self._models[tool], refused, WIDTH)

    def reserve(self, tool: int) -> ModelCall | None:
        """The model that makes the next call, with what the account has granted; None: none does.

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
                # Begun before anything says that the call is made: whatever comes, it counts.
                self.account.begin(name)
                wish = Wish(name=name, granted=True, left=found.left)
                return ModelCall(tool=tool, choice=choice, refused=tuple(refused), wish=wish)
            refused.append((choice.number, choice.model.name, found.left))
        return None

    def fields(self, execution: ModelCall) -> dict[str, Json]:
        """`execute` of a `call`."""
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
        """The execution that `execute` of a `call` speaks of; the record was held to what follows.

        Raises:
            ResumeError: another model would be chosen here.
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
        """The call is made."""
        self.pending = execution
        self._wishes += len(execution.refused) + (execution.wish is not None)

    def give_back(self, execution: ModelCall) -> None:
        """The call is not made, though its reservation was begun.

        Raises:
            Rejected: as :meth:`reserve`.
        """
        if self.account is not None and execution.wish is not None:
            nothing = drawn_amounts(self.spent, self.spent, SpentAmounts())
            self.account.settle(execution.wish.name, nothing)

    def took(self, answer: Answer | None, ms: int) -> SpentAmounts:
        """What the call under way took: as is said, else as declared and measured.

        Raises:
            SettingsError: an atom is said where none are counted.
        """
        took = taken_amounts(answer or Answer(), self._execution().choice.model, ms)
        if took.atom is not None and self.budget.taken is None:
            raise SettingsError("atom", "none, as the session has no delta", "one")
        return took

    def draw(self, took: SpentAmounts) -> Remainder | None:
        """Puts what the call under way took in the place of what was reserved; what is left.

        Raises:
            Rejected: as :meth:`reserve`.
        """
        wish = self._execution().wish
        if self.account is None or wish is None:
            return None
        amounts = drawn_amounts(self.spent, self.spent.plus(took), took)
        return self.account.settle(wish.name, amounts)

    def took_fields(self, took: SpentAmounts, left: Remainder | None) -> dict[str, Json]:
        """`took` of an `outcome`."""
        return {
            **_amounts(took),
            **({} if took.atom is None else {"atom": atom_document(took.atom)}),
            **self._sums(self.spent.plus(took)),
            **left_field(left),
        }

    def told_took(self, record: Mapping[str, Any], line: int) -> SpentAmounts:
        """What `took` of an `outcome` says; the record was held to what follows."""
        return taken_amounts(answer_of(record, line), self._execution().choice.model, 0)

    def settle(self, took: SpentAmounts, done: bool) -> None:
        """The call under way is over."""
        execution = self._execution()
        self.pending = None
        self._controller.settle(execution.tool, execution.choice, took, WIDTH, int(done))

    def asked_record(self, took: SpentAmounts, atoms: Sequence[Atom]) -> dict[str, Json]:
        """`asked`."""
        listed = [atom_document(atom) for atom in atoms]
        return {
            "kind": "asked",
            **_amounts(took),
            **({"atoms": listed} if listed else {}),
            **self._sums(self._with(took, atoms)),
        }

    def asked(self, took: SpentAmounts, atoms: Sequence[Atom]) -> None:
        """A search asked what calls cost."""
        self._controller.spent = self._with(took, atoms)
        self._searches += 1

    def drawing(self) -> Drawing | None:
        """Draws for the asks of the next search; None: there is no account."""
        if self.account is None:
            return None
        return Drawn(self.account, f"{self._session_id}/{self._searches + 1}")

    def left(self) -> Mapping[str, Json]:
        """The remainder of each cap."""
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
    """What an `asked` record says that asks took, and their atoms.

    Raises:
        ResumeError: its amounts are none.
    """
    bare = {name: record[name] for name in ("price", "latency", "epsilon")}
    listed = record.get("atoms", ())
    answers = [answer_of({**bare, "atom": item}, line) for item in listed]
    told = answer_of(bare, line)
    spent = SpentAmounts(
        price=told.price or 0, latency=told.latency_ms or 0, epsilon=told.epsilon or 0
    )
    return spent, tuple([answer.atom for answer in answers if answer.atom is not None])
