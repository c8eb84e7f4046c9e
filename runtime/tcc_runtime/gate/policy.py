"""What all sessions over one artifact share: the session machine, and tables of its tools.

A table reads the arguments of a call and turns them into one of the artifact's.  Only exact types
of JSON are values (str, int, float, Decimal, bool, None, dict, list, tuple): an object of another
class could answer differently each time it is asked.
Text: docs/gate.md; docs/spec/core.md, section 2.  Everything is made when it is first asked for,
and kept with the artifact.
Cost: a look-up for each listed argument and one for the call, an open argument its size; of a
tool's table its calls, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tcc_certs.core.derived import call_text, summed_parameter
from tcc_certs.core.model import Call, Core, Limit, Parameter, Tool
from tcc_certs.errors import Code, Rejected
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.rules import check_calls
from tcc_certs.session.machine import Held, Machine, Observed, Offer, Place
from tcc_certs.values.declared import json_of, text_of
from tcc_runtime.artifact.constraints import core_calls
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.arguments import Check, Given, Trouble, checker
from tcc_runtime.gate.refusals import Allowed, Scalar

# The table of a tool.

_SAFE: Final = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call that was asked for and is well formed.

    Attributes:
        table: its tool.
        offer: which calls of the artifact it may turn out to be.
        opened: its open arguments, in declared order.
    """

    table: ToolTable
    offer: Offer
    opened: tuple[Given, ...]


class Listed:
    """The values of a listed or an observed parameter, by JSON value."""

    __slots__ = ("_numbers", "_texts", "_words", "name", "optional", "shown", "values")

    def __init__(self, parameter: Parameter) -> None:
        self.name = parameter.name
        self.optional = parameter.values[0] == ""
        self.values = parameter.values
        self.shown: list[Scalar] = []
        self._texts: dict[str, int] = {}
        self._numbers: dict[int | Decimal, int] = {}
        self._words: dict[bool | None, int] = {}
        for at, text in enumerate(parameter.values):
            self._add(at, text)

    def _add(self, at: int, text: str) -> None:
        if not text:
            self.shown.append(None)
            return
        value = json_of(text)
        self.shown.append(_plain_number(value, text) if isinstance(value, Decimal) else value)
        if isinstance(value, str):
            self._texts[value] = at
        elif value is None or isinstance(value, bool):
            self._words[value] = at
        else:
            self._numbers[value] = at

    def index(self, value: object) -> int | Code:
        """The place of a JSON value among the values."""
        found: int | None = None
        if type(value) is str:
            found = self._texts.get(value)
        elif value is None or type(value) is bool:
            found = self._words.get(value)
        elif type(value) is int:
            found = self._numbers.get(value) if -_SAFE < value < _SAFE else self._by_text(value)
        elif type(value) is float or type(value) is Decimal:
            found = self._by_text(value)
        else:
            return Code.NO_VALUE
        if found is None:
            return Code.NO_VALUE if text_of(value) is None else Code.UNLISTED_VALUE
        return found

    def _by_text(self, value: int | float | Decimal) -> int | None:
        text = text_of(value)
        return None if text is None or text not in self.values else self.values.index(text)


def _plain_number(value: Decimal, text: str) -> Scalar:
    """A float where it prints back as this text: what JSON's own writer takes."""
    return float(value) if text_of(float(value)) == text else value


class ToolTable:
    """What a tool takes, made when the tool is first asked for.

    Attributes:
        number: in the core.
        tool: as the core has it.
        listed, observed: its parameters.
        opened: the names of its open ones, in declared order.
    """

    __slots__ = (
        "_checks", "_offers", "_slots", "_unknown", "listed", "number", "observed", "opened",
        "tool",
    )  # fmt: skip

    def __init__(self, machine: Machine, number: int) -> None:
        self.number = number
        self.tool: Tool = machine.core.tools[number]
        parameters = self.tool.parameters
        self.listed = [Listed(p) for p in parameters if not p.observed]
        self.observed = [Listed(p) for p in parameters if p.observed]
        self.opened = [given.name for given in self.tool.opened]
        self._checks: list[tuple[str, bool, Check]] = [
            (given.name, given.optional, checker(given.type)) for given in self.tool.opened
        ]
        self._slots = frozenset([*(p.name for p in self.listed), *self.opened])
        self._offers = machine.offers(number)
        self._unknown = (None,) * len(self.observed)  # observed parameters are the last ones

    def read(self, arguments: object) -> Asked | Trouble:
        """The call that the arguments name, or what is wrong with them."""
        if type(arguments) is not dict:
            return Code.NO_VALUE, "arguments"
        for name in arguments:
            if type(name) is not str or name not in self._slots:
                return Code.UNDECLARED_ARGUMENT, name if type(name) is str else type(name).__name__
        indices = []
        for param in self.listed:
            if param.name in arguments:
                at = param.index(arguments[param.name])
                if isinstance(at, Code):
                    return at, param.name
                indices.append(at)
            elif param.optional:
                indices.append(0)
            else:
                return Code.MISSING_ARGUMENT, param.name
        opened: list[Given] = []
        for name, optional, check in self._checks:
            if name in arguments:
                found = check(arguments[name])
                if isinstance(found, Code):
                    return found, name
                opened.append((name, *found))
            elif not optional:
                return Code.MISSING_ARGUMENT, name
        values = (*indices, *self._unknown)
        offer = self._offers.get(values)
        if offer is None:
            offer = self._no_call(indices)
        return Asked(table=self, offer=offer, opened=tuple(opened))

    def _no_call(self, listed: Sequence[int]) -> Offer:
        """Well formed, and in no plan."""
        anything = (*listed, *(0 for _ in self.observed))
        return Offer(
            tool=self.number,
            text=call_text(self.tool, anything, observed=False),
            values=(*listed, *self._unknown),
            observed=(),
            calls={},
            answers=1,
        )

    def observe(self, told: object) -> Observed | None:
        """The observed values in a mapping that came back; None where one is missing or foreign."""
        if not self.observed:
            return ()
        if not isinstance(told, dict):
            return None
        found = []
        for param in self.observed:
            # Not by the value's own class, which could answer otherwise the next time.
            if not dict.__contains__(told, param.name):
                return None
            at = param.index(dict.__getitem__(told, param.name))
            if isinstance(at, Code):
                return None
            found.append(at)
        return tuple(found)

    def allowed(self, offer: Offer) -> Allowed:
        """The call as JSON values."""
        pairs = zip(self.listed, offer.values, strict=False)
        given = {
            param.name: param.shown[at]
            for param, at in pairs
            if at is not None and param.values[at]
        }
        return Allowed(self.tool.name, given)


def ensure_values_distinct(tools: Sequence[Tool]) -> None:
    """Every JSON value is one listed value of its parameter.

    Raises:
        Rejected: C801, of a core in which two texts stand for one value.
    """
    for tool in tools:
        for parameter in tool.parameters:
            texts = [text for text in parameter.values if text]
            if len({text_of(json_of(text)) for text in texts}) < len(texts):
                path = f"values of {tool.name}.{parameter.name}"
                raise Rejected(Code.CORE_SCHEMA, path, "one text for each JSON value", "two")


class Policy:
    """An artifact as its gates use it.

    Attributes:
        artifact: which one.
        core: its grammar.
        machine: how calls lead on, and what monitors allow.
        nothing_taken: of each limit; see :meth:`takes`.
    """

    __slots__ = (
        "_amounts", "_checked", "_core_calls", "_numbers", "_tables", "_taken", "artifact", "core",
        "machine", "nothing_taken",
    )  # fmt: skip

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.core: Core = artifact.core
        ensure_values_distinct(self.core.tools)
        self._core_calls = core_calls(artifact)
        self.machine = Machine(self.core, artifact.automaton, self._core_calls, artifact.relaxed)
        self._numbers = {tool.name: at for at, tool in enumerate(self.core.tools)}
        self._tables: dict[int, ToolTable] = {}
        self._amounts: list[Callable[[int], int]] | None = None
        self._taken: dict[tuple[Offer, Observed | None], tuple[int, ...]] = {}
        self.nothing_taken = (0,) * len(self.core.limits)
        self._checked: CheckedArtifact | None = None

    def tool(self, name: object) -> ToolTable | None:
        """The table of a tool, None where there is no such tool."""
        number = self._numbers.get(name) if type(name) is str else None
        return None if number is None else self.table(number)

    def table(self, number: int) -> ToolTable:
        """The table of a tool by its number."""
        found = self._tables.get(number)
        if found is None:
            found = self._tables[number] = ToolTable(self.machine, number)
        return found

    def takes(self, offer: Offer, observed: Observed | None) -> tuple[int, ...]:
        """What a call takes of each limit; the most, where its observed values are not known."""
        key = offer, observed
        found = self._taken.get(key)
        if found is None:
            known = None if observed is None else offer.calls.get(observed)
            calls = tuple(offer.calls.values()) if known is None else (known,)
            numbers = [self._core_calls[call] for call in calls]
            if self._amounts is None:
                self._amounts = [_amount(self.core, limit) for limit in self.core.limits]
            most = [max([of(one) for one in numbers], default=0) for of in self._amounts]
            found = self._taken[key] = tuple(most)
        return found

    def checked(self) -> CheckedArtifact:
        """The artifact as the validator of sessions takes it; made for the first ledger."""
        if self._checked is None:
            file = self.artifact.file
            # Certificates were checked when it was opened; no session looks at its counts.
            self._checked = CheckedArtifact(
                file=file,
                automaton=self.artifact.automaton,
                core=self.core,
                table=check_calls(file),
                core_calls=self._core_calls,
                plans=(),
                race_count=(),
            )
        return self._checked

    def leads_on(self, place: Place, offer: Offer) -> bool:
        """Whether a call leads on from a place, for some answer."""
        return any(self.machine.step(place, call) is not None for call in offer.calls.values())

    def next_offers(self, held: Held) -> Sequence[Offer]:
        """The calls that plans allow from every place, in the order of the artifact's calls."""
        machine, first, found = self.machine, held[0], dict[Offer, None]()
        for call in sorted({call for q in first[0] for call in machine.row(q)}):
            offer = machine.offer_of(call)
            known = offer in found or machine.step(first, call) is None
            if not known and all(self.leads_on(place, offer) for place in held[1:]):
                found[offer] = None
        return tuple(found)

    def allowed(self, held: Held) -> tuple[Allowed, ...]:
        """The same calls as JSON values."""
        return tuple([self.table(o.tool).allowed(o) for o in self.next_offers(held)])

    def most_calls(self, held: Held) -> int:
        """The most calls that may follow, whichever place it is."""
        rank = self.artifact.automaton.rank
        return min([max([rank[q] for q in states], default=0) for states, _ in held])


_OF: Final[Mapping[str, Callable[[Call], int]]] = {
    "depth": lambda _call: 1,
    "price": lambda call: call.price,
    "latency": lambda call: call.latency,
    "cost": lambda call: call.cost_high,
    "epsilon": lambda call: call.epsilon,
}


def _amount(core: Core, limit: Limit) -> Callable[[int], int]:
    """What a call of the core takes of a limit."""
    ranges = limit.calls
    if ranges is not None:
        return lambda number: any(low <= number < high for low, high in ranges)
    if limit.parameter is not None:
        return summed_parameter(core.tools, core.calls, limit.parameter).__getitem__
    of = _OF[limit.kind]
    return lambda number: of(core.calls[number])


def policy_of(artifact: Artifact) -> Policy:
    """The policy of an artifact, kept with it."""
    found = artifact.kept.get("gate")
    if not isinstance(found, Policy):
        found = artifact.kept["gate"] = Policy(artifact)
    return found
