"""Each check of the trusted package is needed: take one away, and some quick test must fail.

    python -m tests.campaigns.kernel_mutation --processes 2
    python -m tests.campaigns.kernel_mutation --only proof/ cyclic_rules --suites 1 --processes 1

:mod:`tests.campaigns.mutations` defines the mutants, and `TESTS` the tests of each module.  Each
line of the output names the test that noticed a mutant.  A mutant that all tests of its module
pass has survived.  `kernel_equivalent.json` lists survivors that change no verdict, with the
reason, and MUTANTS.md has the figures.  The tests run on the unchanged package first: if one of
them fails, a failure with a mutant shows nothing.

A mutant inside a function replaces the code of that function in a fork of a process that has
collected and run the tests.  Only tests that enter the function run.  Tests that are quick, and
that have noticed many mutants, run first.  Each test has a limit of processor time.  Other mutants
replace their module in a new import.
"""

from __future__ import annotations

import argparse
import gc
import importlib.abc
import importlib.machinery
import json
import os
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import TypeAlias

import pytest
from _pytest.runner import runtestprotocol

from tests.campaigns.mutations import PACKAGE, Mutant, mutants

ROOT = Path(__file__).parents[2]
Suites: TypeAlias = Sequence[Sequence[str]]

REPLAYS: Suites = (
    ["certs/replay/test_validate.py", "certs/replay/test_checks.py"],
    ["forgery/test_every_field.py", "forgery/test_header_forgeries.py"],
    ["certs/replay", "forgery/test_rest_forgeries.py", "forgery/test_ledger_mode_forgeries.py"],
    ["forgery/test_range_forgeries.py", "forgery/test_after_close.py"],
    [
        "certs/test_enclosures.py",
        "certs/test_race.py",
        "certs/test_for_gates.py",
        "runtime/test_adapters.py",
        "cli/test_privacy.py",
        "differential/test_after.py",
    ],
    ["forgery/test_privacy_forgeries.py", "forgery/test_account_forgeries.py"],
)
WHOLE = ("certs/test_upper.py", "certs/test_kernel.py")
ENDLESS = ["certs/test_for_gates.py", "certs/test_cyclic_forgeries.py", "certs/test_cyclic.py"]
FORMS = ["certs/test_codec.py", "certs/test_ledger_forms.py", "certs/test_record_tables.py"]
WALKS: Suites = (
    ["certs/test_corecheck.py", "certs/test_corecheck_statements.py"],
    ["certs/test_corecheck_strict.py", "certs/test_corecheck_upper.py"],
    ["certs/test_corecheck_random.py"],
)
STEPS = ["exact/test_refused_steps.py", "exact/test_refused_facts.py", "exact/test_rows.py",
         "exact/test_bounds.py"]  # fmt: skip
FORGED = ["exact/test_forged.py", "exact/test_forged_plans.py"]
# By the beginning of a module's path: its tests in suites, the quickest suite first.
TESTS: Sequence[tuple[str, Suites]] = (
    ("formats/container", [["certs/test_container.py"]]),
    ("formats/codec", [["certs/test_codec.py", "certs/test_plain.py"],
                       ["certs/policy/test_reader_tables.py", *FORMS], ["certs/values"]]),
    ("formats/artifact", [["certs/test_manifest.py", "certs/test_manifest_tables.py"], WHOLE,
                          ENDLESS]),
    ("formats/schema", [["certs/test_manifest.py", "certs/test_manifest_tables.py"],
                        ["certs/policy/test_reader_tables.py", *FORMS]]),
    ("formats/ledger", [["certs/test_ledger.py", "certs/test_ledger_forms.py", *REPLAYS[0]],
                        *REPLAYS[1:]]),
    ("state_rules", [["certs/test_state_rules.py", "certs/rules"], WHOLE, ENDLESS]),
    ("cyclic_rules", [["certs/test_cyclic_forgeries.py"], ["certs/test_cyclic.py"]]),
    ("kernel", [["certs/rules"], WHOLE, ENDLESS, ["certs/test_corecheck_strict.py"]]),
    ("rounded", [["certs/rules"], WHOLE]),
    ("call_rules", [["certs/rules"], WHOLE, ["certs/test_corecheck_strict.py"]]),
    ("strict", [["certs/rules"], WHOLE, ["certs/test_corecheck_strict.py"]]),
    ("corecheck/", WALKS),
    ("replay/", REPLAYS),
    ("proof/implication", [["exact/test_implication.py"]]),
    ("proof/ends", [STEPS, ["exact/test_forged_plans.py"], ["exact/test_planned.py"]]),
    ("proof/plans", [STEPS, FORGED, ["exact/test_planned.py"]]),
    ("proof/", [STEPS, FORGED, ["exact/test_rules.py", "exact/test_near_misses.py"],
                ["exact/test_listed.py", "exact/test_asked.py", "exact/test_oracle.py"]]),
    ("policy/reader", [["certs/policy/test_reader_tables.py", "certs/policy/test_reader.py"]]),
    ("policy/kinds", [["certs/policy/test_kinds.py"], ["certs/policy"]]),
    ("policy/", [["certs/policy"]]),
    ("values/", [["certs/values"]]),
)  # fmt: skip
KERNEL = ("formats/container", "formats/codec", "formats/artifact", "formats/schema",
          "call_rules", "state_rules", "cyclic_rules", "rounded", "strict", "kernel",
          "corecheck/", "proof/")  # fmt: skip
# Mutants that change no verdict, by module, function and change, with the reason.
_LISTED = json.loads((Path(__file__).parent / "kernel_equivalent.json").read_text("utf-8"))
EQUIVALENT = {(one["module"], one["function"], one["how"]): one["why"] for one in _LISTED}
MEMORY = 4 << 30
FAULT = 2  # exit status of a process that could not run its tests


class First:
    """A plugin that keeps the name of the first test that fails, or of the file that does."""

    def __init__(self) -> None:
        self.name = ""

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    pytest_runtest_logreport = pytest_collectreport = _note


class Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module from its code, in the place of its file."""

    def __init__(self, name: str, code: CodeType) -> None:
        self.name = name
        self.code = code

    def find_spec(self, fullname: str, path: object, target: object = None):
        if fullname == self.name:
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def module_name(mutant: Mutant) -> str:
    """What the mutant's module is imported as."""
    return "tcc_certs." + mutant.module.replace("/", ".").removesuffix(".__init__")


def import_in_place(mutant: Mutant, code: CodeType) -> None:
    """The module will be imported from `code`; it was not imported before."""
    sys.meta_path.insert(0, Importer(module_name(mutant), code))


def put_in_place(mutant: Mutant, code: CodeType) -> None:
    """The function that the mutant changes, in a module that was imported before, has new code."""
    found: object = sys.modules[module_name(mutant)]
    for name in mutant.function.split("."):
        found, code = vars(found)[name], named_in(code, name)
    if hasattr(found, "cache_clear"):
        found.cache_clear()  # of what it said before it was changed
    found = getattr(found, "fget", None) or getattr(found, "__wrapped__", found)
    if not isinstance(found, FunctionType):
        raise SystemExit(f"no function: {mutant}")
    found.__code__ = code


def named_in(code: CodeType, name: str) -> CodeType:
    """The code of a function or class within `code`."""
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def failing(suites: Suites, seconds: int) -> str:
    """The first test that fails, empty where none does; each suite has that long."""
    for tests in suites:
        # A mutant that hangs, or wants all memory, ends here: that is seen as well.
        limit_time(seconds)
        first = First()
        some = ["-x", "-q", "-p", "no:cacheprovider", *(str(ROOT / "tests" / t) for t in tests)]
        code = pytest.main(some, plugins=[first])
        if code:
            return first.name or f"exit code {int(code)}"
    return ""


def silence() -> None:
    """Nothing more is printed by this process."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    sys.argv = ["pytest"]


class Loaded:
    """A plugin: the tests are collected and run once, then again for each mutant in a fork of it.

    Attributes:
        name: the first test that fails without a mutant; empty where all pass.
        left: mutants that no test sees.
    """

    def __init__(self, found: Sequence[Mutant], told: argparse.Namespace, output: int) -> None:
        self.name = ""
        self.left: list[Mutant] = []
        self._found = found
        self._told = told
        self._output = output
        self._took: dict[pytest.Item, float] = {}
        self._entered: dict[pytest.Item, set[str]] = {}
        self._sharp: Counter[str] = Counter()  # the tests that have seen mutants, and how many

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Takes the place of pytest's own loop."""
        self.name = self._run_once(session.items)
        os.dup2(self._output, 1)
        gc.collect()
        gc.freeze()  # a fork that collects garbage copies all of its memory
        if not self.name:
            self.left = unseen(self._found, self._start, self._told, self._sharp)
        return True

    def _run_once(self, items: Sequence[pytest.Item]) -> str:
        """Runs each test without a mutant: what it takes, and the functions that it enters."""
        package = str(PACKAGE)

        def note(frame: FrameType, event: str, arg: object) -> None:
            code = frame.f_code
            if code.co_filename.startswith(package):
                entered.add(key(code.co_filename, code.co_qualname))

        for item, following in pairwise([*items, None]):
            assert item is not None
            entered = self._entered[item] = set()
            begin = time.process_time()
            threading.settrace(note)
            sys.settrace(note)
            failed = fails(item, following)
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            self._took[item] = time.process_time() - begin
            if failed:
                return item.nodeid
        return ""

    def _start(self, mutant: Mutant) -> tuple[int, int]:
        return start(mutant, lambda: self._first_failing(mutant))

    def _first_failing(self, mutant: Mutant) -> str:
        """The first test that fails with the mutant in its place; empty where none does."""
        put_in_place(mutant, compile(mutant.tree, f"{mutant.module}.py", "exec"))
        changed = key(f"{PACKAGE}/{mutant.module}.py", mutant.function)
        files = {
            ROOT / "tests" / t for suite in suites_of(mutant.module, self._told) for t in suite
        }
        tests = [
            item
            for item in sorted(
                self._took, key=lambda i: self._took[i] / (1 + self._sharp[i.nodeid])
            )
            if changed in self._entered[item] and files & {item.path, *item.path.parents}
        ]
        for item, following in pairwise([*tests, None]):
            assert item is not None
            limit_time(self._told.seconds)
            if fails(item, following):
                return item.nodeid
        return ""


def key(path: str, function: str) -> str:
    """A module and its function, or class and method; an inner function counts for its outer."""
    return f"{path}:{function.partition('.<locals>')[0]}"


def fails(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Runs one test with its fixtures, which stay for the test that follows where they can."""
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def limit_time(seconds: int) -> None:
    """This process ends after so much more processor time: a mutant that hangs is seen as well."""
    until = int(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))


def start(mutant: Mutant | None, tests: Callable[[], str]) -> tuple[int, int]:
    """A forked process: its id, and the pipe that it writes the name of the failing test to."""
    seen, told = os.pipe()
    child = os.fork()
    if child:
        os.close(told)
        return child, seen
    silence()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        found = tests()
    except BaseException as error:  # a survivor must not be an error of the machinery
        os.write(told, repr(error).encode())
        os._exit(FAULT)
    os.write(told, found.encode())
    os._exit(1 if found else 0)


def ended(running: dict[int, tuple[Mutant | None, int]]) -> tuple[Mutant | None, str]:
    """The next mutant that is done, and the test that saw it, empty where none did.

    Raises:
        SystemExit: its process failed before the tests did.
    """
    child, status = os.wait()
    mutant, seen = running.pop(child)
    with os.fdopen(seen, "rb") as pipe:
        name = pipe.read().decode()
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == FAULT:
        raise SystemExit(f"{mutant}: no test was run: {name}")
    return mutant, "" if status == 0 else name or f"an end by signal {os.WTERMSIG(status)}"


def unseen(
    found: Sequence[Mutant],
    begin: Callable[[Mutant], tuple[int, int]],
    told: argparse.Namespace,
    sharp: Counter[str],
) -> list[Mutant]:
    """Those that no test sees; `sharp` counts by each test how many it has seen."""
    running: dict[int, tuple[Mutant | None, int]] = {}
    left = []
    todo = list(reversed(found))
    while todo or running:
        while todo and len(running) < told.processes:
            mutant = todo.pop()
            child, seen = begin(mutant)
            running[child] = mutant, seen
        done, name = ended(running)
        if done is not None and not name:
            left.append(done)
        sharp.update([name] if name else [])
        print(f"{done}: seen by {name}" if name else f"{done}: SURVIVED", flush=True)
    return left


def unseen_when_loaded(found: Sequence[Mutant], told: argparse.Namespace) -> list[Mutant]:
    """Those that no test sees in processes forked from one that has run the tests already.

    Its honest runs are made once: what writes them is not changed, and none of it in the kernel.

    Raises:
        SystemExit: a test fails without any mutant.
    """
    if not found:
        return []
    seen, answer = os.pipe()
    child = os.fork()
    if not child:
        output = os.dup(1)
        silence()
        loaded = Loaded(found, told, output)
        tests = [str(ROOT / "tests" / name) for suite in control(found, told) for name in suite]
        code = pytest.main(["-q", "-s", "-p", "no:cacheprovider", *tests], plugins=[loaded])
        name = loaded.name or (f"exit code {int(code)}" if code else "")
        sys.stdout.flush()
        left = [found.index(mutant) for mutant in loaded.left]
        os.write(answer, json.dumps([name, left]).encode())
        os._exit(0)
    os.close(answer)
    with os.fdopen(seen, "rb") as pipe:
        name, left = json.load(pipe)
    os.waitpid(child, 0)
    if name:
        raise SystemExit(f"fails without a mutant: {name}")
    return [found[at] for at in left]


def unseen_when_imported(found: Sequence[Mutant], told: argparse.Namespace) -> list[Mutant]:
    """Those that no test sees in processes that import package and tests themselves.

    Raises:
        SystemExit: a test fails without any mutant.
    """
    if not found:
        return []

    def begin(mutant: Mutant) -> tuple[int, int]:
        def tests() -> str:
            import_in_place(mutant, compile(mutant.tree, f"{mutant.module}.py", "exec"))
            return failing(suites_of(mutant.module, told), told.seconds)

        return start(mutant, tests)

    child, seen = start(None, lambda: failing(control(found, told), 20 * told.seconds))
    _, name = ended({child: (None, seen)})
    if name:
        raise SystemExit(f"fails without a mutant: {name}")
    return unseen(found, begin, told, Counter())


def suites_of(module: str, told: argparse.Namespace) -> Suites:
    """The tests that a mutant of the module has to pass."""
    best = next(suites for start, suites in TESTS if module.startswith(start))
    return best[: told.suites]


def control(found: Sequence[Mutant], told: argparse.Namespace) -> Suites:
    """All tests that any of these has to pass."""
    return [sorted({t for m in found for suite in suites_of(m.module, told) for t in suite})]


def main() -> int:
    """The command line: 0 if exactly mutants of `EQUIVALENT` survive, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=30, help="of a test, for a mutant")
    parser.add_argument("--only", nargs="+", default=KERNEL, help="beginnings of modules' paths")
    parser.add_argument("--suites", type=int, help="so many of a module's suites, the first ones")
    parser.add_argument("--how", nargs="+", help="only mutants whose names begin with one of these")
    parser.add_argument("--list", action="store_true", help="name the mutants, and run nothing")
    told = parser.parse_args()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # most of the time, and of no use here
    found = [
        mutant
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).as_posix().startswith(tuple(told.only))
        for mutant in mutants(path)
        if told.how is None or str(mutant).startswith(tuple(told.how))
    ]
    if told.list:
        print(*found, sep="\n")
        return 0
    begin = time.monotonic()
    survivors = unseen_when_loaded([m for m in found if m.function], told)
    survivors += unseen_when_imported([m for m in found if not m.function], told)
    argued = [one for one in survivors if name_of(one) in EQUIVALENT]
    wrong = [one for one in survivors if name_of(one) not in EQUIVALENT]
    seen = EQUIVALENT.keys() & {name_of(one) for one in found if one not in survivors}
    for module in sorted({one.module for one in found}):
        counts = [sum(one.module == module for one in some) for some in (found, argued, wrong)]
        print(f"{module}: {counts[0]} mutants, {counts[1]} equivalent, {counts[2]} survived")
    print(*wrong, *[f"listed as equivalent, and noticed: {one}" for one in sorted(seen)], sep="\n")
    took = time.monotonic() - begin
    print(f"{len(found)} mutants, {len(argued)} equivalent, {len(wrong)} survived, {took:.0f} s")
    return 1 if wrong or seen else 0


def name_of(mutant: Mutant) -> tuple[str, str, str]:
    """The name of a mutant in `kernel_equivalent.json`."""
    return mutant.module, mutant.function, mutant.how


if __name__ == "__main__":
    raise SystemExit(main())
