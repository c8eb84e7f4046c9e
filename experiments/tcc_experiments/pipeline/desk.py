"""The tools of the pipeline: retrieval, an extractive summariser, a calculator, an MCP server.

The desk has a corpus and the shelf that `route` names; every other tool is a function of its
arguments. The summariser finds the number of each quantity with the words around it: a number is
described by the words of its title, those before the first number of its sentence, and those since
the number before it; synonyms are not found. The calculator is simpleeval with arithmetic alone:
numbers, parentheses, ``+ - * / **`` and signs; powers are floating point, so none can grow beyond
its range. The server uses the official SDK; a refusal of a tool is an answer with `isError`, its
text the code and what was expected.
Cost: those of the corpus; linear in the passages; bounded by the length of an expression.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tcc_experiments.pipeline.corpus import CATEGORIES, Corpus, query_words
from tcc_experiments.pipeline.errors import PipelineCode, PipelineError, bring
from tcc_experiments.pipeline.policy import read_question

LONGEST = 200  # characters
_DUE = "numbers, parentheses and + - * / **"
_NODES = ("Expr", "Expression", "Constant", "UnaryOp", "BinOp")


def calculate(expression: str) -> float:
    """The value of an expression.

    Raises:
        PipelineError: X301, it is too long; X302, there is something else in it than arithmetic;
            X303, it has no finite real value.
        MissingExtra: simpleeval is not installed.
    """
    if len(expression) > LONGEST:
        due = f"at most {LONGEST} characters"
        raise PipelineError(PipelineCode.TOO_LONG, "expression", due, len(expression))
    _parse(expression)
    simpleeval = bring("simpleeval")
    reader = simpleeval.SimpleEval(operators=_OPERATORS, functions={}, names={})
    reader.nodes = {node: do for node, do in reader.nodes.items() if node.__name__ in _NODES}
    try:
        value = _number(reader.eval(expression))
    except (ZeroDivisionError, OverflowError) as error:
        raise _no_value(expression, error) from None
    except (simpleeval.InvalidExpression, SyntaxError, TypeError, ValueError, KeyError,
            RecursionError, MemoryError):  # fmt: skip
        raise PipelineError(PipelineCode.NOT_ARITHMETIC, "expression", _DUE, expression) from None
    if not math.isfinite(value):
        raise _no_value(expression, value)
    return float(value)


def _parse(expression: str) -> None:
    """One expression, and not several, of which simpleeval would take the first."""
    try:
        ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PipelineError(PipelineCode.NOT_ARITHMETIC, "expression", _DUE, expression) from None


def _no_value(expression: str, why: object) -> PipelineError:
    return PipelineError(
        PipelineCode.NO_VALUE, "expression", "a finite value", f"{expression[:60]}: {why}"
    )


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(type(value).__name__)
    return float(value)


def _of_numbers(do: Callable[..., Any]) -> Callable[..., float]:
    """The operation on numbers alone, in floating point."""
    return lambda *given: _number(do(*map(_number, given)))


_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: _of_numbers(operator.add),
    ast.Sub: _of_numbers(operator.sub),
    ast.Mult: _of_numbers(operator.mul),
    ast.Div: _of_numbers(operator.truediv),
    ast.Pow: _of_numbers(operator.pow),
    ast.USub: _of_numbers(operator.neg),
    ast.UAdd: _of_numbers(operator.pos),
}


MOST_PASSAGES = 80
LONGEST_PASSAGE = 2000  # characters
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])")
_SENTENCE = re.compile(r"(?<=[.;])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageNumber:
    """A number of a passage.

    Attributes:
        number: as it stands there.
        words: what it is told by.
        sentence: where it stands.
    """

    number: str
    words: frozenset[str]
    sentence: str


def summarise(question: str, passages: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """The numbers that a question needs, each with its sentence.

    Args:
        question: in the forms of :func:`read_question`.
        passages: objects with ``title`` and ``body``.

    Returns:
        ``found``: ``all`` or ``some``; ``facts``: of each quantity that was found its ``quantity``,
        ``number`` and ``sentence``; ``missing``: the other quantities.

    Raises:
        PipelineError: X202, X203: the question, or the passages, are no such thing.
    """
    asked = read_question(question)
    said = [one for passage in _passages(passages) for one in _numbers(*passage)]
    facts, missing = list[dict[str, str]](), list[str]()
    for quantity in asked.quantities:
        best = _best(frozenset(map(_stem, query_words(quantity))), said)
        if best is None:
            missing.append(quantity)
        else:
            facts.append({"quantity": quantity, "number": best.number, "sentence": best.sentence})
    return {"found": "some" if missing else "all", "facts": facts, "missing": missing}


def _passages(given: Sequence[Mapping[str, object]]) -> list[tuple[str, str]]:
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) > MOST_PASSAGES:
        due = f"a list of at most {MOST_PASSAGES} passages"
        raise PipelineError(PipelineCode.PASSAGES, "passages", due, type(given).__name__)
    found = []
    for at, passage in enumerate(given):
        title = passage.get("title") if isinstance(passage, Mapping) else None
        body = passage.get("body") if isinstance(passage, Mapping) else None
        if not isinstance(title, str) or not isinstance(body, str):
            due = "an object with the texts title and body"
            raise PipelineError(
                PipelineCode.PASSAGES, f"passages[{at}]", due, type(passage).__name__
            )
        if len(title) + len(body) > LONGEST_PASSAGE:
            due, long = f"at most {LONGEST_PASSAGE} characters", len(title) + len(body)
            raise PipelineError(PipelineCode.PASSAGES, f"passages[{at}]", due, long)
        found.append((title, body))
    return found


def _numbers(title: str, body: str) -> Iterator[PassageNumber]:
    about = _words(title)
    for sentence in _SENTENCE.split(body):
        head: frozenset[str] | None = None
        before = 0
        for match in _NUMBER.finditer(sentence):
            told = _words(sentence[before : match.start()])
            head = told if head is None else head
            yield PassageNumber(number=match[0], words=about | head | told, sentence=sentence)
            before = match.end()


def _best(wanted: frozenset[str], said: Sequence[PassageNumber]) -> PassageNumber | None:
    """The number that has every word, with the fewest others; the first of equals."""
    fitting = [one for one in said if wanted <= one.words and len(one.words - wanted) < len(wanted)]
    return min(fitting, key=lambda one: len(one.words - wanted), default=None)


def _words(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in query_words(text) if not word.isdigit())


def _stem(word: str) -> str:
    """A word without its plural."""
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


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
            raise PipelineError(
                PipelineCode.CATEGORY, "shelf", f"one of {', '.join(CATEGORIES)}", shelf
            )
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
            raise PipelineError(PipelineCode.CATEGORY, "scope", due, scope)
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
            raise PipelineError(PipelineCode.PASSAGES, "reads", "latest or all", reads)
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
