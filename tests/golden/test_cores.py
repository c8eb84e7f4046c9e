"""Grammars of version 1.0 keep their bytes: cores and artifacts as version 1.0 of the compiler made
them.

``cores.json`` was written by that compiler: for each shipped grammar the digests of its core and of
its artifact, and for 400 random grammars the beginning of the digest of the core.  In the random
ones a value in quotes that is a name is left out: it is another value since.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from blake3 import blake3

from tcc_compiler.frontend import read_grammar, read_grammar_text
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file
from tests.property.grammars import random_grammar

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((Path(__file__).parent / "cores.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(GOLDEN["grammars"]))
def test_a_shipped_grammar_keeps_its_core_and_its_artifact(name: str) -> None:
    core = read_grammar(ROOT / name).core
    artifact = compile_file(ROOT / name, Options()).artifact
    assert core is not None
    assert artifact is not None
    found = {"core": blake3(core).hexdigest(), "artifact": blake3(artifact).hexdigest()}
    assert found == GOLDEN["grammars"][name]


def test_random_grammars_keep_their_cores() -> None:
    different = []
    for seed, expected in enumerate(GOLDEN["random"]):
        text = random_grammar(seed, limits=4, requires=3, forbids=3, parameters=3)
        core = read_grammar_text(text.replace('"x"', '"x-y"')).core
        if core is None or blake3(core).hexdigest()[:24] != expected:
            different.append(seed)
    assert different == []
