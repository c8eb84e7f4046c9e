"""Requests cut into shards, and the digests that tie parts to requests.

Two requests have one text exactly where all their settings agree, however they were written down.
Cost: linear in the requests; one shard is held at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from blake3 import blake3

from tcc.batches.errors import BatchError
from tcc.batches.folder import Batch
from tcc_certs.core.atoms import atom_document
from tcc_certs.formats.codec import Json, encode
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import SettingsError
from tcc_runtime.terms.modes import terms_of
from tcc_runtime.terms.settings import TABLE, Settings, options_in

_MOST_PASSED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Requests that are made into one part.

    Attributes:
        number: from 1.
        first: the number of its first run in the batch, from 1.
        settings: of its runs, in order.
        inputs: a digest of the batch, the number and the requests, hex.
    """

    number: int
    first: int
    settings: tuple[Settings, ...]
    inputs: str


def canonical(settings: Settings) -> bytes:
    """The one text of a request, a line."""
    found: dict[str, Json] = {}
    for option in TABLE:
        value = getattr(settings, option.name)
        if isinstance(value, bytes):
            found[option.name] = value.hex()
        elif isinstance(value, tuple):
            found[option.name] = list(value)
        elif value is not None:
            found[option.name] = str(value)
    if settings.atoms:
        found["atoms"] = [atom_document(atom) for atom in settings.atoms]
    return encode(found) + b"\n"


def survey(artifact: Artifact, requests: Iterable[Settings]) -> tuple[str, int]:
    """The digest of all requests, and how many there are.

    Raises:
        BatchError: TCC902, the artifact does not allow one of them.
    """
    hasher, number = blake3(), 0
    passed: set[object] = set()
    for number, settings in enumerate(requests, 1):
        options = options_in(settings)
        if options not in passed:
            _require_allowed(artifact, settings, number)
            if len(passed) >= _MOST_PASSED:
                passed.clear()
            passed.add(options)
        hasher.update(canonical(settings))
    return hasher.hexdigest(), number


def _require_allowed(artifact: Artifact, settings: Settings, number: int) -> None:
    try:
        terms_of(artifact, settings, quoted=False)
    except SettingsError as error:
        raise BatchError("TCC902", f"request {number}", str(error)) from None


def shards(batch: Batch, requests: Iterable[Settings]) -> Iterator[Shard]:
    """The requests in shards.

    Raises:
        BatchError: TCC806, they are not those that the batch was begun with; at the end, or where
            they are too many.
    """
    hasher, number, first = blake3(), 0, 1
    held: list[Settings] = []
    for settings in requests:
        held.append(settings)
        hasher.update(canonical(settings))
        if len(held) == batch.shard_size:
            number += 1
            yield _shard(batch, number, first, held)
            first, held = first + len(held), []
        if first + len(held) - 1 > batch.runs:
            break
    if held:
        yield _shard(batch, number + 1, first, held)
    if (first + len(held) - 1, hasher.hexdigest()) != (batch.runs, batch.requests):
        what = "they were changed while the batch was made; put them back, or begin anew"
        raise BatchError("TCC806", "requests", what)


def _shard(batch: Batch, number: int, first: int, held: list[Settings]) -> Shard:
    hasher = blake3(encode({"batch": batch.identity, "shard": number}) + b"\n")
    for settings in held:
        hasher.update(canonical(settings))
    return Shard(number=number, first=first, settings=tuple(held), inputs=hasher.hexdigest())
