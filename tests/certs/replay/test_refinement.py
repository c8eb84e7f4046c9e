"""What an answer narrows, what has to be asked before a pop, and when a promise is broken."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tcc_certs.replay.amounts import AskRule, SpendingCaps, SpentAmounts
from tcc_certs.replay.asking.account import AccountRecord
from tcc_certs.replay.asking.refinement import ReplayRefinement, read_asking
from tcc_certs.replay.language import read_language, root_of
from tcc_certs.replay.races.children import Listing, whole
from tcc_certs.replay.tree import Node, below, child_digest, root_node, slots
from tcc_certs.statements import Constraints
from tests.forgery.test_range_forgeries import ranges

LOW, HIGH = 3 * 10**8, 15 * 10**8  # what call `a` costs


def refinement(ask: str = "leaf", same: bool = True) -> ReplayRefinement:
    _, artifact = ranges(same=same)
    one = (1, 0)
    rule = AskRule(
        ask=ask, price_weight=one, latency_weight=one, epsilon_weight=one, caps=SpendingCaps()
    )
    return ReplayRefinement(read_language(artifact), read_asking(artifact), rule)


def nodes() -> tuple[Node, Node, Node]:
    """The root, the node after call `a`, and the leaf of that plan."""
    _, artifact = ranges()
    language, listing = read_language(artifact), Listing(read_language(artifact))
    root = root_node(root_of(artifact), Constraints(items=()), None)
    made = [root]
    for place in (0, -1):
        parent = made[-1]
        assert parent.states is not None
        slot = slots(listing.children(parent.states), Constraints(items=()), ())[place]
        digest = child_digest(language, parent.digest, slot)
        made.append(below(language, parent, slot, digest, False, None))
    assert [node.call for node in made] == ["", "a", "stop"]
    return made[0], made[1], made[2]


@pytest.mark.parametrize(
    ("answer", "gained"),
    [
        (None, 0),
        ((LOW + 1, HIGH), 1),
        ((LOW, HIGH - 1), 0),
        ((LOW, LOW), 0),
        ((HIGH, HIGH), HIGH - LOW),
        ((LOW + 5, HIGH - 5), 5),
        ((LOW, HIGH), None),  # as wide as it was
        ((LOW - 1, HIGH - 1), None),
        ((LOW - 1, LOW), None),
        ((LOW - 9, LOW - 9), None),
        ((HIGH - 1, HIGH + 1), None),
        ((HIGH + 1, HIGH + 1), None),
        ((LOW + 9, LOW + 3), None),  # its ends the wrong way round
        ((LOW + 9, LOW + 8), None),
    ],
)
@pytest.mark.parametrize("same", [False, True])
def test_an_answer_counts_only_strictly_inside(answer, gained, same):
    known, (_, node, _) = refinement(same=same), nodes()
    assert known.narrow(node, 2, answer) == gained
    edge = known.edge(node)
    narrowed = answer is not None and gained is not None
    assert (edge.low, edge.high) == (answer if narrowed else (LOW, HIGH))
    assert edge.tried == [2]
    assert known.costs(node) == (edge.low, edge.high)
    # Nothing was answered, so no promise was broken; else by an answer outside, or where none is.
    assert known.same is (answer is None or (narrowed and same))


def test_an_answer_outside_breaks_the_promise_for_good():
    known, (_, node, _) = refinement(), nodes()
    assert known.narrow(node, 0, (LOW, HIGH)) is None
    assert known.narrow(node, 1, (LOW, LOW)) == 0
    assert not known.same


def test_what_was_answered_is_narrowed_further():
    known, (_, node, _) = refinement(), nodes()
    assert known.narrow(node, 0, (LOW + 10, HIGH)) == 10
    assert known.narrow(node, 1, (LOW + 9, HIGH - 1)) is None
    assert known.narrow(node, 2, (LOW + 12, HIGH - 1)) == 2


@pytest.mark.parametrize("ask", ["leaf", "node", "never"])
def test_what_has_to_be_asked_before_a_pop(ask):
    known, (root, node, leaf) = refinement(ask), nodes()
    assert root.states is not None and node.states is not None
    listing = Listing(read_language(ranges()[1]))
    rest = replace(
        node, digest=b"\x07" * 32, left=whole(node.digest, listing.children(node.states))
    )
    asked = node if ask == "node" else None
    assert known.unasked(root) is None
    assert known.unasked(node) is asked
    assert known.unasked(rest) is None  # of a node it is asked once, before it is expanded
    wanted = known.unasked(leaf)
    assert wanted is not None and wanted.digest == node.digest
    known.narrow(node, 0, (LOW + 1, HIGH))
    assert known.unasked(node) is None  # one answer is enough there, and not at a leaf
    assert known.unasked(leaf) is not None
    assert known.costs(rest) == known.costs(node) == known.costs(leaf) == (LOW + 1, HIGH)
    known.narrow(node, 1, (LOW + 5, LOW + 5))
    assert known.unasked(leaf) is None
    assert known.costs(root) == (0, 0)


def test_a_run_is_overspent_by_its_own_caps_or_by_its_account():
    _, artifact = ranges()
    one = (1, 0)
    rule = AskRule(
        ask="leaf",
        price_weight=one,
        latency_weight=one,
        epsilon_weight=one,
        caps=SpendingCaps(price=3),
    )
    for own, account in itertools.product((False, True), (None, False, True)):
        shared = None if account is None else AccountRecord(id="0c" * 32, run="r", caps={})
        known = ReplayRefinement(read_language(artifact), read_asking(artifact), rule, shared)
        assert (known.drawn is None) is (account is None)
        if known.drawn is not None:
            known.drawn.overdrawn = account is True
        known.controller.spent = SpentAmounts(price=4 if own else 3)
        assert known.overspent is (own or account is True)
