"""Turn the trees of declared fields into the fields of the core.

A field is listed if its domain has values or a range; a field with a type is open. Each kind of
type has one function in `_TYPES`. Cost: linear in the trees, and in the values of ranges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tcc_certs.errors import Code, Rejected
from tcc_certs.values import declared, paths, places, text_pattern, text_syntax, urls
from tcc_certs.values.fields import (
    MOST_ELEMENTS,
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
    fits_union,
    hides,
    steps_of,
    zone_of,
)
from tcc_certs.values.numbers import ensure_survives
from tcc_compiler.language.diagnostics import quote, some, suggest
from tcc_compiler.language.values import decimal_text, parse_decimal, string_value
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.zones import zone_names
from tcc_compiler.syntax.tokens import name_value, string_value as characters_of
from tcc_compiler.syntax.tree import Token, Tree

MAX_VALUES = 1 << 16  # the most values of a listed field; a grammar may have as many calls
MAX_RANGED = 1 << 18  # the most values of all listed ranges of a grammar together
MAX_LENGTH = 1 << 20
MAX_NESTED_TYPES = 16
MAX_FIELDS = 10_000  # the most fields of a shape, including fields of shapes inside it
_WHOLE = (-(1 << 63), (1 << 64) - 1)
_REST = "*"
# Names of types in other languages, with the types of this one.
_OTHER_TYPES: Mapping[str, str] = {
    "string": "text", "str": "text", "int": "integer", "float": "number", "bool": "flag",
    "boolean": "flag", "any": "json", "datetime": "time", "array": "list of ..", "dict": "object",
}  # fmt: skip


@dataclass(slots=True)
class Shapes:
    """The shapes of a grammar.

    Attributes:
        trees: the declarations, each with the builder of its file.
        made: the fields of each shape that was read; None after a mistake in it.
        open: the shapes that are being read; the innermost is last.
        ranged: how many values all ranges together have that were read.
    """

    trees: dict[str, tuple[Builder, Tree]] = field(default_factory=dict)
    made: dict[tuple[str, bool], tuple[Field, ...] | None] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    ranged: int = 0
    _sizes: dict[int, tuple[FieldType, int, int]] = field(default_factory=dict)

    def fields(self, b: Builder, name: Token, answers: bool) -> tuple[Field, ...] | None:
        """Return the fields of the shape with the given name; None after a mistake.

        Args:
            name: the token that names the shape.
            answers: whether the fields are answers, or inside an answer.
        """
        if name.text not in self.trees:
            message = f"no shape is called {quote(name.text)}"
            known = sorted(self.trees)
            near = suggest(name.text, known)
            shapes = f"the shapes are {some(known)}" if known else "declare it: shape NAME (..)"
            b.error("TCC202", name, message, near or shapes)
            return None
        if name.text in self.open:
            message = f"the shape {quote(name.text)} contains itself"
            b.error("TCC225", name, message, "declare the inner field as `json`")
            return None
        key = name.text, answers
        if key not in self.made:
            owner, tree = self.trees[name.text]
            self.open.append(name.text)
            if len(self.open) > MAX_NESTED_TYPES:
                b.error("TCC106", name, "shapes are nested too deeply", _FLATTER)
                self.made[key] = None
            else:
                types = Types(owner, self)
                self.made[key] = types.fields(tree.trees("field"), {}, answers=answers)
            self.open.pop()
            found = self.made[key] or ()
            if sum([1 + self.measure(one.type)[0] for one in found]) > MAX_FIELDS:
                message = f"this shape has more than {MAX_FIELDS} fields, with those inside"
                owner.error("TCC314", tree, message, "declare some of them as `json`")
                self.made[key] = None
        return self.made[key]

    def measure(self, kind: FieldType | None) -> tuple[int, int]:
        """Return how many fields a type has, including inner ones, and how deeply it is nested."""
        known = self._sizes.get(id(kind))
        if known is not None:
            return known[1:]
        size, depth = 0, 0
        if isinstance(kind, ListType | NullableType):
            size, depth = self.measure(kind.of)
        elif isinstance(kind, UnionType):
            parts = [self.measure(one) for one in kind.of]
            size, depth = sum([one[0] for one in parts]), max([one[1] for one in parts])
        elif isinstance(kind, RecordType):
            inside = [self.measure(one.type) for one in kind.fields]
            size = len(inside) + sum([one[0] for one in inside])
            depth = max([one[1] for one in inside], default=0)
        if kind is not None:
            # Keep the type alive, so that its `id` is not reused.
            self._sizes[id(kind)] = (kind, size, depth + 1)
        return size, depth + (kind is not None)


_FLATTER = 'declare the inner part as `json`, or with a place: f: text at "/a/b"'


class Types:
    """Reads the declarations of one file."""

    def __init__(self, b: Builder, shapes: Shapes) -> None:
        self.b = b
        self.shapes = shapes

    def fields(
        self, trees: Sequence[Tree], taken: Mapping[str, Tree | Token], *, answers: bool = False
    ) -> tuple[Field, ...] | None:
        """Return the fields of trees in declared order; None after a mistake.

        Args:
            taken: names of other fields, and where they are declared.
            answers: whether the fields are answers, whose listed values may end with ``*``.
        """
        sound = self.sound_fields(trees, taken, answers=answers)
        return sound if len(sound) == len(trees) else None

    def sound_fields(
        self, trees: Sequence[Tree], taken: Mapping[str, Tree | Token], *, answers: bool = False
    ) -> tuple[Field, ...]:
        """Return the fields of the trees that have no mistake, as in :meth:`fields`."""
        names = dict(taken)
        found = [self._field(tree, names, answers) for tree in trees]
        return tuple([one for one in found if one is not None])

    def _field(
        self, tree: Tree, names: dict[str, Tree | Token], answers: bool, depth: int = 0
    ) -> Field | None:
        """Return the field of a tree; None after a mistake. `spans` gets the region of its name."""
        found = self._declared(tree, names, answers, depth)
        if found is not None:
            self.b.spans[id(found)] = self.b.region(tree.trees()[0])
        return found

    def _declared(
        self, tree: Tree, names: dict[str, Tree | Token], answers: bool, depth: int
    ) -> Field | None:
        b = self.b
        name = b.name(tree.trees()[0])
        domain, *rest = [one for one in tree.trees()[1:] if one.kind != "at"]
        sound = b.is_name(tree.trees()[0])
        if name in names:
            message = f"the field {quote(name)} is declared twice"
            b.error("TCC201", tree.trees()[0], message, "take one away, or rename it")
            sound = False
        names.setdefault(name, tree)
        steps = self._steps(tree.tree("at"), name)
        if steps is None or not self._may_have(rest, domain):
            sound = False
        optional = tree.has("?")
        if domain.kind in _LISTED:
            values = self._listed(domain, name, answers)
            if values is None or not sound or steps is None:
                return None
            left_out = answers and optional and "null" not in values
            return Field(name=name, steps=steps, values=values, optional=optional, null=left_out)
        kind = self._joined([domain, *rest], answers, depth)
        if kind is None or not sound or steps is None:
            return None
        if "*" in steps and not isinstance(kind, ListType):
            message = "a place with `*` has many values"
            b.error("TCC317", domain, message, "give it the type `list of T`")
            return None
        if hides(kind):
            message = "inside a list or object, these types of an `or` are written alike"
            hint = "leave one of text, path and url, and one of number and time or date"
            self.b.error("TCC317", domain, message, hint)
            return None
        if self.shapes.measure(kind)[1] > MAX_NESTED_TYPES:
            message = f"types are nested deeper than {MAX_NESTED_TYPES}"
            b.error("TCC106", domain, message, _FLATTER)
            return None
        left_out = answers and optional and not isinstance(kind, NullableType)
        return Field(name=name, steps=steps, type=kind, optional=optional, null=left_out)

    def _steps(self, at: Tree | None, name: str) -> tuple[str, ...] | None:
        """Return the steps to the place of a field; None after a mistake."""
        if at is None:
            return (name,)
        pointer = self.b.string(at)
        try:
            return steps_of(pointer, "at", Code.CORE_SCHEMA)
        except Rejected:
            message = f"{quote(pointer)} is no pointer of RFC 6901"
            hint = 'write "/member/*/id"; `~0` is `~` in a name, `~1` is `/`'
            self.b.error("TCC317", at, message, hint)
            return None

    def _may_have(self, others: Sequence[Tree], domain: Tree) -> bool:
        """Return whether a field may have the types after `or`; report it if not."""
        if not others or domain.kind not in _LISTED:
            return True
        if others[0].kind == "null":
            message = "a listed field has null as one of its values"
            self.b.error("TCC317", others[0], message, "list it: yes | no | null")
        else:
            message = "a listed field has no other type"
            hint = f"write an open type: text {self.b.text(domain)} or {self.b.text(others[0])}"
            self.b.error("TCC317", others[0], message, hint)
        return False

    def _joined(self, trees: Sequence[Tree], answers: bool, depth: int) -> FieldType | None:
        """Return the type `T or U or null` of several trees; None after a mistake."""
        found = [self.type(tree, answers, depth) for tree in trees if tree.kind != "null"]
        types = [kind for kind in found if kind is not None]
        if len(types) < len(found):
            return None
        kind = types[0]
        if len(types) > 1:
            if not fits_union(types):
                message = "these types hide each other: a value has to show which one it has"
                hint = "different types, at most one list and one object; `json` has every value"
                self.b.error("TCC317", trees[-1], message, f"write {hint}")
                return None
            kind = UnionType(of=tuple(types))
        return NullableType(of=kind) if len(found) < len(trees) else kind

    # Listed fields.

    def _listed(self, domain: Tree, name: str, answers: bool) -> tuple[str, ...] | None:
        """Return the canonical texts of listed values; None after a mistake."""
        if domain.kind == "listed_range":
            return self._range(domain)
        values = domain.trees("values")[0].trees()
        if len(values) == 1 and values[0].kind == "name" and domain.kind == "listed":
            word = self.b.name(values[0])
            if word in _OTHER_TYPES and not values[0].tokens("QNAME"):
                hint = f"write {name}: {_OTHER_TYPES[word]}; if the one value {word} is meant, "
                hint += f'"{word}"'
                self.b.error("TCC316", domain, f"no type is called {quote(word)}", hint)
                return None
        first: dict[str, Tree] = {}
        for value in values:
            text = value_text(value)
            if text in first:
                message = f"{quote(text)} is listed twice"
                self.b.error("TCC301", value, message, "take one of them away")
                return None
            if not _is_value(text):
                message = f"no double is {quote(text)}, so no call can have it"
                self.b.error(
                    "TCC317", value, message, "choose the nearest number with fewer digits"
                )
                return None
            first[text] = value
        if domain.kind == "listed":
            return tuple(first)
        if not answers:
            message = "`*` is every answer that is not listed, and this is no answer"
            self.b.error("TCC317", domain, message, "list its values, or give it a type")
            return None
        return (*first, _REST)

    def _range(self, domain: Tree) -> tuple[str, ...] | None:
        low, high = (signed(end) for end in domain.trees("signed"))
        for end, tree in zip((low, high), domain.trees("signed"), strict=True):
            if end.denominator != 1:
                hint = "list its values: 0.5 | 1 | 1.5; or give it a type: number 0 .. 2"
                self.b.error("TCC302", tree, "the ends of a range are integers", hint)
                return None
        if low > high:
            message = "this range is empty: its first end is above its last"
            self.b.error("TCC302", domain, message, "write the smaller number first")
            return None
        if high - low >= MAX_VALUES:
            message = f"this range has more than {MAX_VALUES} values, each of which makes calls"
            hint = f"give it a type: integer {decimal_text(low)} .. {decimal_text(high)}"
            self.b.error("TCC303", domain, message, hint)
            return None
        left = MAX_RANGED - self.shapes.ranged
        if left < 0:
            return None  # already reported at an earlier range
        self.shapes.ranged += int(high - low) + 1
        if high - low >= left:
            message = f"with this range the grammar lists more than {MAX_RANGED} values"
            hint = f"give it a type: integer {decimal_text(low)} .. {decimal_text(high)}"
            self.b.error("TCC303", domain, message, hint)
            return None
        return tuple([str(number) for number in range(int(low), int(high) + 1)])

    # Types.

    def type(self, tree: Tree, answers: bool, depth: int = 0) -> FieldType | None:
        """Return the type of a tree; None after a mistake."""
        if depth > MAX_NESTED_TYPES:
            message = f"types are nested deeper than {MAX_NESTED_TYPES}"
            self.b.error("TCC106", tree, message, _FLATTER)
            return None
        return _TYPES[tree.kind](self, tree, answers, depth)

    def text(self, tree: Tree, answers: bool, depth: int) -> FieldType | None:
        """Return the type ``text`` with bounds."""
        bounds = self._bounds(tree, ("min", "max", "~"), "text")
        if bounds is None:
            return None
        sizes = self._sizes(tree, bounds, MAX_LENGTH, 65536)
        if sizes is None:
            return None
        least, most = sizes
        pattern = None
        if "~" in bounds:
            pattern = self.pattern(bounds["~"], most, bounds.get("max"))
            if pattern is None:
                return None
        return declared.TextType(least=least, most=most, pattern=pattern)

    def text_of(self, tree: Tree, answers: bool, depth: int) -> FieldType | None:
        """Return the type ``text "EUR" | "USD"``."""
        among: dict[str, None] = {}
        for value in tree.trees("values")[0].trees():
            if value.kind == "signed":
                message = "a number is no text"
                self.b.error("TCC317", value, message, f'write "{self.b.text(value)}"')
                return None
            text = self.b.name(value) if value.kind == "name" else self.b.string(value)
            if text in among:
                message = f"{quote(text)} is listed twice"
                self.b.error("TCC301", value, message, "take one of them away")
                return None
            among[text] = None
        return declared.TextType(among=tuple(among), most=max(map(len, among)))

    def numeric(self, tree: Tree, answers: bool, depth: int) -> FieldType | None:
        """Return the type ``integer`` or ``number``, with an optional range."""
        whole = tree.has("integer")
        ends = tree.trees("signed")
        if not ends:
            return declared.NumberType(whole=whole)
        low, high = (signed(end) for end in ends)
        if len([end for end in ends if self._is_end(end, whole)]) < len(ends):
            return None
        if low > high:
            message = "this range is empty: its first end is above its last"
            self.b.error("TCC317", tree, message, "write the smaller number first")
            return None
        return declared.NumberType(whole=whole, low=decimal_text(low), high=decimal_text(high))

    def _is_end(self, tree: Tree, whole: bool) -> bool:
        value = signed(tree)
        if whole:
            if value.denominator != 1:
                message = "the ends of a range of integers are whole"
                hint = "write whole numbers, or the type `number`"
            elif not _WHOLE[0] <= value <= _WHOLE[1]:
                message = "an integer is from -2^63 to 2^64 - 1"
                hint = "write a number in this range"
            else:
                return True
            self.b.error("TCC317", tree, message, hint)
            return False
        text = decimal_text(value)
        try:
            ensure_survives(text, "end", Code.CORE_SCHEMA)
        except Rejected:
            message = f"no double is {quote(text)}, so no argument can be it"
            hint = "choose the nearest number with fewer digits"
            self.b.error("TCC317", tree, message, hint)
            return False
        return True

    def plain(self, tree: Tree, answers: bool, depth: int) -> FieldType | None:
        """Return the type ``flag`` or ``json``."""
        if tree.has("flag"):
            bounds = self._bounds(tree, (), "flag")
            return None if bounds is None else declared.FlagType()
        bounds = self._bounds(tree, ("max",), "json")
        sizes = None if bounds is None else self._sizes(tree, bounds, MAX_LENGTH, 65536)
        return None if sizes is None else declared.JsonType(most=sizes[1])

    def located(self, tree: Tree, answers: bool, depth: int) -> FieldType | None:
        """Return the type ``path`` or ``url``, with an optional directory or scope."""
        word = "path" if tree.has("path") else "url"
        made = declared.PathType if word == "path" else declared.UrlType
        for token in tree.tokens("STRING"):
            text = characters_of(token.text)
            try:
                return made(under=paths.normal(text) if word == "path" else urls.scope(text))
            except Rejected as refusal:
                named = {"path": "directory", "url": "URL"}[word]
                message = f"{quote(text)} is no {named}: expected {refusal.expected}"
                example = {"path": "/srv/out", "url": "https://*.example.com/docs"}[word]
                self.b.error("TCC317", token, message, f'write: {word} under "{example}"')
                return None
        return made()

    def time(self, tree: Tree, answers: bool, depth: int) -> FieldType | None:
        """Return the type ``time`` or ``date``, with an optional zone."""
        zone: int | None = 0 if tree.has("utc") else None
        for token in tree.tokens("STRING"):
            text = characters_of(token.text)
            zone = None if text in ("Z", "z") else zone_of(text)
            if zone is None:
                what = f"{quote(text)} is no offset"
                if text in zone_names():
                    what = "a type has an offset: in a named zone, a time may mean two moments"
                self.b.error("TCC317", token, what, 'write `utc`, or an offset: time "-05:00"')
                return None
        return TimeType(zone=zone) if tree.has("time") else DateType(zone=zone or 0)

    def list(self, tree: Tree, answers: bool, depth: int) -> FieldType | None:
        """Return the type ``list of T`` with bounds."""
        bounds = self._bounds(tree, ("min", "max", "distinct"), "list")
        inner = tree.trees()[-1]
        of = self.type(inner, answers, depth + 1)
        if bounds is None or of is None:
            return None
        sizes = self._sizes(tree, bounds, MOST_ELEMENTS, MOST_ELEMENTS)
        if sizes is None:
            return None
        return ListType(of=of, least=sizes[0], most=sizes[1], distinct="distinct" in bounds)

    def record(self, tree: Tree, answers: bool, depth: int) -> FieldType | None:
        """Return a record type, with its own fields or the fields of a named shape."""
        names = tree.tokens("NAME")
        if names:
            fields = self.shapes.fields(self.b, names[0], answers)
        else:
            taken: dict[str, Tree | Token] = {}
            made = [self._field(one, taken, answers, depth + 1) for one in tree.trees("field")]
            sound = [one for one in made if one is not None]
            fields = tuple(sound) if len(sound) == len(made) else None
        return None if fields is None else RecordType(fields=fields)

    def alternatives(self, tree: Tree, answers: bool, depth: int) -> FieldType | None:
        """Return the type ``(T or U)`` or ``(T or null)``."""
        return self._joined(tree.trees(), answers, depth)

    # Bounds of types.

    def _bounds(self, tree: Tree, takes: Sequence[str], word: str) -> dict[str, Tree] | None:
        """Return the bounds of a type by their words; None after a mistake."""
        found: dict[str, Tree] = {}
        for bound in tree.trees("bound"):
            first = bound.parts[0]
            kind = first.text if isinstance(first, Token) else ""
            if kind not in takes:
                shown = " and ".join([_BOUNDS[one] for one in takes])
                hint = f"{word} takes {shown}" if takes else f"{word} takes nothing more"
                self.b.error("TCC317", bound, f"{word} takes no {_BOUNDS[kind]}", hint)
                return None
            if kind in found:
                message = f"a second {_BOUNDS[kind]} of this field"
                self.b.error("TCC317", bound, message, "take one of them away")
                return None
            found[kind] = bound
        return found

    def _sizes(
        self, tree: Tree, bounds: Mapping[str, Tree], top: int, most: int
    ) -> tuple[int, int] | None:
        sizes = {"min": 0, "max": most}
        for kind in ("min", "max"):
            if kind not in bounds:
                continue
            token = bounds[kind].tokens("NUMBER")[0]
            value = parse_decimal(token.text)
            if value.denominator != 1 or value > top:
                message = f"`{kind}` takes a whole number from 0 to {top}"
                self.b.error("TCC317", token, message, "write one in this range")
                return None
            sizes[kind] = int(value)
        if sizes["min"] > sizes["max"]:
            message = f"nothing has at least {sizes['min']} and at most {sizes['max']} of them"
            hint = "write the smaller number behind `min`"
            hint += "" if "max" in bounds else f"; without `max` there are at most {most}"
            self.b.error("TCC317", tree, message, hint)
            return None
        return sizes["min"], sizes["max"]

    def pattern(self, tree: Tree, most: int | None, bound: Tree | None = None) -> str | None:
        """Return the pattern after a `~`; None after a mistake.

        Args:
            most: the most characters of a text. None: any number, checked in slices.
            bound: the tree of that bound, for the message.
        """
        pattern = self.b.string(tree)
        try:
            text_pattern.parse(pattern)
        except Rejected as refusal:
            message = f"this is no pattern: {refusal.mismatch}"
            hint = "the whole value has to match; there is no look-around and no back reference"
            self.b.error("TCC318", tree, message, hint)
            return None
        if is_literal(pattern):
            self.b.error("TCC233", tree, *literal_pattern(pattern, "text"))
            return None
        try:
            text_syntax.ensure_quick(pattern, 1 if most is None else most, "pattern")
        except Rejected:
            size = text_syntax.size_of(text_syntax.read_tree(pattern, "pattern"))
            message = f"this pattern has {size} positions, and its texts up to {most} characters: "
            message += f"together more than {text_syntax.MAX_STEPS}, too much for one check"
            hint = f"write `max {text_syntax.MAX_STEPS // size}` or less, or a shorter pattern"
            self.b.error("TCC323", bound or tree, message, hint)
            return None
        return pattern


def _is_value(text: str) -> bool:
    """Return whether a call can have the value with this canonical text."""
    try:
        places.plain(declared.json_of(text))
    except Rejected:
        return False
    return True


_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")


def is_literal(pattern: str) -> bool:
    """Return whether a pattern has no special character, so that it matches one text only."""
    return _SPECIAL.search(pattern) is None


def literal_pattern(pattern: str, left: str, operator: str = "") -> tuple[str, str]:
    """Return the message about a pattern without special characters, and its hint.

    Args:
        left: the compared operand, or the word `text` of a type.
        operator: ``~`` or ``!~``; empty in a type.
    """
    message = "this pattern has no special character, so only this one text matches"
    same = {"~": "= ", "!~": "!= ", "": ""}[operator]
    contains = f'{left} {operator or "~"} ".*{pattern}.*"'
    return message, f'write: {left} {same}"{pattern}"; or for texts that contain it: {contains}'


_BOUNDS: Mapping[str, str] = {
    "min": "`min n`", "max": "`max n`", "~": '`~ "pattern"`', "distinct": "`distinct`",
}  # fmt: skip
_LISTED = frozenset({"listed", "listed_or_other", "listed_range"})
_TYPES: Mapping[str, Callable[[Types, Tree, bool, int], FieldType | None]] = {
    "text": Types.text,
    "text_of": Types.text_of,
    "numeric": Types.numeric,
    "plain": Types.plain,
    "located": Types.located,
    "time": Types.time,
    "list": Types.list,
    "object": Types.record,
    "record": Types.record,
    "alternatives": Types.alternatives,
}


def signed(tree: Tree) -> Fraction:
    """Return the number of a `signed` tree."""
    value = parse_decimal(tree.tokens("NUMBER")[0].text)
    return -value if tree.has("-") else value


def value_text(tree: Tree) -> str:
    """Return the canonical text of a listed value."""
    if tree.kind == "signed":
        return decimal_text(signed(tree))
    token = tree.parts[0]
    if not isinstance(token, Token):
        return ""
    if token.kind == "STRING":
        return string_value(characters_of(token.text))
    if token.kind == "NAME" and token.text in ("true", "false", "null"):
        return token.text
    return string_value(name_value(token))
