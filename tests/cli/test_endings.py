"""Exceptions and exit codes: one table, whose every name is that of a class."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

import tcc
from tcc.main import COMMANDS, ENDINGS, GROUPS, ending_of
from tcc.options import SECTIONS, Sectioned, sections_of
from tcc.requirements import REQUIREMENTS
from tcc_runtime.errors import LedgerBusy, LedgerError, ServerError, SettingsError
from tests.cli.conftest import Tcc


def class_of(name: str) -> Any:
    module, _, kind = name.rpartition(".")
    return getattr(import_module(module), kind)


@pytest.mark.parametrize("name", ENDINGS)
def test_every_row_names_a_class_of_exceptions(name: str) -> None:
    kind = class_of(name)
    assert issubclass(kind, BaseException)
    # The name is that of the class itself, not of an import of it.
    assert f"{kind.__module__}.{kind.__qualname__}" == name


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 2, "interrupted"),
        (MemoryError(), 2, "not enough memory"),
        (FileNotFoundError(2, "No such file or directory", "a.tcca"), 2,
         "a.tcca: No such file or directory"),
        (LedgerBusy("run.ledger"), 2, "run.ledger: another run writes it"),
        (LedgerError("run.ledger", OSError(28, "No space left on device")), 2,
         "run.ledger: No space left on device"),
        (ServerError("the server has ended"), 2, "the server has ended"),
        (SettingsError("top", "1 or more", 0), 2, "top: expected 1 or more, found 0"),
        (click.UsageError("no such option"), 2, "no such option"),
    ],
)  # fmt: skip
def test_an_error_ends_as_the_nearest_class_that_is_listed(
    error: BaseException, code: int, text: str
) -> None:
    ending = ending_of(error)
    assert ending is not None
    assert (ending.code_of(error), ending.text(error)) == (code, text)


def test_what_is_not_signed_ends_with_its_verdict() -> None:
    kind = class_of("tcc.commands.sign_command.NotValid")
    for verdict in (1, 2):
        error = kind.__new__(kind)
        error.verdict = verdict
        ending = ending_of(error)
        assert ending is not None and ending.code_of(error) == verdict


@pytest.mark.parametrize("error", [ValueError("x"), RuntimeError("x"), SystemExit(1), KeyError(1)])
def test_what_is_not_listed_is_an_internal_error(error: BaseException) -> None:
    assert ending_of(error) is None


def test_help_shows_every_command_once_in_its_group(tcc: Tcc) -> None:
    shown = tcc("--help").out
    lines = [
        line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line.split()
    ]
    for title, group in GROUPS.items():
        assert f"\n{title}:\n" in shown
        below = shown.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in below.splitlines() if line[2] != " "] == list(group)
    assert all(lines.count(name) == 1 for name in COMMANDS)


@pytest.mark.parametrize("name", ["run", "exec"])
def test_every_option_of_a_run_stands_in_a_section(name: str, tcc: Tcc) -> None:
    command = import_module(f"tcc.commands.{name}_command").command
    assert isinstance(command, Sectioned)
    ctx = click.Context(command, info_name=name)
    listed = [one for names in SECTIONS.values() for one in names]
    assert len(set(listed)) == len(listed)
    options = [one.name for one in command.params if isinstance(one, click.Option)]
    assert set(options) <= set(listed)
    found = sections_of(command, ctx)
    assert [title for title in SECTIONS if title in found] == list(found)
    shown = tcc(name, "--help").out
    assert all(f"\n{title}:\n" in shown for title in found)
    assert "\nOptions:\n" not in shown


def test_the_package_has_each_of_its_names() -> None:
    assert sorted(tcc.__all__) == sorted(tcc._HOME)
    for name in tcc.__all__:
        assert getattr(tcc, name) is getattr(import_module(tcc._HOME[name]), name)
    with pytest.raises(AttributeError, match="module 'tcc' has no attribute 'nothing'"):
        _ = tcc.nothing


DEPENDENCIES = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))[
    "project"
]["dependencies"]


def test_the_requirements_are_those_of_the_project() -> None:
    assert {re.split("[<>=]", one)[0] for one in DEPENDENCIES} == REQUIREMENTS


def without(package: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m tcc` in a process that does not find a package."""
    program = (
        "import runpy, sys\n"
        f"sys.modules[{package!r}] = None\n"
        f"sys.argv = ['tcc', *{arguments!r}]\n"
        "runpy.run_module('tcc', run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("package", ["blake3", "click", "msgspec"])
def test_a_requirement_that_is_not_installed_is_named(package: str, tmp_path: Path) -> None:
    """It is no bug, and no finding: where the document is asked for, that says so as well."""
    grammar = tmp_path / "a.tcg"
    grammar.write_text('grammar "a" version "1"\ntool t()\nplan t\n', "utf-8")
    done = without(package, "count", str(grammar), "--json")
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: {package}, which tcc requires, is not installed: pip")
    assert len(done.stderr.splitlines()) == 1
    if package != "click":
        assert json.loads(done.stdout)["error"] == done.stderr.removeprefix("Error: ").strip()


@pytest.mark.parametrize("name", ["tcc.none", "numpy.none", None])
def test_another_module_that_is_missing_is_an_internal_error(name: str | None) -> None:
    assert ending_of(ModuleNotFoundError("gone", name=name)) is None
