"""C6: C601 .. C605, and the manifest's root."""

from __future__ import annotations

import pytest

from tcc_certs.corecheck.graphs import state_digest
from tcc_certs.formats.codec import call_digest
from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.build import build
from tests.oracle.cores import letters, make_core
from tests.oracle.examples import example

LETTERS = [call_digest(text, 0, 0) for text in (b"a", b"b")]


@pytest.mark.parametrize("state", [0, -1])
def test_rejects_a_digest_with_a_bit_flipped(state: int) -> None:
    forge = Forge(example())
    raw = forge.values("state_digest")
    place = state % (len(raw) // 32)
    raw[32 * place + 31] ^= 1
    assert refusal(forge.put("state_digest", raw)) == ("C601", f"state_digest[{place}]")


def test_rejects_a_root_that_is_not_the_last_state() -> None:
    forge = Forge(example())
    digest = bytes(forge.values("state_digest")[:32]).hex()
    assert refusal(forge.member("root", value=digest)) == ("M102", "manifest.root")


def automaton(rows: list[tuple[int, list[tuple[int, int]]]], calls: int = 2) -> Forge:
    """An artifact of these states, (accept, [(call, target)]), every equation right but C6's."""
    core = make_core(**letters(2), plan=["repeat", ["call", {0, 1}], 0, 2])
    forge = Forge(build(core, [(0, 0), (0, 1), (1, 0), (1, 1)], tilt=0))
    edges = [edge for _, row in rows for edge in row]
    starts = [0]
    ranks: list[int] = []
    counts: list[int] = []
    digests: list[bytes] = []
    for accept, row in rows:
        starts.append(starts[-1] + len(row))
        ranks.append(max((1 + ranks[p] for _, p in row), default=0))
        counts.append(accept + sum(counts[p] for _, p in row))
        digests.append(state_digest(bool(accept), [(LETTERS[a], digests[p]) for a, p in row]))
    size = len(rows)
    forge.put("edge_start", starts).put("rank", ranks).put("plans", counts, shape=(size, 1))
    forge.put("edge_call", [a for a, _ in edges]).put("edge_target", [p for _, p in edges])
    forge.put("accept", [accept for accept, _ in rows])
    forge.put("cost_to_go", [0] * size).put("residual_to_go", [0] * size)
    forge.columns["state_digest"] = ["U8", (size, 32), b"".join(digests)]
    forge.member("states", value=size).member("edges", value=len(edges))
    return forge.member("root", value=digests[-1].hex())


def test_rejects_a_state_twice() -> None:
    forge = automaton([(1, []), (1, []), (0, [(0, 0), (1, 1)])])
    assert refusal(forge) == ("C602", "state_digest[1]")


def test_rejects_states_out_of_order() -> None:
    rows = [(1, []), (0, [(0, 0)]), (1, [(0, 0)]), (0, [(0, 1), (1, 2)])]
    swapped = [(1, []), (1, [(0, 0)]), (0, [(0, 0)]), (0, [(0, 2), (1, 1)])]
    codes = sorted(refused(automaton(order)) for order in (rows, swapped))
    assert codes == [("C602", "state_digest[2]"), ("valid", "")]


def refused(forge: Forge) -> tuple[str, str]:
    try:
        return refusal(forge)
    except AssertionError:
        return "valid", ""


def test_rejects_ranks_out_of_order() -> None:
    rows = [(1, []), (0, [(0, 0)]), (0, [(0, 1)]), (1, [(1, 0)]), (0, [(0, 2), (1, 3)])]
    assert refusal(automaton(rows)) == ("C602", "state_digest[3]")


def test_rejects_a_state_that_nothing_reaches() -> None:
    rows = [(1, []), (0, [(0, 0), (1, 0)]), (1, [(0, 0), (1, 0)])]
    rows[1:2] = sorted(rows[1:2])
    first, second = sorted((rows[1], rows[2]), key=lambda row: _digest(row))
    assert refusal(automaton([rows[0], first, second])) == ("C603", "state 1")


def test_rejects_a_dead_first_state_that_nothing_reaches() -> None:
    # Only a dead state can stand there: every edge leads down to the one that accepts and ends.
    rows = [(0, []), (1, []), (0, [(0, 1), (1, 1)])]
    assert _digest((0, [])) < _digest((1, []))
    assert refusal(automaton(rows)) == ("C604", "state 0")


def _digest(row: tuple[int, list[tuple[int, int]]]) -> bytes:
    end = state_digest(True, [])
    return state_digest(bool(row[0]), [(LETTERS[a], end) for a, _ in row[1]])


def test_rejects_a_dead_state() -> None:
    ends = [(0, []), (1, [])]
    ends.sort(key=lambda row: state_digest(bool(row[0]), []))
    dead = ends.index((0, []))
    assert refusal(automaton([*ends, (0, [(0, 0), (1, 1)])])) == ("C604", f"state {dead}")


def test_rejects_a_call_on_no_edge() -> None:
    assert refusal(automaton([(1, []), (0, [(1, 0)])])) == ("C605", "call 0")
    assert refusal(automaton([(1, []), (0, [(0, 0)])])) == ("C605", "call 1")
