"""A scripted agent: what a question asks, and the open arguments of the calls that answer it.

A question is in controlled English: "What is A?", "the ratio of A to B", "the difference between A
and B", "the sum of A and B", "the range of A", "How many A are there in B?", and quantities joined
by plus, minus, times and divided by, with the usual precedence. Anything else is one quantity.
A plan leaves open arguments to the agent. Where an agent would have a language model, this one is
deterministic: it queries for the whole question first and later for the first missing quantity; it
passes the summariser the passages, and the calculator the numbers in the question's expression.
Cost: linear in the question and in what was found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcc_experiments.pipeline.corpus import LONGEST_QUERY
from tcc_experiments.pipeline.errors import PipelineCode, PipelineError

LONGEST_QUESTION = 400  # characters
MOST_QUANTITIES = 6
_SIGNS = {"plus": "+", "minus": "-", "times": "*", "divided by": "/"}
_JOINT = re.compile(r" (plus|minus|times|divided by) ")
_FORMS = (
    (re.compile(r"the ratio of (.+) to (.+)"), "{1} / {2}"),
    (re.compile(r"the difference between (.+) and (.+)"), "{1} - {2}"),
    (re.compile(r"the sum of (.+) and (.+)"), "{1} + {2}"),
    (re.compile(r"the product of (.+) and (.+)"), "{1} * {2}"),
)
_RANGE = re.compile(r"the range of (.+)")
_HOW_MANY = re.compile(r"how many (.+) are there in (.+)", re.IGNORECASE)
_WHAT = re.compile(r"(?:what is|give|find) (.+)", re.IGNORECASE)
_HOLE = re.compile(r"\{([1-9])\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuestion:
    """What is looked for.

    Attributes:
        quantities: each is a phrase, to be found in a passage with its number.
        expression: arithmetic over ``{1}``, ``{2}``, .., the numbers of the quantities.
    """

    quantities: tuple[str, ...]
    expression: str

    def filled(self, numbers: list[str]) -> str:
        """The expression with numbers in the place of the quantities."""
        return _HOLE.sub(lambda hole: f"({numbers[int(hole[1]) - 1]})", self.expression)


def read_question(text: str) -> ParsedQuestion:
    """What a question asks.

    Raises:
        PipelineError: X202, it is empty, too long or names too many quantities.
    """
    if not text.strip() or len(text) > LONGEST_QUESTION:
        due = f"1 to {LONGEST_QUESTION} characters"
        raise PipelineError(PipelineCode.QUESTION, "question", due, f"{len(text)} characters")
    asked = _asked(" ".join(text.split()).rstrip("?. "))
    if len(asked.quantities) > MOST_QUANTITIES:
        due, found = f"at most {MOST_QUANTITIES} quantities", len(asked.quantities)
        raise PipelineError(PipelineCode.QUESTION, "question", due, found)
    return asked


def _asked(text: str) -> ParsedQuestion:
    if found := _HOW_MANY.fullmatch(text):
        return ParsedQuestion(quantities=(found[2], f"one {found[1]}"), expression="{1} / {2}")
    if found := _WHAT.fullmatch(text):
        text = found[1]
    for form, expression in _FORMS:
        if found := form.fullmatch(text):
            return ParsedQuestion(quantities=(found[1], found[2]), expression=expression)
    if found := _RANGE.fullmatch(text):
        both = (f"max {found[1]}", f"min {found[1]}")
        return ParsedQuestion(quantities=both, expression="{1} - {2}")
    parts = _JOINT.split(text)
    signs = [_SIGNS[joint] for joint in parts[1::2]]
    holes = [f"{{{at}}}" for at in range(1, len(signs) + 2)]
    joined = "".join(f" {sign} {hole}" for sign, hole in zip(signs, holes[1:], strict=True))
    return ParsedQuestion(quantities=tuple(parts[::2]), expression=holes[0] + joined)


class ScriptedPolicy:
    """The open arguments for one question, from what the calls before gave back.

    Raises:
        PipelineError: X202, the question is none.
    """

    def __init__(self, question: str) -> None:
        self._question = question
        self._asked = read_question(question)
        self._rounds: list[list[Any]] = []
        self._facts: dict[str, str] = {}

    def take(self, tool: str, result: Mapping[str, Any]) -> None:
        """Takes note of what a call gave back."""
        if tool == "retrieve":
            self._rounds.append(list(result["passages"]))
        elif tool == "summarise":
            for fact in result["facts"]:
                self._facts.setdefault(str(fact["quantity"]), str(fact["number"]))

    def opened(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The open arguments of a call.

        Args:
            tool: its name.
            arguments: the listed ones.
        """
        if tool == "retrieve":
            return {"query": self._query()}
        if tool == "summarise":
            rounds = self._rounds if arguments["reads"] == "all" else self._rounds[-1:]
            passages = {p["number"]: p for found in rounds for p in found}
            return {"question": self._question, "passages": list(passages.values())}
        if tool == "calculate":
            numbers = [self._facts[name] for name in self._asked.quantities]
            return {"expression": self._asked.filled(numbers)}
        return {}

    def _query(self) -> str:
        missing = [name for name in self._asked.quantities if name not in self._facts]
        wanted = missing[(len(self._rounds) - 1) % len(missing)] if missing else self._question
        return (wanted if self._rounds else self._question)[:LONGEST_QUERY]
