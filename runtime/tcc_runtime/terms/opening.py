"""The key of a run's race: from the seed, and from a beacon and a nonce where they are given.

Text: docs/spec/race.md, section 16.  Who fixes the seed, its salt and the settings first, hands out
the digest O of them, and only then learns the beacon or the nonce, cannot have picked lucky ones.
Cost: a few hashes.
"""

from __future__ import annotations

from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.formats.hashes import blake
from tcc_certs.race.digest import race_key
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.terms.modes import Terms, terms_of
from tcc_runtime.terms.settings import Settings


def opening_digest(artifact: Artifact, settings: Settings) -> bytes:
    """O, what is handed out before the beacon and the nonce are known.

    Raises:
        SettingsError: as a run with these settings.
    """
    return _digest(artifact, terms_of(artifact, settings))


def race_key_of(artifact: Artifact, terms: Terms) -> bytes:
    """K, the PRF key of the run."""
    settings = terms.settings
    root = terms.root.digest
    if settings.beacon is None and settings.client_nonce is None:
        return race_key(settings.seed, root)
    parts = [settings.beacon or b"", settings.client_nonce or b""]
    public = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    salt = blake(b"tcc.salt.v1\x00" + root + _digest(artifact, terms) + public)
    return race_key(settings.seed, salt)


def _digest(artifact: Artifact, terms: Terms) -> bytes:
    settings = terms.settings
    document: dict[str, Json] = {
        "artifact": artifact.digest.hex(),
        "beta": format_decimal(*artifact.manifest.beta),
        "inflate": settings.inflate,
        "keys": terms.keys,
        "mode": terms.mode,
        "race": terms.race,
        "recipe": settings.recipe,
        "seed_commitment": settings.commitment.hex(),
        "tau": settings.tau,
        "tilt": artifact.manifest.tilt,
        "top": settings.top,
        "truncate": terms.truncate,
    }
    if terms.rounded is not None:
        document["count_bits"] = settings.count_bits
    if settings.after:
        document["after"] = list(settings.after)
    return blake(b"tcc.open.v1\x00" + encode(document))
