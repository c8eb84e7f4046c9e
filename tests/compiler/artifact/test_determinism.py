"""The same grammar gives the same bytes on every Python, equal languages the same root."""

from __future__ import annotations

from tcc_certs.kernel import check
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text

GRAMMAR = """grammar qa version "1.2.0"

tool search(k: 5 | 10 | 20, engine: bm25 | dense) : question -> passages { cost 0.6 price 1 }
tool rerank : passages -> passages { cost 0.4 price 2 latency 120 ms }
tool summarize(style: brief | full) : passages -> text { cost 0.5 cost 0.9 when style = full }
tool calc : text -> number { cost 0.2 }

start question
goal text | number

rule gather = search rerank? | search gather2
rule gather2 = rerank gather2 rerank | rerank
plan = (gather summarize calc?) & any* - (search search)

limit depth <= 9
limit price <= 12
limit count(rerank) <= 4
before summarize require search
before calc require no rerank
before rerank require no calc
"""
PINNED = "c17494a38b2c74edefaad742c093ab0e755d0f1a29414cd5c5969e366c15a3c0"


def artifact(text: str) -> bytes:
    result = compile_text(text, Options())
    assert result.artifact is not None
    return result.artifact


def digest(text: str) -> str:
    return check(artifact(text)).file.digest.hex()


def test_every_python_gives_the_pinned_artifact() -> None:
    assert digest(GRAMMAR) == PINNED


def test_equal_languages_have_one_root() -> None:
    head = """grammar g version "1"

tool a { cost 1 }
tool b { cost 2 }
"""
    plans = [
        "a (a|b) b? | a",
        "a | a a | a b | a a b | a b b",
        "(a any{0,2}) - (a any a) - (a b a)",
    ]
    roots = {check(artifact(f"{head}plan = {plan}\n")).file.manifest.root for plan in plans}
    assert len(roots) == 1
