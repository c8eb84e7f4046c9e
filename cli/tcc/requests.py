"""The requests of a batch: one JSON object a line, the settings of a run by their names.

A table of requests (:mod:`tcc.batches.parquet`) has the same names as columns.

``seed`` (64 hexadecimal digits) has to be there; ``opening_salt``, ``beacon`` and ``nonce`` are
hexadecimal too, exact decimals are texts, `after` is a list of calls, `atoms` one of atoms
(docs/privacy.md), all else is as the table of
:class:`tcc_runtime.settings.settings.Settings` has it, but for what is about asking.
Cost: linear in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from tcc_certs.errors import Rejected
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_runtime.errors import SettingsError
from tcc_runtime.settings.settings import TABLE, Settings

# A batch has nobody to ask, so what is about asking is no member.
MEMBERS: Final = {option.short: option for option in TABLE if not option.asking}
_KINDS = {
    bool: ((bool,), "true or false is needed"),
    int: ((int,), "a whole number is needed"),
    float: ((int, float), "a number is needed"),
    str: ((str,), "a text is needed"),
}
_HEX = re.compile(r"([0-9a-fA-F]{2})+")
_MOST_LINE = 1 << 20


class RequestError(ValueError):
    """A line, or a row, of requests that is none.

    Args:
        line: its number, from 1.
        what: what is wrong with it.

    Attributes:
        code: of the catalogue of diagnostics.
    """

    code = "TCC902"

    def __init__(self, line: int, what: str) -> None:
        self.line = line
        self.what = what
        super().__init__(f"{line}: {self.code}: {what}")


def read_requests(file: BinaryIO) -> Iterator[Settings]:
    """The settings of each line that is not blank; no more than one line is held at a time.

    Raises:
        RequestError: a line is no object of settings, or a setting is out of its range.
    """
    for number, line in enumerate(iter(lambda: file.readline(_MOST_LINE + 1), b""), 1):
        if line.strip():
            yield _request(number, line)


def _request(number: int, line: bytes) -> Settings:
    try:
        if len(line) > _MOST_LINE:
            raise ValueError(f"longer than {_MOST_LINE} bytes")
        value = json.loads(line, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise RequestError(number, f"no JSON: {error}") from None
    return request_of(number, value)


def request_of(number: int, value: object) -> Settings:
    """The settings that a line or row says.

    Args:
        value: JSON, or the same from elsewhere.

    Raises:
        RequestError: it is no object of settings, or a setting is out of its range.
    """
    if not isinstance(value, dict) or "seed" not in value:
        raise RequestError(number, "an object with a seed is needed")
    try:
        return Settings(**dict(_read(name, item) for name, item in value.items()))
    except (Rejected, SettingsError, TypeError) as error:
        raise RequestError(number, str(error)) from None


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members.

    Raises:
        ValueError: two have one name, and one of them would count for nothing.
    """
    found = dict(members)
    if len(found) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:40]!r} stands there twice")
    return found


def _read(name: str, item: Any) -> tuple[str, Any]:
    """A member as the setting has it, and the setting's name.

    Raises:
        TypeError: there is no such setting, or it is of another type.
        Rejected: E101 to E104, `atoms` are none.
    """
    if name == "atoms":
        return name, atoms_of(item)
    option = MEMBERS.get(name)
    if option is None:
        raise TypeError(f"there is no setting {name[:40]!r}")
    if option.kind is bytes:
        if not isinstance(item, str) or _HEX.fullmatch(item) is None:
            raise TypeError(f"{name}: pairs of hexadecimal digits are needed")
        return option.name, bytes.fromhex(item)
    if option.calls:
        if not isinstance(item, list) or not all(isinstance(part, str) for part in item):
            raise TypeError(f"{name}: a list of texts is needed")
        return option.name, item
    kinds, expected = _KINDS[option.kind]
    if type(item) not in kinds:  # True is no number
        raise TypeError(f"{name}: {expected}")
    return option.name, item
