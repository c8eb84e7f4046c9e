"""A book of quotes: a file that says what each model answers, so that a run can be repeated.

Format: docs/ranges.md.  Written by people, so white space and the order of members are free; a
member that is unknown or doubled, a number with a point, and a name that the artifact does not have
are refused.  Cost: one look-up an ask.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tcc_certs.core.atoms import Codes, read_atom
from tcc_certs.core.model import Tool
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.asking.quotes import Answer, Question, models_of, nano
from tcc_runtime.errors import AnswerError

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
