"""The runtime's MPFR and integers of fixed size, and the kernel's integers, publish one number.

Nodes of real artifacts, but uniforms that no PRF would give: both ends of the unit interval, powers
of two, values next to them; counts up to 2^4000 and down to 2^-4000; paths of 64 calls.  Every
child of every expanded node has the same -ln t and the same key, every leaf the same U_P, to the
last bit.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest

from tcc_certs.formats.codec import blake
from tcc_certs.formats.ledger import format_q64
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay.language import Language, read_language, root_of
from tcc_certs.replay.races.children import Listing
from tcc_certs.replay.races.coupled import CoupledReplay as Definition
from tcc_certs.replay.tree import Node, below, child_digest, root_node, slots
from tcc_certs.statements import Constraints
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.item import ORDER, VIEW, WON, WORD, Item
from tcc_runtime.races.interface import Race
from tcc_runtime.states import tables_of
from tests.oracle.build import Node as Built, build_graph
from tests.oracle.cores import depth, letters, make_core
from tests.runtime.engines import Given, race_over

NANO = 10**9
FREE = Constraints(items=())
# Costs, most calls, fewest calls, beta, tilt: plain; tilted; weights near 2^62, 2^-64, both; none.
SHAPES = [
    ([NANO, 0, 250_000_000], 12, 0, "1", 8),
    ([NANO, 0, 250_000_000], 64, 0, "3.25", 12),
    ([-43 * NANO, -42_700_000_000, -44 * NANO], 64, 0, "1", 1),
    ([60 * NANO, 47 * NANO, 44_361_419_556], 64, 64, "1", 1),
    ([-30 * NANO, 30 * NANO, 7, -7], 64, 3, "0.71", 33),
    ([1, 2, 3, 4, 5, 6], 40, 0, "0.000001", 0),
    ([NANO, 2 * NANO], 24, 20, "0", 64),
]


@cache
def artifacts() -> list[tuple[CheckedArtifact, Artifact]]:
    """All words up to a length over a few calls, for every shape."""
    found = []
    for costs, longest, shortest, beta, tilt in SHAPES:
        some = ["call", set(range(len(costs)))]
        core = make_core(
            **letters(len(costs), cost=costs),
            plan=["repeat", some, shortest, longest],
            statements=[depth(longest)],
        )
        node = Built(accept=True)
        for made in reversed(range(longest)):
            children = dict.fromkeys(range(len(costs)), node)
            node = Built(accept=made >= shortest, children=children)
        data = build_graph(core, node, beta, tilt)
        found.append((check(data), load(data)))
    return found


def extreme(salt: bytes, purpose: int, identity: bytes) -> int:
    """A uniform that is a function of its arguments, often an extreme one."""
    rng = random.Random(blake(salt + bytes([purpose]) + identity))
    power = 1 << rng.randrange(64)
    return rng.choice(
        [0, 2**64 - 1, power, 2**64 - power, power - 1, (power + 1) % 2**64]
        + [rng.getrandbits(64) for _ in range(6)]
    )


def agree_on_a_path(
    checked: CheckedArtifact,
    language: Language,
    loaded: Artifact,
    recipe: str,
    salt: bytes,
    numbers: str,
) -> int:
    """Compares all children along one path down; how many arrivals there were."""
    rng = random.Random(salt)
    tables = tables_of(loaded, recipe, "1")
    given = Given(lambda purpose, identity: extreme(salt, purpose, identity))
    race = race_over(loaded, given, numbers=numbers, tables=tables)
    definition = Definition(language=language, recipe=recipe, anchored=False)
    listing = Listing(language)

    def word(purpose: int, identity: bytes, field: str) -> int:
        return extreme(salt, purpose, identity)

    fast = race.root()
    slow = compared_node(race, fast, definition, root_node(root_of(checked), FREE, None), word)
    compared = 1
    while fast[VIEW] is not None and slow.states is not None:
        _, _, _, pushed, _, _ = race.expand(fast)
        children = []
        for slot, child in zip(slots(listing.children(slow.states), FREE, ()), pushed, strict=True):
            digest = child_digest(language, slow.digest, slot)
            made = below(language, slow, slot, digest, child[WORD] == WON, None)
            children.append(compared_node(race, child, definition, made, word))
            compared += 1
        at = rng.randrange(len(children))
        if rng.random() < 0.95:
            at = rng.randrange(max(1, len(children) - 1))  # `stop` is the last one, if any
        fast, slow = pushed[at], children[at]
    return compared


def compared_node(race: Race, fast: Item, definition: Definition, node: Node, word) -> Node:
    """The node as the definition pushes it: with the numbers of the fast one."""
    found = definition.push(node, word)
    assert not found.clamped
    assert -fast[ORDER] == found.key
    assert format_q64(race.shown(fast)[0]) == found.fields["neg_log_t"]
    node = replace(node, key=found.key, arrival=found.arrival)
    if fast[VIEW] is None:
        assert str(race.leaf_word(fast)) == definition.pop(node, word).fields["U_P"]
    return node


def agree(rng: random.Random, arrivals: int) -> dict[str, int]:
    languages = [read_language(checked) for checked, _ in artifacts()]
    compared = paths = 0
    while compared < arrivals:
        at = paths % len(languages)
        checked, loaded = artifacts()[at]
        recipe = rng.choice(["r1", "r2"])
        # Integers of fixed size bound their exponents and costs; these artifacts are within that.
        numbers = ("mpfr", "fixed")[paths // len(languages) % 2]
        compared += agree_on_a_path(
            checked, languages[at], loaded, recipe, rng.randbytes(16), numbers
        )
        paths += 1
    return {"paths": paths, "arrivals": compared, "different": 0}


def test_the_counts_are_extreme():
    sizes = []
    for checked, _ in artifacts():
        bits = checked.file.manifest.fraction_bits * checked.automaton.rank[-1]
        sizes.append(checked.race_count[-1].bit_length() - bits)  # log2 n(root)
    assert max(sizes) > 3_900
    assert min(sizes) < -3_900


def test_both_arithmetics_publish_the_same_numbers():
    print(agree(random.Random(71), 6_000))


@pytest.mark.campaign
def test_both_arithmetics_publish_the_same_numbers_campaign():
    print(agree(random.Random(72), 1_000_000))
