"""What goes wrong in the pipeline: a code, the place, what was expected and what was there.

Text: docs/pipeline.md, the table of codes.  Cost: none.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tcc_experiments.pipeline.codes import Code

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

    def __init__(self, code: Code, place: str, expected: str, found: object) -> None:
        self.code = code
        self.place = place
        self.expected = expected
        self.found = str(found)[:_SHOWN]
        super().__init__(f"{code} {place}: expected {expected}, found {self.found}")

    def __reduce__(self) -> tuple[type[PipelineError], tuple[Code, str, str, str]]:
        return PipelineError, (self.code, self.place, self.expected, self.found)


class MissingExtra(Exception):
    """A package of the extra `pipeline` is not installed."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the pipeline needs {name}; install the extra: pip install '.[pipeline]' "
            "from a checkout"
        )

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str]]:
        return MissingExtra, (self.name,)


def require_extra() -> None:
    """All packages of the extra are there, before any of them is used.

    Raises:
        MissingExtra: one is not installed.
    """
    for name in _EXTRA:
        if (name in sys.modules and sys.modules[name] is None) or find_spec(name) is None:
            raise MissingExtra(name)


def bring(name: str) -> Any:
    """A module of the extra `pipeline`.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or name) from None
