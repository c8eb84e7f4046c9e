"""The tools of the pipeline: a desk with a corpus, and the shelf that it was told of.

Each is a function of its arguments alone but for the shelf, which `route` names.
Cost: those of the corpus, the summariser and the calculator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcc_experiments.pipeline.calculator import calculate
from tcc_experiments.pipeline.codes import Code
from tcc_experiments.pipeline.corpus import Corpus
from tcc_experiments.pipeline.errors import PipelineError
from tcc_experiments.pipeline.summary import summarise
from tcc_experiments.pipeline.texts import CATEGORIES


class Desk:
    """The tools over one corpus; their names are those of the grammar's tools."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._shelf: str | None = None

    def route(self, shelf: str) -> dict[str, object]:
        """Names the shelf that the question is about, as far as it is told.

        Raises:
            PipelineError: X401, there is no such shelf.
        """
        if shelf not in CATEGORIES:
            raise PipelineError(Code.CATEGORY, "shelf", f"one of {', '.join(CATEGORIES)}", shelf)
        self._shelf = shelf
        return {"shelf": shelf}

    def retrieve(self, scope: str, k: int, query: str) -> dict[str, object]:
        """The k best passages for a query, of the shelf or of everywhere; there may be none.

        Raises:
            PipelineError: X201, the query is none; X102, the corpus was changed; X401, the shelf
                was not named.
        """
        if scope not in ("shelf", "everywhere") or (scope == "shelf" and self._shelf is None):
            due = "everywhere, or shelf after a route"
            raise PipelineError(Code.CATEGORY, "scope", due, scope)
        found = self._corpus.search(query, k, self._shelf if scope == "shelf" else None)
        return {"passages": [{"number": p.number, "title": p.title, "body": p.body} for p in found]}

    def summarise(
        self, reads: str, question: str, passages: Sequence[Mapping[str, Any]]
    ) -> dict[str, object]:
        """The number of each quantity of the question; `reads` says which passages were handed in.

        Raises:
            PipelineError: X202, X203.
        """
        if reads not in ("latest", "all"):
            raise PipelineError(Code.PASSAGES, "reads", "latest or all", reads)
        return summarise(question, passages)

    def calculate(self, expression: str) -> dict[str, object]:
        """The value of an arithmetic expression.

        Raises:
            PipelineError: X301 to X303.
        """
        return {"value": calculate(expression)}

    def give_up(self) -> dict[str, object]:
        """No answer."""
        return {"value": None}

    def tools(self) -> dict[str, Callable[..., dict[str, object]]]:
        """The tools by their names."""
        return {
            "route": self.route,
            "retrieve": self.retrieve,
            "summarise": self.summarise,
            "calculate": self.calculate,
            "give_up": self.give_up,
        }
