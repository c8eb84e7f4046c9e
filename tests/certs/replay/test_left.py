"""What of a node's children is drawn next, against the definition; and which lists are kept."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest

from tcc_certs.kernel import check
from tcc_certs.policy.reader import read_core
from tcc_certs.race.arrivals import WORD
from tcc_certs.replay.language import read_language, root_of
from tcc_certs.replay.races import children as lists
from tcc_certs.replay.races.children import Children, Listing, listing_of, whole
from tcc_certs.replay.races.rest import remaining
from tcc_certs.replay.tree import below, child_digest, root_node, slots
from tcc_certs.statements import residual_constraints
from tests.forgery.test_every_field import dead_ends
from tests.oracle.cores import depth, letters, make_core
from tests.oracle.plans import plans
from tests.oracle_ledger.artifacts import small
from tests.oracle_ledger.upper import Shape, upper


def children(masses: list[int], phantom: int) -> Children:
    running = list(accumulate(masses))
    steps = [(at, (at,)) for at in range(len(masses))]
    return Children(
        steps=steps, masses=masses, running=running, total=running[-1] + phantom, unit=0
    )


def due(masses: list[int], gone: set[int], mass: int, x: int) -> int | None:
    """The first child j in R with (2x+1) mass(R) < 2^65 (running sum over R up to j)."""
    total = 0
    for place, one in enumerate(masses):
        total += 0 if place in gone else one
        if place not in gone and (2 * x + 1) * mass < total << 65:
            return place
    return None


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("phantom", [0, 3])
def test_each_draw_is_that_of_the_definition(size, phantom):
    rng = random.Random(100 * size + phantom)
    for _ in range(60):
        masses = [rng.choice((1, 2, 7, 1 << 70)) for _ in range(size)]
        rest, gone, mass = whole(b"c", children(masses, phantom)), set(), sum(masses) + phantom
        phantoms = 0
        while rest.number:
            # Words at and beside each end of a share, and one at random.
            ends = [0, *accumulate(0 if at in gone else m for at, m in enumerate(masses))]
            at = [(end << WORD) // mass + by for end in ends for by in (-1, 0, 1)]
            words = [x for x in (*at, rng.getrandbits(64)) if 0 <= x < 1 << 64]
            for x in words:
                assert rest.winner(x) == due(masses, gone, mass, x)
            place = rest.winner(rng.choice(words))
            rest = rest.without(place, place is None)
            mass -= phantom if place is None else masses[place]
            gone |= set() if place is None else {place}
            phantoms += place is None
            assert (rest.mass, rest.number) == (mass, size - len(gone))
        assert phantoms <= (phantom > 0)
        assert rest.mass == phantom * (1 - phantoms)


def test_the_last_child_is_not_drawn_twice():
    # Of eight places the last one closes the tree of what was taken.
    for size in (1, 2, 4, 8):
        rest = whole(b"c", children([1] * size, 5))
        last = (1 << 64) - 1
        share = (size - 1 << 64) // (size + 5) + 1  # just within the last child's share
        assert rest.winner(last) is None
        assert rest.winner(share) == size - 1
        after = rest.without(size - 1, barren=False)
        for x in (share, last):
            assert after.winner(x) == due([1] * size, {size - 1}, size + 4, x)
        assert after.winner(last) is None


@pytest.mark.parametrize(
    ("after", "place", "barren", "pushed", "dead"),
    [
        ((0, 0), 0, True, [], True),  # two calls for 4 cents: nothing is left to buy
        ((0, 0), None, True, [], True),
        ((0, 0), 0, False, [], False),  # some child was pushed before
        ((0, 1), 0, True, [1], False),
        ((0, 1), None, True, [1], False),
        ((1, 1), None, True, [0, 1], False),
        ((1, 1), 1, False, [0], False),
    ],
    ids=str,
)
def test_what_is_left_is_a_dead_end_where_no_child_ever_was_or_is_allowed(
    after, place, barren, pushed, dead
):
    artifact = dead_ends()
    language, constraints = read_language(artifact), residual_constraints(artifact, None)
    listing, node = Listing(language), root_node(root_of(artifact), constraints, None)
    for call in after:
        slot = slots(listing.children(node.states or ()), constraints, node.tally)[call]
        digest = child_digest(language, node.digest, slot)
        node = below(language, node, slot, digest, False, None)
    left = whole(node.digest, listing.children(node.states or ())).without(place, barren)
    made = remaining(language, constraints, node, left)
    assert [slot.call for slot in made.pushed] == pushed
    assert made.fields == ({"dead_end": True} if dead else {})
    assert made.lost == left.mass - sum(slot.mass for slot in made.pushed)


def test_the_masses_of_a_rounded_state_that_accepts_are_whole_numbers():
    core = make_core(
        **letters(3), plan=["repeat", ["call", {0, 1, 2}], 0, 3], statements=[depth(3)]
    )  # fmt: skip
    artifact = check(upper(core, plans(read_core(core), 3), Shape(round_counts=2, tilt=0)))
    language = read_language(artifact)
    count, unit = language.rate(language.root)
    assert unit < 0  # the root's count is a multiple of a power of two
    listed = Listing(language).children(language.root)
    assert (listed.unit, listed.masses[-1]) == (0, 1)
    assert listed.total == count << -unit == sum(listed.masses) + listed.phantom


def test_lists_are_kept_up_to_a_bound_and_made_again_beyond_it(monkeypatch):
    language = read_language(small())
    states = [(q,) for q in range(language.automaton.states)]
    rooms = [Listing(language).children(at).room for at in states]
    assert len(states) == 3 and all(rooms)
    for bound, kept in ((sum(rooms), True), (sum(rooms) - 1, False)):
        monkeypatch.setattr(lists, "MAX_KEPT", bound)
        listing = Listing(language)
        made = [listing.children(at) for at in states]
        assert made[-1] is listing.children(states[-1])
        assert (listing.children(states[0]) is made[0]) is kept
    # However many sets are met, no more is kept than the bound has room for.
    monkeypatch.setattr(lists, "MAX_KEPT", max(rooms))
    listing = Listing(language)
    for at in states * 3:
        listing.children(at)
        assert sum(one.room for one in listing._found.values()) <= max(rooms)


def test_the_listing_of_a_language_stays_with_its_artifact():
    language, other = read_language(small()), read_language(small(), (17, 1))
    first = listing_of(small(), language)
    assert listing_of(small(), language) is first
    assert listing_of(small(), other) is not first
    assert listing_of(small(), other).language is other
    more = listing_of(small(), other).children(other.root)
    assert first.children(language.root).total < more.total
