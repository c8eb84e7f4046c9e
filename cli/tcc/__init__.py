"""Compile tool grammars into certified plan automata, run them, and audit every run.

    import tcc
    artifact = tcc.compile_file("grammars/coding_agent.tcg")
    run = tcc.search(artifact, seed=bytes(32), top=3)
    print(run.claim_type, run.plans[0].calls)

Names are loaded when they are used, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from tcc.api import (
        CompileError,
        batch,
        cheapest,
        check,
        compile_file,
        compile_graph,
        compile_text,
        diff,
        estimate,
        format_text,
        lint,
        load,
        predict,
        runs,
        sample,
        save,
        search,
        validate,
        validate_batch,
        why,
    )
    from tcc.artifacts import Artifact
    from tcc.batches.errors import BatchError
    from tcc.batches.making import BatchDone
    from tcc.batches.validating import BatchValidation
    from tcc.documents import to_json
    from tcc.explaining import Why
    from tcc.linting import Linted
    from tcc.picking import Picked
    from tcc_runtime.account.account import Account
    from tcc_runtime.errors import BindingError
    from tcc_runtime.executor.binding import Failed
    from tcc_runtime.executor.execute import Execution, execute, execute_in_task
    from tcc_runtime.gate.gate import Gate
    from tcc_runtime.gate.refusals import Allowed, AlreadyDone, Refused
    from tcc_runtime.gate.took import Took
    from tcc_runtime.outcome import Run
    from tcc_runtime.questions.comparison import Comparison

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
    "Picked",
    "Refused",
    "Run",
    "Took",
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
    "runs",
    "sample",
    "save",
    "search",
    "to_json",
    "validate",
    "validate_batch",
    "why",
]

_HOME = {
    "Account": "tcc_runtime.account.account",
    "Allowed": "tcc_runtime.gate.refusals",
    "AlreadyDone": "tcc_runtime.gate.refusals",
    "BatchDone": "tcc.batches.making",
    "BatchError": "tcc.batches.errors",
    "BatchValidation": "tcc.batches.validating",
    "BindingError": "tcc_runtime.errors",
    "Comparison": "tcc_runtime.questions.comparison",
    "Execution": "tcc_runtime.executor.execute",
    "Failed": "tcc_runtime.executor.binding",
    "execute": "tcc_runtime.executor.execute",
    "execute_in_task": "tcc_runtime.executor.execute",
    "Gate": "tcc_runtime.gate.gate",
    "Refused": "tcc_runtime.gate.refusals",
    "Artifact": "tcc.artifacts",
    "Took": "tcc_runtime.gate.took",
    "Run": "tcc_runtime.outcome",
    "Why": "tcc.explaining",
    "Linted": "tcc.linting",
    "Picked": "tcc.picking",
    "to_json": "tcc.documents",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from tcc.release import version

        globals()[name] = found = version()
        return found
    if name not in __all__:
        raise AttributeError(f"module 'tcc' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOME.get(name, "tcc.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
