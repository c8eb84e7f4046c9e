"""Each part of the definition is needed: change it, and a test of the policies must fail.

    python -m tests.campaigns.meaning_mutation --processes 2

A mutant of ``policy/meaning.py`` or ``policy/history.py`` turns a comparison around or moves its
bound, takes a part from a condition, takes one branch only, drops a case, a member of a set, a
statement or a `not`, or replaces a constant, a sign or an end of an interval.  The machinery is
that of :mod:`tests.campaigns.kernel_mutation`.  `EQUIVALENT` lists the mutants that no test can
see, each with the reason; the exit code is 1 if another one survives or one of these is seen.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from tests.campaigns import kernel_mutation
from tests.campaigns.kernel_mutation import unseen_when_imported, unseen_when_loaded
from tests.campaigns.mutations import PACKAGE, Change, Mutant, function_at, line_of, shown

MODULES = ("policy/meaning.py", "policy/history.py")
TESTS = [
    [
        "certs/policy/test_rules.py",
        "certs/policy/test_meaning.py",
        "certs/policy/test_history.py",
        "certs/policy/test_digested.py",
    ],
    ["oracle_meaning"],
]
# Mutants that no test can see, by their function and text, with the reason.
_LISTED = json.loads((Path(__file__).parent / "meaning_equivalent.json").read_text("utf-8"))
EQUIVALENT = {(one["function"], one["how"]): one["why"] for one in _LISTED}

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
_SIGNS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every mutant of a module."""
    text = (PACKAGE / module).read_text()
    tree = ast.parse(text)
    skipped = set(_skipped(tree))
    defaults = {
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.arguments)
        for one in (*node.defaults, *node.kw_defaults)
        if one
        for part in ast.walk(one)
    }
    for at, node in enumerate(ast.walk(tree)):
        if node in skipped:
            continue
        outside = node in defaults
        for how, change in changes(node):
            line = line_of(node)
            yield Mutant(
                module=module.removesuffix(".py"),
                line=line,
                how=f"{how}: {shown(text, node)}",
                function="" if outside else function_at(tree, line),
                text=text,
                at=at,
                change=change,
            )


def _skipped(tree: ast.Module) -> Iterator[ast.AST]:
    """Parts without a meaning of their own: annotations, texts, decorators, `strict` of `zip`."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = [*getattr(node, "decorator_list", ())]
        match node:
            case ast.FunctionDef():
                arguments = node.args.args + node.args.kwonlyargs
                parts += [node.returns, *[one.annotation for one in arguments]]
                if "Truth" not in ast.unparse(node.returns or ast.Constant(None)):
                    yield from [one for one in ast.walk(node) if isinstance(one, ast.Return)]
            case ast.AnnAssign():
                parts += [node.annotation]
                parts += [node.value] if ast.unparse(node.annotation) == "TypeAlias" else []
            case ast.ClassDef(bases=[ast.Name(id="Protocol")]):
                parts += [node]
            case (
                ast.keyword(arg="strict") | ast.Raise() | ast.Import() | ast.ImportFrom()
                | ast.Expr(value=ast.Constant())
            ):  # fmt: skip
                parts += [node]
        for part in parts:
            if part is not None:
                yield from ast.walk(part)


def changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """What may be done to a node, as a name and a function on its twin."""
    match node:
        case ast.Compare():
            for place, op in enumerate(node.ops):
                for other in _COMPARED[type(op)]:
                    yield f"{other.__name__} at {place}", _compared(place, other)
        case ast.BoolOp():
            neutral = isinstance(node.op, ast.And)
            for at in range(len(node.values)):
                yield f"part {at} left out", _replaced("values", at, ast.Constant(neutral))
        case ast.UnaryOp(op=ast.Not()):
            yield "not left out", _unnegated
        case ast.UnaryOp(op=ast.USub()):
            yield "sign left out", _set("op", ast.UAdd())
        case ast.BinOp() if type(node.op) in _SIGNS:
            yield "another sign", _set("op", _SIGNS[type(node.op)]())
        case ast.AugAssign():
            yield "not done", _to_pass
        case ast.If() | ast.IfExp() | ast.While():
            yield "never", _set("test", ast.Constant(False))
            if not isinstance(node, ast.While):
                yield "always", _set("test", ast.Constant(True))
        case ast.match_case(pattern=pattern) if not isinstance(pattern, ast.MatchAs):
            yield "case left out", _set("guard", ast.Constant(False))
        case ast.Constant(value=bool(value)):
            yield f"{not value} for {value}", _set("value", not value)
        case ast.Constant(value=None):
            yield "True for None", _set("value", True)
            yield "False for None", _set("value", False)
        case ast.Constant(value=int(value)):
            yield f"{value + 1} for {value}", _set("value", value + 1)
        case ast.Tuple(elts=elements, ctx=ast.Load()) | ast.Set(elts=elements):
            if len(elements) > 1 and all(isinstance(one, ast.Constant) for one in elements):
                for at in range(len(elements)):
                    yield f"member {at} left out", _removed("elts", at)
        case ast.Expr(value=ast.Call()):
            yield "not made", _set("value", ast.Constant(None))
        case ast.Continue() | ast.Break():
            yield "not done", _to_pass
        case ast.Name(id=name, ctx=ast.Load()) if name in _TWINS:
            yield f"{_TWINS[name]} for {name}", _set("id", _TWINS[name])
        case ast.Return(value=value) if value is not None and ast.unparse(value) != "None":
            yield "None returned", _set("value", ast.Constant(None))
        case ast.Starred():
            yield "left out", _set("value", ast.Tuple([], ast.Load()))
        case ast.comprehension(ifs=tests) if tests:
            for at in range(len(tests)):
                yield f"test {at} left out", _replaced("ifs", at, ast.Constant(True))


def _set(name: str, value: object) -> Change:
    def change(twin: ast.AST) -> None:
        setattr(twin, name, value)

    return change


def _compared(place: int, other: type[ast.cmpop]) -> Change:
    def change(twin: ast.AST) -> None:
        twin.ops[place] = other()  # type: ignore[attr-defined]

    return change


def _replaced(name: str, at: int, value: ast.AST) -> Change:
    def change(twin: ast.AST) -> None:
        getattr(twin, name)[at] = value

    return change


def _removed(name: str, at: int) -> Change:
    def change(twin: ast.AST) -> None:
        del getattr(twin, name)[at]

    return change


def _unnegated(twin: ast.AST) -> None:
    """A double negation has the truth of what it negates."""
    twin.operand = ast.UnaryOp(ast.Not(), twin.operand)  # type: ignore[attr-defined]


def _to_pass(twin: ast.AST) -> None:
    """The statement does nothing; its class is that of `pass`."""
    twin.__class__ = ast.Pass  # type: ignore[assignment]


def main() -> int:
    """The command line: 0 if exactly the mutants of `EQUIVALENT` survive, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=60, help="for the tests of a mutant")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="beginnings of modules or functions"
    )
    parser.add_argument("--list", action="store_true", help="name the mutants, and run nothing")
    told = parser.parse_args()
    told.suites = None
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    kernel_mutation.TESTS = [("policy/", TESTS), *kernel_mutation.TESTS]
    only = tuple(told.only)
    found = [
        mutant
        for module in MODULES
        for mutant in mutants_of(module)
        if module.startswith(only) or mutant.function.startswith(only)
    ]
    if told.list:
        print(*[f"{mutant.function} {mutant}" for mutant in found], sep="\n")
        return 0
    begin = time.monotonic()
    survivors = unseen_when_loaded([m for m in found if m.function], told)
    survivors += unseen_when_imported([m for m in found if not m.function], told)
    names = {(mutant.function, mutant.how) for mutant in survivors}
    wrong = sorted(names ^ EQUIVALENT.keys()) if told.only == [""] else sorted(names)
    print(*wrong, sep="\n")
    took = time.monotonic() - begin
    print(f"{len(found)} mutants, {len(survivors)} survived, {len(wrong)} wrong, {took:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
