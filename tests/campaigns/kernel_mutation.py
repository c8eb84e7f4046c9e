"""Each check in the kernel is needed: take one away at a time, and some quick test must fail.

    python -m tests.campaigns.kernel_mutation --processes 2
    python -m tests.campaigns.kernel_mutation --only replay/ --list

A mutant is the kernel with one check less: a call that refuses is not made, the condition of a
refusal is never true, one part of a condition is left out, or a bound is off by its own end.  The
changed module is put in the place of its file by the importer of a forked process, which then runs
the tests of that module, and, where those pass, all others of the list.  A mutant that passes them
all has survived: docs/trust.md says of each why it may.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "certs" / "tcc_certs"
# By the beginning of a module's path: the tests that know it best, the quickest first.
TESTS: Sequence[tuple[str, Sequence[str]]] = (
    ("container", ("test_container.py",)),
    ("codec", ("test_codec.py",)),
    ("manifest", ("test_manifest.py", "test_upper.py", "test_kernel.py")),
    ("artifact", ("test_manifest.py", "test_upper.py", "test_kernel.py")),
    ("kernel", ("rules", "test_upper.py", "test_kernel.py")),
    ("report", ("test_kernel.py",)),
    ("rules/", ("rules", "test_upper.py", "test_kernel.py")),
    ("corecheck", ("test_corecheck_upper.py", "test_corecheck.py")),
    ("residual/", ("test_corecheck_upper.py", "test_corecheck_statements.py", "test_corecheck.py")),
    ("ledger", ("test_ledger.py", "replay")),
    ("replay/", ("replay",)),
    ("", ("test_core_places.py", "test_core.py")),
)
OTHERS = ("tests/certs/rules", "tests/certs/test_kernel.py", "tests/certs/test_upper.py",
          "tests/certs/test_core.py", "tests/forgery")  # fmt: skip
KERNEL = ("container", "codec", "manifest", "artifact", "automaton", "rules/", "kernel", "core",
          "corecheck", "residual/", "expressions", "statements", "tools", "schema",
          "report")  # fmt: skip
MEMORY = 4 << 30
REFUSALS = ("ensure", "require", "refuse", "spend")
BOUNDS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One check less: the module's path, the line, what was done, and the changed tree."""

    module: str
    line: int
    how: str
    tree: ast.Module


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of one file."""
    module = path.relative_to(PACKAGE).as_posix().removesuffix(".py")
    text = path.read_text()
    tree = ast.parse(text)
    for at, node in enumerate(ast.walk(tree)):
        for how, change in changes(node):
            copy = deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(copy)) if i == at)
            change(twin)
            ast.fix_missing_locations(copy)
            source = " ".join((ast.get_source_segment(text, node) or "").split())[:90]
            line = getattr(node, "lineno", 0)
            yield Mutant(module=module, line=line, how=f"{how}: {source}", tree=copy)


def changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """What may be done to a node, as (a name, a function on its twin)."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _refuses(node.value):
        yield "not made", lambda twin: setattr(twin, "value", ast.Constant(None))
        if _name(node.value) == "ensure":
            yield from _weaker(node.value.args[0], lambda twin: twin.value.args, 0)
    if isinstance(node, ast.If) and any(isinstance(inner, ast.Raise) for inner in node.body):
        yield "never", lambda twin: setattr(twin, "test", ast.Constant(False))
        yield from _weaker(node.test, None, "test")


def _weaker(test: ast.expr, inside, name) -> Iterator[tuple[str, object]]:
    """Parts of a condition left out, bounds moved by their own end."""

    def of(twin: ast.AST) -> ast.expr:
        return inside(twin)[name] if inside else twin.test

    if isinstance(test, ast.BoolOp):
        for at in range(len(test.values)):
            yield f"part {at} left out", lambda twin, at=at: of(twin).values.pop(at)
    for at, node in enumerate(ast.walk(test)):
        if isinstance(node, ast.Compare):
            for place, op in enumerate(node.ops):
                if type(op) in BOUNDS:
                    other = BOUNDS[type(op)]

                    def moved(twin: ast.AST, at=at, place=place, other=other) -> None:
                        list(ast.walk(of(twin)))[at].ops[place] = other()

                    yield f"bound {place} moved", moved


def _name(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _refuses(call: ast.Call) -> bool:
    name = _name(call).lstrip("_")
    return name in REFUSALS or name.startswith(("check_", "ensure_", "require_", "refuse"))


class Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module from a tree, in the place of its file."""

    def __init__(self, name: str, tree: ast.Module, path: Path) -> None:
        self.name = name
        self.code = compile(tree, str(path), "exec")

    def find_spec(self, fullname: str, path: object, target: object = None):
        if fullname == self.name:
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def fails(mutant: Mutant, near: bool) -> bool:
    """Whether a test fails, with `near` of those of its module alone.

    The kernel of this process is the mutant from now on.
    """
    name = "tcc_certs." + mutant.module.replace("/", ".")
    sys.meta_path.insert(0, Importer(name, mutant.tree, PACKAGE / f"{mutant.module}.py"))
    known = next(tests for start, tests in TESTS if mutant.module.startswith(start))
    known = [f"tests/certs/{test}" for test in known]
    some = ["-x", "-q", "-p", "no:cacheprovider"]
    for tests in (known,) if near else (known, OTHERS):
        code = pytest.main([*some, *(str(ROOT / test) for test in tests)])
        if code:
            return True
    return False


def start(mutant: Mutant, seconds: int, near: bool) -> int:
    """A forked process whose exit code is 1 where a test fails."""
    child = os.fork()
    if child:
        return child
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    sys.argv = ["pytest"]
    # A mutant that hangs, or wants all memory, ends here: that is seen as well.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os._exit(1 if fails(mutant, near) else 0)


def campaign(found: Sequence[Mutant], processes: int, seconds: int, near: bool) -> list[Mutant]:
    """The survivors."""
    running: dict[int, Mutant] = {}
    survivors = []
    done = 0
    todo = list(reversed(found))
    while todo or running:
        while todo and len(running) < processes:
            mutant = todo.pop()
            running[start(mutant, seconds, near)] = mutant
        child, status = os.wait()
        mutant = running.pop(child)
        done += 1
        if status == 0:
            survivors.append(mutant)
            print(f"survived: {mutant.module}.py:{mutant.line} {mutant.how}", flush=True)
        if done % 20 == 0:
            print(f"{done} of {len(found)}", file=sys.stderr, flush=True)
    return survivors


def main() -> int:
    """The command line: 0 without survivors, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=120, help="of a mutant's tests")
    parser.add_argument("--only", nargs="+", default=KERNEL, help="beginnings of modules' paths")
    parser.add_argument("--near", action="store_true", help="a module's own tests and no others")
    parser.add_argument("--list", action="store_true", help="name the mutants, and run nothing")
    told = parser.parse_args()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # most of the time, and of no use here
    paths = sorted(PACKAGE.rglob("*.py"))
    found = [
        mutant
        for path in paths
        if path.relative_to(PACKAGE).as_posix().startswith(tuple(told.only))
        for mutant in mutants(path)
    ]
    if told.list:
        for mutant in found:
            print(f"{mutant.module}.py:{mutant.line} {mutant.how}")
        return 0
    begin = time.monotonic()
    survivors = campaign(found, told.processes, told.seconds, told.near)
    print(f"{len(found)} mutants, {len(survivors)} survived, {time.monotonic() - begin:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
