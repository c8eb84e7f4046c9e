"""The compiler against listing: on random grammars its artifact is, byte for byte, the one made
from a list of all plans.

The list comes from the set semantics of the language (tests.oracle.plans), the artifact of the list
from a trie that is merged by digest (tests.oracle.build): neither knows states, residuals,
derivatives or limits as counters.  Equal bytes are equal plans, counts, race counts, bounds,
digests, numbering and tables in one comparison.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tcc_certs.corecheck.check import check_core
from tcc_certs.formats.codec import encode
from tcc_certs.kernel import check
from tcc_certs.policy.reader import core_json
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tcc_runtime.artifact.load import load
from tcc_runtime.artifact.plans import cheapest_plan, enumerate_plans, plans_by_depth
from tests.campaigns.blocks import blocks
from tests.oracle.build import build
from tests.oracle.plans import plans
from tests.property.grammars import random_grammar

TILTS = (0, 4, 8)
MOST_WORDS = 2_500


def agree(seed: int, **shape: object) -> str:
    """Compile the grammar of that seed and compare; says what it came to."""
    core = read_grammar_text(random_grammar(seed, **shape)).core
    if core is None:
        return "refused by the front end"
    data = encode(core_json(core))
    beta = ("1", "0.5", "3")[seed % 3]
    depth = min(
        (int(s.most) for s in core.statements if getattr(s, "what", "") == "depth"), default=None
    )
    if depth is None:
        return "no limit on depth"
    if len(core.calls) ** depth > MOST_WORDS:
        return "too many to list"
    expected = plans(core, depth)
    tilt = TILTS[seed % len(TILTS)]
    compiled = compile_core(data, Options(tilt=tilt, beta=beta))
    if not expected:
        assert [d.code for d in compiled.diagnostics] == ["TCC402"]
        return "empty"
    assert compiled.artifact is not None, compiled.diagnostics
    due = build(data, expected, beta=beta, tilt=tilt)
    assert compiled.artifact == due
    check_core(check(compiled.artifact))
    artifact = load(compiled.artifact, verify=False)
    texts = [tuple(core.calls[call].text for call in plan) for plan in expected]
    assert list(enumerate_plans(artifact)) == texts
    lengths = Counter(map(len, texts))
    assert plans_by_depth(artifact) == [lengths[n] for n in range(max(lengths) + 1)]
    costs = [sum(core.calls[call].cost_low for call in plan) for plan in expected]
    assert artifact.cost_to_go(artifact.root) == min(costs)
    assert cheapest_plan(artifact) == min(
        (text for text, cost in zip(texts, costs, strict=True) if cost == min(costs)),
        key=lambda text: (len(text), texts.index(text)),
    )
    return "equal"


@pytest.mark.parametrize("block", blocks(6, 10))
@pytest.mark.sampled(1)
def test_the_artifact_of_a_random_grammar_is_that_of_its_list_of_plans(block: int) -> None:
    outcomes = Counter(agree(seed) for seed in range(50 * block, 50 * block + 50))
    assert outcomes["equal"] >= 20, outcomes


@pytest.mark.parametrize("operator", ["recursion", "limits", "requires", "forbids", "signatures"])
def test_each_kind_of_statement_agrees_where_it_is_frequent(operator: str) -> None:
    shapes: dict[str, dict[str, object]] = {
        "recursion": {"recursion": 0.9, "rules": 3},
        "limits": {"limits": 4, "negative": 0.6},
        "requires": {"requires": 4, "plain": 0.5},
        "forbids": {"forbids": 4, "plain": 0.5},
        "signatures": {"signatures": 1.0, "plain": 0.5},
    }
    outcomes = Counter(agree(seed, **shapes[operator]) for seed in range(10_000, 10_018))
    assert outcomes["equal"] + outcomes["empty"] >= 5, outcomes


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(40))
def test_ten_thousand_random_grammars_agree(block: int) -> None:
    outcomes = Counter(agree(seed) for seed in range(20_000 + 250 * block, 20_250 + 250 * block))
    print(outcomes)
    assert outcomes["equal"] >= 100
