"""What the open arguments of the calls are: the part of an agent that a plan leaves open.

It is scripted and deterministic, where an agent would have a language model: it asks for the whole
question first and, later, for the first quantity that is still missing; it hands the summariser
what was found, and the calculator the numbers in the question's own expression.  A plan says which
calls are made, and how wide they look.
Cost: linear in what was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcc_experiments.pipeline.corpus import LONGEST_QUERY
from tcc_experiments.pipeline.reading import read_question


class Policy:
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
