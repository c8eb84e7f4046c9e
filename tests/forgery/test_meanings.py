"""A faultless proof of the wrong thing: artifacts of other plans than their core's.

Each takes an artifact apart into its graph, changes what it means, and has every certificate made
anew, so that the equations hold.  The check against the core refuses it.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tcc_certs.corecheck.check import check_core
from tcc_certs.errors import Rejected
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.places import parts_of
from tests.forgery.artifacts import Forge
from tests.oracle.build import Node, build, build_graph
from tests.oracle.cores import at_most, depth, letters, make_core, random_core
from tests.oracle.examples import example, example_core
from tests.oracle.network import build_network, build_relaxed
from tests.oracle.plans import plans

CHANGES = ("another target", "another call", "an edge less", "an edge more", "acceptance")


def graph(checked: CheckedArtifact) -> list[Node]:
    """The nodes of an artifact, the root last; calls by their number in the core."""
    nodes = []
    for q in range(checked.automaton.states):
        pairs = [(checked.core_calls[a], nodes[p]) for a, p in checked.automaton.edges(q)]
        nodes.append(Node(accept=bool(checked.automaton.accept[q]), twins=pairs))
    return nodes


def change(rng: random.Random, nodes: list[Node], how: str, calls: int) -> None:
    """Change one state; what is left may mean the same, or be no automaton at all."""
    at = rng.randrange(len(nodes))
    node = nodes[at]
    if how == "acceptance":
        node.accept = not node.accept
    elif how == "an edge more":
        node.twins.append(
            (rng.randrange(calls), nodes[rng.randrange(at)] if at else Node(accept=True))
        )
    elif node.twins:
        place = rng.randrange(len(node.twins))
        call, target = node.twins[place]
        if how == "another target":
            node.twins[place] = call, nodes[rng.randrange(at)]
        elif how == "another call":
            node.twins[place] = rng.randrange(calls), target
        else:
            del node.twins[place]


def refusals(data: bytes, rng: random.Random, rounds: int) -> Counter[str]:
    """How many changed artifacts each code refused; those that mean the same do not count."""
    checked = check(data)
    manifest = checked.file.manifest
    core = bytes(checked.file.columns["core"].data)
    features = {
        "nondeterministic": manifest.nondeterministic,
        "relaxed": manifest.relaxed,
        "round_counts": manifest.round_counts,
    }
    found: Counter[str] = Counter()
    for _ in range(rounds):
        nodes = graph(checked)
        how = rng.choice(CHANGES)
        change(rng, nodes, how, len(checked.core.calls))
        try:
            forged = build_graph(core, nodes[-1], tilt=manifest.tilt, **features)
            changed = check(forged)
        except (Rejected, ValueError):
            continue  # dead states, or one call twice: no automaton
        if changed.file.manifest.root == manifest.root:
            continue
        with pytest.raises(Rejected) as refusal:
            check_core(changed)
        found[refusal.value.code.value] += 1
    return found


def kinds(rng: random.Random) -> list[bytes]:
    """A random core's artifacts, deterministic and not, relaxed and not."""
    data, core = random_core(rng, 3)
    words = plans(core, 3)
    if not words:
        return []
    found = [build(data, words), build(data, words, round_counts=3), build_network(data, 3)]
    relaxed = tuple([part.number for part in parts_of(core) if part.table is not None])
    if relaxed:
        found += [build_relaxed(data, relaxed, 3), build_network(data, 3, relaxed)]
    return [made for made in found if made is not None]


def survive(seed: object, rounds: int) -> Counter[str]:
    rng = random.Random(f"meanings {seed}")
    total: Counter[str] = Counter()
    for _ in range(rounds):
        for data in kinds(rng):
            total += refusals(data, rng, 6)
    return total


def test_changed_meanings_with_certificates_made_anew_are_refused() -> None:
    total = survive(0, 25)
    print(f"{total.total()} changed meanings refused, none valid: {dict(sorted(total.items()))}")
    assert min(total[code] for code in ("G101", "G102", "G103")) > 5


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(1, 21))
def test_many_changed_meanings_are_refused(seed: int) -> None:
    total = survive(seed, 300)
    print(f"{total.total()} changed meanings refused, none valid: {dict(sorted(total.items()))}")


def test_another_cost_is_refused_though_all_follows_from_it() -> None:
    other = example_core().replace(b"300000000", b"300000001")
    forge = Forge(build_graph(other, graph(check(example()))[-1]))
    assert check(forge.seal()).core.calls[0].cost_low == 300_000_001
    forge.columns["core"] = Forge(example()).columns["core"]
    with pytest.raises(Rejected) as refusal:
        check(forge.seal())
    assert (refusal.value.code, refusal.value.path) == ("C802", "call_cost_low[0]")


def test_another_statement_named_as_relaxed_is_refused() -> None:
    core = make_core(
        **letters(2, price=[1, 2]),
        plan=["repeat", ["call", {0, 1}], 0],
        statements=[depth(2), at_most("latency", 9), at_most("price", 2)],
    )
    data = build_relaxed(core, (2,), 2)
    assert check_core(check(data)).pairs > 0
    forged = Forge(data).member("relaxed", value=[1]).seal()
    with pytest.raises(Rejected, match="G102"):
        check_core(check(forged))
    # Of a limit that never binds nothing is lost, and nothing is gained, by naming it as well.
    both = Forge(data).member("relaxed", value=[1, 2]).seal()
    assert check_core(check(both)).pairs > 0
