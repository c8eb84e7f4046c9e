"""A file of atoms: a JSON list, written by a person or by a program that privatised the input.

Format: docs/privacy.md.  White space and the order of members are free.  The reader refuses a
repeated or unknown member, a number that is not written as a text, and a number out of range.
Cost: linear in the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NoReturn

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.policy.atoms import Atom, Codes, read_atom

MAX_ATOMS = 1000
MAX_BYTES = 1 << 20
CODES = Codes(Code.ATOMS, Code.ATOM_VALUE)


def read_atoms(data: bytes) -> tuple[Atom, ...]:
    """The atoms in the bytes of a file.

    Raises:
        Rejected: E101 the form is wrong.  E102 a number is out of range.  E103 there are too many
            atoms or bytes.
    """
    ensure(len(data) <= MAX_BYTES, Code.MANY_ATOMS, "atoms", f"{MAX_BYTES} bytes", len(data))
    return atoms_of(_parsed(data))


def atoms_of(value: Json) -> tuple[Atom, ...]:
    """The atoms in a JSON value; errors as in :func:`read_atoms`."""
    if not isinstance(value, list):
        raise Rejected(Code.ATOMS, "atoms", "a list of atoms", type(value).__name__)
    most = f"at most {MAX_ATOMS} atoms; `times` repeats one"
    ensure(len(value) <= MAX_ATOMS, Code.MANY_ATOMS, "atoms", most, len(value))
    return tuple(read_atom(item, f"atoms[{i}]", CODES) for i, item in enumerate(value))


def _parsed(data: bytes) -> Json:
    try:
        value: Json = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_members,
            parse_float=_no_number,
            parse_constant=_no_number,
        )
    except RecursionError:
        raise Rejected(Code.ATOMS, "atoms", "a list of atoms", "deeper nesting") from None
    except ValueError as error:
        raise Rejected(Code.ATOMS, "atoms", "JSON in UTF-8", error) from None
    return value


def _members(pairs: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    listed = list(pairs)
    found = dict(listed)
    names = sorted(name for name, _ in listed)
    ensure(len(found) == len(listed), Code.ATOMS, "atoms", "each member once", names)
    return found


def _no_number(text: str) -> NoReturn:
    raise Rejected(Code.ATOMS, "atoms", 'decimals as texts, such as "0.25"', text[:24])
