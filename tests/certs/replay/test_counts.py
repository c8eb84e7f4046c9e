"""Inflated counts: what they are, and that they are declined where they would take too much."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.reader import read_core
from tcc_certs.replay import language, validate
from tcc_certs.replay.language import edge_sum, inflated_counts, read_language
from tcc_certs.rounded import RoundedCounts
from tests.oracle.cores import depth, letters, make_core
from tests.oracle.plans import plans
from tests.oracle_ledger.artifacts import small
from tests.oracle_ledger.upper import Shape, upper
from tests.oracle_ledger.writer import chained, reference_records


def rounded() -> CheckedArtifact:
    core = make_core(
        **letters(3), plan=["repeat", ["call", {0, 1, 2}], 0, 3], statements=[depth(3)]
    )  # fmt: skip
    return check(upper(core, plans(read_core(core), 3), Shape(round_counts=2)))


def inflated(artifact: CheckedArtifact, factor: tuple[int, int]):
    weight = artifact.file.columns["call_weight"].items()
    bits = artifact.file.manifest.fraction_bits
    return inflated_counts(artifact.automaton, weight, bits, artifact.race_count, factor)


def written(artifact: CheckedArtifact, factor: Fraction) -> int:
    """What the language, the brackets and the masses of the children take, in bytes."""
    more, rows, bits = (ceil(factor) + 1).bit_length(), artifact.automaton, 0
    for q in range(rows.states):
        children = len(list(rows.edges(q))) + rows.accept[q]
        own = artifact.race_count[q].bit_length()
        if not isinstance(artifact.race_count, RoundedCounts):
            own = 0  # the artifact has them written out itself
        bits += (2 + children) * (own + more)
    return bits >> 3


@pytest.mark.parametrize("factor", [(1, 0), (17, 1), (1000, 0), (1001, 3)])
@pytest.mark.parametrize("made", [small, rounded])
def test_an_inflated_count_is_the_greater_of_its_multiple_and_its_edges_sum(made, factor):
    artifact = made()
    found = inflated(artifact, factor)
    weight = artifact.file.columns["call_weight"].items()
    bits = artifact.file.manifest.fraction_bits
    due: list[int] = []
    for q, count in enumerate(artifact.race_count):
        least = edge_sum(artifact.automaton, weight, bits, due, q)
        due.append(max(ceil(Fraction(factor[0], 10 ** factor[1]) * count), least))
    assert list(found) == due


@pytest.mark.parametrize("made", [small, rounded])
def test_counts_that_are_not_inflated_are_not_written_out(made, monkeypatch):
    artifact = made()
    monkeypatch.setattr(language, "MAX_WRITTEN_BYTES", 0)
    assert inflated(artifact, (1, 0)) is artifact.race_count
    assert read_language(artifact).race_count is artifact.race_count


@pytest.mark.parametrize("factor", ["1.7", "1000", "1.001"])
@pytest.mark.parametrize("made", [small, rounded])
def test_counts_that_would_take_too_much_when_written_out_are_declined(made, factor, monkeypatch):
    artifact, exact = made(), Fraction(factor)
    size = written(artifact, exact)
    pair = (int(exact * 1000), 3)
    monkeypatch.setattr(language, "MAX_WRITTEN_BYTES", size)
    assert len(inflated(artifact, pair)) == artifact.automaton.states
    monkeypatch.setattr(language, "MAX_WRITTEN_BYTES", size - 1)
    with pytest.raises(Rejected) as caught:
        inflated(artifact, pair)
    assert (caught.value.code.value, caught.value.path) == ("D201", "inflate")
    assert caught.value.found == f"{size} bytes"
    artifact = made()
    artifact.kept.clear()
    records = reference_records(artifact, mode="surrogate", inflate=factor)
    (found,) = validate(chained(records), artifact).findings
    assert (found.code.value, found.line, found.field) == ("D201", 1, "inflate")
