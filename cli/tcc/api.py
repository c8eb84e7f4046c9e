"""The library: the same work as the commands, as calls.

Everything here takes and gives values; nothing prints, and nothing reads the clock or draws
randomness but :func:`search` and :func:`runs`, where their arguments leave the seed or the time
open.
"""

from __future__ import annotations

from tcc.batches.making import batch
from tcc.batches.validating import validate_batch
from tcc.compilation import (
    CompileError,
    compile_file,
    compile_graph,
    compile_text,
    format_text,
    load,
    save,
)
from tcc.differing import diff
from tcc.explaining import why
from tcc.linting import lint
from tcc.picking import cheapest, sample
from tcc.searching import estimate, predict, runs, search
from tcc.verification import check, validate

__all__ = [
    "CompileError",
    "batch",
    "cheapest",
    "check",
    "compile_file",
    "compile_graph",
    "compile_text",
    "diff",
    "estimate",
    "format_text",
    "lint",
    "load",
    "predict",
    "runs",
    "sample",
    "save",
    "search",
    "validate",
    "validate_batch",
    "why",
]
