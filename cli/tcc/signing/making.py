"""What may be said of a file: only what this command has found of the very bytes that it names.

An artifact is checked; a ledger is validated where its artifact is given, and without that only its
chain is said to hold.  Nothing that is not valid is signed.
Cost: that of the check or of the validation, and one more reading of a ledger.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcc.screen import version
from tcc.signing.envelope import SigningError
from tcc.signing.statement import Digests, Hashing, Statement, digests_of
from tcc.verification import check, validate
from tcc_certs.errors import Rejected
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.report import VALID
from tcc_certs.session import SessionValidation
from tcc_certs.verbs.validate import LedgerFile, is_session


class NotValid(SigningError):
    """What was to be signed is not valid.

    Args:
        what: what was found.
        verdict: 1 invalid, 2 declined or incomplete.
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
) -> Statement:
    """The statement about a file: an artifact, or the ledger of a run or of a session.

    Args:
        path: the file.
        artifact: that of a ledger; None: nothing is said of the ledger but that its chain holds.
        core: prove an artifact against its core, too.
        seed: of a run whose ledger withholds it.
        session_key: of a session's digests.

    Raises:
        NotValid: TCC858, it is not valid, or is no file of these kinds.
        tcc_runtime.errors.SettingsError: a seed for a session, or a key for a run.
        OSError: a file cannot be read.
    """
    with path.open("rb") as file:
        is_ledger = file.read(1) == b"{"
    if not is_ledger:
        return _of_artifact(path, core)
    kind = "session" if is_session(LedgerFile(path)) else "ledger"
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
    return Statement(name=path.name, digests=digests, predicate=predicate)


def _of_artifact(path: Path, core: bool) -> Statement:
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
    return Statement(name=path.name, digests=digests_of([data]), predicate=predicate)


def _named(data: bytes) -> dict[str, str]:
    """What names an artifact that was checked."""
    file = read_artifact(data, digests=False)
    manifest = file.manifest
    return {
        "digest": file.digest.hex(),
        "grammar": manifest.grammar,
        "version": manifest.version,
        "root_state": manifest.root.hex(),
    }


def _read_through(path: Path) -> tuple[Digests, str]:
    """The digests of a ledger's bytes, and the head of the chain of these same bytes."""
    hashing = Hashing(LedgerFile(path))
    reader = LedgerReader(hashing)
    try:
        for _ in reader:
            pass
    except Rejected as refusal:
        raise NotValid(f"{path}: {refusal}", 2 if refusal.code.declines else 1) from None
    return hashing.digests, reader.head.hex()
