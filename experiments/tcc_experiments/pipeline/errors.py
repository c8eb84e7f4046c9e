"""Errors of the pipeline: a code, the place, what was expected and what was found.

The letter of the codes, X, belongs to no other code. Text: docs/pipeline.md, the table of codes.
Cost: none.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class PipelineCode(StrEnum):
    """Codes of the pipeline."""

    CORPUS_MISSING = "X101"
    CORPUS_ALTERED = "X102"
    QUERY = "X201"
    QUESTION = "X202"
    PASSAGES = "X203"
    TOO_LONG = "X301"
    NOT_ARITHMETIC = "X302"
    NO_VALUE = "X303"
    CATEGORY = "X401"
    RECORD = "X402"


TEXTS: Mapping[PipelineCode, str] = {
    PipelineCode.CORPUS_MISSING: "There is no corpus at this path.",
    PipelineCode.CORPUS_ALTERED: "The file is no corpus, or not the one whose digest was given.",
    PipelineCode.QUERY: "A query has no words, over 400 characters, or asks for more than 20 "
    "passages.",
    PipelineCode.QUESTION: "A question is empty, too long, or names more than six quantities.",
    PipelineCode.PASSAGES: "The passages to be summarised are none, too many or too long.",
    PipelineCode.TOO_LONG: "An expression has more than 200 characters.",
    PipelineCode.NOT_ARITHMETIC: "An expression has something in it that is not arithmetic.",
    PipelineCode.NO_VALUE: "An expression has no finite real value.",
    PipelineCode.CATEGORY: "There is no such shelf or category.",
    PipelineCode.RECORD: "The file is no record of categories.",
}


_SHOWN = 120
_EXTRA = ("langgraph", "mcp", "opendp", "scipy", "simpleeval", "sklearn")


class PipelineError(ValueError):
    """A tool of the pipeline refuses what it was given.

    Args:
        code: which kind of fault.
        place: where: a file, or the name of an argument.
        expected: what may be there.
        found: what was there; cut to some characters.
    """

    def __init__(self, code: PipelineCode, place: str, expected: str, found: object) -> None:
        self.code = code
        self.place = place
        self.expected = expected
        self.found = str(found)[:_SHOWN]
        super().__init__(f"{code} {place}: expected {expected}, found {self.found}")

    def __reduce__(self) -> tuple[type[PipelineError], tuple[PipelineCode, str, str, str]]:
        return PipelineError, (self.code, self.place, self.expected, self.found)


class MissingPackage(Exception):
    """A package of the extra `pipeline` is not installed."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the pipeline needs {name}; install the extra: pip install 'tcc[pipeline]'"
        )

    def __reduce__(self) -> tuple[type[MissingPackage], tuple[str]]:
        return MissingPackage, (self.name,)


def require_extra() -> None:
    """All packages of the extra are there, before any of them is used.

    Raises:
        MissingExtra: one is not installed.
    """
    for name in _EXTRA:
        if (name in sys.modules and sys.modules[name] is None) or find_spec(name) is None:
            raise MissingPackage(name)


def bring(name: str) -> Any:
    """A module of the extra `pipeline`.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingPackage(error.name or name) from None
