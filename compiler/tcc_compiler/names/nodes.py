"""Turn the trees of conditions, terms and collections into nodes of :mod:`tcc_certs.policy`.

Each kind of tree has one function in `_FORMS`. Words remain words; `tcc_certs` determines their
meaning. Common wrong forms are reported with the text to write instead.
Cost: linear in the tree; there is no recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tcc_certs.errors import hidden_in
from tcc_certs.formats.codec import MAX_NAME
from tcc_certs.policy import nodes as n
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import decimal_text, parse_decimal
from tcc_compiler.syntax.messages import every_text
from tcc_compiler.syntax.parse import File
from tcc_compiler.syntax.tokens import name_value, string_value
from tcc_compiler.syntax.tree import Token, Tree, region_of, text_of

# Names with a fixed meaning, unless they are in backticks.
_TAKEN: Mapping[str, Callable[[], n.Node]] = {
    "this": n.This,
    "it": n.It,
    "now": n.Now,
    "any": n.AnyTool,
    "null": n.Null,
    "true": lambda: n.Flag(True),
    "false": lambda: n.Flag(False),
}
Spans: TypeAlias = "dict[int, Region]"


@dataclass(slots=True)
class Builder:
    """Makes the nodes of one file.

    Attributes:
        file: the file.
        report: receives the mistakes.
        spans: the region of each node, by its `id`; nodes are kept alive, so an `id` is not reused.
        failed: how many mistakes were reported.
    """

    file: File
    report: Report
    spans: Spans = field(default_factory=dict)
    failed: int = 0

    def error(
        self,
        code: str,
        at: Tree | Token | Region,
        message: str,
        hint: str,
        notes: Sequence[tuple[str, Region]] = (),
    ) -> None:
        """Report a mistake in a tree, or at a place."""
        self.failed += 1
        self.report.error(code, self.region(at), message, hint, notes)

    def region(self, at: Tree | Token | Region) -> Region:
        """Return the region of a tree."""
        return at if isinstance(at, Region) else region_of(at, self.file.number)

    def text(self, at: Tree | Token) -> str:
        """Return the author's text of a tree, on one line."""
        return text_of(at, self.file.source.text)

    def node(self, tree: Tree) -> n.Node:
        """Return the node of an expression."""
        order: list[Tree] = []
        todo = [tree]
        while todo:
            one = todo.pop()
            order.append(one)
            todo += _operands(one)
        made: dict[int, n.Node] = {}
        heights: dict[int, int] = {}
        for one in reversed(order):
            self.report.tick()
            operands = _operands(one)
            parts = [made[id(part)] for part in operands]
            found = made[id(one)] = _FORMS[one.kind](self, one, parts)
            inside = max([heights[id(part)] for part in operands], default=0)
            heights[id(one)] = inside + (one.kind not in ("group", "values"))
            if one.kind != "group":
                self.spans[id(found)] = self.region(one)
        if heights[id(tree)] > n.MAX_NESTED:
            message = f"forms are nested deeper than {n.MAX_NESTED} levels"
            self.error("TCC106", tree, message, "name the inner part by a `let`")
        return made[id(tree)]

    def keep(self, node: n.Node, at: Tree) -> n.Node:
        """Record the region of a node that is made from a part of a tree; return the node."""
        self.spans[id(node)] = self.region(at)
        return node

    def name(self, tree: Tree) -> str:
        """Return the name that a `name` tree stands for."""
        token = tree.parts[0]
        return name_value(token) if isinstance(token, Token) else ""

    def is_name(self, tree: Tree) -> bool:
        """Report a declared name that is too long or has hidden characters; return False for it."""
        name = self.name(tree)
        hidden = hidden_in(name)
        if len(name) > MAX_NAME:
            message = f"this name has {len(name)} characters; {MAX_NAME} are the most"
            self.error("TCC113", tree, message, "choose a shorter one")
        elif hidden is not None:
            message = f"this name has U+{ord(hidden):04X}, a control or hidden character"
            hint = "leave it out: terminals and logs show names"
            self.error("TCC113", tree, message, hint)
        else:
            return True
        return False

    def string(self, tree: Tree) -> str:
        """Return the text of the first string directly inside a tree."""
        return string_value(tree.tokens("STRING")[0].text)

    def duration(self, tree: Tree) -> n.Duration:
        """Return the duration directly inside a tree: a number and its unit."""
        amount = decimal_text(parse_decimal(tree.tokens("NUMBER")[0].text))
        token = tree.trees("unit")[0].parts[0]
        unit = token.text if isinstance(token, Token) else ""
        if (parse_decimal(amount) * n.UNITS[unit]).denominator != 1:
            message = "a duration is a whole number of milliseconds"
            self.error("TCC227", tree, message, "round it")
        return n.Duration(amount, unit)


Parts: TypeAlias = "list[n.Node]"


def ungrouped(tree: Tree) -> Tree:
    """Return the tree inside all of its brackets."""
    while tree.kind == "group":
        tree = tree.trees()[0]
    return tree


def _operands(tree: Tree) -> list[Tree]:
    """Return the trees that become the parts of a tree's node."""
    match tree.kind:
        case "name" | "number" | "same":
            return []
        case "member":
            return [] if _is_bare(tree.trees()[0], "session") else tree.trees()[:1]
        case "within":
            return tree.trees()[:1]
        case _:
            return tree.trees()


def is_taken(tree: Tree) -> bool:
    """Return whether a bare name has a fixed meaning in conditions."""
    token = tree.parts[0]
    bare = isinstance(token, Token) and token.kind == "NAME"
    return bare and isinstance(token, Token) and token.text in (*_TAKEN, "session")


# One function for each kind of tree.


def _name(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    token = tree.parts[0]
    if isinstance(token, Token) and token.kind == "NAME" and token.text in _TAKEN:
        return _TAKEN[token.text]()
    if _is_bare(tree, "session"):
        message = "`session` alone is no value"
        b.error("TCC202", tree, message, "name the attribute: session.customer, say")
    return n.Word(b.name(tree))


def _number(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    if tree.trees("unit"):
        return b.duration(tree)
    return n.Number(decimal_text(parse_decimal(tree.tokens("NUMBER")[0].text)))


def _signed(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    value = parse_decimal(tree.tokens("NUMBER")[0].text)
    return n.Number(decimal_text(-value if tree.has("-") else value))


def _string(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return n.Text(b.string(tree))


def _group(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return parts[0]


def _negative(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    of = parts[0]
    if isinstance(of, n.Number) and of.value[:1] != "-":
        return n.Number("0" if of.value == "0" else f"-{of.value}")
    return n.Negative(of)


def _member(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    of, name = tree.trees()
    if _is_bare(of, "session"):
        return n.Session(b.name(name))
    return n.Get(parts[0], b.name(name))


def _is_bare(tree: Tree, word: str) -> bool:
    token = tree.parts[0]
    return tree.kind == "name" and isinstance(token, Token) and token.text == word


def _apply(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    head, arguments = tree.trees()[0], tuple(parts[1:])
    token = head.parts[0]
    called = head.kind == "name" and isinstance(token, Token) and token.kind == "NAME"
    name = token.text if called and isinstance(token, Token) else ""
    if name not in n.FUNCTIONS:
        return n.Where(parts[0], arguments)
    least, most = n.FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        takes = f"{least}" if least == most else f"{least} or {most}"
        s = "" if takes == "1" else "s"
        message = f"`{name}` takes {takes} argument{s}, and has {len(arguments)}"
        hint = f"write `{name}` in backticks if this is a tool or a `let`"
        b.error("TCC225", tree, message, f"take away what is too much; {hint}")
    return n.Apply(name, arguments)


def _same(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return n.Same(tuple([b.name(name) for name in tree.trees()]))


def _match(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return n.Match(parts[0], tuple(parts[1:]))


def _arm(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return n.Arm(parts[-1], n.parts_of(parts[0]))


def _otherwise(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return n.Else(parts[0])


def _either_of(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return n.Union(tuple(parts))


_SUMS: Mapping[str, tuple[type[n.Add] | type[n.Minus] | type[n.Times], str]] = {
    "add": (n.Add, "+"),
    "minus": (n.Minus, "-"),
    "times": (n.Times, "*"),
}


def _arithmetic(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    made, sign = _SUMS[tree.kind]
    left, right = tree.trees()
    loose = [side for side in (left, right) if side.kind == "either_of"]
    if loose:
        whole = f"{_bracketed(b, left)} {sign} {_bracketed(b, right)}"
        other = _other_reading(b, left, sign, right)
        message = f"`|` beside `{sign}` needs brackets"
        b.error("TCC237", tree, message, f"write: {whole}, or: {other}")
    return made(parts[0], parts[1])


def _bracketed(b: Builder, tree: Tree) -> str:
    return f"({b.text(tree)})" if tree.kind == "either_of" else b.text(tree)


def _other_reading(b: Builder, left: Tree, sign: str, right: Tree) -> str:
    """Return the text in which the sign binds tighter than the `|`."""
    first = left.trees() if left.kind == "either_of" else [left]
    second = right.trees() if right.kind == "either_of" else [right]
    middle = f"({b.text(first[-1])} {sign} {b.text(second[0])})"
    return " | ".join([*map(b.text, first[:-1]), middle, *map(b.text, second[1:])])


def _within(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    span = b.duration(tree)
    return n.Within(parts[0], span.amount, span.unit)


def _since(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return n.Since(parts[0], parts[1])


_PREFIXES: Mapping[str, Callable[[n.Node], n.Node]] = {
    "not_": n.Not,
    "none": n.No,
    "every": n.Every,
    "unused": n.Unused,
}


def _prefix(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return _PREFIXES[tree.kind](parts[0])


def _either(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return n.Or(tuple(parts))


def _both(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return n.And(tuple(parts))


def _compare(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    operator = next(part for part in tree.parts if isinstance(part, Token))
    return n.Compare(operator.text, parts[0], parts[1])


def _under(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    return n.Compare("not under" if tree.has("not") else "under", parts[0], parts[1])


def _among(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    operator = "not in" if tree.has("not") else "in"
    if len(parts) == 3:
        return n.Between(operator, parts[0], parts[1], parts[2])
    return n.Compare(operator, parts[0], parts[1])


def _chain(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    signs = [part.text for part in tree.parts if isinstance(part, Token)]
    terms = [b.text(part) for part in tree.trees()]
    pairs = [f"{terms[at]} {sign} {terms[at + 1]}" for at, sign in enumerate(signs)]
    meant = " and ".join(pairs)
    if signs == ["<=", "<="]:
        meant = f"{terms[1]} in {terms[0]} .. {terms[2]}"
    elif signs == [">=", ">="]:
        meant = f"{terms[1]} in {terms[2]} .. {terms[0]}"
    b.error("TCC238", tree, "comparisons do not chain", f"write: {meant}")
    return n.Compare(signs[0], parts[0], parts[1])


def _every_in(b: Builder, tree: Tree, parts: Parts) -> n.Node:
    first, second = tree.trees()
    element, of = b.text(first), b.text(second)
    message = f"`every {element} in ..` is no condition: the element of a list has no name"
    if second.kind == "apply" and first.kind == "name":
        head, *conditions = second.trees()
        meant = every_text(element, b.text(head), ", ".join(map(b.text, conditions)))
        hint = f"write: {meant}"
    else:
        hint = f"write: every {element}(it in {of}), if {element} is the list; "
        hint += f"or every {of}(CONDITION), with `it` for the element"
    b.error("TCC239", tree, message, hint)
    return n.Every(parts[0])


_FORMS: Mapping[str, Callable[[Builder, Tree, Parts], n.Node]] = {
    "name": _name,
    "number": _number,
    "signed": _signed,
    "string": _string,
    "group": _group,
    "negative": _negative,
    "member": _member,
    "apply": _apply,
    "same": _same,
    "match": _match,
    "arm": _arm,
    "otherwise": _otherwise,
    "values": _either_of,
    "either_of": _either_of,
    "add": _arithmetic,
    "minus": _arithmetic,
    "times": _arithmetic,
    "within": _within,
    "since": _since,
    "not_": _prefix,
    "none": _prefix,
    "every": _prefix,
    "unused": _prefix,
    "either": _either,
    "both": _both,
    "compare": _compare,
    "under": _under,
    "among": _among,
    "chain": _chain,
    "every_in": _every_in,
}
