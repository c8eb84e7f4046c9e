"""``validate L --artifact A`` for a ledger whose first line says that it is of a session.

Source: docs/spec/session.md.  Cost: the cost of :func:`tcc_certs.session.validate`.
"""

from __future__ import annotations

from argparse import Namespace

from tcc_certs.formats.codec import Json
from tcc_certs.policy.listing import statement_lines, statements_json
from tcc_certs.replay.findings import INVALID
from tcc_certs.session import SessionValidation
from tcc_certs.session.files import files_of
from tcc_certs.verbs.answer import VerbResult, regular
from tcc_certs.verbs.validate import VERB, LedgerInput, finding_documents, octets, validation_lines


def session_document(found: SessionValidation) -> dict[str, Json]:
    """The validation of a session as the JSON document ``tcc.validate`` 1.0."""
    return {
        "format": f"tcc.{VERB}",
        "format_version": "1.0",
        "verdict": found.word,
        "claim_type": found.claim_type,
        "claim_upheld": found.claim_upheld,
        "asserted": list(found.asserted),
        "statements": statements_json(found.statements),
        "findings": finding_documents(found.findings),
        "checked": found.checked,
        "ledger_head": found.head,
        "lines": list(found.lines),
        "summary": found.summary,
    }


def run(arguments: Namespace) -> VerbResult:
    """Validate the session ledger that the arguments name and return the verdict.

    Raises:
        OSError: a file cannot be read.
    """
    files = [arguments.ledger, *arguments.more] if arguments.more else files_of(arguments.ledger)
    ledger, *more = [LedgerInput(regular(file)) for file in files]
    artifact, *others = [regular(file).read_bytes() for file in arguments.artifact]
    key, above = octets(arguments.key), (arguments.parent, arguments.parent_artifact)
    if any(above):
        if key is None or not all(above) or others:
            line = (
                "DECLINED: --parent, --parent-artifact and --key go together, with one --artifact"
            )
            document: dict[str, Json] = {"verdict": "DECLINED", "summary": line}
            return VerbResult(exit_code=2, lines=[line], document=document)
        from tcc_certs.session.delegation import validate_delegated

        parent, *parent_more = [LedgerInput(regular(file)) for file in files_of(above[0])]
        parent_artifact, *parent_others = [regular(file).read_bytes() for file in above[1]]
        found = validate_delegated(
            ledger,
            artifact,
            parent,
            parent_artifact,
            key=key,
            more=more,
            parent_more=parent_more,
            parent_others=parent_others,
            pin=arguments.pin,
        )
    else:
        from tcc_certs.session import validate

        found = validate(ledger, artifact, more=more, others=others, pin=arguments.pin, key=key)
    lines = [
        *validation_lines(found),
        *(f"asserted: {text}" for text in found.asserted),
        *([] if found.verdict == INVALID else statement_lines(found.statements)),
    ]
    return VerbResult(exit_code=found.verdict, lines=lines, document=session_document(found))
