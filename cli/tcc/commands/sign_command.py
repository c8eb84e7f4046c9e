"""``tcc sign``: signs a statement about an artifact or a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc import screen, signing
from tcc.files import is_grammar, same_file
from tcc.library import check
from tcc.library.validation import validate
from tcc.opening import require_artifact
from tcc.options import INPUT, digest_option, input_option, is_regular_file, json_option
from tcc.screen import CLEAN, version
from tcc_certs.errors import Rejected
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.report import VALID
from tcc_certs.session import SessionValidation
from tcc_certs.session.files import files_of
from tcc_certs.verbs.validate import LedgerInput, is_session
from tcc_runtime.ledger.outputs import write_whole


class NotValid(signing.SigningError):
    """The file to sign is not valid: TCC858.

    Args:
        what: the problem.
        verdict: 1 for invalid, 2 for declined or incomplete; the exit code.
    """

    def __init__(self, what: str, verdict: int) -> None:
        self.verdict = verdict
        super().__init__("TCC858", what)


def statement_of(
    path: Path,
    *,
    artifact: Path | None = None,
    core: bool = False,
    seed: bytes | None = None,
    session_key: bytes | None = None,
) -> signing.SignedStatement:
    """Verify an artifact, or the ledger of a run or a session, and return a statement about it.

    Args:
        path: the file.
        artifact: the artifact of a ledger.  With None the ledger is not validated, and the
            statement only says that the hash chain is correct.
        core: whether to check an artifact against its core too.
        seed: the seed of a run whose ledger withholds it.
        session_key: the key of a session's digests.

    Raises:
        NotValid: TCC858, the file is not valid, has several parts, or is no artifact or ledger.
        tcc_runtime.errors.SettingsError: a seed is given for a session, or a key for a run.
        OSError: a file cannot be read.
    """
    with path.open("rb") as file:
        is_ledger = file.read(1) == b"{"
    if not is_ledger:
        return _of_artifact(path, core)
    kind = "session" if is_session(LedgerInput(path)) else "ledger"
    if kind == "session" and len(files_of(path)) > 1:
        raise NotValid(f"{path} has several files, and a statement is about one file", 2)
    predicate: dict[str, Any] = {"kind": kind, "tcc": version(), "verdict": None}
    head = None
    if artifact is not None:
        data = artifact.read_bytes()
        found = validate(path, data, seed=seed, key=session_key)
        if found.verdict != VALID:
            raise NotValid(f"{path}: {found.word}: {found.summary}", found.verdict)
        head = found.head
        predicate |= {
            "verdict": found.word,
            "claim_type": found.claim_type,
            "claim_upheld": found.claim_upheld,
            "checked": dict(found.checked),
            "artifact": _named(data),
        }
        if isinstance(found, SessionValidation):
            predicate["asserted"] = list(found.asserted)
    digests, predicate["ledger_head"] = _read_through(path)
    if head not in (None, predicate["ledger_head"]):
        raise NotValid(f"{path} was changed while it was validated", 2)
    return signing.SignedStatement(name=path.name, digests=digests, predicate=predicate)


def _of_artifact(path: Path, core: bool) -> signing.SignedStatement:
    data = path.read_bytes()
    report = check(data, core=core)
    if report.verdict != VALID:
        raise NotValid(f"{path}: {report.summary}", report.verdict)
    predicate = {
        "kind": "artifact",
        "tcc": version(),
        "verdict": "VALID",
        "checked": dict(report.checked),
        "core": core,
        **_named(data),
    }
    return signing.SignedStatement(
        name=path.name, digests=signing.digests_of([data]), predicate=predicate
    )


def _named(data: bytes) -> dict[str, str]:
    """Return the members of a predicate that identify a checked artifact."""
    file = read_artifact(data, digests=False)
    manifest = file.manifest
    return {
        "digest": file.digest.hex(),
        "grammar": manifest.grammar,
        "version": manifest.version,
        "root_state": manifest.root.hex(),
    }


def _read_through(path: Path) -> tuple[signing.Digests, str]:
    """Read a ledger once; return the digests of its bytes and the last hash of its chain, hex."""
    hashing = signing.Hashing(LedgerInput(path))
    reader = LedgerReader(hashing)
    try:
        for _ in reader:
            pass
    except Rejected as refusal:
        raise NotValid(f"{path}: {refusal}", 2 if refusal.code.declines else 1) from None
    return hashing.digests, reader.head.hex()


_OUTPUT = click.Path(dir_okay=False, path_type=Path)


@click.command("sign")
@click.argument("file", required=False, type=INPUT, callback=is_regular_file)
@click.option("--key", type=INPUT, help="private key (Ed25519, PEM)")
@click.option(
    "-o", "--output", type=_OUTPUT, help="file of the envelope; by default FILE.dsse.json"
)
@input_option("--artifact", "for a ledger: the artifact to validate it against")
@click.option("--core", is_flag=True, help="also check the artifact against its core")
@digest_option("--seed", "seed of a run whose ledger withholds it")
@digest_option("--session-key", "key of the digests of a session")
@click.option("--new-key", type=_OUTPUT, help="write a new key pair, and sign nothing")
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
    """Sign the verdict on FILE, an artifact or the ledger of a run or a session.

    The statement says what this command found, and nothing else: an artifact is checked, a ledger
    is validated if --artifact is given; a file that is not valid is not signed. --new-key KEY.pem
    writes a private key to that file and its public key to KEY.pub.pem.
    """
    if new_key is not None:
        _make(new_key, file or key, as_json)
        ctx.exit(CLEAN)
    if file is None or key is None:
        raise click.UsageError("FILE and --key are needed, or --new-key alone", ctx)
    if is_grammar(file):
        require_artifact(file)
    private = signing.private_key(key)
    statement = statement_of(file, artifact=artifact, core=core, seed=seed, session_key=session_key)
    envelope = signing.signed(signing.payload(statement), signing.PAYLOAD_TYPE, private)
    path = output or file.with_name(f"{file.name}.dsse.json")
    inputs = [file, key, *([artifact] if artifact else [])]
    if same_file(path, inputs):
        raise click.BadParameter(f"{str(path)!r} is what is read", param_hint="-o")
    write_whole(path, signing.write_envelope(envelope))
    _show(statement, path, signing.keyid_of(private.public_key()), as_json)


def _make(path: Path, other: Path | None, as_json: bool) -> None:
    if other is not None:
        raise click.UsageError("--new-key makes a key and signs nothing: give it alone")
    try:
        public, keyid = signing.make_key(path)
    except FileExistsError as error:
        raise click.ClickException(f"{error.filename} is there: a key is not replaced") from None
    if as_json:
        from tcc.outputs.verdicts import NewKeyOutput

        screen.print_output(NewKeyOutput(private=str(path), public=str(public), keyid=keyid))
        return
    screen.good(f"wrote {path} (keep it) and {public} (hand it out)")
    screen.print_fields([("key", keyid)])


def _show(statement: signing.SignedStatement, path: Path, keyid: str, as_json: bool) -> None:
    if as_json:
        from tcc.outputs.verdicts import SignOutput

        signed_as = signing.document(statement)
        screen.print_output(SignOutput(envelope=str(path), keyid=keyid, statement=signed_as))
        return
    screen.good(f"signed {statement.name}: {path}")
    screen.print_fields([*said(statement), ("key", keyid)])


def said(statement: signing.SignedStatement) -> list[tuple[str, object]]:
    """Return the content of a statement as names and texts, for people."""
    told = statement.predicate
    verdict = told.get("verdict") or "its chain holds; not validated"
    rows = [("says", f"{told['kind']}: {verdict}"), ("sha256", statement.digests.sha256)]
    for name in ("grammar", "version", "digest", "claim_type", "ledger_head"):
        if isinstance(told.get(name), str):
            rows.append((name.replace("_", " "), told[name]))
    if isinstance(told.get("artifact"), dict):
        rows.append(("artifact", str(told["artifact"].get("digest"))))
    return list(rows)
