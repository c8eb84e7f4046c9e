"""Quotes: questions about the cost of a call, answers, providers, and books of quotes in files.

Text: docs/spec/race.md, section 19.  A question has the call, the model, the known bounds, and the
number of the occurrence.  It has no key, gap, arrival or place in the frontier, so an answer cannot
depend on the race.
A book (format: docs/ranges.md) has the answer of each model, so that a run can be repeated.  People
write books, so white space and the order of members are free.  Unknown or repeated members, numbers
with a point, and names that the artifact lacks are rejected.  Cost: one look-up for each question.
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
    """A question to a quoter.

    Attributes:
        call: canonical text.
        model: name of the model; ``quote`` if the tool has no models.
        low, high: the known bounds of the cost, nano-units, low < high.
        occurrence: the number of the occurrence of the call, from 0.  All questions about one
            occurrence have the same number.
    """

    call: str
    model: str
    low: int
    high: int
    occurrence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer of a quoter.

    Attributes:
        low, high: bounds of the cost, nano-units, signed 64 bits; both None if it knows none.
        latency_ms: how long the answer took; None: the run measures it.
        price, epsilon: cents and nano that the answer took; None: as the model declares.
        atom: the mechanism that privatised it; None: as the model declares.  Only a run with a
            delta counts atoms.

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
        """Both bounds, or None if the answer has none."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class Quoter(Protocol):
    """A function that answers questions.  If it raises, the run ends and can be resumed."""

    def __call__(self, question: Question, /) -> Answer | None:
        """Return the answer, or None."""


def models_of(tool: Tool) -> tuple[Model, ...]:
    """Return the models of a tool; for a tool without models, a model that takes nothing."""
    return tool.models or (UNNAMED,)


def nano(text: str, field: str = "cost") -> int:
    """Return an exact decimal of at most nine places as an integer of nano-units.

    Raises:
        AnswerError: the text is no such decimal.
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
    """Return the answer that a call costs exactly `cost`, a decimal.

    Raises:
        AnswerError: `cost` is no exact decimal.
    """
    return between(cost, cost)


def between(low: str, high: str) -> Answer:
    """Return the answer that a call costs from `low` to `high`, decimals.

    Raises:
        AnswerError: `low` or `high` is no exact decimal.
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
    """A quoter that answers from a book; every occurrence of a call costs the same.

    Args:
        answers: by (call or tool, model or nothing).
        tools: the tool of each call.

    Attributes:
        names_atoms: whether an answer names an atom, so that a run has to count atoms.
    """

    def __init__(self, answers: Mapping[_Place, Answer], tools: Mapping[str, str]) -> None:
        self._answers = answers
        self._tools = tools
        self.names_atoms = any(answer.atom is not None for answer in answers.values())

    def __call__(self, question: Question, /) -> Answer | None:
        """Return the entry about the call, else about its tool; about the model, else about any
        model.
        """
        for name in (question.call, f"tool {self._tools[question.call]}"):
            for model in (question.model, ""):
                found = self._answers.get((name, model))
                if found is not None:
                    return found
        return None


def read_quotes(data: bytes, artifact: Artifact) -> QuoteBook:
    """Read a book.

    Raises:
        Rejected: Q101 the form is wrong; Q102 two entries are about the same call or tool and
            model; Q103 an entry names a call, tool or model that the artifact lacks.
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
    """The names of an artifact, by which entries are checked."""

    def __init__(self, artifact: Artifact) -> None:
        core = artifact.core
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in core.tools}
        self.tool_of = {call.text: core.tools[call.tool].name for call in core.calls}

    def place(self, item: Mapping[str, Any], path: str) -> _Place:
        """Return the call or tool of an entry, and its model."""
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
