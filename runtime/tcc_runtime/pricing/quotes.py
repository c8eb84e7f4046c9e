"""Quotes: the question what a call costs, the answer, the provider; and books of quotes in files.

Text: docs/spec/race.md, section 19.  A question says which call and which model, what is known, and
a number that tells one occurrence from another.  It says nothing of the race: no key, gap, arrival
or place in the frontier, so an answer cannot depend on them.
A book (format: docs/ranges.md) says what each model answers, so that a run can be repeated.  People
write it, so white space and the order of members are free; unknown or doubled members, numbers with
a point, and names that the artifact does not have are rejected.  Cost: one look-up a question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import parse_decimal
from tcc_certs.policy.atoms import Atom, Codes, read_atom
from tcc_certs.policy.core import Tool
from tcc_certs.policy.plans import Model
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import AnswerError

NANO_PLACES = 9
UNNAMED = Model(name="quote", price=0, latency=0, epsilon=0)  # of a tool without models


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a quoter is told.

    Attributes:
        call: canonical text.
        model: name of the model; ``quote`` where the tool has none.
        low, high: what is known of the cost, nano-units, low < high.
        occurrence: counts the occurrences of calls that were asked about, from 0; questions about
            one occurrence have one number.
    """

    call: str
    model: str
    low: int
    high: int
    occurrence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a quoter says; without `low` and `high` it knows no more than before.

    Attributes:
        low, high: the cost lies between them, nano-units, signed 64 bits; one number is a point.
        latency_ms: how long it took; None is measured by the run.
        price: cents that it took, `epsilon` nano; None is what the model declares.
        atom: the mechanism that it privatised with; None is what the model declares. Only a run
            with a delta counts atoms.

    Raises:
        AnswerError: half an interval, or a number out of its range.
    """

    low: int | None = None
    high: int | None = None
    latency_ms: int | None = None
    price: int | None = None
    epsilon: int | None = None
    atom: Atom | None = None

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise AnswerError("low, high", "both or neither", "one of them")
        for name in ("low", "high"):
            _hold(name, getattr(self, name), -(1 << 63), 1 << 63)
        for name in ("latency_ms", "price", "epsilon"):
            _hold(name, getattr(self, name), 0, 1 << 64)

    @property
    def interval(self) -> tuple[int, int] | None:
        """Both ends; None where there is no answer."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class Quoter(Protocol):
    """Any callable that answers questions; what it raises ends the run, which can be resumed."""

    def __call__(self, question: Question, /) -> Answer | None:
        """The answer; None: no more is known than before."""


def models_of(tool: Tool) -> tuple[Model, ...]:
    """The models of a tool; one that takes nothing where it names none."""
    return tool.models or (UNNAMED,)


def nano(text: str, field: str = "cost") -> int:
    """An exact decimal of at most nine places, as an integer of nano-units.

    Raises:
        AnswerError: it is none.
    """
    try:
        number, places = parse_decimal(text, field, Code.QUOTES)
    except Rejected:
        raise AnswerError(field, "an exact decimal, such as 0.25", text) from None
    if places > NANO_PLACES:
        raise AnswerError(field, "at most 9 decimal places", text)
    scale: int = 10 ** (NANO_PLACES - places)
    return number * scale


def point(cost: str) -> Answer:
    """The answer that a call costs exactly that, a decimal.

    Raises:
        AnswerError: `cost` is no exact decimal.
    """
    return between(cost, cost)


def between(low: str, high: str) -> Answer:
    """The answer that a call costs no less than `low` and no more than `high`, decimals.

    Raises:
        AnswerError: one of them is no exact decimal.
    """
    return Answer(low=nano(low, "low"), high=nano(high, "high"))


def _hold(name: str, value: object, least: int, most: int) -> None:
    if value is not None and (type(value) is not int or not least <= value < most):
        raise AnswerError(name, f"an integer from {least} to {most - 1}", value)


# Books of quotes.

_HEAD = ("tcc.quotes", "1.0")
_ATOMS = Codes(Code.QUOTES, Code.QUOTES)
_AMOUNTS = ("latency_ms", "price")
_MEMBERS = {
    "atom",
    "call",
    "cost",
    "epsilon",
    "high",
    "latency_ms",
    "low",
    "model",
    "price",
    "tool",
}

_Place = tuple[str, str]  # the call, or the tool; and the model, or nothing for every model


class QuoteBook:
    """Answers as a book has them; every occurrence of a call costs the same.

    Args:
        answers: by (call or tool, model or nothing).
        tools: the tool of each call.

    Attributes:
        names_atoms: whether one of the answers names an atom, so that a run over it counts them.
    """

    def __init__(self, answers: Mapping[_Place, Answer], tools: Mapping[str, str]) -> None:
        self._answers = answers
        self._tools = tools
        self.names_atoms = any(answer.atom is not None for answer in answers.values())

    def __call__(self, question: Question, /) -> Answer | None:
        """What the book says of the call, else of its tool; of the model, else of any."""
        for name in (question.call, f"tool {self._tools[question.call]}"):
            for model in (question.model, ""):
                found = self._answers.get((name, model))
                if found is not None:
                    return found
        return None


def read_quotes(data: bytes, artifact: Artifact) -> QuoteBook:
    """The book that `data` is.

    Raises:
        Rejected: Q101 it has not the form of a book, Q102 it says two things of one call or tool
            and model, Q103 it names a call, tool or model that the artifact has not.
    """
    book = _Book(artifact)
    document = _object(_parsed(data), "quotes", {"format", "version", "quotes"})
    require(
        _HEAD, (document.get("format"), document.get("version")), Code.QUOTES, "format, version"
    )
    entries = document.get("quotes")
    if not isinstance(entries, list):
        raise Rejected(Code.QUOTES, "quotes", "a list", entries)
    answers: dict[_Place, Answer] = {}
    for i, entry in enumerate(entries):
        path = f"quotes[{i}]"
        item = _object(entry, path, _MEMBERS)
        place = book.place(item, path)
        ensure(place not in answers, Code.QUOTED_TWICE, path, "one entry for it", " ".join(place))
        answers[place] = _answer(item, path)
    return QuoteBook(answers, book.tool_of)


class _Book:
    """The names that an artifact has."""

    def __init__(self, artifact: Artifact) -> None:
        core = artifact.core
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in core.tools}
        self.tool_of = {call.text: core.tools[call.tool].name for call in core.calls}

    def place(self, item: Mapping[str, Any], path: str) -> _Place:
        """What an entry is about."""
        names = [name for name in ("call", "tool") if name in item]
        ensure(len(names) == 1, Code.QUOTES, path, "a call or a tool", " and ".join(names))
        kind, name = names[0], _text(item, names[0], path)
        known = name in (self.tool_of if kind == "call" else self.tools)
        ensure(known, Code.QUOTED_UNKNOWN, f"{path}.{kind}", f"a {kind} of it", name)
        model = _text(item, "model", path) if "model" in item else ""
        tool = self.tools[self.tool_of[name] if kind == "call" else name]
        models = [model.name for model in models_of(tool)]
        if "model" in item:
            ensure(
                model in models, Code.QUOTED_UNKNOWN, f"{path}.model", " or ".join(models), model
            )
        return (name if kind == "call" else f"tool {name}"), model


def _answer(item: Mapping[str, Any], path: str) -> Answer:
    ends = {name: _text(item, name, path) for name in ("cost", "low", "high") if name in item}
    forms: Sequence[list[str]] = ([], ["cost"], ["high", "low"])
    ensure(sorted(ends) in forms, Code.QUOTES, path, "cost, or low and high", " ".join(ends))
    amounts = {name: item.get(name) for name in _AMOUNTS}
    if "epsilon" in item:
        ends["epsilon"] = _text(item, "epsilon", path)
    atom = read_atom(item["atom"], f"{path}.atom", _ATOMS) if "atom" in item else None
    try:
        values = {name: nano(text, name) for name, text in ends.items()}
        return Answer(
            low=values.get("cost", values.get("low")),
            high=values.get("cost", values.get("high")),
            epsilon=values.get("epsilon"),
            atom=atom,
            **amounts,
        )
    except AnswerError as error:
        raise Rejected(Code.QUOTES, f"{path}.{error.field}", error.expected, error.found) from None


def _parsed(data: bytes) -> object:
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_members,
            parse_float=_no_float,
            parse_constant=_no_float,
        )
    except RecursionError:
        raise Rejected(Code.QUOTES, "quotes", "a book of quotes", "deeper nesting") from None
    except ValueError as error:
        raise Rejected(Code.QUOTES, "quotes", "JSON in UTF-8", error) from None


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    ensure(len(found) == len(pairs), Code.QUOTES, "quotes", "each member once", sorted(found))
    return found


def _no_float(text: str) -> NoReturn:
    raise Rejected(Code.QUOTES, "quotes", 'decimals as texts, such as "0.25"', text[:24])


def _object(value: object, path: str, names: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Rejected(Code.QUOTES, path, "an object", type(value).__name__)
    unknown = sorted(set(value) - names)
    ensure(not unknown, Code.QUOTES, path, " ".join(sorted(names)), " ".join(unknown))
    return value


def _text(item: Mapping[str, Any], name: str, path: str) -> str:
    value = item[name]
    if not isinstance(value, str):
        raise Rejected(Code.QUOTES, f"{path}.{name}", "a text", value)
    return value
