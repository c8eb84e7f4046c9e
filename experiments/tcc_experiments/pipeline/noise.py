"""The category of a question, privatised by OpenDP before anything else sees it.

Randomised response over the three categories: the truth with probability 0.8, else one of the
others.  OpenDP draws from the system's generator and cannot be given a seed; so the categories that
came out are kept, and a run that is made again takes them from the record.
Cost: microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tcc_experiments.pipeline.codes import Code
from tcc_experiments.pipeline.errors import PipelineError, bring
from tcc_experiments.pipeline.texts import CATEGORIES

PROBABILITY = "0.8"
_MOST_BYTES = 1 << 20
DELTA = "0.000001"
ATOM: Mapping[str, str | int] = {
    "mechanism": "randomized_response",
    "probability": PROBABILITY,
    "choices": len(CATEGORIES),
}


def privatised(category: str) -> str:
    """A category in the place of the true one, drawn anew each time.

    Raises:
        PipelineError: X401, it is none of the three: OpenDP would take it for any.
        MissingExtra: OpenDP is not installed.
    """
    if category not in CATEGORIES:
        due = f"one of {', '.join(CATEGORIES)}"
        raise PipelineError(Code.CATEGORY, "category", due, category)
    return str(_mechanism()(category))


def spent() -> float:
    """The epsilon that OpenDP itself states for one category."""
    return float(_mechanism().map(1))


@cache
def _mechanism() -> Any:
    opendp = bring("opendp.prelude")
    opendp.enable_features("contrib")
    return opendp.m.make_randomized_response(list(CATEGORIES), prob=float(PROBABILITY))


def read_record(path: Path) -> dict[str, str]:
    """The noisy categories of an earlier run, by question.

    Raises:
        PipelineError: X402, the file is no record.
        OSError: it cannot be read.
    """
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        raise PipelineError(Code.RECORD, str(path), "a file of at most 1 MiB", "none")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise PipelineError(Code.RECORD, str(path), "JSON", error) from None
    if not isinstance(found, dict):
        due = "an object from questions to categories"
        raise PipelineError(Code.RECORD, str(path), due, type(found).__name__)
    for name, value in found.items():
        if not isinstance(value, str) or value not in CATEGORIES:
            due = f"one of {', '.join(CATEGORIES)}"
            raise PipelineError(Code.RECORD, f"{path}: {name[:40]}", due, value)
    return found
