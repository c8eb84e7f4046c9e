"""The tools of the pipeline as a server of the Model Context Protocol, by its official SDK.

A refusal of a tool is an answer with `isError`, its text the code and what was due.  The types of
the arguments are those of the grammar.  Cost: the SDK's, and the tools'.
"""

from __future__ import annotations

from typing import Any, Literal

from tcc_experiments.pipeline.corpus import Corpus
from tcc_experiments.pipeline.desk import Desk
from tcc_experiments.pipeline.errors import PipelineError, bring

Shelf = Literal["constants", "units", "datasets"]


def serve(corpus: Corpus) -> None:
    """Answers over standard input and output, until the client goes.

    Raises:
        MissingExtra: the SDK is not installed.
    """
    server = bring("mcp.server.mcpserver").MCPServer("desk", version="1.0.0")
    desk = Desk(corpus)
    refusal: type[Exception] = bring("mcp.server.mcpserver.exceptions").ToolError

    def said(name: str, **arguments: Any) -> dict[str, Any]:
        """What a tool gives back; of a refusal the SDK hands on the text of its own error alone."""
        try:
            return desk.tools()[name](**arguments)
        except PipelineError as error:
            raise refusal(str(error)) from None

    @server.tool()  # type: ignore[untyped-decorator]  # the SDK is loaded when it is used
    def route(shelf: Shelf) -> dict[str, Any]:
        """Names the shelf that the question is about."""
        return said("route", shelf=shelf)

    @server.tool()  # type: ignore[untyped-decorator]
    def retrieve(
        scope: Literal["shelf", "everywhere"], k: Literal[5, 10, 20], query: str
    ) -> dict[str, Any]:
        """The k best passages for a query, by BM25."""
        return said("retrieve", scope=scope, k=k, query=query)

    @server.tool()  # type: ignore[untyped-decorator]
    def summarise(
        reads: Literal["latest", "all"], question: str, passages: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """The number of each quantity of the question, each from one sentence."""
        return said("summarise", reads=reads, question=question, passages=passages)

    @server.tool()  # type: ignore[untyped-decorator]
    def calculate(expression: str) -> dict[str, Any]:
        """The value of an arithmetic expression."""
        return said("calculate", expression=expression)

    @server.tool()  # type: ignore[untyped-decorator]
    def give_up() -> dict[str, Any]:
        """No answer: not every number was found."""
        return said("give_up")

    server.run("stdio")
