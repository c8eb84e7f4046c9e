"""How much of certs is loaded to check an artifact or a ledger: what a reader of a verdict trusts.

Counted are the files of ``tcc_certs`` that are there in the end, in a process of its own: of the
kernel with all that it may load, and of verbs of ``python -m tcc_certs`` with the command line
around them.  What a verb loads follows from what it is given: most rows are of a core without
monitors and open parameters, those "with all" of one that has both, and patterns of texts.
``pytest -s`` prints the figures, docs/trust.md gives them.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tests.forgery.test_range_forgeries import forged_run
from tests.oracle.examples import example
from tests.oracle_ledger.writer import chained

CERTS = Path(__file__).parents[2] / "certs"
ALL = "core.opened", "strict", "values.text_syntax"  # what not every core makes it load
ROUNDED = "rounded"  # what artifacts with rounded counts make it load
_KERNEL = "kernel", *ALL, ROUNDED
KERNEL = f"import {', '.join([f'tcc_certs.{name}' for name in _KERNEL])}\n"
GRAMMARS = Path(__file__).parents[2] / "grammars"
# A grammar whose core has everything that a core of 1.1 may have, and one of 1.2.
COMPILED = {"check with all": "database_agent", "check of 1.2": "airline_desk"}
RUNS = Path(__file__).parents[1] / "golden" / "ledgers"
VERB = """
import sys, tcc_certs.__main__
tcc_certs.__main__.main(sys.argv[1:])
"""
MODELS = "import tcc_certs.session.executions, tcc_certs.session.execution_forms\n"
# Of core 1.1; of core 1.2 with all that it may load.
MONITORS = "import tcc_certs.core.opened\n"
STATEMENTS = (
    "from tcc_certs.session.monitors import nesting, statements\n"
    "from tcc_certs.core import across, lets, opened, wording\n"
    "from tcc_certs.session import errors, overlap\n"
)
LOADED = """
import sys
files = {m.__file__ for n, m in sys.modules.items() if n.startswith("tcc_certs") and m.__file__}
print(*sorted(files), sep="\\n")
"""
SESSION = b'{"schema":"tcc.session/1.0"}\n'
# What runs: the lines, and the lines of code, that its closure may have at most.  The design wants
# code of 1,950 for `check`, 5,900 for `validate` of a run and 6,000 for that of a session; what is
# above says why in docs/trust.md, "How much there is to read".
BOUNDS = {
    "kernel": (4600, 2870),
    "check": (4050, 2490),
    "check without the core's schema": (2350, 1460),
    "check of 1.2": (5870, 3770),
    "check with all": (5090, 3200),
    "check --core": (6010, 3820),
    "validate": (9420, 5720),
    "validate asks": (10480, 6370),
    "validate atoms": (11820, 7190),
    "validate session": (8430, 5350),
    "validate monitors session": (8880, 5680),
    "validate statements session": (13840, 9150),
    "validate models session": (9610, 6090),
}
# What reads the core: its schema is a part of C8, and grows with the language.
SCHEMA = ("core/", "values/", "formats/schema")
WITHOUT_SCHEMA = " without the core's schema"
OTHERS = (
    "corecheck/", "replay/", "race/arrivals", "race/digest", "formats/ledger",
)  # fmt: skip


def code_lines(path: Path) -> int:
    """Lines that are neither blank nor comment nor docstring."""
    text = path.read_text(encoding="utf-8")
    said: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            said.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: set[int] = set()
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
             tokenize.ENDMARKER}  # fmt: skip
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - said)


@cache
def closure(what: str) -> list[Path]:
    """The files of certs that are loaded when `what` has run."""
    with TemporaryDirectory() as folder:
        return loaded(what, Path(folder))


def loaded(what: str, folder: Path) -> list[Path]:
    """The same; artifact and ledger are written into `folder`."""
    artifact, ledger = folder / "a.tcca", folder / "l.ndjson"
    artifact.write_bytes(example())
    ledger.write_bytes(SESSION)
    if what.startswith("validate") and not what.endswith("session"):
        data, records = run(what)
        artifact.write_bytes(data)
        ledger.write_bytes(records)
    if what in COMPILED:
        artifact.write_bytes(compiled(COMPILED[what]))
    verb = what.split()[0]
    operands = {"validate": [str(ledger), "--artifact", str(artifact)]}
    options = ["--core"] if what.endswith("--core") else []
    arguments = [] if what == "kernel" else [verb, *operands.get(verb, [str(artifact)]), *options]
    # What sessions with models or statements load is asked for by name: one would have to be whole.
    loads = {"models": MODELS, "monitors": MONITORS, "statements": STATEMENTS}
    named = [imports for word, imports in loads.items() if word in what]
    program = (KERNEL if what == "kernel" else VERB) + "".join(named)
    done = subprocess.run(
        [sys.executable, "-c", program + LOADED, *arguments],
        env={"PYTHONPATH": str(CERTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    files = [Path(line) for line in done.stdout.splitlines() if line.startswith(str(CERTS))]
    package = CERTS / "tcc_certs"
    left_out = SCHEMA if what.endswith(WITHOUT_SCHEMA) else ()
    return [f for f in files if not f.relative_to(package).as_posix().startswith(left_out)]


def run(what: str) -> tuple[bytes, bytes]:
    """The artifact and the ledger of a run, a whole one, so that all is loaded that it needs."""
    if what == "validate":
        return (RUNS / "exact-1.0.tcca").read_bytes(), (RUNS / "exact-1.0.ndjson").read_bytes()
    _, data, records = forged_run("account" if what.endswith("asks") else "account of atoms")
    return data, chained(records)


@cache
def compiled(name: str) -> bytes:
    """The artifact of a grammar of the repository."""
    text = (GRAMMARS / f"{name}.tcg").read_text("utf-8")
    data = compile_text(text, Options()).artifact
    assert data is not None
    return data


def counted(files: Sequence[Path]) -> tuple[int, int]:
    """Lines, and lines of code."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    return lines, sum(map(code_lines, files))


@pytest.mark.parametrize("what", BOUNDS)
def test_a_closure_keeps_its_bounds(what: str) -> None:
    files = closure(what)
    lines, code = counted(files)
    print(f"{what}: {len(files)} files, {lines} lines, {code} of code")
    assert len(files) > 15
    assert lines <= BOUNDS[what][0]
    assert code <= BOUNDS[what][1]


def test_what_not_every_core_has_is_read_by_code_that_is_loaded_for_it() -> None:
    names = {
        what: {path.relative_to(CERTS).as_posix() for path in closure(what)}
        for what in ("check", "check with all")
    }
    of_all = {f"tcc_certs/{name.replace('.', '/')}.py" for name in ALL}
    assert not names["check"] & (of_all | {f"tcc_certs/{ROUNDED}.py"})
    assert names["check with all"] >= of_all


@pytest.mark.parametrize("what", ["kernel", "check"])
def test_a_check_loads_nothing_of_the_core_check_or_of_the_validator(what: str) -> None:
    package = CERTS / "tcc_certs"
    names = [path.relative_to(package).as_posix() for path in closure(what)]
    assert "state_rules.py" in names
    assert not [name for name in names if name.startswith(OTHERS)]


# What matches and digests values, and what reads them at their places.
VALUES = "values/canonical.py", "values/places.py", "values/text_pattern.py", "values/types.py"


@pytest.mark.parametrize("what", ["check", *COMPILED])
def test_a_check_loads_nothing_that_reads_values(what: str) -> None:
    package = CERTS / "tcc_certs"
    names = {path.relative_to(package).as_posix() for path in closure(what)}
    assert not names & {*VALUES}


# What few runs need: records of asking, the rest race, races that certify nothing, kappa of counts.
ASKING = (
    "replay/asking/asked.py",
    "replay/asking/refinement.py",
    "replay/asking/controller.py",
    "replay/asking/account.py",
)
SELDOM = *ASKING, "replay/races/rest.py", "replay/races/heuristic.py", "replay/enclosed.py"


def test_a_run_loads_nothing_of_what_few_runs_need() -> None:
    package = CERTS / "tcc_certs"
    names = {
        what: {path.relative_to(package).as_posix() for path in closure(what)}
        for what in ("validate", "validate asks")
    }
    assert not names["validate"] & {*SELDOM}
    assert names["validate asks"] >= {*ASKING}


@pytest.mark.parametrize("what", [name for name in BOUNDS if name != "validate atoms"])
def test_the_accountant_is_loaded_where_there_are_atoms_alone(what: str) -> None:
    names = [path.as_posix() for path in closure(what)]
    assert not [
        name for name in names if "tcc_certs/privacy/" in name or name.endswith("core/atoms.py")
    ]
