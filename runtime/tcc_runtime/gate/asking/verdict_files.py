"""Files with verdicts, which the gate that has the session open reads.

The folder for a ledger NAME is ``NAME.verdicts``.  The file of a verdict has the id of its question
as its name.  It is written under another name, synced and linked, so it is never incomplete.  A
link replaces no file, so the first verdict counts.  Its content is authenticated with the key of
the session.  Otherwise everybody who can write into the folder could approve calls.  The gate that
takes a verdict writes the record, and removes the file when the record is on the disk.

Text: docs/ask.md.  Cost: a look at a folder that rarely exists; a file for each verdict.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from blake3 import blake3

from tcc_certs.errors import Rejected, clip
from tcc_certs.formats.codec import Json, decode, encode
from tcc_certs.session.records import VERDICTS
from tcc_runtime.gate.asking.questions import MOST_REASON, Verdict
from tcc_runtime.gate.session.records import is_name
from tcc_runtime.ledger.outputs import sync_folder

_log: Final = logging.getLogger("tcc.gate")
_CONTEXT: Final = "tcc.session/2 verdict key"
_MEMBERS: Final = ["id", "mac", "reason", "session_id", "verdict", "who"]
_ID: Final = re.compile("[0-9a-f]{32}")
_MOST_BYTES: Final = 1 << 14
_MOST_FILES: Final = 10_000
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
_READ: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


class Handed(NamedTuple):
    """A verdict in a file.

    Attributes:
        id, session_id: the ids of the question and its session.
        who: the name of the person.
        reason: the reason of a denial; the ledger does not have it.
    """

    id: str
    session_id: str
    verdict: Verdict
    who: str
    reason: str = ""


def folder_of(ledger: Path) -> Path:
    """Return the folder for the verdicts on questions of a ledger."""
    return ledger.with_name(f"{ledger.name}.verdicts")


def hand_in(ledger: Path, key: bytes, handed: Handed) -> Path:
    """Write a verdict to a file for the gate that has the session; return the path.

    Raises:
        FileExistsError: a file with a verdict on this question exists.
        OSError: the file cannot be written.
    """
    folder = folder_of(ledger)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    target = folder / handed.id
    beside = folder / f".{handed.id}.{os.getpid()}"
    told: dict[str, Json] = dict(handed._asdict())
    data = encode({**told, "mac": _mac(key, told)})
    handle = os.open(beside, _NEW, 0o600)
    try:
        try:
            os.write(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.link(beside, target)
        sync_folder(folder)
    finally:
        with suppress(OSError):
            beside.unlink()
    return target


def waiting(ledger: Path, key: bytes, session_id: str) -> Iterator[tuple[Path, Handed]]:
    """Yield the verdicts that no gate has taken yet, in the order of their ids.

    A file that has no verdict, or was not written with the key, is removed and logged.
    """
    for name in _names(folder_of(ledger)):
        path = folder_of(ledger) / name
        try:
            found = _read(path, name, key, session_id)
        except OSError:
            continue
        if isinstance(found, str):
            _log.warning("session %s: verdict %s ignored: %s", session_id, name, found)
            remove(path)
        else:
            yield path, found


def remove(path: Path) -> None:
    """Remove the file of a verdict, and the folder if it was the last one."""
    with suppress(OSError):
        path.unlink()
    with suppress(OSError):
        path.parent.rmdir()


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for _, entry in zip(range(_MOST_FILES), entries, strict=False)]
    except OSError:
        return []
    return sorted([name for name in found if _ID.fullmatch(name)])


def _read(path: Path, name: str, key: bytes, session_id: str) -> Handed | str:
    """Return the verdict in a file, or the fault of the file."""
    handle = os.open(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return "no regular file"
        data = os.read(handle, _MOST_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > _MOST_BYTES:
        return f"more than {_MOST_BYTES} bytes"
    try:
        found = decode(data, name)
    except Rejected as error:
        return clip(error, 200)
    if not isinstance(found, dict) or sorted(found) != _MEMBERS or encode(found) != data:
        return f"another form than an object of {', '.join(_MEMBERS)}"
    told = {name: value for name, value in found.items() if name != "mac"}
    if found["mac"] != _mac(key, told):
        return "not made with the key of the session"
    who, reason, verdict = told["who"], told["reason"], told["verdict"]
    if told["session_id"] != session_id or told["id"] != name:
        return "a verdict on a question of another session or id"
    if verdict not in VERDICTS or not is_name(who) or not isinstance(reason, str):
        return "no verdict of a person"
    kept: Verdict = "approved" if verdict == "approved" else "denied"
    return Handed(name, session_id, kept, str(who), reason[:MOST_REASON])


def _mac(key: bytes, told: dict[str, Json]) -> str:
    derived = blake3(key, derive_key_context=_CONTEXT).digest()
    return blake3(encode(told), key=derived).hexdigest()
