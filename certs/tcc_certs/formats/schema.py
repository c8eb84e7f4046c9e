"""Typed reading of JSON values: what a member must be, or a refusal with the reader's own code.

Every function takes the path by which an error names the place and the code that it carries.
Cost: constant a value, linear in an object's members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, read_large
from tcc_certs.formats.names import is_identifier
from tcc_certs.limits import MAX_VERSION_BYTES
from tcc_certs.plain import is_plain


def as_object(
    value: Json, path: str, code: Code, required: Sequence[str], optional: Sequence[str] = ()
) -> Mapping[str, Json]:
    """An object with all of `required`, and of `optional` what there is, and nothing else."""
    if not isinstance(value, dict):
        raise Rejected(code, path, "an object", value)
    missing = [name for name in required if name not in value]
    extra = sorted(set(value) - set(required) - set(optional))
    ensure(not missing, code, path, f"the members {sorted(required)}", f"without {missing}")
    ensure(not extra, code, path, "no other member", extra)
    return value


def as_list(value: Json, path: str, code: Code, least: int = 0) -> Sequence[Json]:
    """A list of at least `least` members."""
    if not isinstance(value, list) or len(value) < least:
        raise Rejected(code, path, f"a list of at least {least}", value)
    return value


def as_text(value: Json, path: str, code: Code) -> str:
    """A string."""
    if not isinstance(value, str):
        raise Rejected(code, path, "a text", value)
    return value


def as_name(value: Json, path: str, code: Code) -> str:
    """An identifier."""
    text = as_text(value, path, code)
    ensure(is_identifier(text), code, path, "an identifier", text)
    return text


def ensure_version(text: str, path: str, code: Code) -> None:
    """The text of a grammar's version: short, and nothing in it is hidden or steers a terminal."""
    size = len(text.encode("utf-8", "surrogatepass"))
    ensure(size <= MAX_VERSION_BYTES, code, path, f"at most {MAX_VERSION_BYTES} bytes", size)
    ensure(is_plain(text), code, path, "no control or hidden characters", text)


def as_whole(value: Json, path: str, code: Code, below: int) -> int:
    """An integer, no boolean, of ``0 .. below - 1``."""
    if type(value) is not int or not 0 <= value < below:
        raise Rejected(code, path, f"an integer of 0 .. {below - 1}", value)
    return value


def ensure_increasing(keys: Sequence[object], path: str, code: Code) -> None:
    """Every key is less than the next; strings compare by code point, which is by UTF-8 bytes."""
    for i in range(1, len(keys)):
        low, high = keys[i - 1], keys[i]
        ensure(low < high, code, f"{path}[{i}]", f"greater than {low}", high)  # type: ignore[operator]


def as_unsigned(value: Json, path: str, code: Code) -> int:
    """An unsigned number of 64 bits."""
    number = read_large(value, path, code)
    ensure(number >= 0, code, path, "at least 0", number)
    return number


def as_flag(item: Mapping[str, Json], name: str, path: str, code: Code) -> bool:
    """Whether an object has a member that may be ``true`` and nothing else."""
    if name not in item:
        return False
    ensure(item[name] is True, code, f"{path}.{name}", "true", item[name])
    return True
