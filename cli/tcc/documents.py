"""Results as plain JSON values: what ``--json`` prints, and :func:`tcc.to_json` gives."""

from __future__ import annotations

from typing import Any, TypeAlias

from tcc.describe import describe
from tcc.differing import diff_output
from tcc.outcome import run_fields
from tcc.questions import Why, why_output
from tcc.screen import headed
from tcc_certs.replay import Validation
from tcc_certs.report import Report
from tcc_certs.session import SessionValidation
from tcc_certs.verbs import check as check_verb
from tcc_certs.verbs import validate as validate_verb
from tcc_runtime.analysis.comparison import Comparison
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.outcome import Run

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
    from tcc.outputs.grammars import InspectOutput

    match result:
        case Run():
            name, fields = "run", run_fields(result)
        case Artifact():
            name, fields = "inspect", InspectOutput(**describe(result)).as_fields()
        case Report():
            name, fields = "check", dict(check_verb.document(result))
        case Validation():
            name, fields = "validate", dict(validate_verb.document(result))
        case Comparison():
            name, fields = "diff", _comparison(result)
        case Why():
            name, fields = "why", why_output(result).as_fields()
        case SessionValidation():
            name, fields = "validate", dict(validate_verb.session_document(result))
        case _:
            raise TypeError(
                f"a run, an artifact or a report is needed, not {type(result).__name__}"
            )
    return headed(name, fields)


def _comparison(found: Comparison) -> dict[str, Any]:
    """The document of a comparison, without what the command adds: which changes are breaking."""
    fields = diff_output(found, breaking=False).as_fields()
    del fields["breaking"]
    return fields
