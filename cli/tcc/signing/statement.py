"""Signed statements: an in-toto Statement v1 about one file, written, read, and verified.

The subject is named by SHA-256 and BLAKE3 of its bytes; the predicate states what the signing
command found (docs/signing.md).  Verification reports every mismatch as a finding, and shows the
statement only when its signature is good.
Source: in-toto attestation framework, Statement v1.  Cost: linear in the statement and the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from blake3 import blake3

from tcc.findings import Found, Place
from tcc.signing.envelope import (
    MOST_BYTES,
    PAYLOAD_TYPE,
    PublicKey,
    SigningError,
    check_signature,
    read_envelope,
)
from tcc_runtime.mcp.wire import MalformedMessage, is_deeper, read_json

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:tcc:predicate:1.0"
KINDS: Final = ("artifact", "ledger", "session")
_CHUNK = 1 << 20
_MOST_DEEP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """The digests of a file's bytes, hex."""

    sha256: str
    blake3: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement about a file.

    Attributes:
        name: of the file, as it was signed; nothing is found by it.
        digests: of its bytes.
        predicate: what was found of it; ``kind`` is one of KINDS.
    """

    name: str
    digests: Digests
    predicate: Mapping[str, Any]


class Hashing:
    """Chunks that go on as they come, and the digests of those that went."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._sha, self._blake = hashlib.sha256(), blake3()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._sha.update(chunk)
            self._blake.update(chunk)
            yield chunk

    @property
    def digests(self) -> Digests:
        """The digests so far."""
        return Digests(sha256=self._sha.hexdigest(), blake3=self._blake.hexdigest())


def digests_of(chunks: Iterable[bytes]) -> Digests:
    """The digests of the bytes that come in chunks."""
    hashing = Hashing(chunks)
    for _ in hashing:
        pass
    return hashing.digests


def digests_of_file(path: Path) -> Digests:
    """The digests of a file.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return digests_of(iter(lambda: file.read(_CHUNK), b""))


def document(statement: Statement) -> dict[str, Any]:
    """The statement as a JSON object."""
    digests = {"blake3": statement.digests.blake3, "sha256": statement.digests.sha256}
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": statement.name, "digest": digests}],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(statement.predicate),
    }


def payload(statement: Statement) -> bytes:
    """The bytes that are signed: canonical JSON."""
    text = json.dumps(document(statement), sort_keys=True, separators=(",", ":"))
    return text.encode("ascii")


def read_statement(data: bytes) -> Statement:
    """The statement in a payload whose signature was checked.

    Raises:
        SigningError: TCC855, it is none that is made here.
    """
    try:
        found = read_json(data)
    except MalformedMessage as error:
        raise SigningError("TCC855", f"the payload is no JSON: {error}") from None
    if is_deeper(found, _MOST_DEEP) or not _is_whole(found):
        raise SigningError("TCC855", "nested too deeply, or with a number that is no whole one")
    outer = _closed(found, "the statement", "_type", "predicate", "predicateType", "subject")
    for name, expected in (("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)):
        if outer[name] != expected:
            raise SigningError("TCC855", f"{name}: expected {expected}")
    subjects, predicate = outer["subject"], outer["predicate"]
    if not isinstance(subjects, list) or len(subjects) != 1:
        raise SigningError("TCC855", "subject: a list of one is needed")
    subject = _closed(subjects[0], "the subject", "name", "digest")
    digests = _closed(subject["digest"], "the digest", "sha256", "blake3")
    texts = (subject["name"], digests["sha256"], digests["blake3"])
    if not all(isinstance(text, str) for text in texts):
        raise SigningError("TCC855", "name and digests are texts")
    if not isinstance(predicate, dict) or predicate.get("kind") not in KINDS:
        raise SigningError("TCC855", f"predicate: kind has to be one of {', '.join(KINDS)}")
    return Statement(
        name=subject["name"],
        digests=Digests(sha256=digests["sha256"], blake3=digests["blake3"]),
        predicate=predicate,
    )


def _is_whole(value: Any) -> bool:
    """Whether every number in a value is a whole one, as in all that is signed here."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Decimal):
            return False
        if isinstance(one, dict | list):
            waiting += one.values() if isinstance(one, dict) else one
    return True


def _closed(value: object, what: str, *names: str) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != set(names):
        raise SigningError("TCC855", f"{what}: an object of {', '.join(names)} is needed")
    return value


# Verification: is a statement signed by this key, and about this file?


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
