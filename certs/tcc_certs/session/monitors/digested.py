"""What a ledger has of the fields that statements of version 1.2 name: digests, numbers and times.

Normative text: docs/spec/session.md, section 2.  A text, a flag or a JSON value stands as a keyed
digest, so that whoever reads the ledger learns only which ones are the same; its state is
``("#", the first 16 bytes)``.  Digests of the constants that statements name stand in the header:
what has one of them is that constant.  Numbers stand as they are where a statement orders, adds or
counts; times and dates always.  A mark says whether a text matches the pattern of a ``~``.
A gate decides over the very states that its records are read back to, so a session that is taken
up, or validated, is decided as it was.
Cost: linear in the leaves of a value, of which there are at most 2^14; a digest each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, repeat
from struct import Struct
from typing import Any, TypeAlias

from blake3 import blake3

from tcc_certs.core.mentions import trees_of
from tcc_certs.core.model import Core
from tcc_certs.core.policies import LookUp, Policy, Total, Tree
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.session.monitors.relations import DIGESTED
from tcc_certs.values.canonical import FLAG, JSON, NUMBER, TEXT, digest, json_value, utf8
from tcc_certs.values.declared import NumberType, OpenParameter, TextType
from tcc_certs.values.fields import DateType, Field, FieldType, ListType, RecordType, TimeType
from tcc_certs.values.places import (
    MOST_WORK,
    NONE,
    UNKNOWN,
    State,
    Wrong,
    constant,
    decimal_of,
    ends_of,
    exact_number,
    flat,
    is_moment,
    literal,
    texts_in,
    typed,
)
from tcc_certs.values.text_pattern import like_of, pattern_of
from tcc_certs.values.types import check_text

SHORT = 16  # bytes of a digest that stand for a value among others
MOST_LEAVES = 1 << 14
_Names: TypeAlias = "Mapping[str, Sequence[str]]"
_COMPUTED = ("<", "<=", ">", ">=", "sum", "max", "count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a ledger has of a field that statements name.

    Attributes:
        type: of records with those fields alone that are named.
        patterns: those that a ``~`` asks of its texts, sorted.
        shown: whether its value stands there: a number or a time; is_list: its elements do.
    """

    name: str
    type: FieldType
    optional: bool = False
    patterns: tuple[str, ...] = ()
    shown: bool = False
    is_list: bool = False


class Named:
    """What the statements of a core name.

    Args:
        fields: each a tool and a name; attributes: those of the session, given and learned.
        learned: of the latter the names of the fields whose values they are.

    Attributes:
        tools: of each tool the forms of its open parameters and answers that are named.
        session: of the attributes that are given.
        numbers: whether numbers stand as they are; else they are digested, too.
        constants: type byte and text of each, sorted: a header has their digests in this order.
        patterns: that are asked of a field.
    """

    def __init__(
        self,
        core: Core,
        policies: Sequence[Policy],
        fields: Iterable[tuple[int, str]],
        attributes: Iterable[str],
        learned: Mapping[str, Sequence[str]],
    ) -> None:
        looked = {one.name: one for one in core.looks}
        walk = _Walk([tree for one in policies for tree in trees_of(one)], learned, looked)
        named, attributes = frozenset(fields), frozenset(attributes)
        self.numbers = walk.computes or any(isinstance(one, Total) for one in policies)
        self.tools: list[dict[str, Form]] = [
            {
                one.name: self._form(one, walk)
                for one in (*tool.opened, *tool.answers)
                if (at, one.name) in named
            }
            for at, tool in enumerate(core.tools)
        ]
        self.session = {
            one.name: self._form(one, walk) for one in core.given if one.name in attributes
        }
        listed = [
            text
            for at, tool in enumerate(core.tools)
            for one in tool.parameters
            if (at, one.name) in named
            for text in one.values
            if text and text != "*"
        ]
        forms = [*self.session.values(), *[form for some in self.tools for form in some.values()]]
        self.patterns = tuple(sorted({pattern for form in forms for pattern in form.patterns}))
        digested = any(not form.shown for form in forms)
        constants = {*walk.constants, *map(constant, listed)} if digested else set()
        self.constants = tuple(sorted(filter(None, map(self._constant, constants))))

    def _form(self, one: OpenParameter, walk: _Walk) -> Form:
        kind = walk.narrowed(one)
        plain = (TimeType, DateType, NumberType) if self.numbers else (TimeType, DateType)
        patterns = walk.patterns.get(one.name, ()) if texts_in(kind) else ()
        return Form(
            name=one.name,
            type=kind,
            optional=one.optional,
            patterns=tuple(sorted(patterns)),
            shown=isinstance(kind, plain),
            is_list=isinstance(kind, ListType),
        )

    def _constant(self, state: State) -> tuple[bytes, str] | None:
        kind, value = state
        if kind == "s":
            return TEXT, value
        if kind == "b":
            return FLAG, "true" if value else "false"
        return (NUMBER, decimal_of(value)) if kind == "n" and not self.numbers else None


class _Walk:
    """Goes through terms and relations once.

    Attributes:
        computes: whether a number is ordered, added or counted.
        constants: that a value may be equal to.
        patterns: that are asked of texts, by the name of the field.
    """

    def __init__(self, trees: Iterable[Tree], learned: _Names, looked: Mapping[str, LookUp]):
        self._learned, self._looked = learned, looked
        self.computes, self.constants = False, set[State]()
        self.patterns: dict[str, set[str]] = {}
        # Of `whole` fields a record may be compared as one.
        self._parts, self._whole = set[str](), set[str]()
        for tree in trees:
            self._tree(tree, {})

    def narrowed(self, one: OpenParameter) -> FieldType:
        """The type of a field, as the ledger has it: of records the fields that are named."""
        return flat(one.type) if one.name in self._whole else self._narrowed(flat(one.type))

    def _narrowed(self, kind: FieldType) -> FieldType:
        match kind:
            case ListType(of=of, distinct=distinct):
                # Records that differ in fields that nothing names look alike.
                inner = self._narrowed(of)
                return replace(kind, of=inner, distinct=distinct and inner == of)
            case RecordType(fields=fields):
                some = [one for one in fields if one.name in self._parts]
                return RecordType(fields=tuple([self._field(one) for one in some]))
        return kind

    def _field(self, one: Field) -> Field:
        return one if one.type is None else replace(one, type=self._narrowed(one.type))

    def _tree(self, tree: object, names: Mapping[str, frozenset[str]]) -> None:
        """Of a term, a relation, or several; `names`: of each element the fields it may be of."""
        if not isinstance(tree, tuple) or not tree:
            return
        match tree:
            case ("s" | "n" | "b", str()):
                self.constants.add(literal(tree))
            case ("z",) | ("ms", _) | ("now",):
                pass
            case ("own" | "seen" | "session" | "it" | "as", *_):
                self._parts.update(tree[2:])
                if len(tree) < 3:
                    self._whole |= self._fields(tree, names)
            case ("look", name, keys, of):
                self._parts.update((of, *self._looked[name].keys))
                self._whole.add(of)
                self._tree(keys, names)
            case ("count", of, *relation):
                self.computes = True
                self._list(of, names)
                self._tree(tuple(relation), {**names, "it": self._fields(of, names)})
            case ("every", of, relation):
                self._list(of, names)
                self._tree(relation, {**names, "it": self._fields(of, names)})
            case ("all" | "some", lists, relations):
                for of, _ in lists:
                    self._list(of, names)
                inner = {f"as {name}": self._fields(of, names) for of, name in lists}
                self._tree(relations, {**names, **inner})
            case ("~" | "!~", term, pattern):
                for name in self._fields(term, names):
                    self.patterns.setdefault(name, set()).add(pattern)
                self._tree(term, names)
            case (op, *_) if isinstance(op, str):
                self.computes = self.computes or op in _COMPUTED
                for part in tree[1:]:
                    self._tree(part, names)
            case _:
                for part in tree:
                    self._tree(part, names)

    def _list(self, of: Tree, names: Mapping[str, frozenset[str]]) -> None:
        """A term whose elements are spoken of, and not the list itself."""
        if of[0] in ("own", "seen", "session", "as"):
            self._parts.update(of[2:])
        else:
            self._tree(of, names)

    def _fields(self, term: Tree, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """The names of fields and attributes that a term may be a value of, or a part."""
        match term:
            case ("own" | "seen" | "session", name, *_):
                of = self._learned.get(name, ()) if term[0] == "session" else ()
                return frozenset([name, *of])
            case ("look", look, _, name):
                return frozenset([name, *[field for _, field in self._looked[look].rows]])
            case ("it",):
                return names.get("it", frozenset())
            case ("as", name, *_):
                return names.get(f"as {name}", frozenset())
        return frozenset()


class Digester:
    """Writes what a ledger has of values, under the key of one session."""

    def __init__(self, named: Named, key: bytes) -> None:
        self._named, self._key = named, key

    def constants(self) -> list[str]:
        """The digests of the constants, hex, as a header has them."""
        return [
            digest(self._key, kind, utf8(text, "constant")).hex()
            for kind, text in self._named.constants
        ]

    def leaves(self) -> Leaves:
        """What writes the values of one record: of one thread alone."""
        return Leaves(self._named.numbers, self._key)


def members_of(
    form: Form, value: State, digester: Digester | None, leaves: Leaves | None = None
) -> dict[str, Json]:
    """What stands beside the digest of a value: its elements, and marks of its texts.

    Args:
        value: of the type of the field.
        digester: None: elements are left out.
        leaves: of the record; None: there is nothing beside it.

    Raises:
        Rejected: R105 the record has more than 2^14 values in lists.
    """
    found: dict[str, Json] = {}
    if form.is_list and digester is not None:
        found["of"] = (leaves or digester.leaves()).tree(form.type, value)
    if form.patterns:
        found["like"] = marks_of(form, list(_texts_of(value, form.type)))
    return found


def marks_of(form: Form, texts: Sequence[str]) -> str:
    """Of each text of a value a mark for each pattern that is asked of it.

    Raises:
        Rejected: R105 they take too long to match.
    """
    likes = [like_of(pattern) for pattern in form.patterns]
    work = sum(map(len, texts)) * sum([pattern_of(one).size for one in form.patterns])
    ensure(work <= MOST_WORK, Code.OPEN_VALUE, "value", "texts that take less to match", work)
    return "".join([_MARKS[like(text)] for text in texts for like in likes])


_MARKS: Mapping[bool | None, str] = {True: "1", False: "0", None: "-"}


_AT_ONCE = 1 << 20  # characters that are copied to be digested


class Leaves:
    """The values in the lists of one record, leaf by leaf."""

    def __init__(self, numbers: bool, key: bytes) -> None:
        self._hasher = blake3(key=key)
        self._numbers = numbers
        self._left = MOST_LEAVES

    def tree(self, kind: FieldType, value: State) -> Json:
        """A value as JSON of its type's shape."""
        match kind:
            case ListType(of=of):
                items = value[1]
                self.take(len(items))
                if isinstance(of, TextType):
                    return list(self.hashes([text for _, text in items]))
                if isinstance(of, RecordType):
                    self.take(len(items) * len(of.fields))
                    return self._rows(of, items)
                return [self.tree(of, item) for item in items]
            case RecordType(fields=fields):
                kinds = {one.name: one.type for one in fields if one.type is not None}
                self.take(len(fields))
                return {
                    name: self.tree(kinds[name], cell)
                    for name, cell in value[1]
                    if name in kinds and cell != NONE
                }
        tag, found = value
        if tag == "t":
            return int(found)
        if tag == "n":
            text = decimal_of(found)
            return text if self._numbers else self._hashed(NUMBER + text.encode())
        if tag == "b":
            return self._hashed(b"btrue" if found else b"bfalse")
        return self._hashed(TEXT + found.encode() if tag == "s" else JSON + found)

    def take(self, count: int) -> None:
        """Count so many values of the record.

        Raises:
            Rejected: R105 they are more than 2^14.
        """
        self._left -= count
        ensure(self._left >= 0, Code.OPEN_VALUE, "value", f"{MOST_LEAVES} values", "more")

    def _rows(self, of: RecordType, items: Sequence[State]) -> list[Json]:
        """Records, field by field: a column of texts is written at once."""
        rows: list[dict[str, Json]] = []
        # Records of one type have the same fields in the same order, of which `of` has some.
        columns = {
            column[0][0]: column for column in zip(*[item[1] for item in items], strict=True)
        }
        for one in of.fields if items else ():
            kind = one.type
            if kind is None:
                continue
            cells = [cell for _, cell in columns[one.name]]
            name, lacking = one.name, NONE in cells
            there = [cell for cell in cells if cell != NONE] if lacking else cells
            if isinstance(kind, TextType):
                made: Sequence[Json] = self.hashes([text for _, text in there])
            else:
                made = [self.tree(kind, cell) for cell in there]
            if not rows:
                rows = [{} for _ in items] if lacking else [{name: value} for value in made]
                if not lacking:
                    continue
            of_them = [row for row, cell in zip(rows, cells, strict=True) if cell != NONE]
            for row, value in zip(of_them if lacking else rows, made, strict=True):
                row[name] = value
        return list(rows or [{} for _ in items])

    def hashes(self, texts: Sequence[str]) -> list[str]:
        """Elements that are texts, of which an answer may have a thousand."""
        reset, update, made = self._hasher.reset, self._hasher.update, self._hasher.digest
        marked: Iterable[bytes] = (TEXT + text.encode() for text in texts)
        if sum(map(len, texts)) <= _AT_ONCE:
            short = "\0s".join(["", *texts]).encode().split(b"\0")[1:]
            marked = short if len(short) == len(texts) else marked  # the mark in a text is rare
        whole = b"".join([made(SHORT) for data in marked if not reset() and update(data)])
        return whole.hex(",", SHORT).split(",") if whole else []

    def _hashed(self, data: bytes) -> str:
        self._hasher.reset()
        self._hasher.update(data)
        return self._hasher.hexdigest(SHORT)


def _texts_of(value: State, kind: FieldType) -> Iterator[str]:
    """The texts in a value that a ledger has, in their order."""
    match kind:
        case TextType():
            yield value[1]
        case ListType(of=of):
            for item in value[1]:
                yield from _texts_of(item, of)
        case RecordType(fields=fields):
            cells = dict(value[1])
            for one in fields:
                if one.type is not None and cells[one.name] != NONE:
                    yield from _texts_of(cells[one.name], one.type)


# What is read.

_EACH = Struct(f"{SHORT}s")
_SAID: Mapping[str, bool | None] = {"1": True, "0": False, "-": None}


class Reading:
    """How the records of one session stand for values.

    Args:
        constants: the digests of the header, 32 bytes each, in the order of `named`.

    Attributes:
        named: of its core.
        marks: of a pattern and a digest, whether the text matches.
    """

    def __init__(self, named: Named, constants: Sequence[bytes]) -> None:
        self.named = named
        self.marks: dict[tuple[str, bytes], bool | None] = {}
        self._constants: dict[bytes, State] = {}
        for (kind, text), found in zip(named.constants, constants, strict=True):
            short = found[:SHORT]
            self._constants[short] = ("s", text) if kind == TEXT else constant(text)
            if kind == TEXT:
                self.marks |= {(one, short): like_of(one)(text) for one in named.patterns}

    def forget(self, known: int) -> None:
        """Forget all marks but so many: those of a call that is not made."""
        while len(self.marks) > known:
            self.marks.popitem()

    def of(self, short: bytes) -> State:
        """The value of a digest."""
        found = self._constants.get(short)
        return (DIGESTED, short) if found is None else found

    def state(self, form: Form, entry: Mapping[str, Json]) -> State:
        """A field, as a record has it; UNKNOWN where that does not say.

        Raises:
            Rejected: S204 it is none of its type; S205 a mark is another than before.
        """
        try:
            return self._state(form, entry)
        except (KeyError, TypeError, ValueError, Wrong):
            raise Rejected(Code.SESSION_VALUE, form.name, "what the type has", entry) from None
        except Rejected as refusal:
            mark = refusal.code is Code.SESSION_DIGEST
            code = refusal.code if mark else Code.SESSION_VALUE
            raise Rejected(code, form.name, refusal.expected, refusal.found) from None

    def _state(self, form: Form, entry: Mapping[str, Any]) -> State:
        if "unknown" in entry:
            return UNKNOWN
        if form.shown:
            kind, text = form.type, entry["value"]
            number = isinstance(kind, NumberType)
            return ("n", exact_number(text)) if number else typed(json_value(text), kind)
        if not form.is_list:
            short = bytes.fromhex(entry["digest"][: 2 * SHORT])
            if form.patterns:
                self._mark(form, [short], entry["like"])
            return self.of(short)
        shorts: list[bytes] | None = [] if form.patterns else None
        found = self._tree(form.type, entry["of"], shorts)
        if shorts is not None:
            self._mark(form, shorts, entry["like"])
        return found

    def _tree(self, kind: FieldType, found: Any, texts: list[bytes] | None) -> State:
        """A value; `texts` takes the texts in it, in their order, where they are asked for."""
        match kind:
            case ListType(of=of, least=least, most=most, distinct=distinct):
                if type(found) is not list or not least <= len(found) <= most:
                    raise ValueError
                if isinstance(of, TextType):
                    if set(map(len, found)) - {2 * SHORT}:
                        raise ValueError
                    whole = _bytes_of("".join(found))
                    shorts = list(chain.from_iterable(_EACH.iter_unpack(whole)))
                    if texts is not None:
                        texts += shorts
                    items = tuple(zip(repeat(DIGESTED), shorts, strict=False))
                    if self._constants and not self._constants.keys().isdisjoint(shorts):
                        items = tuple(map(self.of, shorts))
                elif isinstance(of, RecordType) and texts is None:
                    items = self._rows(of, found)
                else:
                    items = tuple([self._tree(of, item, texts) for item in found])
                if distinct and len(set(items)) < len(items):
                    raise ValueError
                return "l", items
            case RecordType(fields=fields):
                if type(found) is not dict:
                    raise ValueError
                cells = [(one.name, self._cell(one, found, texts)) for one in fields]
                if sum([one.name in found for one in fields]) != len(found):
                    raise ValueError
                return "r", tuple(cells)
            case TimeType() | DateType():
                if type(found) is not int or not is_moment(found, kind):
                    raise ValueError
                return "t", found
            case NumberType() if self.named.numbers:
                return "n", _number(kind, found)
        if len(found) != 2 * SHORT:
            raise ValueError
        short = _bytes_of(found)
        if isinstance(kind, TextType) and texts is not None:
            texts.append(short)
        return self.of(short)

    def _rows(self, of: RecordType, found: Sequence[Any]) -> tuple[State, ...]:
        """Records, field by field where all have all of them."""
        if set(map(type, found)) - {dict}:
            raise ValueError
        names = [one.name for one in of.fields]
        if not names or set(map(len, found)) - {len(names)}:
            return tuple([self._tree(of, row, None) for row in found])
        columns = []
        for one in of.fields:
            if one.type is None:
                raise ValueError
            column = ListType(of=one.type)
            cells = self._tree(column, [row[one.name] for row in found], None)[1]
            columns.append(list(zip(repeat(one.name), cells, strict=False)))
        return tuple(zip(repeat("r"), zip(*columns, strict=True), strict=False))

    def _cell(self, one: Field, found: Mapping[str, Any], texts: list[bytes] | None) -> State:
        if one.name not in found and one.optional:
            return NONE
        if one.type is None:
            raise ValueError
        return self._tree(one.type, found[one.name], texts)

    def _mark(self, form: Form, shorts: Sequence[bytes], said: str) -> None:
        count = len(form.patterns)
        if len(said) != count * len(shorts):
            raise ValueError
        for at, mark in enumerate(said):
            key = form.patterns[at % count], shorts[at // count]
            before = self.marks.setdefault(key, _SAID[mark])
            ensure(
                before is _SAID[mark],
                Code.SESSION_DIGEST, form.name, "the mark of this text before", mark,
            )  # fmt: skip


def _number(kind: NumberType, text: Any) -> int | Fraction:
    """The number of a canonical decimal that is one of the type; most are short whole ones."""
    if type(text) is not str:
        raise TypeError
    short = text.isascii() and text.isdigit() and len(text) < 16 and (text[0] != "0" or text == "0")
    if not short:
        check_text(kind, text)
        return exact_number(text)
    found = int(text)
    if kind.low is not None and kind.high is not None:
        low, high = ends_of(kind.low, kind.high)
        ensure(low <= found <= high, Code.OPEN_VALUE, "value", f"{kind.low} .. {kind.high}", text)
    return found


def _bytes_of(hexadecimal: str) -> bytes:
    found = bytes.fromhex(hexadecimal)
    if found.hex() != hexadecimal:  # `fromhex` passes blanks, and large letters
        raise ValueError
    return found
