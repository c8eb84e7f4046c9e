"""Is a signed statement one by this key, and about this file?

Everything that is wrong is a finding; what the statement says is told only where its signature
holds.  Cost: linear in the envelope, and in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tcc.found import Found, Place
from tcc.signing.envelope import MOST_BYTES, PAYLOAD_TYPE, SigningError, read_envelope
from tcc.signing.keys import PublicKey, check_signature
from tcc.signing.statement import Statement, digests_of_file, read_statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found of an envelope.

    Attributes:
        statement: what was signed; None where the signature does not hold.
        found: what is wrong; nothing where the statement holds.
    """

    statement: Statement | None
    found: tuple[Found, ...]


def verify(envelope: Path, key: PublicKey, file: Path | None = None) -> Verified:
    """Verify a signed statement.

    Args:
        envelope: the file of the envelope.
        key: of whoever is to have signed it.
        file: what it is to be about; None looks at the signature alone.

    Raises:
        OSError: a file cannot be read.
    """
    with envelope.open("rb") as handle:
        data = handle.read(MOST_BYTES + 1)
    try:
        statement = _statement(data, key)
    except SigningError as error:
        return Verified(statement=None, found=(_finding(error, envelope),))
    try:
        if file is not None:
            _check_file(statement, file)
    except SigningError as error:
        return Verified(statement=statement, found=(_finding(error, file or envelope),))
    return Verified(statement=statement, found=())


def _statement(data: bytes, key: PublicKey) -> Statement:
    envelope = read_envelope(data)
    if envelope.payload_type != PAYLOAD_TYPE:
        raise SigningError("TCC852", f"payloadType: expected {PAYLOAD_TYPE}")
    check_signature(envelope, key)
    return read_statement(envelope.payload)


def _check_file(statement: Statement, file: Path) -> None:
    there = digests_of_file(file)
    for name in ("sha256", "blake3"):
        expected, found = getattr(statement.digests, name), getattr(there, name)
        if expected != found:
            raise SigningError("TCC856", f"{name}: expected {expected[:80]}, found {found}")


def _finding(error: SigningError, file: Path) -> Found:
    return Found(code=error.code, message=error.what, place=Place(file=str(file)))
