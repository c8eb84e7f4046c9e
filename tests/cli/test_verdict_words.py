"""A command that fails names the failure first, and prints VALID nowhere.

The fixture `tcc` asserts of every command of the tests that no failing one gives this verdict.
Here are those that have something valid to report beside the failure; they do not print the word.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc_certs.__main__ import main as kernel
from tests.cli.conftest import Ended, Tcc

TEXT = 'grammar {} version "2"\ntool a {{ price 3 }}\nplan = a{{1,{}}}\nlimit price <= 9'


@pytest.fixture(name="tcc")
def strict(tcc: Tcc) -> Tcc:
    """`tcc`, whose output has the word VALID only where it succeeds."""

    def run(*arguments: object) -> Ended:
        ended = tcc(*arguments)
        assert ended.code == 0 or re.search(r"\bVALID\b", ended.out + ended.err) is None, ended
        return ended

    return run


@pytest.fixture
def folder(tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three artifacts, all pinned; the second is not the pinned one any longer."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        library.save(library.compile_text(TEXT.format(name, 2)), f"{name}.tcca")
    assert tcc("pin", "a.tcca", "b.tcca", "c.tcca").code == 0
    assert tcc("check", "--locked").out.count("VALID: ") == 3
    library.save(library.compile_text(TEXT.format("b", 3)), "b.tcca")
    return tmp_path


def said(out: str) -> list[str]:
    """Lines that begin with a file: what follows the file."""
    return [line.partition(": ")[0] for line in out.splitlines() if re.match(r"\S+: ", line)]


def test_a_pin_that_fails_comes_first(tcc: Tcc, folder: Path) -> None:
    for options in ((), ("--core",), ("--kernel", "fast"), ("a.tcca", "b.tcca", "c.tcca")):
        ended = tcc("check", "--locked", *options)
        first, *rest = ended.out.splitlines()
        assert ended.code == 1 and first.startswith("b.tcca: TCC843: "), ended.out
        # What was checked of the others is still there, and of the one that fails, too.
        assert [line.split(",")[0] for line in rest if " states, " in line] == [
            f"{name}.tcca: {states} states" for name, states in (("a", 3), ("b", 4), ("c", 3))
        ]


def test_the_document_says_of_each_whether_it_fails(tcc: Tcc, folder: Path) -> None:
    told = tcc("check", "--locked", "--json").json
    assert told["verdict"] == "INVALID"
    words = {one["artifact"]: one["verdict"] for one in told["artifacts"]}
    assert words == {"a.tcca": "HOLDS", "b.tcca": "INVALID", "c.tcca": "HOLDS"}
    assert tcc("pin", "b.tcca").code == 0
    told = tcc("check", "--locked", "--json").json
    assert {one["verdict"] for one in told["artifacts"]} == {"VALID"} == {told["verdict"]}


@pytest.mark.parametrize("wrong", ["a.tcca", "c.tcca"])
def test_a_missing_or_broken_one_comes_first(tcc: Tcc, folder: Path, wrong: str) -> None:
    assert tcc("pin", "b.tcca").code == 0
    (folder / wrong).unlink()
    ended = tcc("check", "--locked")
    assert ended.code == 1 and ended.out.startswith(f"{wrong}: TCC844: tcc.lock has a pin for it")
    (folder / wrong).write_bytes(b"x")
    for options in (("--locked",), ("a.tcca", "b.tcca", "c.tcca")):
        ended = tcc("check", *options)
        assert ended.code == 1 and ended.out.startswith(f"{wrong}: INVALID: B201")
        assert said(ended.out)[0] == wrong and len(said(ended.out)) == 3
        words = [one["verdict"] for one in tcc("check", *options, "--json").json["artifacts"]]
        assert sorted(words) == ["HOLDS", "HOLDS", "INVALID"]


def test_options_that_reject_a_valid_artifact(tcc: Tcc, folder: Path) -> None:
    library.save(library.compile_text(TEXT.format("r", 3), relax=["price"]), "r.tcca")
    (folder / "a.tcg").write_text(TEXT.format("a", 3))
    for options in (
        ("r.tcca", "--exact"), ("r.tcca", "a.tcca", "--exact"),
        ("a.tcca", "--pin", "0" * 64), ("a.tcca", "--source", "a.tcg"),
        ("a.tcca", "--locked", "--pin", "0" * 64), ("a.tcca", "--locked", "--source", "a.tcg"),
    ):  # fmt: skip
        for output in ("text", "json", "github", "sarif"):
            assert tcc("check", *options, "--output-format", output).code == 1


def test_a_declined_one_comes_first_too(
    tcc: Tcc, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proved checker speaks of one file, with the word that must not be printed."""
    digest = tcc("inspect", "a.tcca", "--json").json["digest"]
    line = f"VALID: C1 to C9; digest {digest}"
    monkeypatch.setattr("tcc.library.second_checker.verdicts", lambda _: [line])
    ended = tcc("check", "c.tcca", "a.tcca", "--kernel", "proved")
    assert ended.code == 2 and ended.out.startswith("c.tcca: DECLINED: D201 ")
    told = tcc("check", "c.tcca", "a.tcca", "--kernel", "proved", "--json").json
    assert [one["verdict"] for one in told["artifacts"]] == ["DECLINED", "HOLDS"]


def test_a_statement_about_another_file_is_not_shown(tcc: Tcc, folder: Path) -> None:
    pytest.importorskip("cryptography")
    assert tcc("sign", "--new-key", "k.pem").code == 0
    assert tcc("sign", "a.tcca", "--key", "k.pem").code == 0
    command = ("verify", "a.tcca.dsse.json", "c.tcca", "--key", "k.pub.pem")
    told = tcc(*command, "--json")
    assert (told.code, told.json["verdict"], told.json["statement"]) == (1, "INVALID", None)
    assert tcc(*command).code == 1
    fine = tcc("verify", "a.tcca.dsse.json", "a.tcca", "--key", "k.pub.pem", "--json").json
    assert fine["statement"]["predicate"]["verdict"] == "VALID"


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_the_kernel_alone(folder: Path, capfd: pytest.CaptureFixture[str], more: Any) -> None:
    (folder / "x.tcca").write_bytes(b"x")
    gate = library.Gate("a.tcca", ledger="s.ledger")
    gate.close()
    ledger = (folder / "s.ledger").read_bytes()
    (folder / "t.ledger").write_bytes(ledger.replace(b'"gate"', b'"door"', 1) + b"x\n")
    for command in (
        ("check", "x.tcca"), ("check", "a.tcca", "--pin", "0" * 64),
        ("validate", "t.ledger", "--artifact", "a.tcca"),
        ("validate", "s.ledger", "--artifact", "c.tcca"),
        ("validate", "s.ledger", "--artifact", "a.tcca", "--pin", "0" * 64),
        ("validate", "s.ledger", "--artifact", "a.tcca", "--seed", "0" * 64),
    ):  # fmt: skip
        assert kernel([*command, *more]) != 0
        out, err = capfd.readouterr()
        assert out + err and re.search(r"\bVALID\b", out + err) is None, (command, out, err)
