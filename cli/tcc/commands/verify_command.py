"""``tcc verify``: verifies a signed statement, and that it is about a file."""

from __future__ import annotations

from pathlib import Path

import click

from tcc import screen
from tcc.commands.sign_command import said
from tcc.findings import Place, ReportedFinding, as_object, print_found
from tcc.options import INPUT, chosen, format_option, is_regular_file, json_option
from tcc.screen import CLEAN, FINDINGS
from tcc.signing import SigningError, VerifiedStatement, document, keyid_of, public_key, verify


@click.command("verify")
@click.argument("envelope", type=INPUT, callback=is_regular_file)
@click.argument("file", required=False, type=INPUT, callback=is_regular_file)
@click.option("--key", type=INPUT, required=True, help="public key (Ed25519, PEM)")
@format_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    envelope: Path,
    file: Path | None,
    key: Path,
    output_format: str,
    as_json: bool,
) -> None:
    """Verify that ENVELOPE was signed by --key, and is about FILE.

    Without FILE only the signature is verified. A signature does not show that the statement is
    true: check FILE itself (`tcc check`, `tcc validate`), or trust the signer.
    """
    shown = chosen(output_format, as_json)
    try:
        public = public_key(key)
        found, keyid = verify(envelope, public, file), keyid_of(public)
    except SigningError as error:
        one = ReportedFinding(code=error.code, message=error.what, place=Place(file=str(key)))
        found, keyid = VerifiedStatement(statement=None, found=(one,)), None
    _show(found, keyid, file, shown)
    ctx.exit(FINDINGS if found.found else CLEAN)


def _show(verified: VerifiedStatement, keyid: str | None, file: Path | None, shown: str) -> None:
    statement = verified.statement
    if shown == "json":
        from tcc.outputs.verdicts import VerifyOutput

        output = VerifyOutput(
            verdict="INVALID" if verified.found else "VALID",
            findings=[as_object(one) for one in verified.found],
            keyid=keyid,
            file=None if file is None else str(file),
            # An invalid statement may itself say VALID, so it is shown only if it holds.
            statement=None if verified.found or statement is None else document(statement),
        )
        screen.print_output(output)
        return
    if shown != "text":
        print_found(verified.found, shown)
        return
    for one in verified.found:
        where = "" if one.place is None else f"{one.place.file}: "
        screen.bad(f"INVALID: {where}{one.code}: {one.message}")
    if verified.found or statement is None:
        return
    about = "no file was compared" if file is None else f"about {file}"
    screen.good(f"VALID: the signature holds; {about}")
    screen.print_fields([*said(statement), ("key", keyid)])
