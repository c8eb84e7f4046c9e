"""``check A``: all certificates of an artifact; with ``--core`` also the plans of its core.

``check PROOF --artifact A`` checks a proof about the core of an artifact.  With ``--implies B`` the
proof has to show that every session of A is a session of B.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from tcc_certs.formats.codec import Json
from tcc_certs.policy.listing import enforced_json, statements_json
from tcc_certs.report import VERDICTS, CheckReport, check_artifact, report_proof
from tcc_certs.verbs.answer import VerbResult, misused, regular

VERB = "check"


def add(parser: ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("checked", type=Path, help="the artifact (.tcca), or a proof")
    parser.add_argument("--artifact", type=Path, help="the artifact that a proof is about")
    parser.add_argument(
        "--implies", type=Path, help="the artifact that allows every session, as a proof shows"
    )
    parser.add_argument(
        "--core", action="store_true", help="also show that the automaton is that of its core"
    )
    parser.add_argument(
        "--exact", action="store_true", help="refuse what is relaxed, or has counts that are bounds"
    )
    parser.add_argument("--pin", metavar="DIGEST", help="the artifact digest that it must have")


def run(options: Namespace) -> VerbResult:
    """Check the file that the arguments name and return the verdict.

    Raises:
        OSError: a file cannot be read.
    """
    data = regular(options.checked).read_bytes()
    if options.artifact is not None:
        if options.core or options.exact:
            return misused(["--core or --exact"], "a proof")
        other = options.implies and regular(options.implies).read_bytes()
        about = regular(options.artifact).read_bytes()
        report = report_proof(data, about, other, pin=options.pin)
    elif options.implies is not None:
        return misused(["--implies"], "an artifact")
    else:
        report = check_artifact(data, core=options.core, pin=options.pin, exact=options.exact)
    return VerbResult(
        exit_code=report.verdict,
        lines=[*report.lines, *([f"digest {report.digest}"] if report.digest else [])],
        document=document(report),
    )


def document(report: CheckReport) -> dict[str, Json]:
    """A report as the JSON document ``tcc.check`` 1.0."""
    return {
        "format": f"tcc.{VERB}",
        "format_version": "1.0",
        "verdict": VERDICTS[report.verdict],
        "findings": [{**asdict(one), "code": one.code.value} for one in report.findings],
        "checked": report.checked,
        "digest": report.digest,
        "enforced": {} if report.statements is None else enforced_json(report.statements),
        "statements": statements_json(report.statements or ()),
    }
