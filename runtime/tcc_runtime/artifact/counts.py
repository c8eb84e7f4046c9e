"""Race counts of a run: the artifact's own, or made greater bottom-up to stress surrogate mode.

Text: docs/spec/race.md, section 4.  Cost: nothing, or one pass over all edges, once for each
factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcc_certs.errors import Code
from tcc_certs.formats.decimals import parse_decimal
from tcc_runtime.artifact.load import Artifact


def race_counts(artifact: Artifact, inflate: str) -> Callable[[int], int]:
    """The function from a state to the m that the run uses.

    Args:
        inflate: an exact decimal, at least 1.
    """
    if inflate == "1":
        return artifact.race_count
    name = f"counts.{inflate}"
    found = artifact.kept.get(name)
    if not isinstance(found, list):
        found = artifact.kept[name] = inflated(artifact, inflate)
    return found.__getitem__


def inflated(artifact: Artifact, inflate: str) -> Sequence[int]:
    """m'(q) = max(ceil(F m(q)), the sum of the masses with m' of the targets), for every state."""
    factor, places = parse_decimal(inflate, "inflate", Code.LEDGER_SCHEMA)
    unit = 10**places
    bits, weight = artifact.manifest.fraction_bits, artifact.weight
    ranks = artifact.automaton.rank
    found: list[int] = []
    for q, rank in enumerate(ranks):
        due = (1 << bits * rank) if artifact.accepts(q) else 0
        for call, target in artifact.edges(q):
            due += weight[call] * found[target] << max(0, bits * (rank - 1 - ranks[target]))
        found.append(max(due, -(-factor * artifact.race_count(q) // unit)))
    return found
