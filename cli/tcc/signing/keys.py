"""Ed25519 keys in PEM: read, made, named, and used; here alone `cryptography` is imported.

A key is named by the SHA-256 that securesystemslib gives it by default, so that its reader knows
our envelopes, and ours knows its.  Source: RFC 8032 (Ed25519), RFC 8410 (its keys in PKCS 8).
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tcc.files import is_regular
from tcc.signing.envelope import Envelope, Signature, SigningError, pae

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PrivateKey: TypeAlias = "Ed25519PrivateKey"
PublicKey: TypeAlias = "Ed25519PublicKey"

_MOST_BYTES = 1 << 16
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


class MissingExtra(Exception):
    """`cryptography` is not installed."""

    def __init__(self) -> None:
        super().__init__("signatures need cryptography: install the extra: pip install '.[sign]'"
                         " from a checkout")  # fmt: skip


def _cryptography() -> tuple[Any, Any]:
    """The modules for Ed25519, and for keys in files.

    Raises:
        MissingExtra: they are not installed.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra from None
    return ed25519, serialization


def private_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a file.

    Raises:
        SigningError: TCC857, it holds none, or one with a password.
        MissingExtra, OSError: it cannot be read.
    """
    ed25519, serialization = _cryptography()
    key = _loaded(path, lambda data: serialization.load_pem_private_key(data, password=None))
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise SigningError("TCC857", f"{path} is a private key, but not of Ed25519")
    found: Ed25519PrivateKey = key
    return found


def public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a file; raises as :func:`private_key`."""
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
    """The name of a key, hex."""
    _, serialization = _cryptography()
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    told = {"keytype": "ed25519", "keyval": {"public": raw.hex()}, "scheme": "ed25519"}
    text = json.dumps(told, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def signed(payload: bytes, payload_type: str, key: Ed25519PrivateKey) -> Envelope:
    """An envelope with `payload`, signed by `key`."""
    one = Signature(keyid=keyid_of(key.public_key()), sig=key.sign(pae(payload_type, payload)))
    return Envelope(payload=payload, payload_type=payload_type, signatures=(one,))


def check_signature(envelope: Envelope, key: Ed25519PublicKey) -> None:
    """Whether `key` has signed the envelope; signatures that name other keys are not looked at.

    Raises:
        SigningError: TCC853, no signature names the key; TCC854, it is not one by it.
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
    """Write a new private key to `path`, for its owner alone, and the public one beside it.

    Returns:
        the path of the public key, and the name of both.

    Raises:
        FileExistsError: a file is there already.
        MissingExtra, OSError: it cannot be made.
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
