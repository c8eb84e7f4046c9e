"""Where a session may be and what it allows, from the words of its definition alone.

A session is the list of its calls with what is known of them.  A *resolution* says of each unknown
call whether it was done, and how it was answered; it gives a word, the calls that were done.  Every
question is a quantifier over all resolutions, and within one over the word: exponential.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from typing import Any

from tcc_certs.core.derived import call_text
from tcc_certs.core.model import Core, OrderMonitor, Selection, SumMonitor
from tcc_certs.kernel import CheckedArtifact


@dataclass(kw_only=True)
class Did:
    """A call of a session: listed values by index (None: observed), open ones as JSON values."""

    tool: int
    values: tuple[int | None, ...]
    opened: Mapping[str, Any] = field(default_factory=dict)
    outcome: str = "unknown"
    answer: tuple[int, ...] | None = None  # of the observed parameters


Event = tuple[int, tuple[int | None, ...], Mapping[str, Any]]  # a call that was done in some word


def observed_of(core: Core, tool: int) -> list[int]:
    """Places of the observed parameters of a tool."""
    return [at for at, p in enumerate(core.tools[tool].parameters) if p.observed]


def whole(core: Core, did: Did, answer: tuple[int, ...]) -> Event:
    """The call as it was answered."""
    values = list(did.values)
    for at, index in zip(observed_of(core, did.tool), answer, strict=True):
        values[at] = index
    return did.tool, tuple(values), did.opened


def resolutions(core: Core, session: list[Did]) -> Iterator[list[Event]]:
    """Every word that the session may have been."""
    choices: list[list[Event | None]] = []
    for did in session:
        sizes = [
            len(core.tools[did.tool].parameters[at].values) for at in observed_of(core, did.tool)
        ]
        answers = list(product(*map(range, sizes)))
        if did.outcome == "failed":
            choices.append([None])
        elif did.outcome == "unknown":
            choices.append([None, *(whole(core, did, answer) for answer in answers)])
        elif did.answer is None:  # unforeseen: any of those that are listed
            choices.append([whole(core, did, answer) for answer in answers])
        else:
            choices.append([whole(core, did, did.answer)])
    for chosen in product(*choices):
        yield [event for event in chosen if event is not None]


def selects(selection: Selection, event: Event) -> bool:
    """Whether a call is one of a selection's."""
    tool, values, _ = event
    return tool == selection.tool and all(values[p] in set(v) for p, v in selection.where)


def agree(core: Core, monitor: OrderMonitor, a: Event, b: Event) -> bool:
    """Whether a call as `first` and one as `second` have the same values."""
    return all(value(core, a, one) == value(core, b, other) for one, other in monitor.same)


def value(core: Core, event: Event, name: str) -> Any:
    """The value of a parameter; numbers by their value, a flag never a number."""
    tool, values, opened = event
    for at, parameter in enumerate(core.tools[tool].parameters):
        if parameter.name == name:
            return "listed", parameter.values[values[at]]
    found = opened[name]
    return type(found) is bool, Decimal(repr(found)) if type(found) in (int, float) else found


def holds(core: Core, monitor: Any, word: list[Event]) -> bool:
    """Whether a word obeys a monitor, by the sentence that defines it."""
    if isinstance(monitor, SumMonitor):
        mine = [opened for tool, _, opened in word if tool == monitor.tool]
        total = sum((Decimal(repr(opened[monitor.parameter])) for opened in mine), Decimal(0))
        return total <= Decimal(monitor.value)
    if not isinstance(monitor, OrderMonitor):
        mine = [event for event in word if selects(monitor.calls, event)]
        keys = [value(core, event, monitor.per) for event in mine]
        return all(keys.count(key) <= monitor.value for key in keys)
    firsts = [i for i, event in enumerate(word) if selects(monitor.first, event)]
    seconds = [i for i, event in enumerate(word) if selects(monitor.second, event)]

    def same(i: int, j: int) -> bool:
        return agree(core, monitor, word[i], word[j])

    def one_key(i: int, j: int) -> bool:  # two of `second`
        names = [other for _, other in monitor.same]
        return all(value(core, word[i], n) == value(core, word[j], n) for n in names)

    match monitor.kind, monitor.order:
        case "require", "before":
            return all(any(i < j and same(i, j) for i in firsts) for j in seconds)
        case "require", "each":
            for j in seconds:
                last = max([k for k in seconds if k < j and one_key(k, j)], default=-1)
                if not any(last < i < j and same(i, j) for i in firsts):
                    return False
            return True
        case "forbid", "before":
            return not any(i < j and same(i, j) for i in firsts for j in seconds)
        case "forbid", "with":
            return not any(same(i, j) for i in firsts for j in seconds)
    raise AssertionError(monitor)


class Brute:
    """A session over an artifact, by all its resolutions."""

    def __init__(self, artifact: CheckedArtifact) -> None:
        self.artifact = artifact
        self.core = artifact.core
        self.session: list[Did] = []

    def places(self) -> set[int]:
        """The state of each resolution, -1 for one that no plan begins with."""
        return {self._walk(word) for word in resolutions(self.core, self.session)}

    def _walk(self, word: list[Event]) -> int:
        q = self.artifact.automaton.root
        for tool, values, _ in word:
            if None in values or q < 0:
                return -1
            text = call_text(self.core.tools[tool], values)
            found = [
                p for a, p in self.artifact.automaton.edges(q) if self.artifact.calls[a] == text
            ]
            q = found[0] if found else -1
        return q

    def planned(self, did: Did) -> bool:
        """Whether in every resolution some answer leads on."""
        return all(
            any(
                self._walk([*word, done[-1]]) >= 0 for done in resolutions(self.core, [did]) if done
            )
            for word in resolutions(self.core, self.session)
        )

    def forbidding(self, did: Did, but: Collection[int] = ()) -> int | None:
        """The first monitor that is broken in some resolution by the call, if it is done."""
        event = did.tool, did.values, did.opened
        for number, monitor in enumerate(self.core.monitors):
            if number not in but and not all(
                holds(self.core, monitor, [*word, event])
                for word in resolutions(self.core, self.session)
            ):
                return number
        return None

    def many(self, did: Did) -> bool:
        """Whether too many places might be held if the call's outcome were unknown."""
        after = Brute(self.artifact)
        after.session = [*self.session, did]
        return len(after.places()) > 64

    def may_finish(self) -> bool:
        """Whether every resolution is a plan."""
        return all(q >= 0 and self.artifact.automaton.accept[q] for q in self.places())
