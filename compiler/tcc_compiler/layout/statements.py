"""The layout of each kind of syntax tree: the spaces between its parts, and possible new lines.

By default a space separates the parts. `_KINDS` has an entry for each kind of tree with another
layout. Cost: linear in the tree; the recursion is as deep as the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tcc_compiler.layout.lines import (
    END_OF_BLOCK,
    GLUE,
    LINE,
    LOOSE,
    NEW_LINE,
    SPACE,
    Elements,
    Separator,
)
from tcc_compiler.syntax.tree import Part, Token, Tree

_Between = Callable[[Tree, Part, Part], Separator]


class Layout:
    """Writes the parts of a statement in order.

    Attributes:
        made: receives the texts, breaks and groups.
    """

    def __init__(self, made: Elements) -> None:
        self.made = made

    def put(self, part: Part, separator: Separator | None = None) -> None:
        """Write a tree or token, after a separator if there is one."""
        if isinstance(part, Token):
            if separator is not None:
                self.made.before(part.start, separator)
            self.made.put(part)
            return
        if separator is not None:
            self.made.before(part.start, separator)
        _KINDS.get(part.kind, Layout.plain)(self, part)

    def parts(self, tree: Tree, between: _Between) -> None:
        """Write the parts of a tree; `between` returns the separator between two of them."""
        before: Part | None = None
        for part in tree.parts:
            self.put(part, None if before is None else between(tree, before, part))
            before = part

    def plain(self, tree: Tree) -> None:
        """Write the parts with spaces between them."""
        self.parts(tree, _spaced)

    def glued(self, tree: Tree) -> None:
        """Write the parts with nothing between them."""
        self.parts(tree, lambda tree, before, part: GLUE)

    def filled(self, tree: Tree, indent: int = 2) -> None:
        """Write the parts in a group whose lines are filled."""
        self.made.open(fill=True, indent=indent)
        self.parts(tree, _spaced)
        self.made.close()

    def listed(self, tree: Tree) -> None:
        """Write a list in brackets; further lines are aligned after the opening bracket."""
        self.made.open(fill=True)
        opened = False
        before: Part | None = None
        for part in tree.parts:
            separator = None if before is None else _spaced(tree, before, part)
            if isinstance(part, Token) and part.kind in ("(", "_ARGS", "_FIELDS"):
                if separator is not None:
                    self.made.before(part.start, separator)
                self.made.open(fill=True, indent=1, aligned=True, listed=True)
                opened = True
                self.put(part)
            else:
                self.put(part, separator)
            before = part
        if opened:
            self.made.close()
        self.made.close()

    def joined(self, tree: Tree) -> None:
        """Write operands with their operator, on one line or each operand on its own line."""
        self.made.open(fill=False, indent=2)
        self.parts(tree, _before_operator)
        self.made.close()

    def summed(self, tree: Tree) -> None:
        """Write a sum, product, comparison or window: filled lines, breaks before operators."""
        self.made.open(fill=True, indent=2)
        self._operands(tree)
        self.made.close()

    def _operands(self, tree: Tree) -> None:
        before: Part | None = None
        for at, part in enumerate(tree.parts):
            separator = None if before is None else _before_operator(tree, before, part)
            if at == 0 and isinstance(part, Tree) and part.kind in _CHAINED:
                self._operands(part)
            else:
                self.put(part, separator)
            before = part

    def compared(self, tree: Tree) -> None:
        """Write a comparison; the values of `x = a | b` continue below the `=`."""
        if tree.trees()[-1].kind != "either_of":
            self.summed(tree)
            return
        left, sign, values = tree.parts
        self.put(left)
        self.made.before(sign.start, SPACE)
        self.made.open(fill=True, aligned=True)
        self.put(sign)
        self.put(values, SPACE)
        self.made.close()

    def grouped(self, tree: Tree) -> None:
        """Write an expression in brackets."""
        self.made.open(fill=True, indent=1, aligned=True)
        self.parts(tree, lambda tree, before, part: GLUE)
        self.made.close()

    # Statements.

    def clauses(self, tree: Tree) -> None:
        """Write `before` or `finally`: one clause, or a block with a line for each clause."""
        block = tree.has("{")
        self.made.open(fill=False, indent=2)
        before: Part | None = None
        for part in tree.parts:
            if before is None:
                separator = None
            elif isinstance(part, Token) and part.kind == "}":
                separator = END_OF_BLOCK
            elif isinstance(part, Tree) and part.kind in ("require", "ask", "let"):
                separator = NEW_LINE if block else LINE
            else:
                separator = SPACE
            if not block and isinstance(part, Tree) and part.kind in ("require", "ask"):
                if separator is not None:
                    self.made.before(part.start, separator)
                self.parts(part, _before_reason)
            else:
                self.put(part, separator)
            before = part
        self.made.close()

    def clause(self, tree: Tree) -> None:
        """Write a clause of a block."""
        self.made.open(fill=False, indent=2)
        self.parts(tree, _before_reason)
        self.made.close()

    def statement(self, tree: Tree) -> None:
        """Write a statement whose lines break before its keywords."""
        self.made.open(fill=True, indent=2)
        self.parts(tree, _before_words)
        self.made.close()

    def definition(self, tree: Tree) -> None:
        """Write a `rule` or a `plan`; further lines begin below its `=`."""
        before: Part | None = None
        for part in tree.parts:
            separator = None if before is None else SPACE
            if isinstance(part, Token) and part.kind == "=":
                self.made.before(part.start, SPACE)
                self.made.open(fill=True, aligned=True)
                self.put(part)
            elif isinstance(part, Tree) and part.kind in _PLANS:
                self.made.before(part.start, SPACE)
                self.made.open(fill=False)
                self.parts(part, _before_operator)
                self.made.close()
            else:
                self.put(part, separator)
            before = part
        self.made.close()

    def plans(self, tree: Tree) -> None:
        """Write alternatives within a plan."""
        self.made.open(fill=False)
        self.parts(tree, _before_operator)
        self.made.close()

    def sequence(self, tree: Tree) -> None:
        """Write calls that follow each other."""
        self.made.open(fill=True, indent=2)
        self.parts(tree, lambda tree, before, part: LINE)
        self.made.close()

    # Declarations.

    def tool(self, tree: Tree) -> None:
        """Write a tool; its answers, its signature and its attributes may be on separate lines."""
        self.made.open(fill=False, indent=2)
        self.made.open(fill=True)
        before: Part | None = None
        closed = False
        for part in tree.parts:
            if before is None:
                self.put(part)
            elif isinstance(part, Tree) and part.kind == "block":
                self.made.close()
                closed = True
                self.put(part, SPACE)
            elif isinstance(part, Tree) and part.kind == "fields":
                self.put(part, GLUE)
            elif isinstance(part, Tree) and part.kind in ("gives", "signature"):
                self.put(part, LINE)
            else:
                self.put(part, SPACE)
            before = part
        if not closed:
            self.made.close()
        self.made.close()

    def block(self, tree: Tree) -> None:
        """Write attributes in braces, on one line if they fit."""
        ends = Separator(" ", True, False, -2)
        before: Part | None = None
        for part in tree.parts:
            if before is None:
                self.put(part)
            elif isinstance(part, Token):
                self.put(part, GLUE if isinstance(before, Token) else ends)
            else:
                self.put(part, LINE)
            before = part

    def model(self, tree: Tree) -> None:
        """Write a model, or an `execute` block."""
        ends = Separator(" ", True, False, -2)
        self.made.open(fill=False, indent=2)
        before: Part | None = None
        for part in tree.parts:
            if before is None:
                self.put(part)
            elif isinstance(part, Token) and part.kind == "}":
                empty = isinstance(before, Token) and before.kind == "{"
                self.put(part, GLUE if empty else ends)
            elif isinstance(part, Tree) and part.kind in _PARTS:
                self.put(part, LINE)
            else:
                self.put(part, SPACE)
            before = part
        self.made.close()


_PARTS = ("taken", "privacy", "adapter", "quality", "execute")
_PLANS = ("choice", "without", "both_plans")
_CHAINED = frozenset({"add", "minus", "times", "within", "since"})
_CLOSE_TO_NAME = frozenset(
    {"apply", "pattern", "let", "privacy"}
)  # kinds whose bracket follows a name without a space
_NO_SPACE_BEFORE = frozenset({",", ")", ".", "?", ":"})
_BREAKS_BEFORE = frozenset(
    {"owe", "<=", "per", "across", "in_session", "reason", "from", "or", "null", "at", "of"}
)


def _kind(part: Part) -> str:
    return part.kind


def _spaced(tree: Tree, before: Part, part: Part) -> Separator:
    first, next_ = _kind(before), _kind(part)
    if isinstance(part, Token):
        if next_ in _NO_SPACE_BEFORE and tree.kind != "signature":
            return GLUE
        if next_ in ("(", "_ARGS", "_FIELDS") and tree.kind in _CLOSE_TO_NAME:
            return GLUE
    if isinstance(before, Token) and first in ("(", "_ARGS", "_FIELDS", "."):
        return GLUE
    return LINE if first == "," else SPACE


def _before_operator(tree: Tree, before: Part, part: Part) -> Separator:
    """Allow a new line before an operator, but not before a sign, a number or within brackets."""
    if isinstance(part, Token) and part.kind not in ("NUMBER", *_NO_SPACE_BEFORE):
        negated = isinstance(before, Token) and before.kind == "not"
        return SPACE if negated else LINE
    return _spaced(tree, before, part)


def _before_reason(tree: Tree, before: Part, part: Part) -> Separator:
    return LINE if part.kind == "reason" else SPACE


def _before_words(tree: Tree, before: Part, part: Part) -> Separator:
    return LINE if part.kind in _BREAKS_BEFORE else _spaced(tree, before, part)


def _range(layout: Layout, tree: Tree) -> None:
    layout.glued(tree)


def _field(layout: Layout, tree: Tree) -> None:
    layout.made.open(fill=True, indent=4)
    layout.parts(tree, _before_words)
    layout.made.close()


def _values(layout: Layout, tree: Tree) -> None:
    layout.made.open(fill=True)
    layout.parts(tree, _before_operator)
    layout.made.close()


def _argument(layout: Layout, tree: Tree) -> None:
    """Write ``k=5|10`` without spaces; a line may end after a `|`."""
    layout.made.open(fill=True)
    for part in tree.parts:
        if part is tree.parts[0]:
            layout.put(part)
        elif isinstance(part, Token):
            layout.put(part, GLUE)
        else:
            for inner in part.parts:
                bar = isinstance(inner, Token) and inner.kind == "|"
                layout.put(inner, LOOSE if bar else GLUE)
    layout.made.close()


def _amount(layout: Layout, tree: Tree) -> None:
    layout.made.open(fill=True, indent=2)
    layout.parts(tree, lambda tree, before, part: LINE if part.kind == "when" else SPACE)
    layout.made.close()


def _match(layout: Layout, tree: Tree) -> None:
    layout.made.open(fill=True, indent=2)
    layout.parts(tree, _spaced)
    layout.made.close()


_KINDS: Mapping[str, Callable[[Layout, Tree], None]] = {
    "tool": Layout.tool,
    "block": Layout.block,
    "model": Layout.model,
    "execute": Layout.model,
    "amount": _amount,
    "fields": Layout.listed,
    "gives": Layout.listed,
    "shape": Layout.listed,
    "record": Layout.listed,
    "object": Layout.listed,
    "alternatives": Layout.listed,
    "apply": Layout.listed,
    "pattern": Layout.listed,
    "same": Layout.listed,
    "privacy": Layout.listed,
    "given": Layout.statement,
    "learned": Layout.statement,
    "pass_": Layout.statement,
    "field": _field,
    "values": _values,
    "listed": Layout.filled,
    "listed_or_other": Layout.filled,
    "listed_range": _range,
    "signed": Layout.glued,
    "negative": Layout.glued,
    "member": Layout.glued,
    "maybe": Layout.glued,
    "any_number": Layout.glued,
    "some_number": Layout.glued,
    "repeat": Layout.glued,
    "nothing": Layout.glued,
    "argument": _argument,
    "group": Layout.grouped,
    "group_of_plans": Layout.grouped,
    "either": Layout.joined,
    "both": Layout.joined,
    "add": Layout.summed,
    "minus": Layout.summed,
    "times": Layout.summed,
    "within": Layout.summed,
    "since": Layout.summed,
    "compare": Layout.compared,
    "under": Layout.summed,
    "among": Layout.summed,
    "either_of": _values,
    "match": _match,
    "before": Layout.clauses,
    "finally_": Layout.clauses,
    "require": Layout.clause,
    "ask": Layout.clause,
    "forbid": Layout.statement,
    "owe": Layout.statement,
    "limit": Layout.statement,
    "per": Layout.filled,
    "let": Layout.filled,
    "rule": Layout.definition,
    "plan": Layout.definition,
    "choice": Layout.plans,
    "without": Layout.plans,
    "both_plans": Layout.plans,
    "sequence": Layout.sequence,
    "example": Layout.filled,
}
