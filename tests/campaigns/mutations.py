"""One check less: every mutant of a module of the trusted package, made of its syntax tree.

A check is a call that refuses, or a condition that leads to a ``raise``.  In the validator of
ledgers most checks are no refusals: a record is *compared* with the one that is expected.  There a
mutant also leaves out any call made for its effect, a member of a written-out dict (a field of an
expected record, a format, a code), a guard, any part of any condition; or it makes any condition
never true, moves any bound by its own end, lets a function that may answer None do so, or makes the
comparison of records blind to one field.

The rules of proofs and of cyclic automata also refuse by an answer.  There a mutant also changes a
condition that leads to a constant answer (False, None, a reason) or to `continue`, leaves out a
part of an answer that joins conditions, moves a bound in it, or leaves out the guard of a case.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

PACKAGE = Path(__file__).parents[2] / "certs" / "tcc_certs"
Change: TypeAlias = Callable[[ast.AST], None]  # of the twin of a node, in a copy of the tree

# Beginnings of the modules whose checks are comparisons.
COMPARING = ("replay/", "formats/ledger")
# Beginnings of the modules whose checks are answers.
DECIDING = ("proof/", "cyclic_rules")
REFUSALS = ("ensure", "require", "refuse", "spend", "compare")
BOUNDS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One check less: a module and the change to one node of its syntax tree.

    Attributes:
        module: its path in the package, without `.py`.
        function: name of the function, or of the class and the method, that the change is in; empty
            if a process that has imported the module cannot take the change over.
        text: the module as it is.
        at: the number of the node in `ast.walk`.
    """

    module: str
    line: int
    how: str
    function: str
    text: str
    at: int
    change: Change

    @property
    def tree(self) -> ast.Module:
        """The changed tree."""
        copy = ast.parse(self.text)
        self.change(next(node for i, node in enumerate(ast.walk(copy)) if i == self.at))
        return ast.fix_missing_locations(copy)

    def __str__(self) -> str:
        return f"{self.module}.py:{self.line} {self.how}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of one file."""
    module = path.relative_to(PACKAGE).as_posix().removesuffix(".py")
    text = path.read_text()
    tree = ast.parse(text)
    found = changes
    if module.startswith(COMPARING):
        found = changes_compared
    elif module.startswith(DECIDING):
        found = changes_decided
    for at, node in enumerate(ast.walk(tree)):
        for how, change in found(node):
            line = line_of(node)
            yield Mutant(
                module=module,
                line=line,
                how=f"{how}: {shown(text, node)}",
                function=function_at(tree, line),
                text=text,
                at=at,
                change=change,
            )


def line_of(node: ast.AST) -> int:
    """The line of a node; 0: it has none."""
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    return node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 0)


def shown(text: str, node: ast.AST) -> str:
    """The beginning of the node's source."""
    return " ".join((ast.get_source_segment(text, node) or "").split())[:90]


def function_at(tree: ast.Module, line: int) -> str:
    """The outermost function around a line, by its qualified name; empty within an inner one.

    An inner function may have been made already, and would keep its code; one that calls the method
    that it stands for has a cell more than it has without.
    """
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        for member in inner:
            if isinstance(member, ast.FunctionDef) and _spans(member, line):
                inside = [part for part in ast.walk(member) if part is not member]
                names = [part.id for part in inside if isinstance(part, ast.Name)]
                if "super" in names or any(_spans(part, line) for part in inside):
                    return ""
                return member.name if member is node else f"{node.name}.{member.name}"
    return ""


def _spans(node: ast.AST, line: int) -> bool:
    is_function = isinstance(node, ast.FunctionDef | ast.Lambda)
    return is_function and node.lineno <= line <= (node.end_lineno or 0)


def changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """What may be done to a node, as (a name, a function on its twin)."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _refuses(node.value):
        yield "not made", _not_made
        if _name(node.value) == "ensure":
            yield from _weaker(node.value.args[0], lambda twin: twin.value.args[0])
    if isinstance(node, ast.If) and any(isinstance(inner, ast.Raise) for inner in node.body):
        yield "never", _never
        yield from _weaker(node.test, lambda twin: twin.test)


def changes_decided(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """The same in a module whose functions answer a constant where a rule does not apply."""
    yield from changes(node)
    match node:
        case ast.If(body=[*_, ast.Return(value=None | ast.Constant() | ast.JoinedStr())]):
            yield "never", _never
            yield from _weaker(node.test, lambda twin: twin.test)
        case ast.If(body=[ast.Continue()]):
            yield from _weaker(node.test, lambda twin: twin.test)
        case ast.Return(value=ast.BoolOp(op=ast.And()) | ast.Compare()):
            yield from _weaker(node.value, lambda twin: twin.value)
        case ast.match_case(pattern=pattern, guard=ast.expr() as guard) if not isinstance(
            pattern, ast.MatchAs
        ):
            name = f"{ast.unparse(pattern)} if {ast.unparse(guard)}"
            yield f"guard left out of {name[:90]}", lambda twin: setattr(twin, "guard", None)


def _weaker(test: ast.expr, of: Callable[[ast.AST], ast.expr]) -> Iterator[tuple[str, Change]]:
    """Parts of a condition left out, bounds in it moved."""
    for at, node in enumerate(ast.walk(test)):
        for how, change in [*_parts(node, at == 0), *_bounds(node)]:

            def inside(twin: ast.AST, at: int = at, change: Change = change) -> None:
                change(list(ast.walk(of(twin)))[at])

            yield how, inside


def changes_compared(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """The same in a module that compares."""
    match node:
        case ast.Expr(value=ast.Call()):
            yield "not made", _not_made
        case ast.If() | ast.IfExp():
            yield "never", _never
        case ast.BinOp(left=ast.List(), op=ast.Mult()):
            yield "no guard", lambda twin: setattr(twin, "left", ast.List([], ast.Load()))
        case ast.Dict():
            for at, key in enumerate(node.keys):
                name = ast.unparse(key if key is not None else node.values[at])
                yield f"{name} left out", lambda twin, at=at: _without(twin, at)
        case ast.FunctionDef(name="compare"):
            for name in _fields():
                yield f"blind to {name}", lambda twin, name=name: _blind(twin, name)
        case ast.FunctionDef(returns=ast.BinOp(right=ast.Constant(value=None))):
            for at, inner in enumerate(ast.walk(node)):
                if isinstance(inner, ast.Return) and not _is_none(inner.value):
                    name = ast.unparse(inner)
                    yield f"None for {name}", lambda twin, at=at: _answers_none(twin, at)
    yield from _parts(node, True)
    yield from _bounds(node)


def _parts(node: ast.AST, wanted: bool) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.BoolOp) and wanted:
        neutral = isinstance(node.op, ast.And)
        for at in range(len(node.values)):

            def without(twin: ast.AST, at: int = at) -> None:
                twin.values[at] = ast.Constant(neutral)

            yield f"part {at} left out", without


def _bounds(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.Compare):
        for place, op in enumerate(node.ops):
            if type(op) in BOUNDS:

                def moved(twin: ast.AST, place: int = place, op: ast.cmpop = op) -> None:
                    twin.ops[place] = BOUNDS[type(op)]()

                yield f"bound {place} moved in {ast.unparse(node)[:60]}", moved


def _not_made(twin: ast.AST) -> None:
    twin.value = ast.Constant(None)


def _never(twin: ast.AST) -> None:
    twin.test = ast.Constant(False)


def _without(twin: ast.AST, at: int) -> None:
    del twin.keys[at], twin.values[at]


def _answers_none(twin: ast.AST, at: int) -> None:
    list(ast.walk(twin))[at].value = ast.Constant(None)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _blind(twin: ast.AST, field: str) -> None:
    """A comparison of `due` and `found` that starts by dropping a field of both."""
    lines = [f"{name} = {{k: v for k, v in {name}.items() if k != {field!r}}}"
             for name in ("due", "found")]  # fmt: skip
    twin.body[1:1] = ast.parse("\n".join(lines)).body


@cache
def _fields() -> Sequence[str]:
    """All fields that a record after the header may have: the keys of the schema's tables.

    Those of the header are not compared as a record is.
    """
    tree = ast.parse((PACKAGE / "formats" / "ledger_schema.py").read_text())
    pairs = [pair for node in ast.walk(tree) if isinstance(node, ast.Dict) for pair in _pairs(node)]
    header = {id(inner) for key, table in pairs if key == "open" for inner in ast.walk(table)}
    named = {key for key, value in pairs if isinstance(value, ast.Name) and id(value) not in header}
    return sorted(named)


def _pairs(table: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value, value


def _name(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _refuses(call: ast.Call) -> bool:
    name = _name(call).lstrip("_")
    if name == "add":  # of the findings of a validation
        return isinstance(call.func, ast.Attribute) and "findings" in ast.unparse(call.func.value)
    return name in REFUSALS or name.startswith(("check_", "ensure_", "require_", "refuse"))
