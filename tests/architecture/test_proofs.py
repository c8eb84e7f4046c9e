"""Proofs and texts name one another: theorems, citations, codes, sections and functions.

Read off the files; nothing here needs Coq.  A citation is `Search.v: run_wise, exhausted`, in a
spec, in docs/trust.md, in README.md or in a docstring.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tcc_certs.errors import Code

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "proofs"
CHECKER = PROOFS / "checker"
FOLDERS = ("certs", "compiler", "runtime", "cli", "experiments")
# By which the standard library has its real numbers and functions.
AXIOMS = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
GRANTED = re.compile(
    r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|give_up|bypass_check|type_in_type)\b"
)
THEOREM = re.compile(r"^Theorem (\w+)", re.MULTILINE)
CITED = re.compile(r"\b([A-Z]\w*)\.v:\s+(\w+(?:,\s+\w+)*)")
SECTION = re.compile(r"(\w+\.md) (\d+)")
CODES = re.compile(r"([A-Z]\d{3})(?:\.\.([A-Z]\d{3}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table of proofs/README.md."""

    file: str
    theorems: list[str]
    text: str
    codes: str
    holder: str


@cache
def theorems() -> dict[str, list[str]]:
    """Of each file of the argument its theorems, in order."""
    return theorems_of(PROOFS)


def theorems_of(folder: Path) -> dict[str, list[str]]:
    """Of each file of a folder its theorems, in order."""
    found = {}
    for path in sorted(folder.glob("*.v")):
        found[path.stem] = THEOREM.findall(path.read_text(encoding="utf-8"))
    return found


@cache
def rows() -> list[Row]:
    text = (PROOFS / "README.md").read_text(encoding="utf-8").partition("## Theorems")[2]
    found: list[Row] = []
    for line in text.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 6 or cells[0] in ("file", "---"):
            continue
        file = cells[0] or found[-1].file
        found.append(
            Row(
                file=file,
                theorems=re.findall(r"`(\w+)`", cells[1]),
                text=cells[3],
                codes=cells[4],
                holder=cells[5].strip("`"),
            )
        )
    return found


def docstrings() -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    yield str(path.relative_to(ROOT)), ast.get_docstring(node) or ""


@cache
def citations() -> list[tuple[str, str, str]]:
    """Where, file, theorem."""
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    texts = [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in pages]
    return [
        (where, file, name)
        for where, text in [*texts, *docstrings()]
        for file, names in CITED.findall(text)
        for name in re.split(r",\s+", names)
    ]


def test_every_theorem_that_is_cited_is_there() -> None:
    both = theorems() | theorems_of(CHECKER)
    there = {(file, name) for file, names in both.items() for name in names}
    assert [cited for cited in citations() if cited[1:] not in there] == []


def test_every_theorem_stands_in_the_table_once_and_in_order() -> None:
    listed: dict[str, list[str]] = {}
    for row in rows():
        listed.setdefault(row.file, []).extend(row.theorems)
    assert {file: sorted(names) for file, names in listed.items()} == {
        file: sorted(names) for file, names in theorems().items() if names
    }


def test_every_theorem_of_the_table_is_cited_by_a_spec_or_a_docstring() -> None:
    page = "docs/trust.md"
    cited = {(file, name) for where, file, name in citations() if where != page}
    listed = {(row.file, name) for row in rows() for name in row.theorems}
    assert sorted(listed - cited) == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.file}.{row.theorems[0]}")
def test_a_row_names_sections_codes_and_a_function_that_are_there(row: Row) -> None:
    sections = SECTION.findall(row.text)
    assert sections
    for page, number in sections:
        text = (ROOT / "docs" / "spec" / page).read_text(encoding="utf-8")
        assert re.search(rf"^## {number}\. ", text, re.MULTILINE), (page, number)
    codes = CODES.findall(row.codes)
    known = {code.value for code in Code}
    # Of a search of the experiments no ledger shows anything.
    experiment = row.holder.startswith("experiments/")
    assert bool(codes) != experiment and (row.codes == "none") == experiment
    assert {code for pair in codes for code in pair if code} <= known
    path, _, name = row.holder.partition(": ")
    here = path.startswith(("runtime/", "experiments/"))
    file = ROOT / path if here else ROOT / "certs" / "tcc_certs" / path
    named = {
        node.name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    assert name in named


@pytest.mark.parametrize("folder", [PROOFS, CHECKER], ids=["argument", "checker"])
def test_nothing_is_taken_for_granted_but_axioms_of_the_standard_library(folder: Path) -> None:
    for path in folder.glob("*.v"):
        assert not GRANTED.search(path.read_text(encoding="utf-8")), path
    lines = (folder / "assumptions.txt").read_text(encoding="utf-8").splitlines()
    assumed = dict(line.split(": ") for line in lines)
    listed = [f"{file}.{name}" for file, names in theorems_of(folder).items() for name in names]
    assert sorted(assumed) == sorted(listed)
    axioms = {name for text in assumed.values() for name in text.split(", ")} - {"nothing"}
    assert axioms <= AXIOMS


def test_every_file_is_checked() -> None:
    listed = (PROOFS / "_CoqProject").read_text(encoding="utf-8").split()
    assert sorted(name for name in listed if name.endswith(".v")) == sorted(
        path.name for path in PROOFS.glob("*.v")
    )


def test_the_checkers_theorems_stand_in_its_table_and_their_soundness_assumes_nothing() -> None:
    text = (CHECKER / "README.md").read_text(encoding="utf-8")
    listed = {
        (file, name) for file, names in CITED.findall(text) for name in re.split(r",\s+", names)
    }
    there = {(file, name) for file, names in theorems_of(CHECKER).items() for name in names}
    assert there == {pair for pair in listed if pair[0] in theorems_of(CHECKER)}
    assumed = (CHECKER / "assumptions.txt").read_text(encoding="utf-8").splitlines()
    sound = {"File.check_sound", "Core.core_sound"}
    assert {f"{name}: nothing" for name in sound} <= set(assumed)


def test_the_workflow_watches_what_there_is_and_every_file_that_a_row_names() -> None:
    text = (ROOT / ".github" / "workflows" / "proofs.yml").read_text(encoding="utf-8")
    lists = [part.partition("permissions")[0] for part in text.split("paths:")[1:]]
    watched, again = (re.findall(r'- "(.+)"', part) for part in lists)
    assert watched == again
    seen: set[Path] = set()
    for pattern in watched:
        found = {path for path in ROOT.glob(pattern.replace("/**", "/**/*")) if path.is_file()}
        assert found, pattern
        seen |= found
    certs = ROOT / "certs" / "tcc_certs"
    named = {certs / row.holder.partition(":")[0] for row in rows()}
    assert {path for path in named if path.exists()} <= seen
