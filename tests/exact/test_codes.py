"""P501 to P507: the example of each in the catalogue has that code, and its way on decides."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import tcc
from tcc_compiler.language.catalogue import CATALOGUE
from tests.cli.conftest import (
    Tcc,
    tcc as tcc_command,  # noqa: F401 - a fixture
)

CODES = [code for code in CATALOGUE if code.startswith("P5")]
WAY = re.compile(r"^# decided with `(.+)` in place of `(.+)`$", re.MULTILINE)
OTHER = re.compile(r"^# OTHER\.tcg has `(.+)` in place of `(.+)`$", re.MULTILINE)
ASKED = re.compile(r"^# tcc prove (G\.tcg|G\.tcca) (.+)$", re.MULTILINE)


def test_every_code_has_an_example_and_a_way_on() -> None:
    assert [f"P50{number}" for number in range(1, 8)] == CODES
    for code in CODES:
        example = CATALOGUE[code].example
        assert len(ASKED.findall(example)) == len(WAY.findall(example)) == 1, code


@pytest.mark.parametrize("code", CODES)
def test_an_example_has_its_code_and_its_way_on_decides(
    tcc_command: Tcc,  # noqa: F811
    tmp_path: Path,
    code: str,
) -> None:
    example = CATALOGUE[code].example
    way = WAY.search(example)
    assert way is not None
    grammar = example[: way.start()]

    def asked(text: str) -> tuple[int, list[str]]:
        question, other = ASKED.search(text), OTHER.search(grammar)
        assert question is not None
        (tmp_path / "G.tcg").write_text(text, "utf-8")
        if other is not None:
            beside = grammar.replace(other[2], other[1])
            (tmp_path / "OTHER.tcg").write_text(beside, "utf-8")
        path = tmp_path / question[1]
        if path.suffix == ".tcca":
            tcc.save(tcc.compile_file(tmp_path / "G.tcg"), path)
        words = [
            str(tmp_path / word) if word == "OTHER.tcg" else word
            for word in shlex.split(question[2])
        ]
        ended = tcc_command("prove", path, *words, "--json")
        return ended.code, ended.json["codes"]

    assert asked(grammar) == (2, [code])
    ended, codes = asked(grammar.replace(way[2], way[1]))
    assert (ended in (0, 1), codes) == (True, []), (code, ended, codes)
