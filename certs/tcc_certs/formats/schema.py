"""Tables of JSON documents, and the interpreter that reads objects by them.

A table lists the members of an object in the order in which they are read.  Each row has the name
of a member, the form of its value, whether it is required, and the attribute that it becomes.
Checks between the rows use the members read before.  A form is a function of a value and its place.
Forms that several documents share are in this module; other forms are next to their tables.  An
unlisted member is refused.  :func:`read` returns the attributes of an object.  Cost: linear in the
members; tables are made once, when their module is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure, is_plain, require
from tcc_certs.formats.codec import Json, is_identifier, read_large
from tcc_certs.limits import MAX_VERSION_BYTES

Known: TypeAlias = "Mapping[str, Any]"  # by name, the members read before
Form: TypeAlias = "Callable[[Any, str, Code, Known], Any]"


class Row(NamedTuple):
    """A member of an object.

    Attributes:
        form: reads its value; it returns the attribute, or refuses the value at its place.
        to: the name of the attribute; None: the member gives no attribute.
        absent: the attribute if the member is absent.
        code: the code with which its form refuses; None: the code of the object.
    """

    name: str
    form: Form
    to: str | None
    required: bool = True
    absent: object = None
    code: Code | None = None


class Check(NamedTuple):
    """A condition on the members above it; a function of them, the object's place and the code."""

    holds: Callable[[Known, str, Code], None]


Table: TypeAlias = "tuple[Row | Check, ...]"


def row(name: str, form: Form, to: str = "", code: Code | None = None) -> Row:
    """Return the row of a required member, which becomes the attribute `name`, or `to`."""
    return Row(name, form, to or name, code=code)


def maybe(name: str, form: Form, to: str = "", absent: object = None) -> Row:
    """Return the row of an optional member."""
    return Row(name, form, to or name, False, absent)


def dropped(row: Row) -> Row:
    """Return the row of a member that is checked but gives no attribute."""
    return row._replace(to=None)


def read(
    table: Table, value: Json, path: str, code: Code, known: Known, also: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the attributes of an object of `table`, as keyword arguments for its model.

    Args:
        known: the members read before of the enclosing document.  Forms and checks see them
            together with the members of this object.
        also: members that the caller read before, such as the version that selects the table.

    Raises:
        Rejected: the first of: missing members, unknown members, the rows in their order.
    """
    rows = [entry for entry in table if isinstance(entry, Row)]
    required = [*also, *(entry.name for entry in rows if entry.required)]
    item = as_object(value, path, code, required, [entry.name for entry in rows])
    return read_rows(table, item, path, code, known)


def read_rows(
    table: Table, item: Mapping[str, Json], path: str, code: Code, known: Known
) -> dict[str, Any]:
    """Return the attributes of an object, which may have members that the table does not list."""
    seen = dict(known)
    made: dict[str, Any] = {}
    for entry in table:
        if isinstance(entry, Check):
            entry.holds(seen, path, code)
            continue
        name, form, to, required, absent, own = entry
        there = required or name in item
        found = form(item.get(name), f"{path}.{name}", own or code, seen) if there else absent
        seen[name] = found
        if to is not None:
            made[to] = found
    return made


def tagged(
    value: Json, tag: str, tables: Mapping[str, Table], what: str, path: str, code: Code,
    known: Known, otherwise: Table | None = None,
) -> tuple[str, dict[str, Any]]:  # fmt: skip
    """Return the tag of an object, and its attributes by the table of this tag.

    Args:
        what: the tags, for the error message.
        otherwise: the table by which an object without a known tag is read before it is refused.

    Raises:
        Rejected: the tag is unknown; otherwise as :func:`read`.
    """
    kind = value.get(tag) if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in tables:
        if otherwise is not None:
            read(otherwise, value, path, code, known, (tag,))
        raise Rejected(code, f"{path}.{tag}", what, kind)
    return kind, read(tables[kind], value, path, code, {**known, tag: kind}, (tag,))


# Forms.  Functions with `code` as the last parameter are also used by other readers.


def as_mapping(value: Json, path: str, code: Code, *_: object) -> Mapping[str, Json]:
    """Return an object with any members."""
    if not isinstance(value, dict):
        raise Rejected(code, path, "an object", value)
    return value


def as_object(
    value: Json, path: str, code: Code, required: Sequence[str], optional: Sequence[str] = ()
) -> Mapping[str, Json]:
    """Return an object with all `required` members, any `optional` members, and no others."""
    item = as_mapping(value, path, code)
    missing = sorted([name for name in required if name not in item])
    extra = sorted(set(item) - set(required) - set(optional))
    ensure(not missing, code, path, f"the members {sorted(required)}", f"without {missing}")
    ensure(not extra, code, path, "no other member", extra)
    return item


def as_list(value: Json, path: str, code: Code, least: int = 0) -> Sequence[Json]:
    """Return a list of at least `least` members."""
    if not isinstance(value, list) or len(value) < least:
        raise Rejected(code, path, f"a list of at least {least}", value)
    return value


def as_text(value: Json, path: str, code: Code, *_: object) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise Rejected(code, path, "a text", value)
    return value


def as_name(value: Json, path: str, code: Code, *_: object) -> str:
    """Return an identifier."""
    text = as_text(value, path, code)
    ensure(is_identifier(text), code, path, "an identifier", text)
    return text


def as_whole(value: Json, path: str, code: Code, below: int) -> int:
    """Return an integer (no boolean) in ``0 .. below - 1``."""
    if type(value) is not int or not 0 <= value < below:
        raise Rejected(code, path, f"an integer of 0 .. {below - 1}", value)
    return value


def as_large(value: Json, path: str, code: Code, *_: object) -> int:
    """Return a signed number of 64 bits."""
    return read_large(value, path, code)


def as_unsigned(value: Json, path: str, code: Code, *_: object) -> int:
    """Return an unsigned number of 64 bits."""
    number = read_large(value, path, code)
    ensure(number >= 0, code, path, "at least 0", number)
    return number


def as_true(value: Json, path: str, code: Code, *_: object) -> bool:
    """Return True for ``true``, the only value of a flag member."""
    ensure(value is True, code, path, "true", value)
    return True


def format_version(minor: int) -> Form:
    """Return the form of a version: two integers, 1 and at most `minor`; others are declined."""

    def form(value: Json, path: str, code: Code, _: Known) -> Json:
        if not isinstance(value, list) or [type(part) for part in value] != [int, int]:
            raise Rejected(code, path, "two integers", value)
        known = value[0] == 1 and value[1] <= minor
        ensure(known, Code.UNKNOWN_VERSION, path, f"1.0 .. 1.{minor}", value)
        return value

    return form


def as_version(value: Json, path: str, code: Code, *_: object) -> str:
    """Return the text of a grammar's version: short, without hidden or control characters."""
    text = as_text(value, path, code)
    ensure_version(text, path, code)
    return text


def ensure_version(text: str, path: str, code: Code) -> None:
    """Refuse a text that :func:`as_version` refuses."""
    size = len(text.encode("utf-8", "surrogatepass"))
    ensure(size <= MAX_VERSION_BYTES, code, path, f"at most {MAX_VERSION_BYTES} bytes", size)
    ensure(is_plain(text), code, path, "no control or hidden characters", text)


def ensure_increasing(keys: Sequence[object], path: str, code: Code) -> None:
    """Refuse keys that do not strictly increase; strings compare by code point."""
    for i in range(1, len(keys)):
        low, high = keys[i - 1], keys[i]
        ensure(low < high, code, f"{path}[{i}]", f"greater than {low}", high)  # type: ignore[operator]


def as_tuple(value: Json, path: str, code: Code, size: int, what: str) -> Sequence[Json]:
    """Return a list of exactly `size` members; `what` names them in the error message."""
    items = as_list(value, path, code)
    require(size, len(items), code, f"{path} {what}")
    return items


def word(expected: Json) -> Form:
    """Return the form of a constant member, with the exact type; it becomes True."""

    def form(value: Json, path: str, code: Code, _: Known) -> bool:
        ensure(type(value) is type(expected) and value == expected, code, path, expected, value)
        return True

    return form


def one_of(*words: str) -> Form:
    """Return the form of a member with one value among `words`."""

    def form(value: Json, path: str, code: Code, _: Known) -> Json:
        ensure(value in words, code, path, " or ".join(words), value)
        return value

    return form


def whole(below: int) -> Form:
    """Return the form of :func:`as_whole`."""
    return lambda value, path, code, _: as_whole(value, path, code, below)


def listed(form: Form, least: int = 0, rises: Callable[[Any], Any] | None = None) -> Form:
    """Return the form of a list of at least `least` values.

    Args:
        form: the form of each value.
        rises: the key by which the values must strictly increase; None: any order.
    """

    def read_list(value: Json, path: str, code: Code, known: Known) -> tuple[Any, ...]:
        items = as_list(value, path, code, least)
        found = tuple([form(item, f"{path}[{i}]", code, known) for i, item in enumerate(items)])
        if rises is not None:
            ensure_increasing([rises(item) for item in found], path, code)
        return found

    return read_list


def object_of(table: Table, make: Callable[..., Any]) -> Form:
    """Return the form of an object; `make` gets its attributes as keyword arguments."""
    return lambda value, path, code, known: make(**read(table, value, path, code, known))


def here(form: Form) -> Form:
    """Return a form whose errors name the object instead of the member."""
    return lambda value, path, code, known: form(value, path.rpartition(".")[0], code, known)
