"""What a ledger commits to before its randomness is public: the opening O, and the race's salt.

Normative text: docs/spec/ledger.md, section 7.  Cost: one hash each.
"""

from __future__ import annotations

from tcc_certs.errors import Code, Rejected, require
from tcc_certs.formats.codec import encode
from tcc_certs.formats.hashes import blake
from tcc_certs.formats.ledger import Record

_OPENED = (
    "artifact", "beta", "inflate", "keys", "mode", "race", "recipe", "seed_commitment", "tau",
    "tilt", "top", "truncate",
)  # fmt: skip


def opening(header: Record, *, rounded: bool) -> bytes:
    """O, of the settings in `open`; of the calls before the run, where it has any.

    Args:
        rounded: whether the run's counts are rounded up: its race depends on `count_bits` then.
    """
    names = (*_OPENED, "after") if "after" in header else _OPENED
    names = (*names, "count_bits") if rounded else names
    return blake(b"tcc.open.v1\x00" + encode({name: header[name] for name in names}))


def race_salt(header: Record, bound: bytes, root: bytes) -> bytes:
    """The salt of the race key: D(root) alone, or with O, the beacon and the client's nonce.

    Args:
        bound: O.
    """
    beacon, nonce = _public(header, "beacon"), _public(header, "client_nonce")
    if beacon is None and nonce is None:
        return root
    parts = [b"tcc.salt.v1\x00", root, bound]
    for part in (beacon or b"", nonce or b""):
        parts += [len(part).to_bytes(4, "little"), part]
    return blake(b"".join(parts))


def _public(header: Record, name: str) -> bytes | None:
    value = header.get(name)
    return bytes.fromhex(value) if isinstance(value, str) else None


def check_public(
    header: Record,
    bound: bytes,
    *,
    opened: bytes | None,
    beacon: bytes | None,
    nonce: bytes | None,
) -> None:
    """The header has what the auditor knows of O, of the beacon and of the nonce.

    Args:
        header: a record `open` whose fields have their form.
        bound: its O.
        opened, beacon, nonce: what the auditor knows; None is nothing.

    Raises:
        Rejected: L303, L304, L305 the header has another one, or none.
    """
    if opened is not None:
        require(opened.hex(), bound.hex(), Code.OPENING_DIGEST, "opening")
    for name, known, code in (
        ("beacon", beacon, Code.BEACON),
        ("client_nonce", nonce, Code.NONCE),
    ):
        stated = header.get(name, "none")
        if known is not None and stated != known.hex():
            raise Rejected(code, name, known.hex(), stated)
