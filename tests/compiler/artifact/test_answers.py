"""Grammars with listed answers from text to the columns of the artifact.

The artifact of a random grammar is that of the list of its plans; calls are in the order of their
texts, also if a field is left out or a name is no identifier.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tcc_certs.corecheck.check import check_core
from tcc_certs.formats.codec import decode, encode
from tcc_certs.kernel import check
from tcc_certs.policy.reader import core_json
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tests.campaigns.blocks import blocks
from tests.oracle.build import build
from tests.oracle.plans import plans
from tests.oracle.strict import without_strict

DEPTH = 3
TOOLS = {
    "get": "tool get(n: 1 | 2.5)",
    "run": "tool run(k: u | v) gives (r: pass | fail)",
    "a-b": "tool `a-b`(x?: 2 | 0.5)",
    "any": "tool `any` gives (w: 1 | 3)",
    "edit": "tool edit",
}
PATTERNS = {
    "get": ("get", "get(n=1)"),
    "run": ("run", "run(r=pass)", "run(k=u)"),
    "a-b": ("`a-b`", "`a-b`(x=2)"),
    "any": ("`any`", "`any`(w=3)"),
    "edit": ("edit",),
}
SUMS = {"get": "get.n"}


def grammar(rng: random.Random) -> str:
    """A random grammar over some of these tools."""
    names = sorted(rng.sample(sorted(TOOLS), rng.randint(1, 3)))
    lines = ['grammar g version "1"', f"limit depth <= {DEPTH}"]
    for name in names:
        strict = " gives " in TOOLS[name] and rng.random() < 0.7
        lines.append(TOOLS[name] + " { strict }" * strict)
    patterns = [pattern for name in names for pattern in PATTERNS[name]]

    def some() -> str:
        return rng.choice(patterns)

    def asked() -> str:
        """A set of calls that compares no answer."""
        return rng.choice([one for one in patterns if "r=" not in one and "w=" not in one])

    forms = [
        lambda: f"before {asked()} require {some()} since {asked()}",
        lambda: f"before {asked()} require {some()}",
        lambda: f"before {asked()} require no {some()}",
        lambda: f"after {asked()} owe {some()}",
        lambda: f"finally require {some()}",
    ]
    for name in names:
        if name in SUMS:
            forms.append(lambda of=SUMS[name]: f"limit sum({of}) <= {rng.choice((1, 2.5, 3, 4.5))}")
    lines += sorted({rng.choice(forms)() for _ in range(rng.randint(0, 3))})
    parts = [f"{some()}{rng.choice(('', '?', '*', '+'))}" for _ in range(rng.randint(1, 3))]
    lines.append(rng.choice(("plan = any*", f"plan = {' '.join(parts)}")))
    return "\n".join(lines) + "\n"


def compare(seed: int) -> str:
    """Compile the grammar of that seed and compare; says what it came to."""
    text = grammar(random.Random(seed))
    core = read_grammar_text(text).core
    assert core is not None, text
    listed, left = plans(without_strict(core), DEPTH), plans(core, DEPTH)
    made = compile_text(text, Options())
    errors = [d.code for d in made.diagnostics if d.severity == "error"]
    if not left:
        assert errors == ["TCC414" if listed else "TCC402"], text
        return errors[0]
    assert made.artifact == build(encode(core_json(core)), left), text
    check_core(check(made.artifact))
    return "whole" if len(left) == len(listed) else "cut"


@pytest.mark.parametrize("block", blocks(1, 4))
def test_the_artifact_of_a_random_grammar_is_that_of_its_list_of_plans(block: int) -> None:
    outcomes = Counter(compare(seed) for seed in range(40 * block, 40 * block + 40))
    assert outcomes["whole"] >= 20
    assert outcomes["cut"] + outcomes["TCC414"] >= 2


ORDER = """grammar g version "1"

tool b(x?: 1 | 2, y?: 1, title: text)
tool `a b`(k: 1)
tool `a b c`
tool `é`
tool use(p: 1) gives (q: no | yes) { strict }

plan = any
"""


def test_calls_stand_by_text_whatever_is_absent_or_in_quotes() -> None:
    made = compile_text(ORDER, Options())
    assert made.artifact is not None
    checked = check(made.artifact)
    due = [
        '"a b c"', '"a b"(k=1)', '"é"',
        "b", "b(x=1)", "b(x=1,y=1)", "b(x=2)", "b(x=2,y=1)", "b(y=1)",
        "use(p=1,q=no)", "use(p=1,q=yes)",
    ]  # fmt: skip
    assert list(checked.calls) == due
    assert due == sorted(due, key=str.encode)
    check_core(checked)


def test_the_tools_of_an_artifact_are_those_of_its_core_with_all_their_members() -> None:
    made = compile_text(ORDER.replace("plan = any", "plan = b | use"), Options())
    assert made.artifact is not None
    columns = check(made.artifact).file.columns
    assert decode(bytes(columns["tools"].data), "tools") == [
        {
            "name": "b",
            "fields": [
                {"name": "x", "optional": True, "values": ["1", "2"]},
                {"name": "y", "optional": True, "values": ["1"]},
                {"name": "title", "type": {"kind": "text", "max": 65536, "min": 0}},
            ],
        },
        {
            "name": "use",
            "fields": [{"name": "p", "values": ["1"]}],
            "gives": [{"name": "q", "values": ["no", "yes"]}],
            "strict": True,
        },
    ]


def test_infinitely_many_plans_name_limits_as_a_grammar_writes_them() -> None:
    text = """grammar g version "1"

tool `a-b`(`x y`: 1 | 2)
"""
    (found,) = compile_text(text, Options(purpose="run")).diagnostics
    assert found.code == "TCC401"
    assert found.hint == (
        "say in `plan` what follows what, or add `limit depth <= N` or "
        "`limit count(`a-b`) <= N` or `limit sum(`a-b`.`x y`) <= X`; a gate needs no limit: "
        "--for gate"
    )
    limited = compile_text(text + "limit sum(`a-b`.`x y`) <= 3\n", Options(purpose="run"))
    assert limited.artifact is not None
    assert check(limited.artifact).plans[-1] == 7
