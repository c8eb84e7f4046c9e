"""Tables of documents, and the one interpreter that reads JSON by them.

A table lists the members of an object in the order in which they are read: for each its name, the
form of its value, whether it has to be there, what it becomes.  Between the members stand checks of
what was read before.  A form is a function of a value and its place; those that several documents
share are here, a document's own stand beside its tables.  A member that no table names is refused.
:func:`read` makes a model's attributes of an object.
Cost: linear in the members; tables are made once, when their module is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure, is_plain, require
from tcc_certs.formats.codec import Json, is_identifier, read_large
from tcc_certs.limits import MAX_VERSION_BYTES

Known: TypeAlias = "Mapping[str, Any]"  # by the names of members, what was read before
Form: TypeAlias = "Callable[[Any, str, Code, Known], Any]"


class Row(NamedTuple):
    """A member of an object.

    Attributes:
        form: reads its value, which it refuses at its place, or gives back as the model has it.
        to: the attribute that it becomes; None: it becomes nothing.
        absent: what the attribute is where it is not there.
        code: what its form refuses with; None: as the object.
    """

    name: str
    form: Form
    to: str | None
    required: bool = True
    absent: object = None
    code: Code | None = None


class Check(NamedTuple):
    """What holds between the members above it: a function of them, the object's place, the code."""

    holds: Callable[[Known, str, Code], None]


Table: TypeAlias = "tuple[Row | Check, ...]"


def row(name: str, form: Form, to: str = "", code: Code | None = None) -> Row:
    """A member that has to be there; it becomes the attribute of its name, or `to`."""
    return Row(name, form, to or name, code=code)


def maybe(name: str, form: Form, to: str = "", absent: object = None) -> Row:
    """A member that may be left out."""
    return Row(name, form, to or name, False, absent)


def dropped(row: Row) -> Row:
    """A member that is held to its form and becomes nothing."""
    return row._replace(to=None)


def read(
    table: Table, value: Json, path: str, code: Code, known: Known, also: Sequence[str] = ()
) -> dict[str, Any]:
    """The attributes that an object of `table` has, as the constructor of its model takes them.

    Args:
        known: what was read of the document around the object.  Forms and checks see it, together
            with what was read of the object itself.
        also: members that were read before, such as the version that decides which table it is.

    Raises:
        Rejected: the first of: members are missing; there are others; the rows in their order.
    """
    rows = [entry for entry in table if isinstance(entry, Row)]
    required = [*also, *(entry.name for entry in rows if entry.required)]
    item = as_object(value, path, code, required, [entry.name for entry in rows])
    return read_rows(table, item, path, code, known)


def read_rows(
    table: Table, item: Mapping[str, Json], path: str, code: Code, known: Known
) -> dict[str, Any]:
    """The same, whatever other members the object has."""
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
    """The tag of an object that is one of several, and its attributes by the table of its tag.

    Args:
        what: the tags, for people.
        otherwise: the table by which an object without a known tag is read before it is refused.

    Raises:
        Rejected: at the tag where no table has it; else as :func:`read`.
    """
    kind = value.get(tag) if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in tables:
        if otherwise is not None:
            read(otherwise, value, path, code, known, (tag,))
        raise Rejected(code, f"{path}.{tag}", what, kind)
    return kind, read(tables[kind], value, path, code, {**known, tag: kind}, (tag,))


# Forms.  Those with the code as their last parameter are called by other readers too.


def as_mapping(value: Json, path: str, code: Code, *_: object) -> Mapping[str, Json]:
    """An object, whatever its members are."""
    if not isinstance(value, dict):
        raise Rejected(code, path, "an object", value)
    return value


def as_object(
    value: Json, path: str, code: Code, required: Sequence[str], optional: Sequence[str] = ()
) -> Mapping[str, Json]:
    """An object with all of `required`, and of `optional` what there is, and nothing else."""
    item = as_mapping(value, path, code)
    missing = sorted([name for name in required if name not in item])
    extra = sorted(set(item) - set(required) - set(optional))
    ensure(not missing, code, path, f"the members {sorted(required)}", f"without {missing}")
    ensure(not extra, code, path, "no other member", extra)
    return item


def as_list(value: Json, path: str, code: Code, least: int = 0) -> Sequence[Json]:
    """A list of at least `least` members."""
    if not isinstance(value, list) or len(value) < least:
        raise Rejected(code, path, f"a list of at least {least}", value)
    return value


def as_text(value: Json, path: str, code: Code, *_: object) -> str:
    """A string."""
    if not isinstance(value, str):
        raise Rejected(code, path, "a text", value)
    return value


def as_name(value: Json, path: str, code: Code, *_: object) -> str:
    """An identifier."""
    text = as_text(value, path, code)
    ensure(is_identifier(text), code, path, "an identifier", text)
    return text


def as_whole(value: Json, path: str, code: Code, below: int) -> int:
    """An integer, no boolean, of ``0 .. below - 1``."""
    if type(value) is not int or not 0 <= value < below:
        raise Rejected(code, path, f"an integer of 0 .. {below - 1}", value)
    return value


def as_large(value: Json, path: str, code: Code, *_: object) -> int:
    """A number of 64 bits and a sign."""
    return read_large(value, path, code)


def as_unsigned(value: Json, path: str, code: Code, *_: object) -> int:
    """An unsigned number of 64 bits."""
    number = read_large(value, path, code)
    ensure(number >= 0, code, path, "at least 0", number)
    return number


def as_true(value: Json, path: str, code: Code, *_: object) -> bool:
    """``true``: a member that says something by being there."""
    ensure(value is True, code, path, "true", value)
    return True


def format_version(minor: int) -> Form:
    """The version of a format: two integers, 1 and at most `minor`; a greater one is declined."""

    def form(value: Json, path: str, code: Code, _: Known) -> Json:
        if not isinstance(value, list) or [type(part) for part in value] != [int, int]:
            raise Rejected(code, path, "two integers", value)
        known = value[0] == 1 and value[1] <= minor
        ensure(known, Code.UNKNOWN_VERSION, path, f"1.0 .. 1.{minor}", value)
        return value

    return form


def as_version(value: Json, path: str, code: Code, *_: object) -> str:
    """The text of a grammar's version: short, and nothing in it is hidden or steers a terminal."""
    text = as_text(value, path, code)
    ensure_version(text, path, code)
    return text


def ensure_version(text: str, path: str, code: Code) -> None:
    """As :func:`as_version`, of a text."""
    size = len(text.encode("utf-8", "surrogatepass"))
    ensure(size <= MAX_VERSION_BYTES, code, path, f"at most {MAX_VERSION_BYTES} bytes", size)
    ensure(is_plain(text), code, path, "no control or hidden characters", text)


def ensure_increasing(keys: Sequence[object], path: str, code: Code) -> None:
    """Every key is less than the next; strings compare by code point, which is by UTF-8 bytes."""
    for i in range(1, len(keys)):
        low, high = keys[i - 1], keys[i]
        ensure(low < high, code, f"{path}[{i}]", f"greater than {low}", high)  # type: ignore[operator]


def as_tuple(value: Json, path: str, code: Code, size: int, what: str) -> Sequence[Json]:
    """A list of `size` members, which are `what` where an error says how many there are."""
    items = as_list(value, path, code)
    require(size, len(items), code, f"{path} {what}")
    return items


def word(expected: Json) -> Form:
    """A member that is this value and nothing else, nor ``true`` for 1; it becomes True."""

    def form(value: Json, path: str, code: Code, _: Known) -> bool:
        ensure(type(value) is type(expected) and value == expected, code, path, expected, value)
        return True

    return form


def one_of(*words: str) -> Form:
    """One of the words."""

    def form(value: Json, path: str, code: Code, _: Known) -> Json:
        ensure(value in words, code, path, " or ".join(words), value)
        return value

    return form


def whole(below: int) -> Form:
    """As :func:`as_whole`."""
    return lambda value, path, code, _: as_whole(value, path, code, below)


def index_in(name: str) -> Form:
    """An index of the list that member `name` was read as."""
    return lambda value, path, code, known: as_whole(value, path, code, len(known[name]))


def listed(form: Form, least: int = 0, rises: Callable[[Any], Any] | None = None) -> Form:
    """A list of at least `least` values of a form, each at its place; strictly rising by a key."""

    def read_list(value: Json, path: str, code: Code, known: Known) -> tuple[Any, ...]:
        items = as_list(value, path, code, least)
        found = tuple([form(item, f"{path}[{i}]", code, known) for i, item in enumerate(items)])
        if rises is not None:
            ensure_increasing([rises(item) for item in found], path, code)
        return found

    return read_list


def object_of(table: Table, make: Callable[..., Any]) -> Form:
    """What `make` makes of the attributes that :func:`read` gives."""
    return lambda value, path, code, known: make(**read(table, value, path, code, known))


def here(form: Form) -> Form:
    """A form whose errors name the object, and not the member."""
    return lambda value, path, code, known: form(value, path.rpartition(".")[0], code, known)
