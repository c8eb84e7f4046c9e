"""The tools of the pipeline as a server of the Model Context Protocol, by its official SDK.

A refusal of a tool is an answer with `isError`, its text the code and what was due.  The types of
the arguments are those of the grammar.  Cost: the SDK's, and the tools'.
"""

from __future__ import annotations

from typing import Any, Literal

from tcc_experiments.pipeline.corpus import Corpus
from tcc_experiments.pipeline.desk import Desk
from tcc_experiments.pipeline.errors import bring

Shelf = Literal["constants", "units", "datasets"]


def serve(corpus: Corpus) -> None:
    """Answers over standard input and output, until the client goes.

    Raises:
        MissingExtra: the SDK is not installed.
    """
    server = bring("mcp.server.mcpserver").MCPServer("desk", version="1.0.0")
    desk = Desk(corpus)

    @server.tool()  # type: ignore[untyped-decorator]  # the SDK is loaded when it is used
    def route(shelf: Shelf) -> dict[str, Any]:
        """Names the shelf that the question is about."""
        return desk.route(shelf)

    @server.tool()  # type: ignore[untyped-decorator]
    def retrieve(
        scope: Literal["shelf", "everywhere"], k: Literal[5, 10, 20], query: str
    ) -> dict[str, Any]:
        """The k best passages for a query, by BM25."""
        return desk.retrieve(scope, k, query)

    @server.tool()  # type: ignore[untyped-decorator]
    def summarise(
        reads: Literal["latest", "all"], question: str, passages: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """The number of each quantity of the question, each from one sentence."""
        return desk.summarise(reads, question, passages)

    @server.tool()  # type: ignore[untyped-decorator]
    def calculate(expression: str) -> dict[str, Any]:
        """The value of an arithmetic expression."""
        return desk.calculate(expression)

    @server.tool()  # type: ignore[untyped-decorator]
    def give_up() -> dict[str, Any]:
        """No answer: not every number was found."""
        return desk.give_up()

    server.run("stdio")
