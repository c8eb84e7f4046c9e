"""Where a run after some calls begins: the state, the context and what the statements have seen."""

from __future__ import annotations

from functools import cache

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.reader import read_core
from tcc_certs.race.digest import child_context, root_context
from tcc_certs.replay import validate
from tcc_certs.replay.language import root_of
from tests.oracle.build import build
from tests.oracle.cores import depth, letters, make_core
from tests.oracle.network import without
from tests.oracle.plans import plans
from tests.oracle_ledger.artifacts import small
from tests.oracle_ledger.upper import Shape, upper
from tests.oracle_ledger.writer import chained, reference_records, with_run_id
from tests.runtime.graphs import build as build_rows


@cache
def ladder() -> CheckedArtifact:
    """Tools a, c and e: the plans a and a c e, so each call leads on from one place alone."""
    core = make_core(
        tools=[{"name": name} for name in "ace"],
        calls=letters(3)["calls"],
        plan=["seq", [["call", {0}], ["repeat", ["seq", [["call", {1}], ["call", {2}]]], 0, 1]]],
        statements=[depth(3)],
    )
    return check(build(core, [(0,), (0, 1, 2)]))


@cache
def ordered() -> CheckedArtifact:
    """Two letters, at most three calls; that no `b` comes before an `a` is left to the run."""
    core = make_core(
        **letters(2),
        plan=["repeat", ["call", {0, 1}], 0, 3],
        statements=[depth(3), ["before", {0}, {1}]],
    )
    relaxed = (1,)
    return check(upper(core, plans(without(read_core(core), relaxed), 3), Shape(relaxed=relaxed)))


def refused(artifact: CheckedArtifact, after: list[str]) -> tuple[str, str, str, str]:
    """Code, field, what was due and what was there."""
    with pytest.raises(Rejected) as caught:
        root_of(artifact, after)
    found = caught.value
    return found.code.value, found.path, found.expected, found.found


@pytest.mark.parametrize(
    ("after", "made"),
    [
        (["b"], 0),  # no call, and one stands after it in the order
        (["zzz"], 0),  # no call, and none stands after it
        (["c"], 0),  # a call, and no edge of the root carries it
        (["e"], 0),  # the same, the last of all calls
        (["a", "c", "a"], 2),
        (["a", "c", "e", "a"], 3),  # from a state without edges
        (["a", "b", "c"], 1),  # and not the calls after the one that is none
    ],
    ids=str,
)
def test_calls_that_are_no_prefix_of_a_plan_are_no_root(after, made):
    due = f"a call that may follow the {made} before it"
    assert refused(ladder(), after) == ("L201", "after", due, after[made])


@pytest.mark.parametrize(("after", "made"), [(["b"], 0), (["zz"], 0), (["a", "zz"], 1)])
def test_calls_that_a_statement_forbids_are_no_root(after, made):
    due = f"a call that may follow the {made} before it"
    assert refused(ordered(), after) == ("L201", "after", due, after[made])


def test_a_root_has_the_calls_the_state_and_the_context_that_they_lead_to():
    root = root_of(ladder(), ["a", "c"])
    ((_, first),) = ladder().automaton.edges(ladder().automaton.root)
    ((_, second),) = ladder().automaton.edges(first)
    digest = root_context(ladder().file.manifest.root_document)
    for text in (b"a", b"c"):
        digest = child_context(digest, text)
    assert (root.after, root.states, root.digest) == ((0, 1), (second,), digest)
    assert (root.tally, root.rank) == ((), 1)
    assert root_of(ordered(), ["a", "b"]).tally == ((0, 1),)


def test_a_root_is_all_states_that_a_call_leads_to_and_no_others():
    # The root's edges by call and target: a to two states, b to one, c to another.
    core = make_core(
        **letters(3), plan=["repeat", ["call", {0, 1, 2}], 0, 9], statements=[depth(9)]
    )  # fmt: skip
    rows = [
        (True, []), (True, [(0, 0)]), (True, [(1, 0), (2, 0)]), (True, [(0, 2)]),
        (False, [(0, 1), (0, 2), (1, 3), (2, 0)]),
    ]  # fmt: skip
    artifact = check(build_rows(core, rows, nondeterministic=True))
    edges = list(artifact.automaton.edges(artifact.automaton.root))
    for call, text in enumerate(artifact.calls):
        due = tuple(sorted({target for other, target in edges if other == call}))
        assert root_of(artifact, [text]).states == due
    assert len(root_of(artifact, ["a"]).states) == 2


def test_a_ledger_after_calls_that_are_no_prefix_is_refused_at_its_header():
    records = reference_records(small(), after=("a",))
    for other, made in ((["aa"], 0), (["zzz"], 0), (["a", "b", "c"], 2)):
        head = with_run_id({**records[0], "after": other})
        (found,) = validate(chained([head, *records[1:]]), small()).findings
        assert (found.code.value, found.line, found.field) == ("L201", 1, "after")
        assert found.expected == f"a call that may follow the {made} before it"
