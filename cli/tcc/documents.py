"""Results as plain JSON values: what ``--json`` prints, and :func:`tcc.to_json` gives."""

from __future__ import annotations

from typing import Any, TypeAlias

from tcc.describe import describe
from tcc.differing import comparison_fields
from tcc.explaining import Why, why_fields
from tcc.outcome import run_fields
from tcc.screen import FORMAT_VERSION
from tcc_certs.replay import Validation
from tcc_certs.report import Report
from tcc_certs.session import SessionValidation
from tcc_certs.verbs import check as check_verb
from tcc_certs.verbs import validate as validate_verb
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.outcome import Run
from tcc_runtime.questions.comparison import Comparison

Result: TypeAlias = "Run | Artifact | Report | Validation | SessionValidation | Comparison | Why"


def to_json(result: Result) -> dict[str, Any]:
    """A result as dicts, lists, texts, numbers and None, as ``json.dumps`` takes them.

    Args:
        result: a run, an artifact, the report of a check or a validation, a comparison, or an
            answer to why. Each gives the document of its command with ``--json``: ``run``,
            ``inspect``, ``check``, ``validate``, ``diff``, ``why``.

    Returns:
        an object whose first members are ``format`` and ``format_version``; numbers that may be
        beyond 2^53 are texts.

    Raises:
        TypeError: `result` is something else.
    """
    match result:
        case Run():
            name, fields = "run", run_fields(result)
        case Artifact():
            name, fields = "inspect", describe(result)
        case Report():
            name, fields = "check", dict(check_verb.document(result))
        case Validation():
            name, fields = "validate", dict(validate_verb.document(result))
        case Comparison():
            name, fields = "diff", comparison_fields(result)
        case Why():
            name, fields = "why", why_fields(result)
        case SessionValidation():
            name, fields = "validate", dict(validate_verb.session_document(result))
        case _:
            raise TypeError(
                f"a run, an artifact or a report is needed, not {type(result).__name__}"
            )
    return {"format": f"tcc.{name}", "format_version": FORMAT_VERSION} | fields
