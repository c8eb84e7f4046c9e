"""Texts with random changes compile or end in codes with places; none raises."""

from __future__ import annotations

import random

import pytest

from tcc_certs.formats.codec import encode
from tcc_certs.policy.reader import core_json, read_core
from tcc_compiler.layout.format import format_text
from tcc_compiler.names.compile import compile_source
from tests.compiler.names.corpus import DESK, FORMS, SHIPPED
from tests.compiler.names.test_layout import tokens
from tests.compiler.names.test_messages import HEAD, MISTAKES

FEW, MANY = 400, 20_000
TEXTS = [
    DESK, FORMS, *[HEAD + text + "\n" for text, _, _, _ in MISTAKES],
    *[path.read_text("utf-8") for path in SHIPPED if path.stat().st_size < 4000],
]  # fmt: skip
WORDS = sorted({one.text for text in (DESK, FORMS) for line in tokens(text) for one in line})
CHARACTERS = "()[]{}<>=!~|&*+-?.,;:#\"'`\\ \n\t_aZ0é\u200b\ud83d"


def mutant(rng: random.Random) -> str:
    text = rng.choice(TEXTS)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                text = text[:at] + text[at + rng.randint(1, 20) :]
            case 1:
                text = text[:at] + rng.choice(CHARACTERS) + text[at:]
            case 2:
                text = f"{text[:at]} {rng.choice(WORDS)} {text[at:]}"
            case 3:
                other = rng.choice(TEXTS)
                start = rng.randrange(len(other))
                text = text[:at] + other[start : start + rng.randint(1, 80)] + text[at:]
            case _:
                lines = text.splitlines(keepends=True)
                rng.shuffle(lines)
                text = "".join(lines)
    return text


def _check(count: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        text = mutant(rng)
        found = compile_source(text)
        assert (found.core is None) == bool(found.diagnostics), text
        for one in found.diagnostics:
            assert one.span is not None or one.code == "TCC108", (text, one)
            assert one.message
            assert one.hint or one.code in ("TCC108", "TCC112"), (text, one)
        format_text(text)


def swapped(rng: random.Random) -> str:
    """A text in which some names, numbers or strings are others."""
    lines = tokens(rng.choice(TEXTS))
    places = [(a, b) for a, line in enumerate(lines) for b, one in enumerate(line)
              if one.kind in POOLS]  # fmt: skip
    texts = [[one.text for one in line] for line in lines]
    for _ in range(rng.randint(1, 3) if places else 0):
        a, b = rng.choice(places)
        texts[a][b] = rng.choice(POOLS[lines[a][b].kind])
    return "\n".join([" ".join(line) for line in texts]) + "\n"


POOLS = {
    kind: [one.text for text in TEXTS for line in tokens(text) for one in line if one.kind == kind]
    for kind in ("NAME", "NUMBER", "STRING")
}
POOLS["NAME"] += ["this", "it", "now", "any", "null", "true", "last", "count", "sum"] * 20


def _check_swapped(count: int, seed: int) -> None:
    rng = random.Random(seed)
    compiled = 0
    for _ in range(count):
        text = swapped(rng)
        core = compile_source(text).core
        if core is not None:
            compiled += 1
            assert read_core(encode(core_json(core))) == core, text
    assert compiled > count // 20


def test_swapped_names_compile_to_cores_that_certs_reads_or_end_in_codes() -> None:
    _check_swapped(FEW, 3)


@pytest.mark.campaign
def test_many_swapped_names_compile_to_cores_that_certs_reads_or_end_in_codes() -> None:
    _check_swapped(MANY, 4)


def test_mutants_end_in_codes() -> None:
    _check(FEW, 1)


@pytest.mark.campaign
def test_many_mutants_end_in_codes() -> None:
    _check(MANY, 2)
