"""Bearer tokens that name the principal of a request (RFC 6750, 7519, 8725).

The owner's key decides the algorithm.  Keys inside a token (`jwk`, `jku`, `x5u`) are ignored.
`exp`, `aud` and `sub` are required.  A client does not learn why its token is refused.  PyJWT
checks the signatures.
Cost: one signature check for each request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tcc_runtime.errors import SettingsError

_GRACE: Final = 30  # seconds by which clocks may differ
_MOST: Final = 8 << 10  # bytes of a token
_MOST_KEY: Final = 1 << 20
_MOST_SUBJECT: Final = 255
_LEAST_RSA: Final = 2048
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = {
    "rsa": ("RS256", "PS256"),
    "p256": ("ES256",),
    "ed25519": ("EdDSA",),
}


class InvalidToken(Exception):
    """A request has no valid token."""


class MissingClaim(Exception):
    """A claim that a session needs is missing, or is not a text, number or flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The person or program that a token names.

    Attributes:
        issuer: the issuer of the token; empty if the token names none.
        subject: the name of the principal at the issuer.
        claims: the claims of the token, for the attributes of a session.
    """

    issuer: str
    subject: str
    claims: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def claim(self, name: str) -> str | int | bool:
        """Return a claim for an attribute of a session.

        Raises:
            MissingClaim: the claim is missing, or of another type.
        """
        found = self.claims.get(name)
        if not isinstance(found, str | int | bool):
            raise MissingClaim(name)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    key: Any
    algorithms: tuple[str, ...]


class Tokens:
    """Checks tokens.

    Args:
        key: the file of a public key in PEM, or of a set of keys (JWKS).
        audience: the audience that a token must name.
        issuer: the issuer that a token must name; None: any issuer.

    Raises:
        SettingsError: the file has no supported public key.
        OSError: the file cannot be read.
    """

    def __init__(self, key: Path, *, audience: str, issuer: str | None = None) -> None:
        data = key.read_bytes()
        if len(data) > _MOST_KEY:
            raise _no_key(f"{key} is too large for a key")
        self._audience = audience
        self._issuer = issuer
        self._keys = _keys_of(key, data)

    def principal(self, authorization: bytes | None) -> Principal:
        """Return the principal that an `Authorization` header names.

        Raises:
            InvalidToken: the header has no valid token.
        """
        import jwt

        token = _bearer(authorization)
        try:
            header = jwt.get_unverified_header(token)
            key = self._key(header)
            claims = jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                audience=self._audience,
                issuer=self._issuer,
                leeway=_GRACE,
                options={"require": ["exp", "aud", "sub"], "verify_sub": False},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise InvalidToken from None
        issuer, subject = claims.get("iss", ""), claims.get("sub")
        if not isinstance(subject, str) or not 1 <= len(subject) <= _MOST_SUBJECT:
            raise InvalidToken
        if not isinstance(issuer, str) or _SURROGATE.search(issuer + subject) is not None:
            raise InvalidToken
        return Principal(issuer=issuer, subject=subject, claims=claims)

    def _key(self, header: Mapping[str, Any]) -> _Key:
        if "crit" in header:
            raise InvalidToken
        if None in self._keys:
            return self._keys[None]
        chosen = header.get("kid")
        if not isinstance(chosen, str) or chosen not in self._keys:
            raise InvalidToken
        return self._keys[chosen]


def _bearer(authorization: bytes | None) -> str:
    if authorization is None or len(authorization) > _MOST:
        raise InvalidToken
    scheme, _, token = authorization.partition(b" ")
    token = token.strip(b" ")
    if scheme.lower() != b"bearer" or not token or not token.isascii():
        raise InvalidToken
    return token.decode("ascii")


def _keys_of(path: Path, data: bytes) -> Mapping[str | None, _Key]:
    """Return the keys of a file by their `kid`; a key in PEM by None."""
    if data.lstrip()[:1] != b"{":
        return {None: _of_pem(path, data)}
    import jwt

    try:
        entries = json.loads(data)["keys"]
        found: dict[str | None, _Key] = {}
        for entry in entries:
            name = entry["kid"]
            if not isinstance(name, str) or name in found:
                raise _no_key(f"{path}: each key has a kid of its own")
            if entry.get("kty") == "oct" or "d" in entry:
                raise _no_key(f"{path}: key {name} is none of the public ones that are taken")
            found[name] = _key_of(path, jwt.PyJWK(entry).key)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, jwt.PyJWTError):
        raise _no_key(f"{path} is no set of public keys (JWKS)") from None
    if not found:
        raise _no_key(f"{path} has no key")
    return found


def _of_pem(path: Path, data: bytes) -> _Key:
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        return _key_of(path, load_pem_public_key(data))
    except ValueError:
        raise _no_key(f"{path} is no public key in PEM") from None


def _key_of(path: Path, key: Any) -> _Key:
    """Return a key with the algorithms that fit it."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _LEAST_RSA:
        return _Key(key=key, algorithms=_ALGORITHMS["rsa"])
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return _Key(key=key, algorithms=_ALGORITHMS["p256"])
    if isinstance(key, ed25519.Ed25519PublicKey):
        return _Key(key=key, algorithms=_ALGORITHMS["ed25519"])
    raise _no_key(f"{path}: a key is RSA of {_LEAST_RSA} bits or more, P-256 or Ed25519")


def _no_key(what: str) -> SettingsError:
    return SettingsError("jwt-key", "public keys", what)
