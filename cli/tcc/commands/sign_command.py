"""``tcc sign``: a signed statement about an artifact or a ledger."""

from __future__ import annotations

from pathlib import Path

import click

from tcc import screen
from tcc.files import is_grammar, same_file
from tcc.opening import require_artifact
from tcc.options import INPUT, digest_option, input_option, is_regular_file, json_option
from tcc.screen import CLEAN
from tcc.signing.envelope import (
    PAYLOAD_TYPE,
    keyid_of,
    make_key,
    private_key,
    signed,
    write_envelope,
)
from tcc.signing.making import statement_of
from tcc.signing.statement import Statement, document, payload
from tcc_runtime.ledger.outputs import write_whole

_OUTPUT = click.Path(dir_okay=False, path_type=Path)


@click.command("sign")
@click.argument("file", required=False, type=INPUT, callback=is_regular_file)
@click.option("--key", type=INPUT, help="the private key: Ed25519, PEM")
@click.option("-o", "--output", type=_OUTPUT, help="the envelope; by default FILE.dsse.json")
@input_option("--artifact", "that of a ledger, which is validated against it")
@click.option("--core", is_flag=True, help="prove an artifact against its core, too")
@digest_option("--seed", "of a run whose ledger withholds it")
@digest_option("--session-key", "of the digests of a session")
@click.option("--new-key", type=_OUTPUT, help="make a key pair, and sign nothing")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    file: Path | None,
    key: Path | None,
    output: Path | None,
    artifact: Path | None,
    core: bool,
    seed: bytes | None,
    session_key: bytes | None,
    new_key: Path | None,
    as_json: bool,
) -> None:
    """Sign what is found of FILE, an artifact or the ledger of a run or a session.

    The statement says what this command found, and nothing else: an artifact is checked, a ledger
    validated where --artifact is given; what is not valid is not signed. --new-key KEY.pem makes a
    private key there and its public one in KEY.pub.pem.
    """
    if new_key is not None:
        _make(new_key, file or key, as_json)
        ctx.exit(CLEAN)
    if file is None or key is None:
        raise click.UsageError("FILE and --key are needed, or --new-key alone", ctx)
    if is_grammar(file):
        require_artifact(file)
    private = private_key(key)
    statement = statement_of(file, artifact=artifact, core=core, seed=seed, session_key=session_key)
    envelope = signed(payload(statement), PAYLOAD_TYPE, private)
    path = output or file.with_name(f"{file.name}.dsse.json")
    inputs = [file, key, *([artifact] if artifact else [])]
    if same_file(path, inputs):
        raise click.BadParameter(f"{str(path)!r} is what is read", param_hint="-o")
    write_whole(path, write_envelope(envelope))
    _show(statement, path, keyid_of(private.public_key()), as_json)


def _make(path: Path, other: Path | None, as_json: bool) -> None:
    if other is not None:
        raise click.UsageError("--new-key makes a key and signs nothing: give it alone")
    try:
        public, keyid = make_key(path)
    except FileExistsError as error:
        raise click.ClickException(f"{error.filename} is there: a key is not replaced") from None
    if as_json:
        from tcc.outputs.verdicts import NewKeyOutput

        screen.print_output(NewKeyOutput(private=str(path), public=str(public), keyid=keyid))
        return
    screen.good(f"wrote {path} (keep it) and {public} (hand it out)")
    screen.print_fields([("key", keyid)])


def _show(statement: Statement, path: Path, keyid: str, as_json: bool) -> None:
    if as_json:
        from tcc.outputs.verdicts import SignOutput

        signed_as = document(statement)
        screen.print_output(SignOutput(envelope=str(path), keyid=keyid, statement=signed_as))
        return
    screen.good(f"signed {statement.name}: {path}")
    screen.print_fields([*said(statement), ("key", keyid)])


def said(statement: Statement) -> list[tuple[str, object]]:
    """What a statement says, for people: name and text."""
    told = statement.predicate
    verdict = told.get("verdict") or "its chain holds; not validated"
    rows = [("says", f"{told['kind']}: {verdict}"), ("sha256", statement.digests.sha256)]
    for name in ("grammar", "version", "digest", "claim_type", "ledger_head"):
        if isinstance(told.get(name), str):
            rows.append((name.replace("_", " "), told[name]))
    if isinstance(told.get("artifact"), dict):
        rows.append(("artifact", str(told["artifact"].get("digest"))))
    return list(rows)
