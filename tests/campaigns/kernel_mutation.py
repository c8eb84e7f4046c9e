"""Each check in the kernel is needed: take one away at a time, and some quick test must fail.

    python -m tests.campaigns.kernel_mutation --processes 2
    python -m tests.campaigns.kernel_mutation --only replay/ --list

A mutant is the kernel with one check less: a call that refuses is not made, the condition of a
refusal is never true, one part of a condition is left out, or a bound is off by its own end.  The
changed module is put in the place of its file by the importer of a forked process, which then runs
the tests of that module, and, where those pass, all others of the list.  Each line of the output
names the test that saw its mutant.  A mutant that passes them all has survived: docs/trust.md says
of each why it may.  Before all mutants the tests are run on the kernel as it is: they have to pass,
or what a mutant fails says nothing.
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
    ("states", ("test_states.py", "rules", "test_upper.py", "test_kernel.py")),
    ("report", ("test_kernel.py",)),
    ("rules/", ("rules", "test_upper.py", "test_kernel.py")),
    ("corecheck", ("test_corecheck_upper.py", "test_corecheck.py")),
    ("residual/", ("test_corecheck_upper.py", "test_corecheck_statements.py", "test_corecheck.py")),
    ("ledger", ("test_ledger.py", "replay")),
    ("replay/", ("replay",)),
    ("", ("test_core_places.py", "test_core.py")),
)
OTHERS = ("tests/certs/rules", "tests/certs/test_states.py", "tests/certs/test_kernel.py",
          "tests/certs/test_upper.py", "tests/certs/test_core.py", "tests/forgery")  # fmt: skip
KERNEL = ("container", "codec", "manifest", "artifact", "automaton", "rules/", "states", "kernel",
          "core", "corecheck", "residual/", "expressions", "statements", "tools", "schema",
          "report")  # fmt: skip
MEMORY = 4 << 30
REFUSALS = ("ensure", "require", "refuse", "spend", "compare")
BOUNDS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One check less: the module's path, the line, what was done, and the changed tree."""

    module: str
    line: int
    how: str
    tree: ast.Module

    def __str__(self) -> str:
        return f"{self.module}.py:{self.line} {self.how}"


class First:
    """A plugin that keeps the name of the first test that fails, or of the file that does."""

    def __init__(self) -> None:
        self.name = ""

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    pytest_runtest_logreport = pytest_collectreport = _note


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
    if name == "add":  # of the findings of a validation
        return isinstance(call.func, ast.Attribute) and "findings" in ast.unparse(call.func.value)
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


def tests_of(module: str) -> list[str]:
    """The tests that know a module best."""
    return [f"tests/certs/{test}" for test in next(t for s, t in TESTS if module.startswith(s))]


def failing(suites: Sequence[Sequence[str]]) -> str:
    """The first test that fails, empty where none does.

    The kernel of this process is from now on the one that it has imported here.
    """
    for tests in suites:
        first = First()
        some = ["-x", "-q", "-p", "no:cacheprovider", *(str(ROOT / test) for test in tests)]
        code = pytest.main(some, plugins=[first])
        if code:
            return first.name or f"exit code {int(code)}"
    return ""


def start(mutant: Mutant | None, seconds: int, suites: Sequence[Sequence[str]]) -> tuple[int, int]:
    """A forked process: its id, and the pipe that it writes the name of the failing test to."""
    seen, told = os.pipe()
    child = os.fork()
    if child:
        os.close(told)
        return child, seen
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    sys.argv = ["pytest"]
    if mutant is not None:
        name = "tcc_certs." + mutant.module.replace("/", ".")
        importer = Importer(name, mutant.tree, PACKAGE / f"{mutant.module}.py")
        sys.meta_path.insert(0, importer)
    # A mutant that hangs, or wants all memory, ends here: that is seen as well.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    found = failing(suites)
    os.write(told, found.encode())
    os._exit(1 if found else 0)


def ended(running: dict[int, tuple[Mutant | None, int]]) -> tuple[Mutant | None, str]:
    """The next mutant that is done, and the test that saw it, empty where none did."""
    child, status = os.wait()
    mutant, seen = running.pop(child)
    with os.fdopen(seen, "rb") as pipe:
        name = pipe.read().decode()
    return mutant, "" if status == 0 else name or f"an end by signal {os.WTERMSIG(status)}"


def campaign(found: Sequence[Mutant], told: argparse.Namespace) -> list[Mutant]:
    """The survivors.

    Raises:
        SystemExit: a test fails without any mutant.
    """
    modules = sorted({mutant.module for mutant in found})
    others = () if told.near else OTHERS
    control = sorted({test for module in modules for test in tests_of(module)} | set(others))
    child, seen = start(None, 10 * told.seconds, [control])
    _, name = ended({child: (None, seen)})
    if name:
        raise SystemExit(f"fails without a mutant: {name}")
    running: dict[int, tuple[Mutant | None, int]] = {}
    survivors = []
    todo = list(reversed(found))
    while todo or running:
        while todo and len(running) < told.processes:
            mutant = todo.pop()
            suites = [tests_of(mutant.module)] + ([others] if others else [])
            child, seen = start(mutant, told.seconds, suites)
            running[child] = mutant, seen
        done, name = ended(running)
        if done is not None and not name:
            survivors.append(done)
        print(f"{done}: seen by {name}" if name else f"{done}: SURVIVED", flush=True)
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
            print(mutant)
        return 0
    begin = time.monotonic()
    survivors = campaign(found, told)
    print(f"{len(found)} mutants, {len(survivors)} survived, {time.monotonic() - begin:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
