"""The loop over the states: which finding is heard first, and the table of its rules."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tcc_certs import state_rules
from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.forgery.test_artifact_forgeries import KINDS
from tests.oracle.examples import example

SPEC = Path(__file__).parents[2] / "docs" / "spec" / "artifact.md"
# One wrong value of a state for each rule that reads it, in the order of the rules.
WRONG = ["accept", "edge_call", "edge_target", "rank", "plans", "race_count", "cost_to_go",
         "residual_to_go", "state_digest"]  # fmt: skip
CODES = ["C103", "C101", "C201", "C202", "C301", "C401", "C501", "C502", "C601"]


def spoil(forge: Forge, name: str, state: int) -> Forge:
    """The column's item of a state, or of its first edge, made wrong for that column's rule."""
    starts = forge.values("edge_start")
    at = {"edge_call": starts[state], "edge_target": starts[state], "state_digest": 32 * state}
    place = at.get(name, state)
    value = forge.values(name)[place]
    wrong = {"accept": 2, "edge_call": 99, "edge_target": state, "state_digest": value ^ 1}
    return forge.set(name, place, wrong.get(name, value + 1))


@pytest.mark.parametrize("first", range(len(WRONG)))
def test_of_one_state_the_first_rule_that_fails_is_heard(first: int) -> None:
    forge = Forge(example())
    for name in WRONG[first:]:
        spoil(forge, name, 2)
    assert refusal(forge)[0] == CODES[first]


@pytest.mark.parametrize("earlier", WRONG)
@pytest.mark.parametrize("later", WRONG)
def test_of_two_states_the_first_is_heard_whatever_rule_fails(earlier: str, later: str) -> None:
    alone = refusal(spoil(Forge(example()), earlier, 2))
    assert refusal(spoil(spoil(Forge(example()), later, 3), earlier, 2)) == alone


def test_an_edge_is_looked_at_before_the_next_edge() -> None:
    forge = Forge(example())
    starts = forge.values("edge_start")
    root = len(starts) - 2
    forge.set("edge_target", starts[root], root).set("edge_call", starts[root] + 1, 99)
    assert refusal(forge) == ("C201", f"edge_target[{starts[root]}]")


def test_a_pair_of_call_and_target_may_not_stand_twice() -> None:
    forge = Forge(KINDS["nondeterministic"])
    starts, calls = forge.values("edge_start"), forge.values("edge_call")
    rows = [range(low, high) for low, high in pairwise(starts)]
    at = next(b for row in rows for a, b in pairwise(row) if calls[a] == calls[b])
    forge.set("edge_target", at, forge.values("edge_target")[at - 1])
    assert refusal(forge) == ("C102", f"edge_call[{at}]")


def test_the_table_has_the_rules_of_the_specification_in_their_order() -> None:
    section = SPEC.read_text().split("## 5.")[1].split("## 6.")[0]
    listed = re.findall(r"\b(C[1-6]\d\d)(?:\.\.(C[1-6]\d\d))?", section)
    codes = {
        f"C{n}" for low, high in listed for n in range(int(low[1:]), int((high or low)[1:]) + 1)
    }
    # Of whole columns and of calls; docs/spec/artifact.md says so.
    elsewhere = {"C302", "C402", "C503", "C504"}
    found = [code.value for code in state_rules._RULES]
    assert set(found) == codes - elsewhere
    families = [code[:2] for code in found]
    assert families == sorted(families)
