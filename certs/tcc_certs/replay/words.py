"""Where uniforms come from: the PRF, or, where no seed is known, the record itself.

Normative text: docs/spec/ledger.md, section 7.
"""

from __future__ import annotations

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.ledger import Record
from tcc_certs.race.digest import Uniforms
from tcc_certs.replay.policy import Word


def uniform_words(key: Uniforms) -> Word:
    """The uniforms of the race with this key."""
    return lambda purpose, identity, name: key(purpose, identity)


def logged_words(record: Record) -> Word:
    """Those that `record` has in its fields."""
    return lambda purpose, identity, name: _logged(record, name)


def unlogged_words(key: Uniforms | None) -> Word:
    """Uniforms that no record has: without a key, asking for one is refused (D302)."""
    if key is None:
        return lambda purpose, identity, name: _withheld()
    return uniform_words(key)


def _logged(record: Record, name: str) -> int:
    value = record.get(name)
    if not isinstance(value, str):
        raise Rejected(Code.LEDGER_SCHEMA, name, "the field", "none")
    return int(value)


def _withheld() -> int:
    raise Rejected(Code.WITHHELD, "seed", "a seed, for the fallback values of leaves", "none")
