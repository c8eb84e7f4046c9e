"""One table of options: commands, library, requests and checks say the same of each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

import click
import pytest

import tcc as library
from tcc.batches import rows
from tcc.commands.compile_command import command as compile_command
from tcc.commands.run_command import command as run_command
from tcc.library import OptionsByName
from tcc.library.running import SettingsByName
from tcc.options import COMPILING, flag
from tcc_compiler.options import Options
from tcc_runtime.errors import SettingsError
from tcc_runtime.settings.settings import TABLE, Settings
from tcc_runtime.settings.table import Option
from tests.cli.conftest import Tcc

ROOT = Path(__file__).parents[2]
# What a compilation gets from the program that calls it, not from a person.
GIVEN_BY_PROGRAMS = {"answers", "clock", "check", "progress"}
# Of these a run has its own.
BUT_COUNT_BITS = tuple(option for option in COMPILING if option.name != "count_bits")


def test_the_keywords_of_a_search_are_the_fields_of_the_settings() -> None:
    # Atoms are read from a file, or from the JSON of a program.
    named = [field.name for field in fields(Settings) if field.name != "atoms"]
    assert [option.name for option in TABLE] == named
    expected = {option.name: get_type_hints(Settings)[option.name] for option in TABLE}
    del expected["seed"]
    assert get_type_hints(SettingsByName) == expected


def test_the_keywords_of_a_compilation_are_the_fields_of_its_options() -> None:
    expected = {option.name: get_type_hints(Options)[option.name] for option in COMPILING}
    assert set(expected) == {field.name for field in fields(Options)} - GIVEN_BY_PROGRAMS
    # Whoever calls gives any sequence of names; an option of the compiler is never changed.
    assert expected.pop("relax") == tuple[str, ...]
    assert get_type_hints(OptionsByName) == {**expected, "relax": Sequence[str]}


@pytest.mark.parametrize(
    ("command", "table"),
    [(run_command, TABLE), (run_command, BUT_COUNT_BITS), (compile_command, COMPILING)],
    ids=["run", "run of a grammar", "compile"],
)
def test_the_options_of_a_command_are_the_rows_of_the_table(
    command: click.Command, table: tuple[Option, ...]
) -> None:
    found = {at.name: at for at in command.params if isinstance(at, click.Option)}
    said = command.make_context("tcc", [__file__]).params  # by whom nothing is told
    for option in table:
        at = found[option.name]
        assert (at.opts, at.help) == ([flag(option)], option.about)
        assert (said[option.name] or None) == (option.default or None)
        assert at.required is False and at.multiple is (option.kind is tuple and not option.calls)
        if isinstance(at.type, click.IntRange):
            assert (at.type.min, at.type.max) == (option.least, option.most)
        if isinstance(at.type, click.Choice):
            assert tuple(at.type.choices) == option.choices


def test_the_defaults_of_the_commands_are_those_of_the_library(
    tcc: Tcc, artifact: Path, grammar: Path, tmp_path: Path
) -> None:
    seed, made = bytes(31) + b"\7", tmp_path / "made.tcca"
    run = library.search(library.load(artifact), seed=seed, ledger=tmp_path / "a", started_ms=1)
    assert tcc("run", artifact, "--seed", seed.hex(), "--ledger", tmp_path / "b").code == 0
    headers = [json.loads((tmp_path / name).read_bytes().splitlines()[0]) for name in "ab"]
    for header in headers:
        for clock in ("~", "run_id", "started_ms"):
            del header[clock]
    assert run.plans and headers[0] == headers[1]
    library.save(library.compile_file(grammar), made)
    assert made.read_bytes() == artifact.read_bytes()


def test_a_request_has_every_setting_but_those_of_asking() -> None:
    assert {option.short: option for option in TABLE if not option.asking} == rows.MEMBERS
    assert {option.name for option in TABLE if option.asking} == {
        "ask", "price_cap", "sla_ms", "epsilon_cap",
        "price_weight", "latency_weight", "epsilon_weight", "margin",
    }  # fmt: skip


RANGES: dict[str, tuple[str, list[Any], list[Any]]] = {
    "after": ("a list of calls", [(), ("a",), ("a", "b(k=1)")], ["a", ("a", 1), None]),
    "seed": ("32 bytes", [bytes(32)], [bytes(31), bytes(33)]),
    "opening_salt": ("32 bytes", [None, bytes(32)], [b"", bytes(33)]),
    "beacon": ("1 to 65536 bytes", [b"a", bytes(1 << 16)], [b"", bytes((1 << 16) + 1)]),
    "client_nonce": ("1 to 65536 bytes", [b"a", bytes(1 << 16)], [b"", bytes((1 << 16) + 1)]),
    "mode": ("exact or surrogate or fallback", [None, "fallback"], ["", "Exact"]),
    "race": ("coupled or rest or literal", [None, "rest"], ["r1"]),
    "keys": ("finalized or anchored", [None, "anchored"], ["r1"]),
    "recipe": ("r1 or r2", ["r1"], [None, "r3"]),
    "ask": ("leaf or node or never", [None, "never"], ["always"]),
    "top": ("1 or more", [1, (1 << 53) - 1], [0, 1 << 53]),
    "truncate": ("0 or more", [None, 0], [-1, 1 << 53]),
    "max_expansions": ("1 or more", [None, 1], [0, 1 << 53]),
    "max_seconds": ("0.001 or more", [None, 1, 0.001, 1e12], [0, 0.0009, 10**400, float("nan")]),
    "price_cap": ("0 or more", [None, 0], [-1, 1 << 53]),
    "sla_ms": ("0 or more", [None, 0], [-1, 1 << 53]),
    "count_bits": ("0 or more", [0], [-1, 1 << 53]),
    "inflate": ("1 or more", ["1", "1.5"], ["0.999", "0"]),
    "tau": ("above 0", ["0.1"], ["0", "-1"]),
    "alpha": ("0 or more", ["0", "2"], ["-0.1"]),
    "eta": ("above 0, at most 1", ["0.5", "1"], ["0", "1.1"]),
    "price_weight": ("above 0", ["0.1"], ["0"]),
    "latency_weight": ("above 0", ["0.1"], ["0"]),
    "epsilon_weight": ("0 or more", ["0"], ["-1"]),
    "margin": ("above 0, below 1", [None, "0.1", "0.999"], ["0", "1", "1.5", "-0.1"]),
    "delta": ("above 0, below 1", [None, "0.1", "0.999"], ["0", "1", "1.5", "-0.1"]),
    "raw_input_dependent": ("true or false", [True, False], [1, 0, "true"]),
    "epsilon_cap": (
        "0 or more, with at most 9 places",
        [None, "0", "0.123456789"],
        ["-1", "0.1234567891"],
    ),
}


@pytest.mark.parametrize("name", [option.name for option in TABLE])
def test_a_setting_is_held_to_the_range_of_its_row(name: str) -> None:
    expected, legal, illegal = RANGES[name]
    for value in legal:
        assert getattr(Settings(**{"seed": bytes(32), name: value}), name) == value
    for value in illegal:
        with pytest.raises(SettingsError) as refusal:
            Settings(**{"seed": bytes(32), name: value})
        said = expected
        if isinstance(value, int) and value >= 1 << 53:  # too much, and not too little
            said = f"at most {10**12 if name == 'max_seconds' else (1 << 53) - 1}"
        assert (refusal.value.field, refusal.value.expected) == (name, said)


@pytest.mark.parametrize("name", [at.name for at in TABLE if at.kind is str and not at.choices])
def test_a_decimal_has_one_text(name: str) -> None:
    for text in ("", "1.0", "01", "1e0", "one"):
        with pytest.raises(SettingsError) as refusal:
            Settings(**{"seed": bytes(32), name: text})
        assert refusal.value.expected == "an exact decimal, such as 0.25"


def test_a_setting_that_there_is_not_is_a_type_error(grammar: Path) -> None:
    artifact = library.compile_file(grammar)
    for name, more in (("search", ()), ("predict", ()), ("estimate", ()), ("runs", ([],))):
        with pytest.raises(TypeError, match=rf"^{name}\(\) has no setting 'topp'; .* 'top'\?$"):
            getattr(library, name)(artifact, *more, topp=3)
    for name in ("compile_file", "compile_text"):
        with pytest.raises(TypeError, match=rf"^{name}\(\) has no setting 'tillt'; .* 'tilt'\?$"):
            getattr(library, name)(str(grammar), tillt=3)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("top", "3", "int for 'top', not str"),
        ("top", True, "int for 'top', not bool"),
        ("tau", 1, "str for 'tau', not int"),
        ("beacon", "x", "bytes or None for 'beacon', not str"),
        ("max_seconds", "1", "int or float or None for 'max_seconds', not str"),
        ("mode", 5, "str or None for 'mode', not int"),
    ],
)
def test_a_value_of_another_type_is_a_type_error(
    grammar: Path, name: str, value: object, expected: str
) -> None:
    artifact = library.compile_file(grammar)
    with pytest.raises(TypeError, match=f"^search\\(\\) takes {expected}$"):
        getattr(library, "search")(artifact, **{name: value})  # noqa: B009 - past the type checker


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("tilt", "8", "int or None for 'tilt', not str"),
        ("max_states", None, "int for 'max_states', not NoneType"),
        ("relax", 3, "Sequence for 'relax', not int"),
        ("timeout", "1", "int or float or None for 'timeout', not str"),
    ],
)
def test_an_option_of_another_type_is_a_type_error(name: str, value: object, expected: str) -> None:
    with pytest.raises(TypeError, match=f"^compile_text\\(\\) takes {expected}$"):
        getattr(library, "compile_text")("", **{name: value})  # noqa: B009 - past the type checker


WRONG = """import tcc

artifact = tcc.compile_file("x.tcg", tilt=8, relax="price")
tcc.search(artifact, seed=bytes(32), top=3, mode="exact")
tcc.compile_text("", tillt=8)
tcc.compile_text("", relax=3)
tcc.search(artifact, topp=3)
tcc.search(artifact, top="3")
tcc.predict(artifact, mode="exactly")
"""


@pytest.mark.skipif(find_spec("mypy") is None, reason="no checker of types is installed")
def test_a_checker_of_types_finds_a_wrong_keyword(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(WRONG, encoding="utf-8")
    checker = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    more = ["--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), "--no-error-summary"]
    found = subprocess.run(
        [*checker, *more, str(tmp_path / "user.py")],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    errors = [line.split(":", 3) for line in found.stdout.splitlines() if ": error: " in line]
    assert [(int(at[1]), at[3].rsplit("[")[-1]) for at in errors] == [
        (5, "call-arg]"),
        (6, "arg-type]"),
        (7, "call-arg]"),
        (8, "arg-type]"),
        (9, "arg-type]"),
    ], found.stdout + found.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("sample", "--uniform", "--softmax"),
        ("sample", "--softmax", "--uniform"),
        ("run", "--predict", "--no-predict"),
        ("run", "--no-predict", "--predict"),
        ("check", "--json", "--output-format", "sarif"),
        ("lint", "--fix", "--diff"),
    ],
)
def test_options_that_contradict_each_other_are_bad_usage(
    tcc: Tcc, grammar: Path, artifact: Path, words: tuple[str, ...]
) -> None:
    command, *options = words
    ended = tcc(command, grammar if command == "lint" else artifact, *options)
    assert ended.code == 2 and "exclude each other" in ended.err + ended.out


def test_a_name_of_two_that_is_told_twice_is_told(tcc: Tcc, artifact: Path) -> None:
    drawn = tcc("sample", artifact, "--softmax", "--softmax", "--seed", "00", "--json").json
    assert drawn["law"] == "softmax"
    assert tcc("sample", artifact, "--seed", "00", "--json").json["law"] == "uniform"


def test_the_count_bits_of_a_run_are_said_to_be_its_threshold(tcc: Tcc) -> None:
    texts = {name: " ".join(tcc(name, "--help").out.split()) for name in ("run", "compile")}
    own = "round race counts of more bits than this up, to bounds: mode surrogate"
    assert f"--count-bits INTEGER RANGE {own}" in texts["run"] and own not in texts["compile"]
    assert "--count-bits INTEGER RANGE limit on the bits" in texts["compile"]
    sections = tcc("run", "--help").out.split("\n\n")
    (limits,) = [section for section in sections if section.startswith("Limits:")]
    assert "--count-bits" in limits
