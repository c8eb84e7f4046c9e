"""Which model makes a call of a session, and what models have taken of its budget.

Text: docs/spec/session.md, section 8.  The choice is that of the controller of asks.  All of it
follows from the records of the session, so whoever takes it up chooses as the last one would have.
Cost: the controller's choice; with an account two transactions before a call, one after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tcc_certs.core.atoms import Atom, atom_document
from tcc_certs.core.model import Core, executing
from tcc_certs.formats.codec import Json
from tcc_certs.formats.texts import format_decimal
from tcc_runtime.account.account import Account
from tcc_runtime.account.amounts import Remainder
from tcc_runtime.adapters.adapter import adapter_of
from tcc_runtime.errors import ResumeError, SettingsError
from tcc_runtime.gate.budget import Budget, used
from tcc_runtime.ledger.lines import left_field, left_texts, spent_fields
from tcc_runtime.pricing.controller import Choice, Controller, Spending
from tcc_runtime.pricing.drawing import Drawing, Drawn, Wish, answer_of, left_in, reservation_name
from tcc_runtime.pricing.quotes import Answer
from tcc_runtime.pricing.refine import drawn_amounts, taken_amounts

WIDTH: Final = 2
_PLACES: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
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


class Executions:
    """The calls that models make in one session.

    Attributes:
        budget: as its record has it.
        account: that this process draws on; None: none was given.
        pending: who makes the call that is under way.
    """

    def __init__(self, core: Core, budget: Budget, session_id: str) -> None:
        self.budget = budget
        self.account: Account | None = None
        self.pending: Execution | None = None
        self._controller = Controller(budget.settings, budget.taken)
        self._models = [executing(tool.models) for tool in core.tools]
        self._session_id = session_id
        self._wishes = 0
        self._searches = 0

    @property
    def spent(self) -> Spending:
        """By all asks and calls so far."""
        return self._controller.spent

    def makes(self, tool: int) -> bool:
        """Whether models make the calls of a tool."""
        return bool(self._models[tool])

    def choice(self, tool: int, refused: Collection[int] = ()) -> Choice | None:
        """The model that makes the next call of a tool; None: none fits."""
        return self._controller.choose(tool, self._models[tool], refused, WIDTH)

    def reserve(self, tool: int) -> Execution | None:
        """The model that makes the next call, with what the account has granted; None: none does.

        Raises:
            Rejected: K101, K103, K104, K106 of the account.
        """
        refused: list[tuple[int, str, Remainder]] = []
        while (choice := self.choice(tool, [place for place, _, _ in refused])) is not None:
            if self.budget.account is None:
                return Execution(tool=tool, choice=choice)
            if self.account is None:
                return None
            number = self._wishes + len(refused) + 1
            name = reservation_name(self.account.id, self._session_id, number)
            amounts = drawn_amounts(self.spent, self.spent + choice.expected, choice.expected)
            found = self.account.reserve(name, self._session_id, amounts)
            if found.granted:
                # Begun before anything says that the call is made: whatever comes, it counts.
                self.account.begin(name)
                wish = Wish(name=name, granted=True, left=found.left)
                return Execution(tool=tool, choice=choice, refused=tuple(refused), wish=wish)
            refused.append((choice.place, choice.model.name, found.left))
        return None

    def fields(self, execution: Execution) -> dict[str, Json]:
        """`execute` of a `call`."""
        choice, wish = execution.choice, execution.wish
        adapter = adapter_of(choice.model, self.budget.adapters)
        refused = [{"model_id": name, **left_field(left)} for _, name, left in execution.refused]
        return {
            "model_id": choice.model.name,
            **({} if adapter is None else adapter.asked),
            **_amounts(choice.expected),
            **self._sums(self.spent + choice.expected),
            **({"refused": refused} if refused else {}),
            **({} if wish is None else {"reservation": wish.name, **left_field(wish.left)}),
        }

    def told(self, tool: int, record: Mapping[str, Any], line: int) -> Execution:
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
        return Execution(tool=tool, choice=choice, refused=tuple(refused), wish=wish)

    def begin(self, execution: Execution) -> None:
        """The call is made."""
        self.pending = execution
        self._wishes += len(execution.refused) + (execution.wish is not None)

    def give_back(self, execution: Execution) -> None:
        """The call is not made, though its reservation was begun.

        Raises:
            Rejected: as :meth:`reserve`.
        """
        if self.account is not None and execution.wish is not None:
            nothing = drawn_amounts(self.spent, self.spent, Spending())
            self.account.settle(execution.wish.name, nothing)

    def took(self, answer: Answer | None, ms: int) -> Spending:
        """What the call under way took: as is said, else as declared and measured.

        Raises:
            SettingsError: an atom is said where none are counted.
        """
        took = taken_amounts(answer or Answer(), self._execution().choice.model, ms)
        if took.atom is not None and self.budget.taken is None:
            raise SettingsError("atom", "none, as the session has no delta", "one")
        return took

    def draw(self, took: Spending) -> Remainder | None:
        """Puts what the call under way took in the place of what was reserved; what is left.

        Raises:
            Rejected: as :meth:`reserve`.
        """
        wish = self._execution().wish
        if self.account is None or wish is None:
            return None
        amounts = drawn_amounts(self.spent, self.spent + took, took)
        return self.account.settle(wish.name, amounts)

    def took_fields(self, took: Spending, left: Remainder | None) -> dict[str, Json]:
        """`took` of an `outcome`."""
        return {
            **_amounts(took),
            **({} if took.atom is None else {"atom": atom_document(took.atom)}),
            **self._sums(self.spent + took),
            **left_field(left),
        }

    def told_took(self, record: Mapping[str, Any], line: int) -> Spending:
        """What `took` of an `outcome` says; the record was held to what follows."""
        return taken_amounts(answer_of(record, line), self._execution().choice.model, 0)

    def settle(self, took: Spending, done: bool) -> None:
        """The call under way is over."""
        execution = self._execution()
        self.pending = None
        self._controller.settle(execution.tool, execution.choice, took, WIDTH, int(done))

    def asked_record(self, took: Spending, atoms: Sequence[Atom]) -> dict[str, Json]:
        """`asked`."""
        listed = [atom_document(atom) for atom in atoms]
        return {
            "kind": "asked",
            **_amounts(took),
            **({"atoms": listed} if listed else {}),
            **self._sums(self._with(took, atoms)),
        }

    def asked(self, took: Spending, atoms: Sequence[Atom]) -> None:
        """A search asked what calls cost."""
        self._controller.spent = self._with(took, atoms)
        self._searches += 1

    def drawing(self) -> Drawing | None:
        """Draws for the asks of the next search; None: there is no account."""
        if self.account is None:
            return None
        return Drawn(self.account, f"{self._session_id}/{self._searches + 1}")

    def left(self) -> Mapping[str, Json]:
        """What is left of each cap."""
        return left_texts(self.budget.caps.left(used(self.spent)))

    def _with(self, took: Spending, atoms: Sequence[Atom]) -> Spending:
        spent = self.spent + took
        for atom in atoms:
            spent += Spending(atom=atom)
        return spent

    def _sums(self, spent: Spending) -> dict[str, Json]:
        left = left_texts(self.budget.caps.left(used(spent)))
        return {**spent_fields(spent), "left": left}

    def _execution(self) -> Execution:
        if self.pending is None:
            raise ValueError("no model makes a call")
        return self.pending


def _amounts(took: Spending) -> dict[str, Json]:
    return {
        "price": str(took.price),
        "latency": str(took.latency),
        "epsilon": format_decimal(took.epsilon, _PLACES),
    }


def asked_in(record: Mapping[str, Any], line: int) -> tuple[Spending, tuple[Atom, ...]]:
    """What an `asked` record says that asks took, and their atoms.

    Raises:
        ResumeError: its amounts are none.
    """
    bare = {name: record[name] for name in ("price", "latency", "epsilon")}
    listed = record.get("atoms", ())
    answers = [answer_of({**bare, "atom": item}, line) for item in listed]
    told = answer_of(bare, line)
    spent = Spending(price=told.price or 0, latency=told.latency_ms or 0, epsilon=told.epsilon or 0)
    return spent, tuple([answer.atom for answer in answers if answer.atom is not None])
