"""``tcc validate``: is a ledger one of a run or of a session as it claims to have been?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.documents import to_json
from tcc.exits import CLEAN
from tcc.findings import chosen, format_option, print_found
from tcc.found import of_validation
from tcc.opening import (
    audit_options,
    input_option,
    json_option,
    ledger_argument,
    refuse_grammar,
)
from tcc.options import digest_option
from tcc.verification import validate
from tcc_certs.replay import Validation
from tcc_certs.session import SessionValidation
from tcc_runtime.errors import SettingsError


@click.command("validate")
@ledger_argument
@input_option("--artifact", "the artifact that was run", required=True)
@digest_option("--pin", "the artifact digest that is trusted")
@audit_options
@format_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    ledger: Path,
    artifact: Path,
    pin: bytes | None,
    output_format: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Derive all of LEDGER again, and say what the run, or the session, has shown."""
    shown = chosen(output_format, as_json)
    refuse_grammar(artifact)
    pinned = None if pin is None else pin.hex()
    try:
        found = validate(ledger, artifact, pin=pinned, **given)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    if shown == "json":
        screen.print_document(to_json(found))
    elif shown == "text":
        _print(found, ledger)
    else:
        print_found(of_validation(found.findings, ledger), shown)
    ctx.exit(found.verdict)


def _print(found: Validation | SessionValidation, ledger: Path) -> None:
    for item in found.findings:
        screen.say(
            f"{ledger}:{item.line}: {item.code} {item.field}: "
            f"expected {item.expected}, found {item.found}"
        )
    checked = ", ".join(f"{count} {name}" for name, count in found.checked.items())
    screen.print_fields([("checked", checked), ("claim", found.claim_type or "none")])
    if isinstance(found, SessionValidation):
        screen.print_fields([("asserted", text) for text in found.asserted])
        screen.print_fields([("monitor", text) for text in found.monitors])
    say = screen.good if found.verdict == CLEAN else screen.bad
    say(f"{found.word}: {found.summary}")
