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

import pytest

from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tests.oracle.examples import example

CERTS = Path(__file__).parents[2] / "certs"
ALL = "core.opened", "values.text_syntax"  # what not every core makes it load
KERNEL = f"import tcc_certs.kernel, {', '.join([f'tcc_certs.{name}' for name in ALL])}\n"
GRAMMAR = Path(__file__).parents[2] / "grammars" / "database_agent.tcg"
VERB = """
import sys, tcc_certs.__main__
tcc_certs.__main__.main(sys.argv[1:])
"""
ATOMS = "import tcc_certs.privacy.spending\n"
MODELS = "import tcc_certs.session.executions, tcc_certs.session.execution_forms\n"
# Of core 1.1; of core 1.2 with all that it may load.
MONITORS = "import tcc_certs.core.opened\n"
STATEMENTS = (
    "from tcc_certs.session.monitors import placed, statements\n"
    "from tcc_certs.core import lets, opened, wording\n"
)
LOADED = """
import sys
files = {m.__file__ for n, m in sys.modules.items() if n.startswith("tcc_certs") and m.__file__}
print(*sorted(files), sep="\\n")
"""
SESSION = b'{"schema":"tcc.session/1.0"}\n'
# What runs: the lines, and the lines of code, that its closure may have at most.
BOUNDS = {
    "kernel": (4690, 2952),
    "check": (4464, 2789),
    "check without the core's schema": (2595, 1620),
    "check with all": (5330, 3392),
    "check --core": (6368, 4066),
    "validate": (10850, 6671),
    "validate atoms": (12205, 7504),
    "validate session": (8865, 5676),
    "validate monitors session": (9331, 6015),
    "validate statements session": (13737, 9166),
    "validate models session": (10035, 6418),
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


def closure(what: str, folder: Path) -> list[Path]:
    """The files of certs that are loaded when `what` has run."""
    artifact, ledger = folder / "a.tcca", folder / "l.ndjson"
    artifact.write_bytes(example())
    ledger.write_bytes(SESSION if what.endswith("session") else b"{}\n")
    if what.endswith(" with all"):
        artifact.write_bytes(compiled())
    verb, *options = what.removesuffix(WITHOUT_SCHEMA).removesuffix(" with all").split()
    options = [option for option in options if option.startswith("-")]
    operands = {"validate": [str(ledger), "--artifact", str(artifact)]}
    arguments = [] if what == "kernel" else [verb, *operands.get(verb, [str(artifact)]), *options]
    # What a ledger with atoms or models loads is asked for by name: one would have to be whole.
    loads = {"atoms": ATOMS, "models": MODELS, "monitors": MONITORS, "statements": STATEMENTS}
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


@cache
def compiled() -> bytes:
    """An artifact whose core has everything that is not read of every core."""
    data = compile_text(GRAMMAR.read_text(), Options()).artifact
    assert data is not None
    return data


def counted(files: Sequence[Path]) -> tuple[int, int]:
    """Lines, and lines of code."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    return lines, sum(map(code_lines, files))


@pytest.mark.parametrize("what", BOUNDS)
def test_a_closure_keeps_its_bounds(what: str, tmp_path: Path) -> None:
    files = closure(what, tmp_path)
    lines, code = counted(files)
    print(f"{what}: {len(files)} files, {lines} lines, {code} of code")
    assert len(files) > 15
    assert lines <= BOUNDS[what][0]
    assert code <= BOUNDS[what][1]


def test_what_not_every_core_has_is_read_by_code_that_is_loaded_for_it(tmp_path: Path) -> None:
    names = {
        what: {path.relative_to(CERTS).as_posix() for path in closure(what, tmp_path)}
        for what in ("check", "check with all")
    }
    of_all = {f"tcc_certs/{name.replace('.', '/')}.py" for name in ALL}
    assert not names["check"] & of_all
    assert names["check with all"] >= of_all


@pytest.mark.parametrize("what", ["kernel", "check"])
def test_a_check_loads_nothing_of_the_core_check_or_of_the_validator(
    what: str, tmp_path: Path
) -> None:
    package = CERTS / "tcc_certs"
    names = [path.relative_to(package).as_posix() for path in closure(what, tmp_path)]
    assert "states.py" in names
    assert not [name for name in names if name.startswith(OTHERS)]


@pytest.mark.parametrize("what", [name for name in BOUNDS if name != "validate atoms"])
def test_the_accountant_is_loaded_where_there_are_atoms_alone(what: str, tmp_path: Path) -> None:
    names = [path.as_posix() for path in closure(what, tmp_path)]
    assert not [
        name for name in names if "tcc_certs/privacy/" in name or name.endswith("core/atoms.py")
    ]
