"""Turn the trees of tools into the tools of the core, and compute the amounts of their calls.

Cost: linear in the trees, plus the amounts (:mod:`tcc_compiler.names.amounts`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tcc_certs.policy.core import Tool
from tcc_certs.policy.nodes import UNITS
from tcc_certs.values.fields import Field
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import quote, some, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import parse_decimal
from tcc_compiler.names.amounts import Amount, Amounts, Arithmetic, FieldOf, Steps, amounts_of
from tcc_compiler.names.listed import Listed, listed_of, places_of, values_in
from tcc_compiler.names.models import amount_word, first_word, models_of
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.types import Shapes, Types
from tcc_compiler.syntax.tokens import string_value
from tcc_compiler.syntax.tree import Token, Tree

MAX_CALLS = 1 << 16
_TARGET = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


@frozen
class DeclaredTool:
    """A tool.

    Attributes:
        tool: the tool of the core.
        fields: its listed fields: arguments, then answers.
        places: the place of each listed field, by its name.
        amounts: the amounts of every call, by the places of its values; the last field varies
            fastest.
        signature: the region of its signature; None if it has none.
    """

    tool: Tool
    fields: tuple[Listed, ...]
    places: Mapping[str, int]
    amounts: Sequence[Amounts]
    signature: Region | None = None

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.tool.name


def tool_of(b: Builder, tree: Tree, shapes: Shapes, steps: Steps) -> DeclaredTool | None:
    """Return the tool of a tree; None after a mistake in it.

    Args:
        steps: the work that is left for the arithmetic of amounts.
    """
    before = b.failed
    name_tree = tree.trees()[0]
    types = Types(b, shapes)
    sound = b.is_name(name_tree)
    name = b.name(name_tree)
    fields = tree.tree("fields")
    arguments = types.fields(fields.trees() if fields else (), {})
    taken: dict[str, Tree | Token] = {}
    for one in fields.trees() if fields else ():
        taken[b.name(one.trees()[0])] = one
    answers = _answers(b, tree.tree("gives"), types, taken)
    block = tree.tree("block")
    attributes = block.trees() if block else []
    if arguments is None or answers is None or not sound:
        return None
    if not _heads_are_there(b, fields, arguments) or not _few_calls(
        b, name_tree, arguments, answers
    ):
        return None
    made = Tool(name=name, arguments=arguments, answers=answers)
    listed = tuple([listed_of(one) for one in made.listed])
    reader = _Attributes(b, name_tree, made, listed, {one.name: i for i, one in enumerate(listed)})
    for attribute in attributes:
        _ATTRIBUTES[attribute.kind](reader, attribute)
    if b.failed > before:
        return None
    at = b.region(name_tree)
    amounts = amounts_of(name, at, reader.fields, reader.amounts, steps, b.report)
    b.failed += amounts is None
    models = models_of(b, reader.models)
    if amounts is None or b.failed > before or not _has_answers(reader):
        return None
    signature = tree.tree("signature")
    takes, gives = [one.text for one in signature.tokens("NAME")] if signature else (None, None)
    seen = reader.seen
    tool = replace(
        made, takes=takes, gives=gives, models=models, quotes_same="quotes" in seen,
        strict="strict" in seen, errors_failed="errors" in seen, error_text=reader.error_text,
        parallel="parallel" in seen, doc=reader.text, bind=reader.binding,
    )  # fmt: skip
    place = None if signature is None else b.region(signature)
    return DeclaredTool(
        tool=tool, fields=reader.fields, places=reader.places, amounts=amounts, signature=place
    )


def _answers(
    b: Builder, tree: Tree | None, types: Types, taken: Mapping[str, Tree | Token]
) -> tuple[Field, ...] | None:
    """Return the answers of a tool: the fields of its shape, then its own."""
    if tree is None:
        return ()
    names = dict(taken)
    shared: tuple[Field, ...] | None = ()
    shape = tree.tokens("NAME")
    if shape:
        shared = types.shapes.fields(b, shape[0], True)
        for one in shared or ():
            if one.name in names:
                message = f"the shape {quote(shape[0].text)} has a field {quote(one.name)}, too"
                b.error("TCC201", shape[0], message, "rename the argument")
                return None
            names[one.name] = shape[0]
    own = types.fields(tree.trees("field"), names, answers=True)
    return None if shared is None or own is None else (*shared, *own)


def _heads_are_there(b: Builder, tree: Tree | None, fields: Sequence[Field]) -> bool:
    """Return whether the first step of each argument's place is itself an argument."""
    members = {one.name for one in fields if one.steps == (one.name,)}
    for one, at in zip(fields, tree.trees() if tree else (), strict=True):
        if one.steps and one.steps[0] not in members:
            head = one.steps[0]
            message = f"no argument is called {quote(head)}, in which {quote(one.name)} is"
            b.error("TCC204", at, message, f"declare it, too: {head}: json")
            return False
    return True


def _few_calls(
    b: Builder, name: Tree, arguments: Sequence[Field], answers: Sequence[Field]
) -> bool:
    calls = 1
    for one in (*arguments, *answers):
        calls *= len(one.values) + one.optional if one.type is None else 1
        if calls > MAX_CALLS:
            message = f"tool {quote(b.name(name))} has more than {MAX_CALLS} calls"
            hint = "list fewer values, or give the fields types"
            b.error("TCC303", name, message, hint)
            return False
    return True


def _has_answers(reader: _Attributes) -> bool:
    """Return whether a strict tool has a listed answer; report a tool without one."""
    if "strict" not in reader.seen or any(one.type is None for one in reader.tool.answers):
        return True
    message = f"{quote(reader.tool.name)} is strict, and lists no answer"
    hint = "list its answers, as in `gives (result: pass | fail)`; or take `strict` away"
    reader.b.error("TCC217", reader.seen["strict"], message, hint)
    return False


@dataclass(slots=True)
class _Attributes:
    """Reads the attributes in the block of a tool.

    Attributes:
        text, binding: from `doc` and `bind`.
        seen: the attributes that a tool may have only once, by their words.
    """

    b: Builder
    name: Tree
    tool: Tool
    fields: tuple[Listed, ...]
    places: Mapping[str, int]
    amounts: list[Amount] = field(default_factory=list)
    models: list[Tree] = field(default_factory=list)
    text: str | None = None
    binding: tuple[str, ...] | None = None
    seen: dict[str, Tree] = field(default_factory=dict)
    error_text: str | None = None

    def once(self, word: str, tree: Tree) -> None:
        """Record an attribute that a tool may have only once, and report a second one."""
        if word in self.seen:
            self.b.error("TCC310", tree, f"a second '{word}'", "take one of them away")
        self.seen.setdefault(word, tree)

    def doc(self, tree: Tree) -> None:
        """Read ``doc "text"``."""
        self.once("doc", tree)
        self.text = self.b.string(tree)

    def flagged(self, tree: Tree) -> None:
        """Read ``quotes same``, ``strict`` or ``parallel``."""
        self.once(tree.kind, tree)

    def errors(self, tree: Tree) -> None:
        """Read ``errors mean failed``, with an optional pattern of texts that report an error."""
        self.once("errors", tree)
        if tree.tokens("STRING"):
            self.error_text = Types(self.b, Shapes()).pattern(tree, None)

    def bind(self, tree: Tree) -> None:
        """Read ``bind mcp "server" "tool"`` or ``bind python "module:function"``."""
        self.once("bind", tree)
        texts = [string_value(token.text) for token in tree.tokens("STRING")]
        if tree.has("python"):
            if not _TARGET.fullmatch(texts[0]):
                message = f"{quote(texts[0])} names no Python function"
                self.b.error("TCC313", tree, message, 'write "module:function"')
            self.binding = ("python", texts[0])
            return
        if not all(texts):
            message = "a binding names a server and a tool, neither empty"
            self.b.error("TCC313", tree, message, 'write bind mcp "server" "tool"')
        self.binding = ("mcp", texts[0], texts[1])

    def amount(self, tree: Tree) -> None:
        """Read ``cost``, ``price``, ``latency`` or ``epsilon`` with its arithmetic."""
        kind = amount_word(tree)
        when = tree.tree("when")
        parts = [one for one in tree.trees()[1:] if one.kind != "when"]
        ends = [self._arithmetic(one, kind) for one in parts]
        if len(ends) == 2 and kind != "cost":
            message = f"only a cost is an interval, and this is a {kind}"
            self.b.error("TCC225", tree, message, "write its greatest value")
        low, high = ends[0], ends[1] if len(ends) == 2 else None
        condition = None if when is None else self._condition(when)
        if low is None or None in ends or (when is not None and condition is None):
            return
        amount = Amount(kind=kind, low=low, high=high, when=condition, region=self.b.region(tree))
        self.amounts.append(amount)

    def _condition(self, tree: Tree) -> tuple[int, frozenset[int]] | None:
        name, values = tree.trees()
        place = self._place(name)
        if place is None:
            return None
        places = places_of(self.b, values_in(self.b, values), self.fields[place])
        return None if places is None else (place, frozenset(places))

    def _place(self, tree: Tree) -> int | None:
        """Return the place of a listed field; report any other name and return None."""
        place = self.places.get(self.b.name(tree))
        if place is None:
            self._report_no_listed(tree)
        return place

    def _number(self, tree: Tree) -> int | None:
        """Return the place of a listed field with numeric values; report any other field."""
        place = self._place(tree)
        if place is None:
            return None
        name = quote(self.fields[place].name)
        if self.fields[place].optional:
            message = f"{name} may be left out, and then there is nothing to reckon with"
            self.b.error("TCC319", tree, message, "choose amounts by 'when' instead")
            return None
        if not self.fields[place].numeric:
            message = f"the values of {name} are not all numbers"
            self.b.error("TCC305", tree, message, "choose amounts by 'when' instead")
            return None
        return place

    def _report_no_listed(self, tree: Tree) -> None:
        name = self.b.name(tree)
        known = [one.name for one in (*self.tool.arguments, *self.tool.answers)]
        if name in known:
            message = f"{quote(name)} has a type, and no amount depends on it"
            hint = "list its values, as in (k: 5 | 10): listed values distinguish calls in plans"
            self.b.error("TCC216", tree, message, hint)
            return
        hint = suggest(name, known) or (f"it has {some(known)}" if known else "it has none")
        line = self.b.file.source.text[: tree.start].rpartition("\n")[2]
        hint = "comments start with '#'" if line.rstrip().endswith("--") else hint
        self.b.error("TCC204", tree, f"the tool has no field {quote(name)}", hint)

    def _arithmetic(self, tree: Tree, kind: str) -> Arithmetic | None:
        """Return an amount in postfix order; durations are in milliseconds."""
        code: list[Any] = []
        spans: list[bool] = []  # for each operand on the stack, whether it is a duration
        sound = True
        for one in _postorder(tree):
            self.b.report.tick()
            match one.kind:
                case "number":
                    value = parse_decimal(one.tokens("NUMBER")[0].text)
                    unit = one.tree("unit")
                    code.append(value * UNITS[first_word(unit)] if unit else value)
                    spans.append(unit is not None)
                case "name":
                    place = self._number(one)
                    sound &= place is not None
                    code.append(FieldOf(place or 0))
                    spans.append(False)
                case "negative":
                    code.append("~")
                case "group":
                    pass
                case "add" | "minus" | "times":
                    right, left = spans.pop(), spans.pop()
                    product = one.kind == "times"
                    if (left and right) if product else (left != right):
                        message = "a duration and a number have no sum"
                        message = "two durations have no product" if product else message
                        self.b.error("TCC225", one, message, "write: (10 + 5 * k) * 1 ms")
                        sound = False
                    code.append({"add": "+", "minus": "-", "times": "*"}[one.kind])
                    spans.append(left or right)
                case _:
                    message = "an amount is arithmetic over numbers and listed fields"
                    hint = "it has +, -, * and brackets"
                    self.b.error("TCC225", one, message, hint)
                    return None
        if spans[0] != (kind == "latency"):
            message = "a latency is a duration" if kind == "latency" else f"a {kind} has no unit"
            text = self.b.text(tree)
            text = text if tree.kind in ("number", "name", "group") else f"({text})"
            hint = f"write: latency {text} * 1 ms" if kind == "latency" else "take the unit away"
            hint = f"write: latency {text} ms" if hint[0] == "w" and tree.kind == "number" else hint
            self.b.error("TCC225", tree, message, hint)
            return None
        if not sound:
            return None
        return Arithmetic(code=tuple(code), region=self.b.region(tree))

    def model(self, tree: Tree) -> None:
        """Read ``model NAME { .. }``."""
        self.models.append(tree)


def _postorder(tree: Tree) -> list[Tree]:
    """Return the trees of an arithmetic expression, operands first."""
    order: list[Tree] = []
    todo = [tree]
    while todo:
        one = todo.pop()
        order.append(one)
        if one.kind in ("add", "minus", "times", "negative", "group"):
            todo += one.trees()
    return order[::-1]


_ATTRIBUTES: Mapping[str, Callable[[_Attributes, Tree], None]] = {
    "amount": _Attributes.amount,
    "doc": _Attributes.doc,
    "bind": _Attributes.bind,
    "quotes": _Attributes.flagged,
    "strict": _Attributes.flagged,
    "parallel": _Attributes.flagged,
    "errors": _Attributes.errors,
    "model": _Attributes.model,
}
