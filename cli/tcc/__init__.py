"""Compile tool grammars into certified plan automata, run them, and audit every run.

    import tcc
    artifact = tcc.compile_file("grammars/coding_agent.tcg")
    run = tcc.search(artifact, seed=bytes(32), top=3)
    print(run.claim_type, run.plans[0].calls)

Functions return values and print nothing.  Only :func:`search` and :func:`runs` read the clock or
draw randomness, and only if their arguments leave the time or the seed open.  Each name is imported
from its module on first use, so importing the package is fast.  Type checkers read the same names
in the `TYPE_CHECKING` block below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    __version__: str
    from tcc.batches import BatchError
    from tcc.batches.making import BatchDone, batch
    from tcc.batches.validating import BatchValidation, validate_batch
    from tcc.describe import to_json
    from tcc.library import (
        Artifact,
        CompileError,
        check,
        compile_file,
        compile_graph,
        compile_text,
        format_text,
        load,
        save,
    )
    from tcc.library.linting import Linted, lint
    from tcc.library.plan_questions import Picked, Why, cheapest, diff, sample, why
    from tcc.library.proving import Proof, prove
    from tcc.library.running import estimate, predict, runs, search
    from tcc.library.validation import validate
    from tcc_runtime.account.account import Account
    from tcc_runtime.analysis.comparison import Comparison
    from tcc_runtime.errors import BindingError, Failed
    from tcc_runtime.executor.execute import Execution, execute, execute_in_task
    from tcc_runtime.gate.asking.questions import Pending, VerdictError
    from tcc_runtime.gate.gate import Gate
    from tcc_runtime.gate.permit import Took
    from tcc_runtime.gate.refusals import Allowed, AlreadyDone, Refused
    from tcc_runtime.gate.store import Sessions
    from tcc_runtime.outcome import Run

__all__ = [
    "Account",
    "Allowed",
    "AlreadyDone",
    "Artifact",
    "BatchDone",
    "BatchError",
    "BatchValidation",
    "BindingError",
    "Comparison",
    "CompileError",
    "Execution",
    "Failed",
    "Gate",
    "Linted",
    "Pending",
    "Picked",
    "Proof",
    "Refused",
    "Run",
    "Sessions",
    "Took",
    "VerdictError",
    "Why",
    "batch",
    "cheapest",
    "check",
    "compile_file",
    "compile_graph",
    "compile_text",
    "diff",
    "estimate",
    "execute",
    "execute_in_task",
    "format_text",
    "lint",
    "load",
    "predict",
    "prove",
    "runs",
    "sample",
    "save",
    "search",
    "to_json",
    "validate",
    "validate_batch",
    "why",
]

# The modules, and the names that the package exports from each.
_MODULES: Final = {
    "tcc.batches": ("BatchError",),
    "tcc.batches.making": ("BatchDone", "batch"),
    "tcc.batches.validating": ("BatchValidation", "validate_batch"),
    "tcc.library": (
        "Artifact",
        "CompileError",
        "check",
        "compile_file",
        "compile_graph",
        "compile_text",
        "format_text",
        "load",
        "save",
    ),
    "tcc.describe": ("to_json",),
    "tcc.library.linting": ("Linted", "lint"),
    "tcc.library.proving": ("Proof", "prove"),
    "tcc.library.plan_questions": ("Picked", "Why", "cheapest", "diff", "sample", "why"),
    "tcc.library.running": ("estimate", "predict", "runs", "search"),
    "tcc.library.validation": ("validate",),
    "tcc_runtime.account.account": ("Account",),
    "tcc_runtime.errors": ("BindingError", "Failed"),
    "tcc_runtime.executor.execute": ("Execution", "execute", "execute_in_task"),
    "tcc_runtime.gate.asking.questions": ("Pending", "VerdictError"),
    "tcc_runtime.gate.gate": ("Gate",),
    "tcc_runtime.gate.refusals": ("Allowed", "AlreadyDone", "Refused"),
    "tcc_runtime.gate.permit": ("Took",),
    "tcc_runtime.gate.store": ("Sessions",),
    "tcc_runtime.outcome": ("Run",),
    "tcc_runtime.analysis.comparison": ("Comparison",),
}
_HOME: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from tcc.screen import version

        globals()[name] = found = version()
        return found
    if name not in _HOME:
        raise AttributeError(f"module 'tcc' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
