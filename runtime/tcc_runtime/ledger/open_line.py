"""`open`, put together from what many runs over one artifact have in common.

Format: docs/spec/ledger.md, section 3; :mod:`tcc_runtime.ledger.records` has the definition, and a
test holds the bytes equal.  Cost: two hashes, where the last run over the artifact had the same
options.
"""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Final

from tcc_certs.formats.codec import encode
from tcc_certs.formats.hashes import blake
from tcc_certs.race.digest import uuid7
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.ledger.records import open_record
from tcc_runtime.terms.modes import Terms
from tcc_runtime.terms.settings import options_in

_TERMS = attrgetter(*(field.name for field in fields(Terms) if field.name != "settings"))
# Members of the record itself: within a text each quote has a backslash before it.
_AFTER_ID, _CHANGING = b'"run_limits":', b'"seed_commitment":"","started_ms":0'


def run_id_in(line: bytes) -> str:
    """The identity of the run in its `open`, as :func:`open_line` gives it."""
    return line.partition(b'"run_id":"')[2][:36].decode()


class _Common:
    """What is the same in the records of all runs on some terms, whatever the seed.

    A beacon and a nonce are in it, and change from run to run: with one it is for one run.

    Attributes:
        terms, options: which ones.
        before, between, after: the bytes around `run_id` and around the members that change.
    """

    __slots__ = ("after", "before", "between", "options", "terms")

    def __init__(self, artifact: Artifact, terms: Terms) -> None:
        self.terms: Final[object] = _TERMS(terms)
        self.options: Final[object] = options_in(terms.settings)
        text, _, self.after = encode(open_record(artifact, terms, b"", 0)).partition(_CHANGING)
        self.before, name, between = text.partition(_AFTER_ID)
        self.between = name + between


def open_line(artifact: Artifact, terms: Terms, commitment: bytes, started_ms: int) -> bytes:
    """`open`.

    Args:
        commitment: to the seed.
        started_ms: UTC, milliseconds since 1970, below 2^48.
    """
    settings, found = terms.settings, artifact.kept.get("open")
    if settings.beacon is not None or settings.client_nonce is not None:
        found = _Common(artifact, terms)
    elif (
        not isinstance(found, _Common)
        or found.terms != _TERMS(terms)
        or found.options != options_in(settings)
    ):
        found = artifact.kept["open"] = _Common(artifact, terms)
    changing = f'"seed_commitment":"{commitment.hex()}","started_ms":{started_ms}'
    rest = found.between + changing.encode() + found.after
    run_id = uuid7(started_ms, blake(found.before + rest))
    return b'%b"run_id":"%b",%b' % (found.before, run_id.encode(), rest)
