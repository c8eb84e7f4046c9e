"""``tcc.lock``: the artifacts that a project uses, each with its digest, grammar and version.

Paths are POSIX, relative to the lock's folder and below it; the text is canonical JSON, members in
order, so that a change of a pin is one changed line.  A lock that is not exactly what is written
here is refused: docs/ci.md.  Cost: linear in the pins.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tcc.files import is_regular
from tcc.found import Found, Place
from tcc_certs.plain import is_plain
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.mcp.wire import Unreadable, read_json

NAME = "tcc.lock"
_FORMAT = "tcc.lock"
_VERSION = "1.0"
_MOST_BYTES = 16 << 20
_HEX = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """What an artifact has to be: its digest in hex, the name and the version of its grammar."""

    digest: str
    grammar: str
    version: str


class LockError(Exception):
    """A lock that is missing or malformed, or a path that it cannot hold.

    Args:
        path: of the lock.
        what: what is wrong with it.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.found = Found(code="TCC841", message=what, place=Place(file=str(path)))
        super().__init__(f"TCC841: {path}: {what}")


def pin_of(artifact: Artifact) -> Pin:
    """The pin of an artifact."""
    manifest = artifact.manifest
    return Pin(digest=artifact.digest.hex(), grammar=manifest.grammar, version=manifest.version)


def name_in(lock: Path, artifact: Path) -> str:
    """The name under which `lock` has an artifact.

    Raises:
        LockError: it is not below the lock's folder, or its name cannot be shown.
    """
    folder = os.path.abspath(lock.parent)  # noqa: PTH100 - links are not followed
    name = PurePosixPath(Path(os.path.relpath(artifact, folder)).as_posix())
    if not _is_name(str(name)):
        raise LockError(lock, f"{artifact} is not below the folder of the lock")
    return str(name)


def lock_text(pins: Mapping[str, Pin]) -> str:
    """The text of a lock with these pins."""
    artifacts = {
        name: {"digest": pin.digest, "grammar": pin.grammar, "version": pin.version}
        for name, pin in pins.items()
    }
    document = {"format": _FORMAT, "format_version": _VERSION, "artifacts": artifacts}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def read_pins(path: Path) -> dict[str, Pin]:
    """The pins of a lock, by the names of the artifacts.

    Raises:
        LockError: it is not there, or is not what :func:`lock_text` writes but for its spaces.
    """
    try:
        if not is_regular(path):
            raise LockError(path, "there is no such file: `tcc pin ARTIFACT` makes it")
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise LockError(path, f"larger than {_MOST_BYTES} bytes")
        document = read_json(data)
    except OSError as error:
        raise LockError(path, f"it cannot be read: {error.strerror or error}") from None
    except Unreadable as error:
        raise LockError(path, f"no lock of artifacts: {error}") from None
    return _pins(path, document)


def _pins(path: Path, document: object) -> dict[str, Pin]:
    members = {"format", "format_version", "artifacts"}
    if not isinstance(document, dict) or document.keys() != members:
        raise LockError(path, f"an object with {', '.join(sorted(members))} is needed")
    if document["format"] != _FORMAT or document["format_version"] != _VERSION:
        raise LockError(path, f"format {_FORMAT} {_VERSION} is needed")
    artifacts = document["artifacts"]
    if not isinstance(artifacts, dict):
        raise LockError(path, "artifacts: an object is needed")
    return {name: _pin(path, name, pin) for name, pin in artifacts.items()}


def _pin(path: Path, name: str, pin: object) -> Pin:
    shown = json.dumps(name[:200])
    if not _is_name(name):
        raise LockError(path, f"{shown} is no path below the folder of the lock")
    if not isinstance(pin, dict) or pin.keys() != {"digest", "grammar", "version"}:
        raise LockError(path, f"{shown}: digest, grammar and version are needed")
    if not all(isinstance(value, str) for value in pin.values()):
        raise LockError(path, f"{shown}: digest, grammar and version are texts")
    if _HEX.fullmatch(pin["digest"]) is None:
        raise LockError(path, f"{shown}: a digest is 64 lower-case hexadecimal digits")
    return Pin(digest=pin["digest"], grammar=pin["grammar"], version=pin["version"])


def _is_name(name: str) -> bool:
    """Whether it is a path below a folder, in its one form."""
    parts = name.split("/")
    return is_plain(name) and not any(part in ("", ".", "..") for part in parts)


def check_pin(name: str, path: Path, pins: Mapping[str, Pin], there: Pin) -> list[Found]:
    """What an artifact at `path` has that its pin under `name` has not."""
    place = Place(file=str(path))
    pin = pins.get(name)
    if pin is None:
        hint = f"look at it, then: tcc pin {path}"
        return [Found(code="TCC842", message="it is not pinned", place=place, hint=hint)]
    expected: Sequence[tuple[str, str, str]] = (
        ("digest", pin.digest, there.digest),
        ("grammar", pin.grammar, there.grammar),
        ("version", pin.version, there.version),
    )
    wrong = [f"{what}: pinned {was}, found {now}" for what, was, now in expected if was != now]
    if not wrong:
        return []
    hint = f"see with `tcc diff` what changed, then: tcc pin {path}"
    return [Found(code="TCC843", message="; ".join(wrong), place=place, hint=hint)]


def missing(path: Path) -> Found:
    """A pinned artifact that is not there."""
    hint = f"put it there, or: tcc pin --remove {path}"
    said = "there is a pin, and no such file"
    return Found(code="TCC844", message=said, place=Place(file=str(path)), hint=hint)
