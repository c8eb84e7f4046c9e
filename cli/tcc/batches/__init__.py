"""Batches in shards: many runs over one artifact by any executor, a part of the folder each shard.

Text: docs/batch.md.  Start at :mod:`tcc.batches.making`: a batch on one page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, TypeAlias

from blake3 import blake3

from tcc.files import is_regular
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import decode, encode
from tcc_runtime.ledger.outputs import locked, write_whole


class BatchError(Exception):
    """A batch cannot be made, or cannot go on.  What was finished before stays as it is.

    Args:
        code: of the catalogue of diagnostics, TCC80x or TCC90x.
        where: the file, folder or address.
        what: what is the matter, and the mend.
    """

    def __init__(self, code: str, where: str, what: str) -> None:
        self.code = code
        self.where = where
        self.what = what
        super().__init__(f"{where}: {code}: {what}")

    def __reduce__(self) -> tuple[type[BatchError], tuple[str, str, str]]:
        return BatchError, (self.code, self.where, self.what)


class PartDamaged(ValueError):
    """A part that is cut off, altered, or none at all.

    Args:
        what: where it differs.
    """


PartFormat: TypeAlias = Literal["ndjson", "parquet"]
FORMATS: tuple[PartFormat, ...] = ("ndjson", "parquet")
HEAD = "batch.json"
PLAIN = "runs.ndjson"
_LOCK = ".lock"
_FORMAT = {"format": "tcc.batch.folder", "format_version": "1.0"}
_MOST_HEAD = 1 << 16
_MOST = (1 << 53) - 1
_PART = re.compile(r"part-([0-9]{8,16})\.(ndjson|parquet)")
_UNFINISHED = re.compile(r"\.(part-[0-9]{8,}\.(ndjson|parquet)|batch\.json)\.[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What a batch in shards is made of.

    Attributes:
        artifact: its digest, hex.
        verified: whether its certificates were checked; of one that was not, runs claim nothing.
        requests: a digest of all requests in their order, hex.
        runs: how many they are.
        shard_size: how many of them are one shard; the last one may have fewer.
        part_format: of the parts.
        ledgers: whether the ledgers are kept.
        started_ms: UTC milliseconds of every ledger.
    """

    artifact: str
    verified: bool
    requests: str
    runs: int
    shard_size: int
    part_format: PartFormat
    ledgers: bool
    started_ms: int

    def head(self) -> bytes:
        """The bytes of ``batch.json``."""
        return encode(_FORMAT | {name: getattr(self, name) for name in _NAMES}) + b"\n"

    @property
    def identity(self) -> str:
        """The digest of those bytes, hex."""
        return blake3(self.head()).hexdigest()

    @property
    def parts(self) -> int:
        """How many parts the finished batch has."""
        return -(-self.runs // self.shard_size)

    def part(self, number: int) -> str:
        """The name of the part of that number, from 1."""
        return f"part-{number:08d}.{self.part_format}"


_NAMES = tuple(field.name for field in fields(Batch))


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Nobody else writes the folder inside the block; it is made where there is none.

    Raises:
        BatchError: TCC803, somebody does.
        OSError: it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(folder / _LOCK, flags, 0o644)
    try:
        if not locked(handle):
            what = "another batch is made in this folder; wait for its end, or name another folder"
            raise BatchError("TCC803", str(folder), what)
        yield
    finally:
        os.close(handle)


def begin(folder: Path, asked: Batch, *, started_ms: int | None, overwrite: bool) -> Batch:
    """The batch that the held folder has from here on: the one that was asked for.

    Args:
        asked: its `started_ms` counts where the batch is new.
        started_ms: what the batch's has to be; None takes that of the batch that is there.
        overwrite: another batch that is there is removed.

    Raises:
        BatchError: TCC802, the folder has something else.
        OSError: the folder cannot be read or written.
    """
    if (folder / PLAIN).exists():
        what = f"the folder has {PLAIN}, results of a batch without shards; name another folder"
        raise BatchError("TCC802", str(folder), what)
    if overwrite:
        _clear(folder, _PART)
        (folder / HEAD).unlink(missing_ok=True)
    _clear(folder, _UNFINISHED)
    if os.path.lexists(folder / HEAD):
        there = read(folder)
        expected = replace(asked, started_ms=there.started_ms if started_ms is None else started_ms)
        _require_same(folder, expected, there)
        return there
    if any(_PART.fullmatch(path.name) for path in folder.iterdir()):
        what = f"the folder has parts, and no {HEAD}; name another folder, or replace (--overwrite)"
        raise BatchError("TCC802", str(folder), what)
    write_whole(folder / HEAD, asked.head())
    return asked


def read(folder: Path) -> Batch:
    """The batch of a folder.

    Raises:
        BatchError: TCC804, its ``batch.json`` is missing, or none.
        OSError: it cannot be read.
    """
    path = folder / HEAD
    if path.exists() and not is_regular(path):
        raise BatchError("TCC804", str(path), "it is no regular file; name another folder")
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_HEAD + 1)
        found = _parsed(data)
    except FileNotFoundError:
        raise BatchError("TCC804", str(path), "there is no batch in this folder") from None
    except (Rejected, ValueError) as error:
        what = f"it does not say what batch this is: {error}; replace the batch (--overwrite)"
        raise BatchError("TCC804", str(path), what) from None
    return found


def tidy(folder: Path) -> None:
    """Takes away what killed workers left of parts that others made."""
    _clear(folder, _UNFINISHED)


def parts_in(folder: Path, batch: Batch) -> list[int]:
    """The numbers of the parts that are there, increasing.

    Raises:
        OSError: the folder cannot be read.
    """
    named = (_PART.fullmatch(path.name) for path in folder.iterdir())
    numbers = {int(found[1]) for found in named if found}
    return [
        number
        for number in sorted(numbers)
        if 0 < number <= batch.parts and (folder / batch.part(number)).exists()
    ]


def confirm(folder: Path, batch: Batch) -> None:
    """The folder is, here where this runs, still that of `batch`.

    Raises:
        BatchError: TCC805, it is not.
    """
    try:
        same = (folder / HEAD).read_bytes() == batch.head()
    except OSError:
        same = False
    if not same:
        what = "a worker does not find the batch in this folder; all workers have to share it"
        raise BatchError("TCC805", str(folder), what)


def _parsed(data: bytes) -> Batch:
    value = decode(data.removesuffix(b"\n"), HEAD)
    if not isinstance(value, dict) or value.keys() != {*_FORMAT, *_NAMES}:
        raise ValueError("its members are others")
    told = {name: value.pop(name) for name in _FORMAT}
    if told != _FORMAT:
        raise ValueError("it is of another format")
    found = Batch(**value)
    for name in ("artifact", "requests"):
        text = value[name]
        if not isinstance(text, str) or re.fullmatch(r"[0-9a-f]{64}", text) is None:
            raise ValueError(f"{name} is no digest")
    for name, least in (("runs", 0), ("shard_size", 1), ("started_ms", 0)):
        if type(value[name]) is not int or not least <= value[name] <= _MOST:
            raise ValueError(f"{name} is out of its range")
    if not isinstance(found.verified, bool) or not isinstance(found.ledgers, bool):
        raise ValueError("verified and ledgers are true or false")
    if found.part_format not in FORMATS:
        raise ValueError("part_format is none")
    return found


def _require_same(folder: Path, expected: Batch, there: Batch) -> None:
    for name in _NAMES:
        here, asked = getattr(there, name), getattr(expected, name)
        if here != asked:
            what = (
                f"the folder has another batch: its {name} is {here}, and not {asked}; "
                "name another folder, or replace that batch (--overwrite)"
            )
            raise BatchError("TCC802", str(folder), what)


def _clear(folder: Path, names: re.Pattern[str]) -> None:
    for entry in list(os.scandir(folder)):
        file = entry.is_symlink() or entry.is_file()  # a link goes, and what it leads to stays
        if names.fullmatch(entry.name) and file:
            Path(entry.path).unlink(missing_ok=True)
