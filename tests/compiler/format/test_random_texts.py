"""Any grammar that is laid out means what it meant, keeps its comments, and stays as it is then."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tcc_compiler.format.text import WIDTH, format_source
from tcc_compiler.frontend import read_grammar, read_grammar_text
from tcc_compiler.language.source import source_of
from tests.compiler.format.reading import commented, comments_of, moved, parts_of, strewn
from tests.oracle_policies.drawn import FORMS, Draw
from tests.oracle_policies.writer import text_of
from tests.property.grammars import random_grammar
from tests.property.open_grammars import random_open_grammar

GRAMMARS = Path(__file__).parents[3] / "grammars"
SHIPPED = sorted(GRAMMARS.rglob("*.tcg"))
TEXTS = {
    "1.0": lambda seed: random_grammar(seed, depth=4, values=5, limits=3),
    "1.1": lambda seed: random_open_grammar(seed).text,
    "wide": lambda seed: random_grammar(seed, depth=6, rules=4, values=6, parameters=3, tools=6),
    "1.2": lambda seed: text_of(Draw(f"layout {seed}", FORMS).grammar()),
}


def formatted(text: str) -> str:
    made = format_source(source_of(text, "x.tcg"))
    assert made.text is not None, made.diagnostics
    return made.text


def core(text: str) -> bytes | None:
    return read_grammar_text(text).core


def check(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    text = TEXTS[kind](seed)
    plain = formatted(text)
    meaning = core(text)
    assert core(plain) == meaning
    assert formatted(plain) == plain
    assert max(map(len, plain.splitlines())) <= WIDTH
    assert formatted(strewn(text, rng)) == plain
    told = commented(text, rng, 0.1)
    shown = formatted(told)
    assert parts_of(shown) == parts_of(told)
    assert core(shown) == meaning
    assert formatted(shown) == shown
    assert formatted(moved(told, rng)) == shown
    assert formatted(told.replace("\n", "\r\n")) == shown


@pytest.mark.parametrize(("kind", "seeds"), [("1.0", 20), ("1.1", 20), ("wide", 4), ("1.2", 20)])
def test_a_random_grammar_keeps_its_core_its_comments_and_then_its_layout(
    kind: str, seeds: int
) -> None:
    for seed in range(seeds):
        check(kind, seed)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", TEXTS)
def test_thousands_of_random_grammars_do(kind: str) -> None:
    for seed in range(1000, 3000):
        check(kind, seed)


def test_the_random_grammars_have_cores_and_comments() -> None:
    for kind, make in TEXTS.items():
        read = [core(make(seed)) for seed in range(10)]
        assert sum(data is not None for data in read) > 5, kind
    assert len(comments_of(commented(TEXTS["1.0"](1), random.Random(1), 0.1))) > 3


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_grammars_are_laid_out(path: Path) -> None:
    text = path.read_bytes().decode()
    assert formatted(text) == text
    code = [line for line in text.splitlines() if not line.startswith("#")]
    assert max(map(len, code)) <= WIDTH


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_grammar_has_one_layout(path: Path, tmp_path: Path) -> None:
    text = path.read_text("utf-8")
    rng = random.Random(7)
    plain = formatted(strewn(text, rng))
    assert [part for part in parts_of(text) if not part.startswith("#")] == parts_of(plain)
    assert formatted(strewn(text, rng)) == plain
    if path.parent == GRAMMARS:
        shutil.copytree(GRAMMARS / "shared", tmp_path / "shared")
        copy = tmp_path / path.name
        copy.write_text(formatted(commented(plain, rng, 0.2)), "utf-8")
        assert read_grammar(copy).core == read_grammar(path).core
