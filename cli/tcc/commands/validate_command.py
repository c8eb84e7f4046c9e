"""``tcc validate``: verifies the ledger of a run or of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import click

from tcc import options, screen
from tcc.describe import to_json
from tcc.files import is_regular, same_file
from tcc.findings import of_validation, print_found
from tcc.library.validation import validate
from tcc.opening import account_in, refuse, require_artifact, require_ledger
from tcc.screen import CLEAN, FINDINGS
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.policy.listing import statement_lines, statements_json
from tcc_certs.replay import Validation
from tcc_certs.session import SessionValidation
from tcc_certs.session.files import files_of, place_of
from tcc_certs.verbs.validate import LedgerInput, is_session
from tcc_runtime.errors import OutputRefused, mismatch
from tcc_runtime.ledger.outputs import target_of

_Tell: TypeAlias = Callable[[Mapping[str, Any]], None]


@click.command("validate")
@options.ledger_argument
@click.argument("more", metavar="[FILE]...", nargs=-1, type=options.INPUT)
@click.option(
    "--artifact",
    "artifacts",
    type=options.INPUT,
    multiple=True,
    required=True,
    help="artifact of the run or of the session; repeatable, if the policy changed in the session",
)
@options.pin_option
@options.audit_options
@options.input_option("--adapters", "registry that has to list the adapters of the run")
@options.input_option("--account", "account that has to hold the reservations of the run")
@options.input_option("--parent", "ledger of the session that this session is a part of")
@click.option(
    "--parent-artifact",
    type=options.INPUT,
    multiple=True,
    help="artifact of that session; repeatable, if its policy changed in the session",
)
@click.option(
    "--nodes",
    type=click.Path(dir_okay=False, path_type=Path),
    help="write kappa and the tightened key of each node to FILE: diagnostics, on which no "
    "verdict depends",
)
@options.format_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    ledger: Path,
    more: tuple[Path, ...],
    artifacts: tuple[Path, ...],
    pin: bytes | None,
    output_format: str,
    nodes: Path | None,
    account: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Derive every record of LEDGER again, and report the claim of the run or session.

    A ledger of several files is named by its first file: LEDGER.1, LEDGER.2 and so on beside it are
    read, too. Or name all of them, in their order.
    """
    shown = options.chosen(output_format, as_json)
    above = given["parent"], given["parent_artifact"]
    parent_artifact, *parent_others = given.pop("parent_artifact") or (None,)
    if any(above) and not (all(above) and given["key"]):
        raise click.UsageError("--parent, --parent-artifact and --key go together", ctx)
    for artifact in (*artifacts, *above[1]):
        if not is_regular(artifact):
            raise click.BadParameter(f"{str(artifact)!r} is not a regular file", ctx)
        require_artifact(artifact)
    artifact, *others = artifacts
    require_ledger(ledger)
    if all(above):
        require_ledger(above[0])
    of_session = is_session(LedgerInput(ledger))
    if others and not of_session:
        raise click.UsageError("a run has one --artifact; only a session may have several", ctx)
    files = files_of(ledger) if of_session and not more else [ledger, *more]
    for file in files:
        if not is_regular(file):
            raise click.BadParameter(f"{str(file)!r} is not a regular file", param_hint="FILE")
    pinned = None if pin is None else pin.hex()
    drawn_on = None if account is None else account_in(account)
    try:
        with _nodes_file(nodes, [*files, *artifacts, given["counts"]]) as tell:
            found = validate(
                ledger, artifact, more=files[1:], others=others, pin=pinned, nodes=tell,
                account=drawn_on, parent_artifact=parent_artifact,
                parent_others=parent_others, **given,
            )  # fmt: skip
    except Rejected as refusal:
        of_account = refusal.code.value[0] == "K"
        refuse((account if of_account else given["adapters"]) or ledger, refusal)
    if shown == "json":
        screen.print_document(to_json(found))
    elif shown == "text":
        _print(found, files)
    else:
        decided = found.statements if isinstance(found, SessionValidation) else ()
        listed = {str(artifact): statements_json(decided)} if decided else None
        print_found(of_validation(found.findings, files, _lines(found)), shown, listed=listed)
    ctx.exit(found.verdict)


def _lines(found: Validation | SessionValidation) -> tuple[int, ...]:
    return found.lines if isinstance(found, SessionValidation) else ()


def _print(found: Validation | SessionValidation, files: Sequence[Path]) -> None:
    for item in found.findings:
        what = mismatch(item.expected, item.found)
        file, number = place_of(files, _lines(found), item.line)
        screen.say(f"{file}:{number}: {item.code} {item.field}: {what}")
    checked = ", ".join(f"{count} {name}" for name, count in found.checked.items())
    screen.print_fields([("checked", checked), ("claim", found.claim_type or "none")])
    if isinstance(found, Validation) and found.privacy is not None:
        screen.print_fields([("privacy", _privacy(found.privacy))])
    if isinstance(found, SessionValidation):
        screen.print_fields([("asserted", text) for text in found.asserted])
        for line in [] if found.verdict == FINDINGS else statement_lines(found.statements):
            screen.say(f"  {line}")
    say = screen.good if found.verdict == CLEAN else screen.bad
    say(f"{found.word}: {found.summary}")


def _privacy(stated: Mapping[str, Any]) -> str:
    if "eps_delta" not in stated:
        return "nothing is stated: the run depends on raw input"
    pair, many = stated["eps_delta"], stated["atoms"] != 1
    what = f"its {stated['atoms']} atoms" if many else "its one atom"
    shown = f"epsilon {pair['eps']} at delta {pair['delta']}, of {what}"
    return f"{shown}; that nothing else of the input reached it is asserted"


@contextmanager
def _nodes_file(path: Path | None, inputs: list[Path | None]) -> Iterator[_Tell | None]:
    """Yield a function that writes diagnostics of nodes to a file; yield None without a path.

    Each node is a JSON object on its own line.  An existing file is replaced.

    Raises:
        click.BadParameter: the file is an input, or is not a regular file.
        OSError: the file cannot be written.
    """
    if path is None:
        yield None
        return
    if same_file(path, [given for given in inputs if given is not None]):
        raise click.BadParameter(f"{str(path)!r} is what is validated", param_hint="--nodes")
    try:
        target = target_of(path)
    except OutputRefused as error:
        raise click.BadParameter(str(error), param_hint="--nodes") from None
    with target.open("wb") as file:
        yield lambda told: _write(file, told)


def _write(file: BinaryIO, told: Mapping[str, Any]) -> None:
    file.write(encode(told) + b"\n")
