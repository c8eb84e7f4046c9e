"""Signed statements about artifacts and ledgers: docs/signing.md.

A statement is an in-toto Statement v1 in a DSSE envelope, signed by Ed25519.  The command that
signs it has first verified the claims in it.

Why not securesystemslib: it accepts unknown members and several forms of Base64, and tries a key
only on the signature that names it, which DSSE does not require.  Here each envelope has exactly
one text, with at most 64 signatures and 1 MiB, and a refusal names the place.  The only other part
of DSSE is `pae`, one line.  The tests verify signatures in both directions against
securesystemslib.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tcc.files import is_regular
from tcc_runtime.mcp.wire import MalformedMessage, read_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from blake3 import blake3

from tcc.findings import Place, ReportedFinding
from tcc_runtime.mcp.wire import is_deeper

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
MOST_BYTES: Final = 1 << 20
_MOST_SIGNATURES = 64


class SigningError(Exception):
    """A signed file, or a request to sign, is refused.

    Args:
        code: a code of the catalogue, TCC85x.
        what: the problem.
    """

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        self.what = what
        super().__init__(f"{code}: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A signature; `keyid` is empty if the signature names no key."""

    keyid: str
    sig: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A DSSE envelope: the signed payload, its type, and the signatures."""

    payload: bytes
    payload_type: str
    signatures: Sequence[Signature]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes to sign, DSSE's pre-authentication encoding of type and payload."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def write_envelope(envelope: Envelope) -> bytes:
    """Return the only accepted text of an envelope: JSON without spaces."""
    document = {
        "payload": base64.b64encode(envelope.payload).decode("ascii"),
        "payloadType": envelope.payload_type,
        "signatures": [
            {"keyid": one.keyid, "sig": base64.b64encode(one.sig).decode("ascii")}
            for one in envelope.signatures
        ],
    }
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def read_envelope(data: bytes) -> Envelope:
    """Parse an envelope.

    Raises:
        SigningError: TCC851, `data` is no envelope in the accepted form.
    """
    if len(data) > MOST_BYTES:
        raise SigningError("TCC851", f"larger than {MOST_BYTES} bytes")
    try:
        document = read_json(data)
    except MalformedMessage as error:
        raise SigningError("TCC851", f"no JSON: {error}") from None
    members = _members(document, "the envelope", {"payload", "payloadType", "signatures"})
    kind, listed = members["payloadType"], members["signatures"]
    if not isinstance(kind, str):
        raise SigningError("TCC851", "payloadType: a text is needed")
    if not isinstance(listed, list) or not 1 <= len(listed) <= _MOST_SIGNATURES:
        raise SigningError("TCC851", f"signatures: a list of 1 to {_MOST_SIGNATURES} is needed")
    return Envelope(
        payload=_decoded(members["payload"], "payload"),
        payload_type=kind.encode("utf-8", "replace").decode("utf-8"),
        signatures=tuple(_signature(one) for one in listed),
    )


def _signature(value: object) -> Signature:
    members = _members(value, "a signature", {"sig"}, {"keyid"})
    keyid = members.get("keyid", "")
    if not isinstance(keyid, str):
        raise SigningError("TCC851", "keyid: a text is needed")
    return Signature(keyid=keyid, sig=_decoded(members["sig"], "sig"))


def _members(
    value: object, what: str, required: set[str], optional: frozenset[str] | set[str] = frozenset()
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SigningError("TCC851", f"{what} is no object")
    wrong = sorted((required - value.keys()) | (value.keys() - required - optional))
    if wrong:
        name = json.dumps(wrong[0][:80])
        how = "is missing" if wrong[0] in required else "is none of its members"
        raise SigningError("TCC851", f"{what}: {name} {how}")
    return value


def _decoded(value: object, what: str) -> bytes:
    if not isinstance(value, str):
        raise SigningError("TCC851", f"{what}: a text is needed")
    try:
        found = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise SigningError("TCC851", f"{what}: no standard Base64") from None
    if base64.b64encode(found).decode("ascii") != value:
        raise SigningError("TCC851", f"{what}: Base64 that is not in its one form")
    return found


# Keys.

PrivateKey: TypeAlias = "Ed25519PrivateKey"
PublicKey: TypeAlias = "Ed25519PublicKey"

_MOST_BYTES = 1 << 16
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


class MissingExtra(Exception):
    """The package `cryptography` is not installed."""

    def __init__(self) -> None:
        super().__init__("signatures need cryptography: install the extra: pip install 'tcc[sign]'")


def _cryptography() -> tuple[Any, Any]:
    """Return cryptography's modules for Ed25519 and for keys in files.

    Raises:
        MissingExtra: cryptography is not installed.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra from None
    return ed25519, serialization


def private_key(path: Path) -> Ed25519PrivateKey:
    """Read the private key in a PEM file.

    Raises:
        SigningError: TCC857, the file has no Ed25519 private key, or its key has a password.
        MissingExtra: cryptography is not installed.
        OSError: the file cannot be read.
    """
    ed25519, serialization = _cryptography()
    key = _loaded(path, lambda data: serialization.load_pem_private_key(data, password=None))
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise SigningError("TCC857", f"{path} is a private key, but not of Ed25519")
    found: Ed25519PrivateKey = key
    return found


def public_key(path: Path) -> Ed25519PublicKey:
    """Read the public key in a PEM file; raises as :func:`private_key`."""
    ed25519, serialization = _cryptography()
    key = _loaded(path, serialization.load_pem_public_key)
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise SigningError("TCC857", f"{path} is a public key, but not of Ed25519")
    found: Ed25519PublicKey = key
    return found


def _loaded(path: Path, load: Any) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    if not is_regular(path):
        raise SigningError("TCC857", f"{path} is not a regular file")
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise SigningError("TCC857", f"{path} is larger than {_MOST_BYTES} bytes")
    try:
        return load(data)
    except TypeError:
        raise SigningError("TCC857", f"{path} is a key with a password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise SigningError("TCC857", f"{path} has no key of this kind in PEM") from None


def keyid_of(key: Ed25519PublicKey) -> str:
    """Return the identifier of a key: the SHA-256 of its canonical JSON, hex."""
    _, serialization = _cryptography()
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    told = {"keytype": "ed25519", "keyval": {"public": raw.hex()}, "scheme": "ed25519"}
    text = json.dumps(told, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def signed(payload: bytes, payload_type: str, key: Ed25519PrivateKey) -> Envelope:
    """Return an envelope with `payload` and one signature by `key`."""
    one = Signature(keyid=keyid_of(key.public_key()), sig=key.sign(pae(payload_type, payload)))
    return Envelope(payload=payload, payload_type=payload_type, signatures=(one,))


def check_signature(envelope: Envelope, key: Ed25519PublicKey) -> None:
    """Check that `key` has signed the envelope; ignore signatures that name other keys.

    Raises:
        SigningError: TCC853, no signature names the key or leaves the key out; TCC854, none of
            those verifies.
    """
    from cryptography.exceptions import InvalidSignature

    name = keyid_of(key)
    ours = [one for one in envelope.signatures if one.keyid in (name, "")]
    if not ours:
        there = ", ".join(json.dumps(one.keyid[:80]) for one in envelope.signatures[:4])
        raise SigningError("TCC853", f"expected a signature by {name}, found one by {there}")
    told = pae(envelope.payload_type, envelope.payload)
    for one in ours:
        try:
            return key.verify(one.sig, told)
        except InvalidSignature:
            continue
    raise SigningError("TCC854", f"the signature is not one of this payload by {name}")


def make_key(path: Path) -> tuple[Path, str]:
    """Write a new private key to `path` (mode 0600), and the public key to a file next to it.

    Returns:
        the path of the public key, such as `k.pub.pem` for `k.pem`, and the key's identifier.

    Raises:
        FileExistsError: a file of either name exists.
        MissingExtra: cryptography is not installed.
        OSError: a file cannot be written.
    """
    ed25519, serialization = _cryptography()
    pem = serialization.Encoding.PEM
    key = ed25519.Ed25519PrivateKey.generate()
    public = path.with_suffix(f".pub{path.suffix}")
    told = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for file, data, mode in ((path, secret, 0o600), (public, told, 0o644)):
        with os.fdopen(os.open(file, _NEW, mode), "wb") as out:
            out.write(data)
    return public, keyid_of(key.public_key())


STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:tcc:predicate:1.0"
KINDS: Final = ("artifact", "ledger", "session")
_CHUNK = 1 << 20
_MOST_DEEP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """The digests of a file's bytes, in hex."""

    sha256: str
    blake3: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedStatement:
    """A statement about a file.

    Attributes:
        name: the file's name when it was signed, for information only.
        digests: the digests of the file's bytes.
        predicate: the verified claims about the file; ``kind`` is one of KINDS.
    """

    name: str
    digests: Digests
    predicate: Mapping[str, Any]


class Hashing:
    """Passes chunks through unchanged while it computes their digests."""

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
        """The digests of the chunks passed so far."""
        return Digests(sha256=self._sha.hexdigest(), blake3=self._blake.hexdigest())


def digests_of(chunks: Iterable[bytes]) -> Digests:
    """Return the digests of the concatenated chunks."""
    hashing = Hashing(chunks)
    for _ in hashing:
        pass
    return hashing.digests


def digests_of_file(path: Path) -> Digests:
    """Return the digests of a file's bytes.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return digests_of(iter(lambda: file.read(_CHUNK), b""))


def document(statement: SignedStatement) -> dict[str, Any]:
    """Return the statement as a JSON object in in-toto's form."""
    digests = {"blake3": statement.digests.blake3, "sha256": statement.digests.sha256}
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": statement.name, "digest": digests}],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(statement.predicate),
    }


def payload(statement: SignedStatement) -> bytes:
    """Return the bytes to sign: the statement as canonical JSON."""
    text = json.dumps(document(statement), sort_keys=True, separators=(",", ":"))
    return text.encode("ascii")


def read_statement(data: bytes) -> SignedStatement:
    """Parse the statement in a payload whose signature was checked.

    Raises:
        SigningError: TCC855, the payload has not the form of a statement that tcc signs.
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
    return SignedStatement(
        name=subject["name"],
        digests=Digests(sha256=digests["sha256"], blake3=digests["blake3"]),
        predicate=predicate,
    )


def _is_whole(value: Any) -> bool:
    """Return whether a JSON value contains no fractional number, as in signed statements."""
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
class VerifiedStatement:
    """The result of verifying an envelope.

    Attributes:
        statement: the signed statement; None if the signature or its form is invalid.
        found: the problems; empty if the statement is valid.
    """

    statement: SignedStatement | None
    found: tuple[ReportedFinding, ...]


def verify(envelope: Path, key: PublicKey, file: Path | None = None) -> VerifiedStatement:
    """Verify a signed statement.

    Args:
        envelope: the file of the envelope.
        key: the public key of the expected signer.
        file: the file that the statement must be about; None checks only the signature.

    Raises:
        MissingExtra: cryptography is not installed.
        OSError: a file cannot be read.
    """
    with envelope.open("rb") as handle:
        data = handle.read(MOST_BYTES + 1)
    try:
        statement = _statement(data, key)
    except SigningError as error:
        return VerifiedStatement(statement=None, found=(_finding(error, envelope),))
    try:
        if file is not None:
            _check_file(statement, file)
    except SigningError as error:
        return VerifiedStatement(statement=statement, found=(_finding(error, file or envelope),))
    return VerifiedStatement(statement=statement, found=())


def _statement(data: bytes, key: PublicKey) -> SignedStatement:
    envelope = read_envelope(data)
    if envelope.payload_type != PAYLOAD_TYPE:
        raise SigningError("TCC852", f"payloadType: expected {PAYLOAD_TYPE}")
    check_signature(envelope, key)
    return read_statement(envelope.payload)


def _check_file(statement: SignedStatement, file: Path) -> None:
    there = digests_of_file(file)
    for name in ("sha256", "blake3"):
        expected, found = getattr(statement.digests, name), getattr(there, name)
        if expected != found:
            raise SigningError("TCC856", f"{name}: expected {expected[:80]}, found {found}")


def _finding(error: SigningError, file: Path) -> ReportedFinding:
    return ReportedFinding(code=error.code, message=error.what, place=Place(file=str(file)))
